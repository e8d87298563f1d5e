// SPDX-License-Identifier: Apache-2.0
// Tests packed variables: their byte offsets, which stay fixed over updates, writes, failures and
// moves, and results that equal those of unpacked variables bit for bit. Random programs with
// packed variables are in tests/random.c.
// The program runs itself once for each backend and setting.

#include "config.h"

#include "base/num.h"
#include "fault/fault.h"
#include "graph/context.h"
#include "graph/handle.h"
#include "stats.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { LIMIT = 24, MIB = 1 << 20 };

static const struct fault_control *ctl; // NULL: another backend
static yoke_context *ctx;
static bool in_place, eager; // updates are; so is evaluation

static uint64_t rounded(uint64_t bytes)
{
	return yk_pool_round(ctx->device->pool, bytes);
}

// Bytes that a variable takes in a pack.
static uint64_t room(uint64_t bytes)
{
	return (bytes + !bytes + 255) / 256 * 256;
}

static bool good(bool is, const char *what)
{
	bool fine = ok(is && !yoke_error_code(), "%s%s%s", what, *yoke_error() ? ": " : "",
		       yoke_error());
	yoke_error_clear();
	return fine;
}

// ---- variables and what they should be ----

struct var {
	yoke_tensor *t;
	size_t bytes;
	unsigned char *data;
};

static void draw(struct var *v)
{
	int dtype = yoke_dtype(v->t);
	size_t size = yoke_dtype_size(dtype);
	for (size_t i = 0; i < v->bytes; i += size) {
		int64_t n = rnd_int(0, 1);
		if (dtype != yoke_bool)
			n = rnd_int(0, 100);
		yk_num_store(v->data + i, (struct yk_num){ (double)n / 4, n }, dtype);
	}
}

static void fresh(struct var *v, int dtype, int rank, const int64_t *dims)
{
	char name[32];
	static int serial;
	snprintf(name, sizeof name, "v%d", serial++);
	v->t = yoke_variable(name, dtype, rank, dims);
	v->bytes = yoke_bytes(v->t);
	v->data = malloc(v->bytes + 1);
	draw(v);
	yoke_put(v->t, v->data, v->bytes);
}

static void fresh_random(struct var *v)
{
	static const int dtype[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16, yoke_i8,
				     yoke_u8,  yoke_i32, yoke_i64, yoke_bool };
	int64_t dims[4];
	int rank = (int)rnd_int(0, 4);
	for (int i = 0; i < rank; i++)
		dims[i] = rnd_int(0, 30) ? rnd_int(1, 9) : 0;
	fresh(v, dtype[rnd_int(0, 8)], rank, dims);
}

static void drop(struct var *v)
{
	yoke_free(v->t);
	free(v->data);
	v->t = NULL;
}

static bool is_whole(const struct var *v)
{
	unsigned char *got = malloc(v->bytes + 1);
	memset(got, 0xff, v->bytes);
	bool same = yoke_read(v->t, got, v->bytes) == 0 && !memcmp(got, v->data, v->bytes);
	free(got);
	return same;
}

static int torn(const struct var *v, int n)
{
	int bad = 0;
	for (int i = 0; i < n; i++)
		bad += v[i].t && !is_whole(&v[i]);
	return bad;
}

static int pack(const struct var *v, int n)
{
	yoke_tensor *t[LIMIT];
	for (int i = 0; i < n; i++)
		t[i] = v[i].t;
	return yoke_pack(n, t);
}

static const struct yk_storage *storage(yoke_tensor *t)
{
	return yk_tensor(t, "test")->storage;
}

// Are they in one buffer, in this order, each at the right offset?
static bool in_order(const struct var *v, int n)
{
	uint64_t at = 0;
	bool fine = true;
	for (int i = 0; i < n; i++) {
		const struct yk_storage *s = storage(v[i].t);
		fine &= s->buffer == storage(v[0].t)->buffer && s->offset == at;
		at += room(v[i].bytes);
	}
	return fine;
}

static void shuffle(struct var *v, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int k = (int)rnd_int(0, i);
		struct var x = v[i];
		v[i] = v[k];
		v[k] = x;
	}
}

// ---- places ----

// The expected block: the variables, with zeros between them.
static bool is_image(const struct var *v, int n)
{
	uint64_t bytes = 0, at = 0;
	for (int i = 0; i < n; i++)
		bytes += room(v[i].bytes);
	unsigned char *got = malloc(bytes), *want = calloc(1, bytes);
	for (int i = 0; i < n; i++, at += room(v[i - 1].bytes))
		memcpy(want + at, v[i].data, v[i].bytes);
	const struct yk_block *b = storage(v[0].t)->buffer->block;
	memset(got, 0xff, bytes);
	int err =
		ctx->device->ops->get(ctx->queues.steps->handle, b->segment, b->offset, got, bytes);
	bool same = !err && !yk_queue_drain(ctx->queues.steps) && !memcmp(got, want, bytes);
	free(got);
	free(want);
	return same;
}

static void places(void)
{
	int wrong = 0, accounts = 0, images = 0;
	for (int k = 0; k < 40; k++) {
		struct var v[LIMIT];
		int n = (int)rnd_int(1, LIMIT);
		uint64_t none = stats().pool_allocated, apart = none, all = 0;
		for (int i = 0; i < n; i++) {
			fresh_random(&v[i]);
			apart += rounded(v[i].bytes);
			all += room(v[i].bytes);
		}
		accounts += stats().pool_allocated != apart;
		for (int again = 0; again < 2; again++) { // packed again in another order
			shuffle(v, n);
			wrong += pack(v, n) < 0 || !in_order(v, n) || torn(v, n);
			accounts += stats().pool_allocated != none + rounded(all);
			images += !is_image(v, n);
		}
		int part = (int)rnd_int(1, n); // some move to a separate pack
		wrong += pack(v, part) < 0 || !in_order(v, part) || torn(v, n);
		shuffle(v, n);
		for (int i = 0; i < n; i++) {
			drop(&v[i]);
			wrong += torn(v + i + 1, n - i - 1);
		}
		accounts += stats().pool_allocated != none;
	}
	good(!wrong && !images && !accounts,
	     "random variables lie in the order given, with zeros between, and are "
	     "freed one by one");
	if (wrong + images + accounts)
		diag("%d wrong, %d blocks not as they should be, %d accounts wrong", wrong, images,
		     accounts);
}

// ---- updates ----

enum { P = 5 };

// P parameters with two moments each, and gradients, as 4 P variables.
static void make_model(struct var *v)
{
	for (int i = 0; i < 4 * P; i++)
		fresh(&v[i], yoke_f32, 2, DIMS(3 + i % P, 17));
}

static void copy_values(struct var *to, const struct var *from, int n)
{
	for (int i = 0; i < n; i++) {
		memcpy(to[i].data, from[i].data, from[i].bytes);
		yoke_put(to[i].t, to[i].data, to[i].bytes);
	}
}

static void optimize(const struct var *v, int from, int to)
{
	yoke_tensor *t[4 * P], *lr = yoke_scalar(0.01), *c = yoke_scalar(0.5),
			       *one = yoke_scalar(1);
	for (int i = 0; i < 4 * P; i++)
		t[i] = v[i].t;
	struct yoke_adamw a = { .size = sizeof a,
				.lr = lr,
				.c1 = c,
				.c2 = c,
				.scale = YOKE_NONE,
				.beta1 = 0.9,
				.beta2 = 0.99,
				.eps = 1e-8,
				.weight_decay = 0.1 };
	struct yoke_sgd b = {
		.size = sizeof b, .lr = lr, .first = one, .scale = YOKE_NONE, .momentum = 0.9
	};
	for (int i = from; i < to; i++) {
		yoke_scope *s = yoke_scope_begin("step");
		if (i % 3)
			yoke_adamw_step(P, t, t + P, t + 2 * P, t + 3 * P, &a);
		else
			yoke_sgd_step(P, t, t + P, t + 2 * P, &b);
		yoke_assign(t[P], yoke_add(t[P], yoke_mul(lr, t[0]))); // the gradient continues
		yoke_eval(0, NULL);
		yoke_scope_end(s);
	}
	yoke_free(lr);
	yoke_free(c);
	yoke_free(one);
}

// Do the variables of two lists have the same bits?
static bool equal(struct var *a, struct var *b, int n)
{
	int bad = 0;
	for (int i = 0; i < n; i++) {
		memset(a[i].data, 0xff, a[i].bytes);
		bad += yoke_read(a[i].t, a[i].data, a[i].bytes) < 0;
		memcpy(b[i].data, a[i].data, a[i].bytes);
		bad += !is_whole(&b[i]);
	}
	return !bad;
}

static void optimizers(void)
{
	struct var packed[4 * P], apart[4 * P];
	make_model(packed);
	make_model(apart);
	copy_values(apart, packed, 4 * P);
	good(!pack(packed, 4 * P), "a model is packed");
	optimize(packed, 0, 3);
	struct yoke_stats a = stats();
	optimize(packed, 3, 22);
	struct yoke_stats b = stats();
	optimize(apart, 0, 22);
	good(equal(packed, apart, 4 * P) && in_order(packed, 4 * P),
	     "22 steps of two optimizers: the same bits, "
	     "in their places");
	good(a.pool_allocated == b.pool_allocated &&
		     (!in_place || a.pack_copies == b.pack_copies) && !b.unpacked,
	     "in place");
	for (int i = 0; i < 4 * P; i++) {
		drop(&packed[i]);
		drop(&apart[i]);
	}
}

// Copies that an update costs.
static void update(const char *what, struct var *v, yoke_tensor *(*of)(yoke_tensor *),
		   uint64_t copies)
{
	struct yoke_stats a = stats();
	yoke_scope *s = yoke_scope_begin("update");
	yoke_tensor *x = of(v[1].t), *y = yoke_contiguous(x);
	yoke_keep(y);
	yoke_read(y, v[1].data, v[1].bytes);
	yoke_free(y);
	yoke_scope_end(s);
	s = yoke_scope_begin("update");
	yoke_assign(v[1].t, of(v[1].t));
	yoke_eval(0, NULL);
	yoke_scope_end(s);
	struct yoke_stats b = stats();
	bool counted = !in_place || (b.pack_copies - a.pack_copies == copies &&
				     b.pack_copy_bytes - a.pack_copy_bytes == copies * v[1].bytes);
	good(!torn(v, 3) && in_order(v, 3) && counted && b.pool_allocated == a.pool_allocated,
	     what);
	if (!counted)
		diag("%llu copies", (unsigned long long)(b.pack_copies - a.pack_copies));
}

static yoke_tensor *doubled(yoke_tensor *x)
{
	return yoke_add(x, x);
}

static yoke_tensor *product(yoke_tensor *x)
{
	return yoke_mul(yoke_matmul(x, x, 0), yoke_const(0.01));
}

static yoke_tensor *other(yoke_tensor *x)
{
	(void)x;
	return yoke_iota(yoke_f32, 2, DIMS(16, 16), 1);
}

static struct var *held; // the value assigned to a variable

static yoke_tensor *value(yoke_tensor *x)
{
	(void)x;
	return held->t;
}

static void updates(void)
{
	struct var v[3], w = { 0 };
	for (int i = 0; i < 3; i++)
		fresh(&v[i], yoke_f32, 2, DIMS(16, 16));
	fresh(&w, yoke_f32, 2, DIMS(16, 16));
	good(!pack(v, 3), "three matrices");
	update("an elementwise update is in place", v, doubled, 0);
	update("what the old version is read for to the end is copied", v, product, 1);
	update("what does not read the old version is written over it", v, other, 0);
	held = &w;
	update("another variable's value is copied", v, value, 1);
	held = &v[0];
	update("so is a neighbour's", v, value, 1);
	held = &v[1];
	update("its own value stays", v, value, 0);
	update("and the next update is in place again", v, doubled, 0);
	good(is_whole(&w), "the other one's is left alone");
	good(!stats().unpacked, "none left");
	for (int i = 0; i < 3; i++)
		drop(&v[i]);
	drop(&w);
}

// ---- old versions ----

// Work recorded with a version reads that version, whatever happens to the variable.
static void versions(void)
{
	struct var v[3], w[3];
	float sum[2] = { NAN, NAN }, want[2] = { 0 };
	for (int i = 0; i < 3; i++) {
		fresh(&v[i], yoke_f32, 1, DIMS(100));
		fresh(&w[i], yoke_f32, 1, DIMS(100));
	}
	copy_values(w, v, 3);
	yoke_scope *s = yoke_scope_begin("versions");
	for (int i = 0; i < 100; i++)
		want[0] += ((float *)v[1].data)[i];
	yoke_tensor *before = yoke_sum(v[1].t, YOKE_ALL); // pending over everything that follows
	uint64_t apart = stats().pool_allocated;
	good(!pack(v, 3) && in_order(v, 3) &&
		     stats().pool_allocated == apart - 3 * rounded(400) + rounded(3 * 512),
	     "packed behind a reader, which reads it there");
	draw(&v[1]);
	yoke_put(v[1].t, v[1].data, v[1].bytes);
	for (int i = 0; i < 100; i++)
		want[1] += ((float *)v[1].data)[i];
	yoke_tensor *behind = yoke_sum(v[1].t, YOKE_ALL);
	draw(&v[1]);
	yoke_put(v[1].t, v[1].data, v[1].bytes);
	yoke_read(behind, &sum[1], sizeof *sum);
	yoke_read(before, &sum[0], sizeof *sum);
	good(fabsf(sum[0] - want[0]) < 1e-2f && fabsf(sum[1] - want[1]) < 1e-2f && !torn(v, 3) &&
		     in_order(v, 3),
	     "puts wait for the readers of the versions before");
	yoke_scope_end(s);

	// a gradient by a variable that is packed after the loss was recorded
	yoke_tensor *g[2];
	float slope[100];
	s = yoke_scope_begin("gradient");
	yoke_tensor *loss = yoke_sum(yoke_square(w[1].t), YOKE_ALL);
	good(!pack(w, 3), "packed behind a loss");
	good(!yoke_grad(loss, 2, (yoke_tensor *[]){ w[1].t, w[0].t }, g),
	     "whose gradient is taken then");
	yoke_read(g[0], slope, sizeof slope);
	int wrong = 0;
	for (int i = 0; i < 100; i++)
		wrong += slope[i] != 2 * ((float *)w[1].data)[i];
	good(!wrong, "and right");
	yoke_scope_end(s);

	// one value, two variables and a handle
	s = yoke_scope_begin("shared");
	yoke_tensor *x = yoke_keep(yoke_mul(v[0].t, yoke_const(3)));
	yoke_assign(v[1].t, x);
	yoke_assign(v[2].t, x);
	yoke_assign(w[1].t, x);
	yoke_eval(0, NULL);
	yoke_scope_end(s);
	for (int i = 0; i < 100; i++)
		((float *)v[1].data)[i] = 3 * ((float *)v[0].data)[i];
	memcpy(v[2].data, v[1].data, v[1].bytes);
	memcpy(w[1].data, v[1].data, v[1].bytes);
	good(!torn(v, 3) && !torn(w, 3) && in_order(v, 3) && in_order(w, 3),
	     "one value of three packed variables");
	draw(&v[2]);
	yoke_put(v[2].t, v[2].data, v[2].bytes);
	float got[100];
	memset(got, 0xff, sizeof got);
	yoke_read(x, got, sizeof got);
	good(!memcmp(got, v[1].data, sizeof got) && !torn(v, 3) && !torn(w, 3),
	     "of which one goes on");
	yoke_free(x);

	// two variables exchange their values
	for (int k = 0; k < 3; k++) {
		s = yoke_scope_begin("swap");
		yoke_tensor *a = yoke_stop_grad(v[0].t), *b = yoke_stop_grad(v[2].t);
		yoke_assign(v[0].t, b);
		yoke_assign(v[2].t, a);
		yoke_eval(0, NULL);
		yoke_scope_end(s);
		unsigned char *data = v[0].data;
		v[0].data = v[2].data;
		v[2].data = data;
	}
	good(!torn(v, 3) && in_order(v, 3), "two are exchanged, and keep their places");
	good(!stats().unpacked, "none left");
	for (int i = 0; i < 3; i++) {
		drop(&v[i]);
		drop(&w[i]);
	}
}

// ---- errors ----

static void refused(int err, int code, const char *words)
{
	ok(err == code && yoke_error_code() == code && strstr(yoke_error(), words), "%s: %s",
	   yoke_error_name(err), yoke_error());
	yoke_error_clear();
}

static void released(void *memory)
{
	free(memory);
}

static void errors(void)
{
	struct var v[3];
	yoke_tensor *t[3];
	for (int i = 0; i < 3; i++) {
		fresh(&v[i], yoke_f32, 1, DIMS(8));
		t[i] = v[i].t;
	}
	uint64_t held_bytes = stats().pool_allocated;
	refused(yoke_pack(0, t), YOKE_EINVAL, "at least one");
	refused(yoke_pack(2, (yoke_tensor *[]){ t[0], NULL }), YOKE_EINVAL, "variable 1 is NULL");
	refused(yoke_pack(2, (yoke_tensor *[]){ t[0], YOKE_NONE }), YOKE_EINVAL, "YOKE_NONE");
	refused(yoke_pack(3, (yoke_tensor *[]){ t[0], t[1], t[0] }), YOKE_EINVAL, "given twice");
	yoke_tensor *x = yoke_keep(yoke_exp(t[0]));
	refused(yoke_pack(2, (yoke_tensor *[]){ t[0], x }), YOKE_EINVAL, "is no variable");
	yoke_free(x);
	void *memory = aligned_alloc(4096, 4096);
	memset(memory, 0, 4096);
	x = yoke_wrap(yoke_f32, 1, DIMS(1024), memory, released, memory);
	refused(yoke_pack(1, &x), YOKE_EINVAL, "is no variable");
	yoke_free(x);
	yoke_scope *s = yoke_scope_begin("pending");
	yoke_assign(t[1], yoke_exp(t[1]));
	refused(yoke_pack(3, t), YOKE_EINVAL, "pending");
	yoke_scope_end(s);
	yoke_put(t[1], v[1].data, v[1].bytes);
	yoke_context *mine = yoke_use(yoke_context_new(NULL));
	yoke_tensor *theirs = yoke_variable("theirs", yoke_f32, 1, DIMS(8));
	yoke_context *second = yoke_use(mine);
	refused(yoke_pack(2, (yoke_tensor *[]){ t[0], theirs }), YOKE_ECONTEXT, "another context");
	yoke_context_free(second);
	refused(yoke_pack(1, &theirs), YOKE_ECONTEXT, "pack");
	good(!torn(v, 3) && stats().pool_allocated == held_bytes, "nothing has changed");

	// a failing evaluation: its results are lost, and their offsets remain
	good(!pack(v, 3), "then it is packed");
	s = yoke_scope_begin("lost");
	yoke_assign(t[1], yoke_check_finite(yoke_log(yoke_mul(t[1], yoke_const(0)))));
	yoke_eval(0, NULL);
	yoke_sync();
	yoke_scope_end(s);
	refused(yoke_error_code(), YOKE_ERANGE, "check_finite");
	if (!eager)
		refused(yoke_pack(3, t), YOKE_EFAILED, "lost");
	yoke_put(t[1], v[1].data, v[1].bytes);
	for (int i = 0; i < 3; i += 2) // may also be lost, where a device reports late
		yoke_put(t[i], v[i].data, v[i].bytes);
	good(!torn(v, 3) && in_order(v, 3) && !stats().unpacked,
	     "a lost one comes back to its place");
	for (int i = 0; i < 3; i++)
		drop(&v[i]);
}

// ---- many ----

enum { MANY = 1000 };

// More operands than a byte can count: packed, concatenated, differentiated, updated, after a
// barrier.
static void many(void)
{
	static yoke_tensor *t[MANY], *g[MANY], *m[MANY], *b[MANY];
	static float got[MANY];
	uint64_t none = stats().pool_allocated;
	int wrong = 0;
	for (int i = 0; i < MANY; i++) {
		float x = (float)(i % 97);
		t[i] = yoke_variable("t", yoke_f32, 1, DIMS(1));
		m[i] = yoke_variable("m", yoke_f32, 1, DIMS(1));
		yoke_put(t[i], &x, sizeof x);
	}
	good(!yoke_pack(MANY, t) &&
		     stats().pool_allocated == none + rounded(256 * MANY) + MANY * rounded(4),
	     "1000 variables are packed");
	yoke_scope *s = yoke_scope_begin("many");
	yoke_tensor *all = yoke_concat(MANY, t, 0), *lr = yoke_keep(yoke_scalar(0.5));
	good(!yoke_grad(yoke_sum(yoke_square(all), YOKE_ALL), MANY, t, g),
	     "joined, and differentiated");
	good(!yoke_barrier(MANY, g, 0, NULL, b), "behind a barrier");
	struct yoke_sgd o = {
		.size = sizeof o, .lr = lr, .first = lr, .scale = YOKE_NONE, .momentum = 1
	};
	good(!yoke_sgd_step(MANY, t, b, m, &o) && !yoke_eval(0, NULL), "and updated in a step");
	yoke_scope_end(s);
	s = yoke_scope_begin("read");
	yoke_read(yoke_concat(MANY, t, 0), got, sizeof got);
	for (int i = 0; i < MANY; i++) // x - 0.5 (0 + 2 x)
		wrong += got[i] != 0;
	yoke_read(yoke_concat(MANY, m, 0), got, sizeof got);
	for (int i = 0; i < MANY; i++)
		wrong += got[i] != 2 * (float)(i % 97);
	yoke_scope_end(s);
	good(!wrong, "to the right numbers");
	for (int i = 0; i < MANY; i++) {
		yoke_free(t[i]);
		yoke_free(m[i]);
	}
	yoke_free(lr);
	good(stats().pool_allocated == none, "nothing is left");
}

// ---- short memory ----

// Under a limit of 96 MiB: packs between holes are moved as a unit.
static void moved(void)
{
	struct var v[32], more;
	int n = 0;
	uint64_t before = stats().pool_moved_bytes;
	for (; n < 22; n++)
		fresh(&v[n], yoke_i32, 1, DIMS(MIB));
	for (int i = 0; i + 2 < n; i += 4) // pairs of 2 MiB, each followed by a hole of 4
		drop(&v[i]), drop(&v[i + 1]);
	struct var pair[2];
	fresh(&pair[0], yoke_i32, 1, DIMS(MIB / 2));
	fresh(&pair[1], yoke_f64, 1, DIMS(MIB / 4 - 77));
	good(!pack(pair, 2), "a pack between holes");
	for (int i = 2; i + 4 < n; i += 4)
		drop(&v[i]);
	fresh(&more, yoke_i32, 1, DIMS(5 * MIB)); // 20 MiB
	good(more.t && stats().pool_moved_bytes > before && !torn(v, n) && is_whole(&more) &&
		     in_order(pair, 2) && !torn(pair, 2),
	     "is whole when blocks were moved together");
	yoke_scope *s = yoke_scope_begin("update");
	yoke_assign(pair[0].t, yoke_mul(pair[0].t, yoke_const(3)));
	yoke_scope_end(s);
	for (size_t i = 0; i < pair[0].bytes / 4; i++)
		((int32_t *)pair[0].data)[i] *= 3;
	good(!torn(pair, 2) && in_order(pair, 2), "and is updated in its new place");
	for (int i = 0; i < n; i++)
		if (v[i].t)
			drop(&v[i]);
	for (int i = 0; i < 2; i++)
		drop(&pair[i]);
	drop(&more);
}

// Repeats without the fault from where it struck.
static int again(int err)
{
	if (!err)
		return 0;
	ctl->arm("segment", 0);
	yoke_error_clear();
	return 1;
}

// A scenario whose n-th allocation, and all later ones until the failure is noticed, fail. Does it
// make that many?
static bool starved(long n, int *wrong, uint64_t *left)
{
	struct var v[3];
	uint64_t none = stats().pool_allocated;
	for (int i = 0; i < 3; i++)
		fresh(&v[i], yoke_f32, 2, DIMS(8, 8));
	uint64_t apart = stats().pool_allocated;
	struct yoke_stats a = stats();
	long calls = ctl->calls("segment");
	ctl->arm("segment", n);
	if (again(pack(v, 3))) {
		*wrong += torn(v, 3) || stats().pool_allocated != apart;
		*wrong += pack(v, 3) < 0;
	}
	yoke_scope *s = yoke_scope_begin("starved");
	yoke_assign(v[0].t, yoke_add(v[0].t, v[0].t)); // in place
	yoke_assign(v[1].t, yoke_matmul(v[1].t, v[1].t, 0)); // not
	if (again(yoke_eval(0, NULL)))
		*wrong += yoke_eval(0, NULL) < 0;
	yoke_tensor *old = yoke_neg(v[2].t); // holds the version that is overwritten
	if (again(yoke_put(v[2].t, v[0].data, v[0].bytes)))
		*wrong += yoke_put(v[2].t, v[0].data, v[0].bytes) < 0;
	float first = NAN, *x = (float *)v[0].data, *y = (float *)v[1].data,
	      *z = (float *)v[2].data;
	yoke_tensor *part =
		yoke_reshape(yoke_slice(yoke_slice(old, 0, 0, 1, 1), 1, 0, 1, 1), 0, NULL);
	if (again(yoke_read(part, &first, sizeof first)))
		*wrong += yoke_read(part, &first, sizeof first) < 0;
	yoke_scope_end(s);
	ctl->arm("segment", 0);
	*wrong += first != -z[0];
	memcpy(z, x, v[0].bytes);
	float square[64];
	for (int i = 0; i < 64; i++) {
		x[i] *= 2;
		square[i] = 0;
		for (int k = 0; k < 8; k++)
			square[i] += y[i / 8 * 8 + k] * y[k * 8 + i % 8];
	}
	memcpy(y, square, sizeof square);
	*wrong += torn(v, 3);
	*left += stats().unpacked - a.unpacked;
	*wrong += stats().unpacked == a.unpacked && !in_order(v, 3);
	bool more = ctl->calls("segment") - calls >= n;
	for (int i = 0; i < 3; i++)
		drop(&v[i]);
	*wrong += stats().pool_allocated != none;
	yoke_error_clear();
	return more;
}

// Each allocation fails in turn.
static void starving(void)
{
	int wrong = 0;
	uint64_t left = 0;
	long n = 1;
	while (starved(n, &wrong, &left) && n < 200)
		n++;
	ok(!wrong && n > 4 && n < 200 && left,
	   "each of %ld allocations fails in turn: %d wrong, %llu times a variable "
	   "left its pack",
	   n - 1, wrong, (unsigned long long)left);
}

// Copies and fills that fail, immediately and late: values that are not lost are correct, and data
// written later arrives.
static void faults(void)
{
	static const char *const kinds[] = { "copy", "fill", "event", "late", "mark" };
	for (int k = 0; k < 5; k++) {
		int wrong = 0, lost = 0;
		uint64_t none = stats().pool_allocated;
		for (long n = 1; n < 12; n++) {
			struct var v[3];
			for (int i = 0; i < 3; i++)
				fresh(&v[i], yoke_f32, 2, DIMS(8, 8));
			yoke_sync();
			ctl->arm(kinds[k], n);
			pack(v, 3);
			yoke_error_clear();
			yoke_scope *s = yoke_scope_begin("faults");
			yoke_assign(v[1].t, yoke_matmul(v[1].t, v[1].t, 0));
			yoke_eval(0, NULL);
			yoke_sync();
			yoke_scope_end(s);
			ctl->arm(kinds[k], 0);
			yoke_error_clear();
			for (int i = 0; i < 3; i++) {
				bool gone = i != 1 && !is_whole(&v[i]);
				wrong += gone && yoke_error_code() != YOKE_EFAILED;
				lost += gone;
				yoke_error_clear();
				yoke_put(v[i].t, v[i].data, v[i].bytes);
			}
			wrong += torn(v, 3);
			for (int i = 0; i < 3; i++)
				drop(&v[i]);
		}
		wrong += stats().pool_allocated != none;
		ok(!wrong, "%s fails: %d wrong, %d values lost", kinds[k], wrong, lost);
	}
}

static void sized(void)
{
	struct var v[3];
	for (int i = 0; i < 3; i++)
		fresh(&v[i], yoke_u8, 1, DIMS(600000));
	refused(pack(v, 3), YOKE_ERANGE, "3 variables of 1800192 bytes do not fit one block of "
		"fault:0, whose largest "
		"allocation has 1572864");
	good(!torn(v, 3), "all stay");
	good(!pack(v, 2) && !torn(v, 3) && in_order(v, 2), "two of them fit");
	for (int i = 0; i < 3; i++)
		drop(&v[i]);
}

// ---- running ----

static int child(const char *what)
{
	tap_seed();
	yoke_setting_set("log", "error"); // new plans are expected throughout
	if (!(ctx = yoke_context_new(NULL))) {
		skip(what, yoke_error());
		return done();
	}
	yoke_use(ctx);
	ctl = ctx->device->ops->ext ? ctx->device->ops->ext("fault") : NULL;
	eager = getenv("YOKE_EAGER");
	// the skeleton's results are the CPU's
	in_place = !eager && !getenv("YOKE_DONATE") && strcmp(getenv("YOKE_BACKEND"), "skeleton");
	if (!strcmp(what, "moved")) {
		moved();
	} else if (!strcmp(what, "starved")) {
		starving();
	} else if (!strcmp(what, "sized")) {
		sized();
	} else {
		places();
		optimizers();
		updates();
		versions();
		errors();
		many();
		if (ctl)
			faults();
	}
	good(stats().pool_allocated == 0, "no byte is left");
	yoke_use(NULL);
	yoke_context_free(ctx);
	return done();
}

static void mode(const char *self, const char *settings, const char *what)
{
	char command[2048];
	snprintf(command, sizeof command, "%s '%s' %s 2>&1", settings, self, what);
	ok(tap_run(command), "%s %s", what, settings);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	const char *modules = getenv("YOKE_TEST_MODULES"), *opencl = getenv("YOKE_TEST_OPENCL");
	tap_plugin_path();
	mode(argv[0], "YOKE_BACKEND=cpu", "all");
	mode(argv[0], "YOKE_BACKEND=cpu YOKE_EAGER=1", "all");
	mode(argv[0], "YOKE_BACKEND=cpu YOKE_DONATE=0", "all");
	mode(argv[0], "YOKE_BACKEND=cpu YOKE_MEMORY=96M", "moved");
	if (modules) {
		mode(argv[0], "YOKE_BACKEND=skeleton", "all");
		mode(argv[0], "YOKE_BACKEND=fault", "all");
		mode(argv[0], "YOKE_BACKEND=fault YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=3", "all");
		mode(argv[0],
		     "YOKE_BACKEND=fault YOKE_FAULT_HOST=0 YOKE_FAULT_LACKS=event_after,table_fill,table_copy",
		     "all");
		mode(argv[0],
		     "YOKE_BACKEND=fault YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=3 YOKE_MEMORY=96M",
		     "moved");
		mode(argv[0], "YOKE_BACKEND=fault YOKE_POOL=0 YOKE_FAULT_STICKY=1", "starved");
		mode(argv[0], "YOKE_BACKEND=fault YOKE_FAULT_MAX_SEGMENT=1572864", "sized");
	} else {
		skip("other devices", "YOKE_TEST_MODULES does not say where they are");
	}
	if (opencl)
		mode(argv[0], "YOKE_BACKEND=opencl", "all");
	else
		skip("opencl", "it is not built");
	return done();
}
