// SPDX-License-Identifier: Apache-2.0
// Views as rows, and the division of row-wise work, which depends only on shape and kind of device.
#include "config.h"

#include <string.h>

#include "rows.h"

// Elements per chunk on CPU-like devices; four times that if there are at least MANY_ELEMENTS.
#define PIECE_ELEMENTS (1 << 14)
#define MANY_ELEMENTS (1 << 23)
// Groups that share the chunks on CPU-like devices: few, so that chunks processed at the same time
// are close in memory, yet enough for the driver to balance the load.
#define GROUPS_OF_UNIT 8
// Floats per vector, on CPU-like devices and others.
enum { CPU_LIKE_WIDTH = 16, WIDTH = 4 };

int64_t yk_gpu_elements(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

bool yk_gpu_dense(const struct yoke_view *v)
{
	int64_t n = 1;

	if (v->kind != YOKE_VIEW_BUFFER)
		return false;
	for (int i = v->rank - 1; i >= 0; i--) {
		if (v->dims[i] != 1 && v->strides[i] != n)
			return !yk_gpu_elements(v);
		n *= v->dims[i];
	}
	return true;
}

bool yk_gpu_dense_from(const struct yoke_view *v, int first)
{
	int64_t n = 1;
	for (int d = v->rank - 1; d >= first; d--) {
		if (v->dims[d] != 1 && v->strides[d] != n)
			return false;
		n *= v->dims[d];
	}
	return true;
}

bool yk_gpu_aligned(const struct yoke_view *v, size_t bytes)
{
	return v->align && v->align % bytes == 0;
}

bool yk_gpu_dense_of(const struct yoke_view *v, int dtype)
{
	return v->dtype == dtype && yk_gpu_dense(v);
}

bool yk_gpu_float(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f16 || dtype == yoke_bf16;
}

bool yk_gpu_real(int dtype)
{
	return dtype == yoke_f64 || yk_gpu_float(dtype);
}

bool yk_gpu_byte(int dtype)
{
	return dtype == yoke_i8 || dtype == yoke_u8;
}

bool yk_gpu_is_rows(const struct yoke_view *v)
{
	int k = v->rank - 1;

	return v->kind == YOKE_VIEW_BUFFER && yk_gpu_float(v->dtype) && k >= 0 &&
	       k <= YK_GPU_OUTER && (v->strides[k] == 1 || v->dims[k] <= 1) &&
	       v->dims[k] <= INT32_MAX / 2;
}

struct yk_gpu_rows yk_gpu_rows_of(const struct yoke_view *v)
{
	struct yk_gpu_rows r = { .rank = v->rank - 1 };

	memcpy(r.dims, v->dims, (size_t)r.rank * sizeof *r.dims);
	memcpy(r.strides, v->strides, (size_t)r.rank * sizeof *r.strides);
	return r;
}

int64_t yk_gpu_cols(const struct yoke_view *v)
{
	return v->dims[v->rank - 1];
}

int64_t yk_gpu_count(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank - 1; i++)
		n *= v->dims[i];
	return n;
}

bool yk_gpu_is_value(const struct yoke_view *v)
{
	if (v->kind == YOKE_VIEW_NONE ||
	    (v->kind == YOKE_VIEW_BUFFER && yk_gpu_elements(v) != 1))
		return false;
	return v->dtype == yoke_f32 || v->dtype == yoke_i32 || v->dtype == yoke_i64 ||
	       (v->dtype == yoke_f64 && v->kind == YOKE_VIEW_SCALAR);
}

bool yk_gpu_is_value_or_none(const struct yoke_view *v)
{
	return !yk_gpu_present(v) || yk_gpu_is_value(v);
}

struct yk_gpu_number yk_gpu_number_of(const struct yoke_view *v, double absent)
{
	struct yk_gpu_number n = { (int64_t)absent, (float)absent, 0 };
	uint32_t low = (uint32_t)v->offset; // a SCALAR's bits, see yoke_view
	double wide;
	int32_t narrow;

	if (v->kind == YOKE_VIEW_BUFFER)
		n.from = v->dtype;
	if (v->kind != YOKE_VIEW_SCALAR)
		return n;
	switch (v->dtype) {
	case yoke_f32:
		memcpy(&n.real, &low, sizeof low);
		n.whole = (int64_t)n.real;
		break;
	case yoke_f64:
		memcpy(&wide, &v->offset, sizeof wide);
		n.real = (float)wide;
		n.whole = (int64_t)wide;
		break;
	case yoke_i32:
		memcpy(&narrow, &low, sizeof low);
		n.whole = narrow;
		n.real = (float)narrow;
		break;
	default:
		memcpy(&n.whole, &v->offset, sizeof n.whole);
		n.real = (float)n.whole;
	}
	return n;
}

size_t yk_gpu_row_items(const struct yk_gpu_device *d, int64_t cols)
{
	size_t items = 32;

	if (d->cpu_like)
		return 1;
	while (items < 256 && (int64_t)items * 8 <= cols)
		items *= 2;
	while (items > 1 && (items > d->max_group || items > d->max_items[0]))
		items /= 2;
	return items;
}

static int store_of(int dtype)
{
	return dtype == yoke_f16 ? 1 : dtype == yoke_bf16 ? 2 : 0;
}

// GPUs load 16 bytes at once if aligned to 16.
int yk_gpu_row_width(const struct yk_gpu_device *d, const struct yoke_view *const *views,
		     int64_t part)
{
	if (d->cpu_like)
		return CPU_LIKE_WIDTH;
	for (; *views; views++) {
		const struct yoke_view *v = *views;
		if (!yk_gpu_present(v))
			continue;
		if (!yk_gpu_aligned(v, WIDTH * yk_gpu_bytes(v->dtype)) || part % WIDTH)
			return 1;
		for (int i = 0; i < v->rank - 1; i++)
			if (v->dims[i] > 1 && v->strides[i] % WIDTH)
				return 1;
	}
	return WIDTH;
}

void yk_gpu_row_defines(struct yk_gpu_build *b, const struct yk_gpu_device *d, size_t items,
			int width, const struct yoke_view *rows)
{
	yk_gpu_define(b, "ITEMS", (int64_t)items);
	yk_gpu_define(b, "VEC_WIDTH", width);
	yk_gpu_define_warp(b, d);
	yk_gpu_define(b, "STORE", store_of(rows->dtype));
	yk_gpu_flag(b, "WIDE_INDEX", yk_gpu_count(rows) > INT32_MAX);
}

void yk_gpu_beside_define(struct yk_gpu_build *b, int dtype)
{
	yk_gpu_define(b, "BESIDE", store_of(dtype));
}

bool yk_gpu_serves_beside(int beside, int dtype)
{
	return beside == dtype || (beside == yoke_f32 && yk_gpu_float(dtype));
}

int64_t yk_gpu_row_each(const struct yk_gpu_device *d, int64_t count, int64_t cols)
{
	const int64_t width = cols > 0 ? cols : 1;
	int64_t wanted = count > MANY_ELEMENTS / width ? PIECE_ELEMENTS * 4 : PIECE_ELEMENTS;

	return d->cpu_like && width < wanted ? wanted / width : 1;
}

bool yk_gpu_streams(const struct yk_gpu_device *d, const struct yoke_op *op,
		    const struct yoke_view *out)
{
	return d->cpu_like && !op->alias_mask && out->dtype == yoke_f32 && yk_gpu_dense(out) &&
	       yk_gpu_cols(out) % 16 == 0 && out->align >= 64 &&
	       (uint64_t)yk_gpu_elements(out) >= d->stream_bytes / 4;
}

int64_t yk_gpu_max_groups(const struct yk_gpu_device *d, int64_t groups)
{
	return d->max_groups && groups > d->max_groups ? d->max_groups : groups;
}

int yk_gpu_launch_chunks(struct yk_gpu_record *r, int64_t chunks, size_t items, const char *name)
{
	const int64_t max = (int64_t)r->device->info.units * GROUPS_OF_UNIT;

	return yk_gpu_launch_groups(
		r, r->device->cpu_like && chunks > max ? max : yk_gpu_max_groups(r->device, chunks),
		items, name);
}

int yk_gpu_launch_groups(struct yk_gpu_record *r, int64_t groups, size_t items, const char *name)
{
	const size_t all = (size_t)groups * items;

	return groups ? yk_gpu_launch(r, 1, &all, &items, name) : 0;
}
