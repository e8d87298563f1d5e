// SPDX-License-Identifier: Apache-2.0
// Convolutions with 3x3 taps and no stride by Winograd's algorithm F(4x4, 3x3): tiles of 4x4
// outputs take 36 products per pair of channels instead of 144. The operands of a chunk of tiles
// are transformed to 36 matrices (tiles, channels), which a work item multiplies with its
// transformed taps; the sums are transformed back in the item's scratch. CONV_X is a convolution of
// the cotangents with the turned taps. CONV_W multiplies transformed cotangents with transformed
// inputs and sums over tiles. Sums over channels and tiles are ordered by shape alone.
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kern_conv.h"
#include "kern_contract_f32.h"

#define CELL T
#define CELL_ALIGN sizeof(T)
#include "../vector/transpose.h"
#include "kern_winograd_transform.h"

enum {
	PRODUCTS = POINTS * POINTS,
	// channels of a block of transformed operands; also the length of chains of sums, which
	// bounds their error
	BLOCK = 32,
	CHAIN = 64,   // the same of tiles
	OUTPUTS = 32, // outputs of a work item
	ROWS = 48,    // tiles of a work item; a multiple of MR
	GROUP = 6,    // products of a work item of CONV_W where there are few blocks
	FEW = 16,     // blocks that suffice for load balance
	MIN_CHANNELS = 48,
	BAND = 128 << 10,   // bytes of an operand that are transposed at a time
	CHUNK = 4 << 20,    // bytes of transformed tiles that stay in a shared cache
	CHUNK_W = 10 << 20, // the same of both operands
};

// An operand that is transformed tile by tile.
struct side {
	int64_t channels, padded; // padded to whole vectors
	int64_t n[2], lo[2];      // tile (i, j) begins at element (4 i - lo[0], 4 j - lo[1])
	int span;                 // elements of a tile along each axis
	int64_t band;             // rows of tiles that are transposed at a time
};

struct yk_winograd {
	int code;
	int64_t channels, outputs; // of w
	int64_t batch, tiles[2];   // per image
	int64_t out[2];            // positions of the result, unless it is w
	int64_t chunk;             // rows of tiles that are transformed at a time
	struct side side[2];       // the transformed operands; CONV_W: inputs and cotangents
	bool keeps;                // CONV_W: sums of products are kept in the workspace
};

bool ISA(yk_winograd_can)(const struct yoke_op *op)
{
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	const struct yoke_view *v[] = { o.x, o.y };

	if (o.x->dtype != yoke_f32 || o.x->rank != 4 || op->attr[0].i != 1 || !yk_dense(o.w) ||
	    o.w->dims[0] < MIN_CHANNELS || o.w->dims[1] < MIN_CHANNELS || !o.x->dims[0])
		return false;
	for (int i = 0; i < 2; i++) {
		const struct yk_conv_axis a = yk_conv_axis_of(op, 4, 1 + i);
		// each output and each tap has products, and so no result is an empty sum
		const int64_t hi = o.y->dims[2 + i] + TAPS - 1 - o.x->dims[2 + i] - a.lo;
		if (o.w->dims[2 + i] != TAPS || a.stride != 1 || a.dilation != 1 || a.lo >= TAPS ||
		    hi >= TAPS || o.x->dims[2 + i] < TAPS)
			return false;
		if (v[i]->strides[3] != 1 || v[i]->strides[1] > INT_MAX || v[i]->strides[1] < 0)
			return false;
	}
	const struct yoke_view *tiled = op->code == YOKE_OP_CONV_X ? o.x : o.y;
	const double h = (double)tiled->dims[2], w = (double)tiled->dims[3];
	const double tiles = (double)yk_ceil_div(tiled->dims[2], TILE) *
			     (double)yk_ceil_div(tiled->dims[3], TILE);
	return PRODUCTS * tiles < 0.7 * TAPS * TAPS * h * w;
}

static struct side side_of(const struct yoke_view *v, int span, int64_t lo0, int64_t lo1,
			   const int64_t *tiles)
{
	struct side s = { .channels = v->dims[1],
			  .padded = yk_ceil_div(v->dims[1], VL) * VL,
			  .n = { v->dims[2], v->dims[3] },
			  .lo = { lo0, lo1 },
			  .span = span };
	const int64_t row = tiles[1] * TILE + POINTS - TILE;

	s.band = (BAND / (row * VL * (int64_t)sizeof(T)) - (POINTS - TILE)) / TILE;
	s.band = s.band < 1 ? 1 : yk_min(s.band, tiles[0]);
	return s;
}

static int64_t blocks_of_w(const struct yk_winograd *w)
{
	return yk_ceil_div(w->outputs, OUTPUTS) * yk_ceil_div(w->channels, BLOCK);
}

struct yk_winograd *ISA(yk_winograd_new)(const struct yoke_op *op)
{
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	const int64_t lo[] = { yk_conv_axis_of(op, 4, 1).lo, yk_conv_axis_of(op, 4, 2).lo };
	const struct yoke_view *tiled = op->code == YOKE_OP_CONV_X ? o.x : o.y;
	struct yk_winograd *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->code = op->code;
	w->outputs = o.w->dims[0];
	w->channels = o.w->dims[1];
	w->batch = o.x->dims[0];
	for (int i = 0; i < 2; i++) {
		w->out[i] = tiled->dims[2 + i];
		w->tiles[i] = yk_ceil_div(w->out[i], TILE);
	}
	if (op->code == YOKE_OP_CONV_X)
		w->side[0] = side_of(o.y, POINTS, TAPS - 1 - lo[0], TAPS - 1 - lo[1], w->tiles);
	else
		w->side[0] = side_of(o.x, POINTS, lo[0], lo[1], w->tiles);
	if (op->code == YOKE_OP_CONV_W)
		w->side[1] = side_of(o.y, TILE, 0, 0, w->tiles);
	const int64_t rows = w->batch * w->tiles[0],
		      limit = op->code == YOKE_OP_CONV_W ? CHUNK_W : CHUNK;
	const int64_t row = PRODUCTS * w->tiles[1] * (w->side[0].padded + w->side[1].padded) *
			    (int64_t)sizeof(T);
	w->chunk = yk_min(rows, row < limit ? limit / row : 1);
	w->chunk = yk_ceil_div(rows, yk_ceil_div(rows, w->chunk));
	w->keeps = op->code == YOKE_OP_CONV_W && (w->chunk < rows || blocks_of_w(w) < FEW);
	return w;
}

static int64_t side_elements(const struct yk_winograd *w, int side)
{
	return PRODUCTS * w->chunk * w->tiles[1] * w->side[side].padded;
}

uint64_t ISA(yk_winograd_bytes)(const struct yk_winograd *w)
{
	const int64_t kept = w->keeps ? blocks_of_w(w) * PRODUCTS * OUTPUTS * BLOCK : 0;

	return (uint64_t)(side_elements(w, 0) + side_elements(w, 1) + kept) * sizeof(T);
}

struct job {
	const struct yk_winograd *w;
	const struct side *side;
	const T *from;                // what `side` describes
	int64_t image, channel, line; // its strides
	T *to;                        // its transformed tiles
	int64_t row, rows;            // the chunk's rows of tiles, of all images
	bool first, last;             // chunk
	int64_t tiles, each;          // of the chunk; of a work item
	const T *x, *y, *taps;        // transformed operands; w
	T *out, *sums;                // the result; kept sums of products
	int64_t out_image, out_channel, out_line;
	_Bool failed;
};

// ---- transformed operands ----

// Transformed tiles are divided into blocks of channels: a block has PRODUCTS matrices (tiles, its
// channels).
static int64_t block_width(const struct side *s, int64_t c)
{
	return yk_min(BLOCK, s->padded - c / BLOCK * BLOCK);
}

static int64_t place(const struct side *s, int64_t tiles, int64_t c, int64_t product, int64_t tile)
{
	return c / BLOCK * BLOCK * PRODUCTS * tiles + (product * tiles + tile) * block_width(s, c) +
	       c % BLOCK;
}

// Copies n lines from `line` on with `wide` columns to `to`, transposed to vectors of the channels
// from c on; 0 outside the image.
static void transpose_lines(const struct job *job, T *to, int64_t image, int64_t c, int64_t line,
			    int64_t n, int64_t wide)
{
	const struct side *s = job->side;
	const int64_t first = yk_min(s->lo[1] > 0 ? s->lo[1] : 0, wide),
		      end = yk_min(wide, s->n[1] + s->lo[1]);
	const int lanes = (int)yk_min(VL, s->channels - c);
	const T *from = job->from + image * job->image + c * job->channel;

	for (int64_t i = line; i < line + n; i++, to += wide * VL) {
		const bool inside = i >= 0 && i < s->n[0];
		if (!inside || lanes < VL) {
			memset(to, 0, (size_t)(wide * VL) * sizeof(T));
			if (!inside)
				continue;
		}
		memset(to, 0, (size_t)(first * VL) * sizeof(T));
		pack_transposed(to + first * VL, VL,
				(const char *)(from + i * job->line + first - s->lo[1]),
				job->channel * (int64_t)sizeof(T), lanes, end - first);
		memset(to + end * VL, 0, (size_t)((wide - end) * VL) * sizeof(T));
	}
}

static void transform_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_winograd *w = job->w;
	const struct side *s = job->side;
	const int64_t vectors = s->padded / VL, c = item % vectors * VL,
		      wide = (w->tiles[1] - 1) * TILE + s->span;
	const int64_t end = yk_min(job->rows, (item / vectors + 1) * s->band);
	const int64_t apart = job->tiles * block_width(s, c);
	T *lines = yk_team_scratch((size_t)((s->band * TILE + POINTS) * wide * VL) * sizeof(T));

	if (!lines) {
		job->failed = true;
		return;
	}
	for (int64_t row = item / vectors * s->band, n; row < end; row += n) {
		const int64_t image = (job->row + row) / w->tiles[0],
			      top = (job->row + row) % w->tiles[0];
		n = yk_min(end - row, w->tiles[0] - top);
		transpose_lines(job, lines, image, c, top * TILE - s->lo[0],
				(n - 1) * TILE + s->span, wide);
		for (int64_t i = 0; i < n * w->tiles[1]; i++) {
			const T *from =
				lines +
				(i / w->tiles[1] * TILE * wide + i % w->tiles[1] * TILE) * VL;
			T *to = job->to + place(s, job->tiles, c, 0, row * w->tiles[1] + i);
			if (s->span == POINTS)
				transform(transform_input, POINTS, POINTS, from, wide * VL, VL, to,
					  apart);
			else
				transform(transform_cotangents, TILE, POINTS, from, wide * VL, VL,
					  to, apart);
		}
	}
}

static void transform_side(struct job *job, int side, const struct yoke_view *v, T *to)
{
	job->side = &job->w->side[side];
	job->from = yk_ptr(v);
	job->image = v->strides[0];
	job->channel = v->strides[1];
	job->line = v->strides[2];
	job->to = to;
	yk_team_run(job->side->padded / VL * yk_ceil_div(job->rows, job->side->band),
		    transform_item, job);
}

// ---- CONV and CONV_X ----

// Transforms the taps of `k` channels of the operand from c on and `wide` outputs from o on to
// panels of NR outputs; channels and outputs that are padding become 0.
static void transform_panels(const struct job *job, T *to, int64_t c, int64_t k, int64_t o,
			     int64_t wide)
{
	enum { EACH = TAPS * TAPS, RUN = 16 };
	const struct yk_winograd *w = job->w;
	const bool turned = w->code == YOKE_OP_CONV_X;
	const int64_t inputs = turned ? w->outputs : w->channels,
		      outputs = turned ? w->channels : w->outputs;
	const int64_t apart = yk_ceil_div(wide, NR) * NR * k;
	T part[RUN * EACH * VL];

	for (int64_t v = 0; v < wide; v += VL) {
		const int lanes = (int)yk_min(VL, outputs - o - v);
		T *panel = to + v / NR * NR * k + v % NR;
		if (lanes < VL)
			memset(part, 0, sizeof part);
		for (int64_t l = 0; l < k; l += RUN) {
			const int64_t real = inputs - c - l < RUN ? inputs - c - l : RUN;
			for (int64_t q = 0; q < real && turned; q++)
				pack_transposed(
					part + q * EACH * VL, VL,
					(const char *)(job->taps +
						       ((c + l + q) * w->channels + o + v) * EACH),
					EACH * sizeof(T), lanes, EACH);
			if (!turned)
				pack_transposed(
					part, VL,
					(const char *)(job->taps +
						       ((o + v) * w->channels + c + l) * EACH),
					w->channels * EACH * (int64_t)sizeof(T), lanes,
					real * EACH);
			if (real < RUN)
				memset(part + real * EACH * VL, 0,
				       (size_t)((RUN - real) * EACH * VL) * sizeof(T));
			for (int64_t q = 0; q < yk_min(RUN, k - l); q++) {
				const int64_t step = turned ? -VL : VL;
				transform(transform_taps, TAPS, POINTS,
					  part + (q * EACH + (turned ? EACH - 1 : 0)) * VL,
					  TAPS * step, step, panel + (l + q) * NR, apart);
			}
		}
	}
}

// Stores the 4x4 outputs of `lanes` channels, of which h x w are in the image.
static void store_tile(const T *from, T *to, int64_t channel, int64_t line, int lanes, int64_t h,
		       int64_t w)
{
	for (int64_t i = 0; i < h; i++) {
		int q = 0;
		for (; w >= TILE && q + 4 <= lanes; q += 4)
			transpose4((const char *)(from + i * TILE * VL + q), VL * sizeof(T),
				   to + q * channel + i * line, (int)channel);
		for (; q < lanes; q++)
			for (int64_t j = 0; j < yk_min(w, TILE); j++)
				to[q * channel + i * line + j] = from[(i * TILE + j) * VL + q];
	}
}

// Transforms the sums of n tiles from `tile` on and `wide` outputs from o on, and stores them.
static void finish(const struct job *job, const T *sums, int64_t tile, int64_t n, int64_t o,
		   int64_t wide)
{
	const struct yk_winograd *w = job->w;
	const int64_t outputs = w->code == YOKE_OP_CONV_X ? w->channels : w->outputs;
	T part[TILE * TILE * VL];

	for (int64_t v = 0; v < wide; v += VL) {
		const int lanes = (int)yk_min(VL, outputs - o - v);
		for (int64_t t = 0; t < n; t++) {
			const int64_t row = job->row + (tile + t) / w->tiles[1],
				      x = (tile + t) % w->tiles[1] * TILE;
			const int64_t image = row / w->tiles[0], y = row % w->tiles[0] * TILE;
			transform(transform_output, POINTS, TILE, sums + t * wide + v,
				  POINTS * n * wide, n * wide, part, VL);
			store_tile(part,
				   job->out + image * job->out_image + (o + v) * job->out_channel +
					   y * job->out_line + x,
				   job->out_channel, job->out_line, lanes,
				   yk_min(TILE, w->out[0] - y), w->out[1] - x);
		}
	}
}

static void product_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_winograd *w = job->w;
	const struct side *s = &w->side[0];
	const int64_t outputs = w->code == YOKE_OP_CONV_X ? w->channels : w->outputs,
		      of = yk_ceil_div(outputs, OUTPUTS);
	const int64_t o = item % of * OUTPUTS,
		      wide = yk_ceil_div(yk_min(OUTPUTS, outputs - o), VL) * VL;
	const int64_t tile = item / of * job->each, n = yk_min(job->each, job->tiles - tile);
	const int64_t panels = yk_ceil_div(wide, NR) * NR * BLOCK;
	T *taps = yk_team_scratch((size_t)(PRODUCTS * (panels + n * wide)) * sizeof(T)),
	  *sums = taps + PRODUCTS * panels;

	if (!taps) {
		job->failed = true;
		return;
	}
	for (int64_t c = 0; c < s->padded; c += BLOCK) {
		const int64_t k = block_width(s, c);
		transform_panels(job, taps, c, k, o, wide);
		for (int64_t p = 0; p < PRODUCTS; p++)
			ISA(yk_gemm_f32_panels)
		(n, wide, k, job->x + place(s, job->tiles, c, p, tile),
		 taps + p * yk_ceil_div(wide, NR) * NR * k, sums + p * n * wide, wide, c > 0);
	}
	finish(job, sums, tile, n, o, wide);
}

// ---- CONV_W ----

// Transforms a block of sums of products, (outputs, width) of each, and stores them as taps.
static void finish_taps(const struct job *job, const T *sums, int64_t o, int64_t outputs, int64_t c,
			int64_t width)
{
	enum { EACH = TAPS * TAPS };
	const struct yk_winograd *w = job->w;
	T part[EACH * VL];

	for (int64_t i = 0; i < outputs; i++)
		for (int64_t v = 0; v < width; v += VL) {
			transform(transform_gradient, POINTS, TAPS, sums + i * width + v,
				  POINTS * outputs * width, outputs * width, part, VL);
			pack_transposed(job->out + ((o + i) * w->channels + c + v) * EACH, EACH,
					(const char *)part, VL * sizeof(T), EACH,
					yk_min(VL, w->channels - c - v));
		}
}

static void gradient_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_winograd *w = job->w;
	const struct side *x = &w->side[0], *y = &w->side[1];
	const int64_t groups = w->keeps ? PRODUCTS / GROUP : 1, block = item / groups,
		      across = yk_ceil_div(w->channels, BLOCK);
	const int64_t o = block / across * OUTPUTS, c = block % across * BLOCK,
		      width = block_width(x, c);
	const int64_t outputs = yk_min(OUTPUTS, w->outputs - o),
		      first = w->keeps ? item % groups * GROUP : 0;
	const int rows = ISA(yk_gemm_f32_rows);
	T *sums = w->keeps ? job->sums + block * PRODUCTS * OUTPUTS * BLOCK :
			     yk_team_scratch((size_t)(PRODUCTS * OUTPUTS * BLOCK) * sizeof(T));

	if (!sums) {
		job->failed = true;
		return;
	}
	for (int64_t p = first; p < first + (w->keeps ? GROUP : PRODUCTS); p++) {
		const T *of_x = job->x + place(x, job->tiles, c, p, 0),
			*of_y = job->y + place(y, job->tiles, o, p, 0);
		const int64_t lda = block_width(y, o);
		for (int64_t t = 0; t < job->tiles; t += CHAIN)
			for (int64_t i = 0; i < outputs; i += rows) {
				const int some = (int)yk_min(rows, outputs - i);
				const int64_t deep = yk_min(CHAIN, job->tiles - t);
				ISA(yk_gemm_f32_across)
				(some, width, deep, of_y + t * lda + i, lda, of_x + t * width,
				 width, sums + (p * outputs + i) * width, width,
				 t || !job->first, NULL, 0);
			}
	}
	if (!w->keeps)
		finish_taps(job, sums, o, outputs, c, width);
}

static void taps_item(void *arg, int64_t block)
{
	const struct job *job = arg;
	const struct yk_winograd *w = job->w;
	const int64_t across = yk_ceil_div(w->channels, BLOCK), o = block / across * OUTPUTS,
		      c = block % across * BLOCK;

	finish_taps(job, job->sums + block * PRODUCTS * OUTPUTS * BLOCK, o,
		    yk_min(OUTPUTS, w->outputs - o), c, block_width(&w->side[0], c));
}

// ---- entry point ----

int ISA(yk_winograd_run)(const struct yk_winograd *w, const struct yoke_op *op)
{
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	const bool along = op->code == YOKE_OP_CONV_W;
	const struct yoke_view *r = &op->out[0];
	const int64_t rows = w->batch * w->tiles[0];
	T *x = yk_ptr(&op->workspace), *y = x + side_elements(w, 0);
	struct job job = { .w = w,
			   .x = x,
			   .y = y,
			   .out = yk_ptr(r),
			   .sums = y + side_elements(w, 1),
			   .taps = yk_ptr(o.w),
			   .out_image = r->strides[0],
			   .out_channel = r->strides[1],
			   .out_line = r->strides[2] };

	for (job.row = 0; job.row < rows; job.row += job.rows) {
		job.rows = yk_min(w->chunk, rows - job.row);
		job.tiles = job.rows * w->tiles[1];
		job.first = !job.row;
		transform_side(&job, 0, op->code == YOKE_OP_CONV_X ? o.y : o.x, x);
		if (along) {
			transform_side(&job, 1, o.y, y);
			yk_team_run(blocks_of_w(w) * (w->keeps ? PRODUCTS / GROUP : 1),
				    gradient_item, &job);
			continue;
		}
		job.each =
			yk_ceil_div(yk_ceil_div(job.tiles, yk_ceil_div(job.tiles, ROWS)), MR) * MR;
		yk_team_run(yk_ceil_div(op->code == YOKE_OP_CONV_X ? w->channels : w->outputs,
					OUTPUTS) *
				    yk_ceil_div(job.tiles, job.each),
			    product_item, &job);
	}
	if (w->keeps)
		yk_team_run(blocks_of_w(w), taps_item, &job);
	if (job.failed)
		return yk_cpu_fail(YOKE_ENOMEM, "conv: no memory for transformed taps");
	return 0;
}
