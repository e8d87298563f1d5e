// SPDX-License-Identifier: Apache-2.0
// Tests random programs of the public API against a sequential interpreter by value, and against
// themselves with each optimization switched off and with packed variables; those results must be
// equal to the bit. A program runs for several rounds, each in a scope and with new data, so that
// later rounds reuse plans.
//
//	random.t NUMBER               prints one program, statement by statement, and runs it
//	random.t FIRST COUNT          runs COUNT programs
//	random.t FIRST COUNT hash     prints a hash of what they read
//	random.t FIRST COUNT packed   compares only with packed variables, on any backend
//	random.t FIRST COUNT modes    compares with the interpreter and all modes
//	random.t FIRST COUNT plain    compares only with the interpreter
//	random.t FIRST COUNT onnx     writes the first round of each as NAME.onnx for tests/onnx.py,
//	                              which compares what onnxruntime computes with the interpreter
//
// By default YOKE_TEST_SEED selects from 28000 programs, YOKE_TEST_SAMPLE=1 runs a tenth of
// those; YOKE_TEST_LONG=1 runs the first 30000.

#include "config.h"

#include "base/hash.h"
#include "onnx_case.h"
#include "random_program.h"

enum { ROUNDS = 3, HELD = 64, PROGRAMS = 2000 };

struct run {
	const struct program *p;
	bool oracle; // interpret as well, and write the log; otherwise compare with the log
	yoke_tensor *h[SLOTS];
	struct val *v[SLOTS];
	double number[SLOTS];
	yoke_scope *outer, *inner;
	yoke_tensor *held[HELD]; // kept to the end
	struct val *held_val[HELD];
	int nheld, round, at; // at: statement
	uint64_t packing;     // random state that selects packed variables, 0: none
	char why[300];        // error, "" for none
};

static bool eager;   // eager: ops run as they are recorded
static bool hashing;                     // read, and compare with nothing
static unsigned char log_bytes[1 << 28]; // results that the plain run read
static size_t log_size, log_at;
static long long peaks; // evaluations whose memory was predicted
static long long checked, skipped; // elements compared, and those that were undetermined
static unsigned long long plan_hits, pack_copies;

__attribute__((format(printf, 2, 3))) static void fail(struct run *r, const char *fmt,
						       ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!*r->why) {
		int n = snprintf(r->why, sizeof r->why,
				 "round %d statement %d: ", r->round, r->at);
		vsnprintf(r->why + n, sizeof r->why - (size_t)n, fmt, ap);
	}
	va_end(ap);
}

// ---- data ----

static double some_number(const struct program *p, int dtype)
{
	static const double odd[] = { INFINITY, -INFINITY, NAN, -0.0, 1e-30, 3e9 };
	if (p->wild && is_real(dtype) && one_in(20))
		return odd[rnd_int(0, 5)];
	if (dtype == yoke_bool)
		return one_in(2);
	return is_real(dtype) && one_in(2) ? rnd_real(-2, 2) : (double)rnd_int(-4, 4);
}

static double scalar_number(const struct program *p, int slot)
{
	return some_number(p, is_whole(slot) ? yoke_bool : yoke_f32);
}

static void encode(int dtype, double x, void *to, int64_t k)
{
	struct value v = { 0, 0 };
	if (is_real(dtype))
		v.r = round_real(dtype, x);
	else
		v.i = yk_num_wrap((uint64_t)(int64_t)x, dtype);
	store(dtype, v, (char *)to + (size_t)k * yoke_dtype_size(dtype));
}

static union cell decode(int dtype, const void *from, int64_t k)
{
	struct value v = load(dtype, (const char *)from + (size_t)k * yoke_dtype_size(dtype));
	return is_real(dtype) ? (union cell){ .d = v.r } : (union cell){ .i = v.i };
}

// New data for a slot: random, or indices below limit, or the last of them. The caller frees it.
static void *data(struct run *r, const struct slot *s, int64_t limit, int64_t last,
		  struct val **v)
{
	char *to = malloc((size_t)s->n * 8 + 8);
	if (r->oracle)
		*v = val_new(s->dtype, s->rank, s->dims);
	for (int64_t k = 0; k < s->n; k++) {
		double x = last  ? (double)(last - 1) :
			   limit ? (double)rnd_int(0, limit - 1) :
				   some_number(r->p, s->dtype);
		encode(s->dtype, x, to, k);
		if (r->oracle)
			(*v)->v[k] = decode(s->dtype, to, k);
	}
	return to;
}

// Evaluates; the plan's predicted memory equals the pool's peak, to the byte.
static void evaluate(struct run *r, int n, yoke_tensor *const *t)
{
	struct yoke_stats now = { .size = sizeof now };
	yoke_stats_reset_peaks();
	// an old version of a packed variable may be moved out
	if (yoke_eval(n, t) || yoke_stats(&now) || !now.predicted_peak || eager || r->packing)
		return;
	peaks++;
	if (now.predicted_peak != now.pool_allocated_peak)
		fail(r, "a peak of %llu bytes was predicted, it was %llu",
		     (unsigned long long)now.predicted_peak,
		     (unsigned long long)now.pool_allocated_peak);
}

// ---- both executions of an operation ----

#define FUNCTION(name, function) [name] = yoke_##function,
static yoke_tensor *(*const unary[])(yoke_tensor *) = {
	OPS_EXACT(FUNCTION) OPS_NEAR(FUNCTION) OPS_TEST(FUNCTION)
};
static yoke_tensor *(*const binary[])(yoke_tensor *, yoke_tensor *) = {
	OPS_BINARY(FUNCTION) OPS_BITS(FUNCTION) OPS_COMPARE(FUNCTION)
};
static yoke_tensor *(*const reduction[])(yoke_tensor *, unsigned) = { OPS_REDUCE(FUNCTION) };

static yoke_tensor *call(struct run *r, const struct stmt *s)
{
	const struct slot *o = &r->p->slot[s->out];
	const int64_t *d = o->dims;
	yoke_tensor *x[3] = { NULL };
	int order[YOKE_MAX_RANK];
	for (int i = 0; i < s->nin; i++)
		x[i] = r->h[s->in[i]];
	for (int i = 0; i < o->rank; i++)
		order[i] = (int)s->a[i];
	switch (s->op) {
	case ARGMAX: return yoke_argmax(x[0], (int)s->a[0]);
	case ARGMIN: return yoke_argmin(x[0], (int)s->a[0]);
	case ANY: return yoke_any(x[0], (unsigned)s->a[0]);
	case ALL: return yoke_all(x[0], (unsigned)s->a[0]);
	case CUMSUM: return yoke_cumsum(x[0], (int)s->a[0], (int)s->a[1]);
	case CUMPROD: return yoke_cumprod(x[0], (int)s->a[0], (int)s->a[1]);
	case CLAMP: return yoke_clamp(x[0], x[1], x[2]);
	case SORT: return yoke_sort(x[0], (int)s->a[0], (int)s->a[1], NULL);
	case ORDER: yoke_sort(x[0], (int)s->a[0], (int)s->a[1], &x[1]); return x[1];
	case SELECT: return yoke_select(x[0], x[1], x[2]);
	case CAST: return yoke_cast(x[0], o->dtype);
	case MATMUL: return yoke_matmul(x[0], x[1], (unsigned)s->a[0]);
	case RESHAPE: return yoke_reshape(x[0], o->rank, d);
	case BITCAST: return yoke_bitcast(x[0], o->dtype);
	case PERMUTE: return yoke_permute(x[0], order);
	case BROADCAST: return yoke_broadcast_to(x[0], o->rank, d);
	case SLICE: return yoke_slice(x[0], (int)s->a[0], s->a[1], s->a[2], s->a[3]);
	case FLIP: return yoke_flip(x[0], (unsigned)s->a[0]);
	case PAD: return yoke_pad(x[0], s->a, s->a + 8, s->x);
	case CONCAT: return yoke_concat(s->nin, x, (int)s->a[0]);
	case SLICE_UPDATE: return yoke_slice_update(x[0], s->a, x[1]);
	case GATHER: return yoke_gather(x[0], x[1], (int)s->a[0]);
	case SCATTER_ADD: return yoke_scatter_add(x[0], x[1], x[2]);
	case FULL: return yoke_full(o->dtype, o->rank, d, s->x);
	case IOTA: return yoke_iota(o->dtype, o->rank, d, (int)s->a[0]);
	}
	if (s->op >= SUM && s->op <= ARGMIN)
		return reduction[s->op](x[0], (unsigned)s->a[0]);
	return s->nin == 2 ? binary[s->op](x[0], x[1]) : unary[s->op](x[0]);
}

// A number as a value of a dtype.
static struct val *number(double x, int dtype, int rank, const int64_t *dims)
{
	struct val *v = val_new(dtype, rank, dims);
	for (int64_t k = 0; k < v->n; k++)
		if (is_real(dtype))
			set_real(v, k, x, 0, 0);
		else
			v->v[k].i = insn_of(YOKE_MAP_CAST, yoke_f64, dtype, (struct value){ x, 0 },
					    (struct value){ x, 0 }).i;
	return v;
}

static struct val *interpret_slice(const struct stmt *s, const struct slot *o,
				   const struct val *x)
{
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	int axis = (int)(s->a[0] < 0 && s->op == SLICE ? s->a[0] + x->rank : s->a[0]);
	struct val *y = val_new(x->dtype, o->rank, o->dims);
	for (int i = 0; i < x->rank; i++) {
		bool turn = s->op == FLIP && s->a[0] >> i & 1;
		start[i] = turn ? x->dims[i] - 1 : 0;
		step[i] = turn ? -1 : 1;
	}
	if (s->op == SLICE) {
		start[axis] = s->a[1] < 0 ? s->a[1] + x->dims[axis] : s->a[1];
		step[axis] = s->a[3];
	}
	copy_part(y, x, start, step, false);
	return y;
}

static struct val *interpret_parts(const struct stmt *s, const struct slot *o,
				   struct val *const *x)
{
	int64_t start[YOKE_MAX_RANK] = { 0 }, one[YOKE_MAX_RANK];
	struct val *y = s->op == PAD ? number(s->x, o->dtype, o->rank, o->dims) :
				       val_new(o->dtype, o->rank, o->dims);
	for (int i = 0; i < YOKE_MAX_RANK; i++)
		one[i] = 1;
	for (int k = 0; k < s->nin; k++) {
		if (s->op == PAD || (s->op == SLICE_UPDATE && k))
			memcpy(start, s->a, sizeof start);
		copy_part(y, x[k], start, one, true);
		if (s->op == CONCAT)
			start[s->a[0]] += x[k]->dims[s->a[0]];
	}
	return y;
}

static struct val *interpret(struct run *r, const struct stmt *s)
{
	const struct slot *o = &r->p->slot[s->out];
	struct val *x[3] = { NULL };
	int dtype = 0;
	for (int i = s->op == SELECT; i < s->nin; i++)
		if (r->v[s->in[i]] && !dtype)
			dtype = r->v[s->in[i]]->dtype;
	for (int i = 0; i < s->nin; i++) {
		x[i] = r->v[s->in[i]];
		if (!x[i])
			x[i] = number(r->number[s->in[i]], dtype, 0, NULL);
	}
	int axis = (int)s->a[0] < 0 ? (int)s->a[0] + o->rank : (int)s->a[0];
	switch (s->op) {
	case MATMUL: return do_matmul(x[0], x[1], (unsigned)s->a[0], o->rank, o->dims);
	case BITCAST: return do_bitcast(x[0], o->dtype, o->rank, o->dims);
	case PERMUTE: return do_permute(x[0], s->a);
	case RESHAPE:
	case BROADCAST:
	case STOP_GRAD:
	case CONTIGUOUS: return do_same(x[0], o->rank, o->dims);
	case SLICE:
	case FLIP: return interpret_slice(s, o, x[0]);
	case PAD:
	case CONCAT:
	case SLICE_UPDATE: return interpret_parts(s, o, x);
	case GATHER: return do_gather(x[0], x[1], (int)s->a[0], o->rank, o->dims);
	case SCATTER_ADD: return do_scatter_add(x[0], x[1], x[2]);
	case ANY:
	case ALL:
		return do_same(do_truth(s->op, x[0], (unsigned)s->a[0] & YOKE_ALL), o->rank,
			       o->dims);
	case CUMSUM:
	case CUMPROD: return do_scan(s->op, x[0], axis, s->a[1]);
	case CLAMP:
		x[0] = do_map(MAX, o->dtype, x, 2, o->rank, o->dims);
		x[1] = x[2];
		return do_map(MIN, o->dtype, x, 2, o->rank, o->dims);
	case SORT:
	case ORDER: return do_sort(s->op, x[0], axis, s->a[1]);
	case FULL: return number(s->x, o->dtype, o->rank, o->dims);
	case IOTA: {
		struct val *y = val_new(o->dtype, o->rank, o->dims);
		int64_t ix[YOKE_MAX_RANK] = { 0 };
		for (int64_t k = 0; k < y->n; k++, next_index(o->rank, o->dims, ix))
			if (is_real(o->dtype))
				set_real(y, k, (double)ix[s->a[0]], 0, 0);
			else
				set_int(y, k, (uint64_t)ix[s->a[0]], 0);
		return y;
	}
	}
	if (s->op >= SUM && s->op <= ARGMIN) {
		bool arg = s->op >= ARGMAX;
		struct val *y = do_reduce(
			s->op, x[0], arg ? 1u << s->a[0] : (unsigned)s->a[0] & YOKE_ALL);
		return do_same(y, o->rank, o->dims);
	}
	return do_map(s->op, o->dtype, x, s->nin, o->rank, o->dims);
}

// ---- comparing ----

static void compare_oracle(struct run *r, const void *got, const struct val *want,
			   int slot)
{
	bool real = is_real(want->dtype);
	for (int64_t k = 0; k < want->n; k++) {
		union cell g = decode(want->dtype, got, k), w = want->v[k];
		double e = want->e[k];
		checked++;
		if (isnan(e) || e > 0.1 * fmax(1, fabs(w.d))) {
			skipped++;
			continue;
		}
		if (real ? g.d == w.d || (isnan(g.d) && isnan(w.d)) ||
				    fabs(g.d - w.d) <= e :
			   g.i == w.i)
			continue;
		if (real)
			fail(r, "t%d[%lld] got %.17g want %.17g, bound %.3g", slot,
			     (long long)k, g.d, w.d, e);
		else
			fail(r, "t%d[%lld] got %lld want %lld", slot, (long long)k,
			     (long long)g.i, (long long)w.i);
		return;
	}
}

// All NaNs are equal: which operand's NaN results is undetermined.
static void one_nan(int dtype, void *x, int64_t n)
{
	for (int64_t k = 0; k < n && is_real(dtype); k++)
		if (isnan(decode(dtype, x, k).d))
			encode(dtype, NAN, x, k);
}

static void read_back(struct run *r, yoke_tensor *t, const struct val *want, int slot)
{
	const struct slot *s = &r->p->slot[slot];
	size_t bytes = yoke_bytes(t);
	bool good = t && yoke_rank(t) == s->rank && yoke_dtype(t) == s->dtype &&
		    bytes == (size_t)s->n * yoke_dtype_size(s->dtype);
	for (int i = 0; i < s->rank && good; i++)
		good = yoke_dim(t, i) == s->dims[i];
	if (!good) {
		fail(r, "t%d has another shape than it should: %s", slot, yoke_error());
		return;
	}
	unsigned char *got = malloc(bytes + 8);
	memset(got, 0xff, bytes + 8);
	if (yoke_read(t, got, bytes) < 0)
		fail(r, "t%d cannot be read: %s", slot, yoke_error());
	one_nan(s->dtype, got, s->n);
	size_t at = r->oracle || hashing ? log_size : log_at;
	if (at + bytes > sizeof log_bytes)
		fail(r, "more is read than log_bytes holds");
	else if (r->oracle || hashing)
		memcpy(log_bytes + at, got, bytes);
	else if (memcmp(log_bytes + at, got, bytes))
		fail(r, "t%d differs from the plain run", slot);
	if (r->oracle)
		compare_oracle(r, got, want, slot);
	*(r->oracle || hashing ? &log_size : &log_at) = at + bytes;
	free(got);
}

// ---- running ----

static void execute(struct run *r, const struct stmt *s)
{
	const struct program *p = r->p;
	int a = s->in[0], b = s->in[1];
	void *bytes;
	switch (s->op) {
	case FROM:
		bytes = data(r, &p->slot[s->out], s->a[0], s->a[1], &r->v[s->out]);
		r->h[s->out] = yoke_from(p->slot[s->out].dtype, p->slot[s->out].rank,
					 p->slot[s->out].dims, bytes);
		free(bytes);
		return;
	case NEW_SCALAR:
		r->h[s->out] = yoke_scalar(r->number[s->out] = scalar_number(p, s->out));
		return;
	case PUT:
		bytes = data(r, &p->slot[a], 0, 0, &r->v[a]);
		yoke_put(r->h[a], bytes, yoke_bytes(r->h[a]));
		free(bytes);
		return;
	case ASSIGN:
		yoke_assign(r->h[a], r->h[b]);
		r->v[a] = r->v[b];
		return;
	case KEEP: yoke_keep(r->h[a]); return;
	case LIFT: yoke_lift(r->h[a]); return;
	case FREE:
		yoke_free(r->h[a]);
		r->h[a] = NULL;
		return;
	case CARRY_OVER:
		yoke_free(r->h[a]);
		r->h[a] = r->h[b];
		r->v[a] = r->v[b];
		r->h[b] = NULL;
		return;
	case READ: read_back(r, r->h[a], r->v[a], a); return;
	case EVAL: {
		yoke_tensor *t[3];
		for (int i = 0; i < s->nin; i++)
			t[i] = r->h[s->in[i]];
		evaluate(r, s->nin, t);
		return;
	}
	case SET_SCALAR:
		yoke_scalar_set(r->h[a], r->number[a] = scalar_number(p, a));
		return;
	case SCOPE: r->inner = yoke_scope_begin("inner"); return;
	case SCOPE_END: yoke_scope_end(r->inner); return;
	}
	r->h[s->out] = call(r, s);
	if (r->oracle)
		r->v[s->out] = interpret(r, s);
}

static void begin(struct run *r)
{
	for (int k = 0; k < r->p->slots; k++) {
		const struct slot *s = &r->p->slot[k];
		void *bytes;
		switch (s->kind) {
		case VARIABLE:
			r->h[k] = yoke_variable("v", s->dtype, s->rank, s->dims);
			r->v[k] = r->oracle ? val_new(s->dtype, s->rank, s->dims) : NULL;
			break;
		case CARRY:
			bytes = data(r, s, 0, 0, &r->v[k]);
			r->h[k] = yoke_from(s->dtype, s->rank, s->dims, bytes);
			free(bytes);
			break;
		case SCALAR:
			if (s->depth) // made by a statement
				break;
			r->h[k] = yoke_scalar(r->number[k] = scalar_number(r->p, k));
			break;
		case LITERAL: // the first one is 0
			r->number[k] = k && r->p->slot[k - 1].kind < SCALAR ?
					       0 :
					       some_number(r->p, yoke_f32);
			r->h[k] = yoke_const(r->number[k]);
		}
	}
}

// Kept temporaries of a round are freed, or held to the end.
static void drop_kept(struct run *r)
{
	for (int k = 0; k < r->p->slots; k++) {
		const struct slot *s = &r->p->slot[k];
		if (s->kind != TEMPORARY || !s->kept || !r->h[k])
			continue;
		if (s->held && r->nheld < HELD) {
			r->held_val[r->nheld] = r->v[k];
			r->held[r->nheld++] = r->h[k];
			// its slot, for its shape
			r->number[SLOTS - r->nheld] = k;
		} else {
			yoke_free(r->h[k]);
		}
	}
}

// Packs all variables, or sometimes only some, in any order.
static void pack(struct run *r, bool all)
{
	yoke_tensor *v[SLOTS];
	int n = 0;
	uint64_t state = tap_state; // data is that of the plain run
	tap_state = r->packing;
	bool now = all || one_in(12);
	for (int k = 0; k < r->p->slots && now; k++)
		if (r->p->slot[k].kind == VARIABLE && (all || one_in(2))) {
			int at = (int)rnd_int(0, n);
			v[n] = r->h[k];
			v[n++] = v[at];
			v[at] = r->h[k];
		}
	r->packing = tap_state;
	tap_state = state;
	if (n && yoke_pack(n, v) == YOKE_EINVAL && strstr(yoke_error(), "pending"))
		yoke_error_clear();
}

static bool run(const struct program *p, bool oracle, bool packs, bool print, char *why)
{
	static struct run r;
	r = (struct run){ .p = p, .oracle = oracle, .packing = packs ? p->seed ^ 0x9e3779b9 : 0 };
	tap_state = p->seed ^ 0x5bd1e995;
	yoke_context *ctx = yoke_context_new(NULL), *former = yoke_use(ctx);
	begin(&r);
	if (packs)
		pack(&r, true);
	for (int round = 0; round < ROUNDS && !*r.why; round++) {
		r.outer = yoke_scope_begin("round");
		for (int i = 0; i < p->stmts && !*r.why; i++) {
			r.at = i;
			r.round = round;
			if (packs)
				pack(&r, false);
			execute(&r, &p->stmt[i]);
			if (yoke_error_code())
				fail(&r, "%s", yoke_error());
		}
		if (*r.why)
			break;
		yoke_scope_end(r.outer);
		drop_kept(&r);
	}
	for (int k = 0; k < p->slots && !*r.why; k++)
		if (p->slot[k].kind == VARIABLE || p->slot[k].kind == CARRY)
			read_back(&r, r.h[k], r.v[k], k);
	for (int i = 0; i < r.nheld && !*r.why; i++)
		read_back(&r, r.held[i], r.held_val[i], (int)r.number[SLOTS - i - 1]);
	struct yoke_stats s = { .size = sizeof s };
	if (!yoke_stats(&s)) {
		plan_hits += s.plan_hits;
		pack_copies += s.pack_copies;
		if (s.unpacked)
			fail(&r, "%llu variables left their pack", (unsigned long long)s.unpacked);
		if (print)
			diag("%llu evaluations, %llu plans made, %llu found, %llu "
			     "assignments not in place",
			     (unsigned long long)s.evals,
			     (unsigned long long)s.plan_misses,
			     (unsigned long long)s.plan_hits,
			     (unsigned long long)s.assign_copies);
	}
	yoke_context_free(ctx);
	yoke_use(former);
	yoke_error_clear();
	snprintf(why, sizeof r.why, "%s", r.why);
	return !*r.why;
}

static void print_program(const struct program *p)
{
#define NAME(name, function) [name] = #function,
	static const char *const names[] = { OPS(NAME) STATEMENTS_ONLY(NAME) };
	static const char *const kinds[] = { "variable", "carried", "scalar", "literal" };
	for (int k = 0; k < p->slots && p->slot[k].kind < TEMPORARY; k++) {
		printf("# t%d %s %s [", k, kinds[p->slot[k].kind],
		       yoke_dtype_name(p->slot[k].dtype));
		for (int i = 0; i < p->slot[k].rank; i++)
			printf(i ? ",%lld" : "%lld", (long long)p->slot[k].dims[i]);
		printf("]\n");
	}
	for (int i = 0; i < p->stmts; i++) {
		const struct stmt *s = &p->stmt[i];
		const struct slot *o = &p->slot[s->out < 0 ? 0 : s->out];
		printf("# %3d ", i);
		if (s->out >= 0)
			printf("t%d = ", s->out);
		printf("%s(", names[s->op]);
		for (int k = 0; k < s->nin; k++)
			printf("%st%d", k ? ", " : "", s->in[k]);
		printf(" ;");
		for (int k = 0; k < 12; k++)
			printf(" %lld", (long long)s->a[k]);
		printf(")");
		for (int k = 0; k < o->rank && s->out >= 0; k++)
			printf("%s%lld", k ? "," : " [", (long long)o->dims[k]);
		printf(s->out >= 0 ? "%s %s\n" : "\n", o->rank ? "]" : " []",
		       yoke_dtype_name(o->dtype));
	}
}

// ---- as ONNX ----

enum { ENDS = 400 };
struct ends {
	yoke_tensor *in[ENDS], *out[ENDS];
	const struct val *want[ENDS];
	int ins, outs;
};

static void add_output(struct ends *e, yoke_tensor *t, const struct val *want)
{
	if (!t || e->outs == ENDS)
		return;
	t = yoke_contiguous(t);
	e->want[e->outs] = want;
	t = yoke_dtype(t) == yoke_bf16 ? yoke_cast(t, yoke_f32) : t; // NumPy has no bf16
	// constants are evaluated before outputs are read, and assignments with them
	e->out[e->outs++] = yoke_keep(t);
}

// Records a statement; nothing is evaluated, freed, or changed on the host, and no scope ends.
static void record(struct run *r, const struct stmt *s, struct ends *e)
{
	const int a = s->in[0], b = s->in[1];
	switch (s->op) {
	case FREE: r->h[a] = NULL; return;
	case CARRY_OVER:
		r->h[a] = r->h[b];
		r->v[a] = r->v[b];
		r->h[b] = NULL;
		return;
	case READ: add_output(e, r->h[a], r->v[a]); return;
	case EVAL:
	case LIFT:
	case SET_SCALAR:
	case SCOPE:
	case SCOPE_END: return;
	}
	execute(r, s);
	if (s->op == FROM && r->p->slot[s->out].dtype != yoke_bf16 && e->ins < ENDS)
		e->in[e->ins++] = r->h[s->out];
}

// For each element, by how much it may differ in units of 1 + its modulus: the interpreter's bound
// is for good libraries; infinite if the element is undetermined.
static void write_bounds(const char *name, const struct ends *e)
{
	for (int i = 0; i < e->outs; i++) {
		const struct val *w = e->want[i];
		const bool real = is_real(w->dtype);
		double *tol = malloc((size_t)(w->n + 1) * sizeof *tol);
		for (int64_t k = 0; k < w->n; k++) {
			const double x = real ? fabs(w->v[k].d) : 0, bound = w->e[k];
			const bool open = isnan(bound) || bound > 1e-3 * fmax(1, x);
			tol[k] = open ? INFINITY :
				 real ? 16 * bound / (1 + (isfinite(x) ? x : 0)) + 1e-5 :
					0;
		}
		onnx_bytes(name, "bound", i, tol, (size_t)w->n * sizeof *tol);
		free(tol);
	}
}

// 1: written, 0: it has an op that ONNX has not, -1: an error.
static int write_onnx(uint64_t seed)
{
	static struct program p;
	static struct run r;
	static struct ends e;
	char name[40];
	write_program(&p, seed);
	r = (struct run){ .p = &p, .oracle = true };
	e = (struct ends){ 0 };
	tap_state = seed ^ 0x5bd1e995;
	yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	begin(&r);
	yoke_scope *scope = yoke_scope_begin("round");
	for (int i = 0; i < p.stmts; i++)
		record(&r, &p.stmt[i], &e);
	for (int k = 0; k < p.slots; k++)
		if (p.slot[k].kind == VARIABLE || p.slot[k].kind == CARRY)
			add_output(&e, r.h[k], r.v[k]);
	snprintf(name, sizeof name, "program%llu", (unsigned long long)seed);
	int status = yoke_error_code() ? -1 : 1;
	if (status > 0 && !onnx_case(name, e.ins, e.in, e.outs, e.out, 1e-5, NULL))
		status = yoke_error_code() == YOKE_EUNSUPPORTED && strstr(yoke_error(), "bitcast") ?
				 0 :
				 -1;
	if (status > 0)
		write_bounds(name, &e);
	if (status < 0)
		diag("program %llu: %s", (unsigned long long)seed, yoke_error());
	yoke_error_clear();
	yoke_scope_end(scope);
	for (int i = 0; i < e.outs; i++)
		yoke_free(e.out[i]);
	yoke_context_free(ctx);
	yoke_use(former);
	yoke_error_clear();
	vals_free();
	return status;
}

static void as_onnx(uint64_t first, int programs)
{
	int written = 0, failed = 0;
	for (int i = 0; i < programs; i++) {
		const int status = write_onnx(first + (uint64_t)i);
		written += status > 0;
		failed += status < 0;
	}
	ok(!failed && written > programs / 2, "%d of %d programs are written as ONNX, %d fail",
	   written, programs, failed);
	onnx_compare(written);
}

static const struct {
	const char *setting, *value, *back;
} modes[] = {
	{ "fuse", "1", "1" },   { "fuse", "0", "1" },      { "donate", "0", "1" },
	{ "arena", "0", "1" },  { "plan.cse", "0", "1" },  { "plan.max", "0", "64" },
	{ "plan.hash", "0", "1" }, { "plan.clones", "7", "0" }, { "eager", "1", "0" },
};

enum { MODES = sizeof modes / sizeof *modes };

static bool try_mode(const struct program *p, int mode, bool packs, bool print)
{
	char why[300];
	log_at = 0;
	yoke_setting_set(modes[mode].setting, modes[mode].value);
	eager = tap_eager() || !strcmp(modes[mode].setting, "eager");
	bool good = run(p, !mode && !packs, packs, print, why);
	yoke_setting_set(modes[mode].setting, modes[mode].back);
	if (!good)
		diag("program %llu with %s=%s%s: %s", (unsigned long long)p->seed,
		     modes[mode].setting, modes[mode].value, packs ? ", packed" : "", why);
	return good;
}

// With the first `n` modes, mode 0 being the plain run, and with packed variables, unless it is the
// only one.
static bool try_program(uint64_t seed, int nmodes, bool print)
{
	static struct program p;
	bool good = true;
	write_program(&p, seed);
	if (print)
		print_program(&p);
	log_size = 0;
	for (int m = 0; m < nmodes && good; m++)
		good = try_mode(&p, m, false, print);
	if (good && nmodes > 1)
		good = try_mode(&p, (int)(seed % MODES), true, print);
	vals_free();
	return good;
}

// The values that the programs read.
static int print_hash(uint64_t first, int programs)
{
	static struct program p;
	uint64_t hash = 0;
	char why[300];
	hashing = true;
	for (int i = 0; i < programs; i++) {
		write_program(&p, first + (uint64_t)i);
		log_size = 0;
		if (!run(&p, false, false, false, why)) {
			printf("program %d: %s\n", i, why);
			return 1;
		}
		hash = yk_hash(log_bytes, log_size, hash);
	}
	printf("%016llx\n", (unsigned long long)hash);
	return 0;
}

// The output of this program with these settings: a hash of the values that programs read.
static void hash_of(const char *self, const char *settings, uint64_t first, int programs,
		    char to[32])
{
	char command[4096];
	snprintf(command, sizeof command, "%s '%s' %llu %d hash", settings, self,
		 (unsigned long long)first, programs);
	strcpy(to, "none");
	FILE *f = popen(command, "r");
	if (f && !fgets(to, 32, f))
		strcpy(to, "nothing");
	if (f)
		pclose(f);
	to[strcspn(to, "\n")] = 0;
}

// With packed variables and without, on any backend.
static int compare_packed(uint64_t first, int programs)
{
	static struct program p;
	int failed = 0;
	char why[300];
	for (int i = 0; i < programs && failed < 5; i++) {
		write_program(&p, first + (uint64_t)i);
		log_size = 0;
		hashing = true;
		bool good = run(&p, false, false, false, why);
		hashing = false;
		if (!good)
			diag("program %llu: %s", (unsigned long long)p.seed, why);
		failed += !good || !try_mode(&p, 0, true, false);
	}
	ok(!failed, "%d programs packed: %d differ, %llu versions copied", programs, failed,
	   pack_copies);
	return done();
}

// With the interpreter, and in the first modes, on any backend.
static int compare_modes(uint64_t first, int programs, int nmodes)
{
	int failed = 0;
	for (int i = 0; i < programs && failed < 20; i++)
		failed += !try_program(first + (uint64_t)i, nmodes, false);
	ok(!failed, "%d random programs: %d differ", programs, failed);
	return failed;
}

static void packed_on(const char *self, const char *backend, uint64_t first, int programs)
{
	char command[2048];
	snprintf(command, sizeof command, "YOKE_BACKEND=%s '%s' %llu %d packed 2>&1", backend, self,
		 (unsigned long long)first, programs);
	ok(tap_run(command), "%d programs packed on %s", programs, backend);
}

// On a device that prefers multiples of 16, with all its products padded.
static void padded(const char *self, uint64_t first, int programs)
{
	char command[2048];
	snprintf(command, sizeof command,
		 "YOKE_BACKEND=fault YOKE_FAULT_MULTIPLE=16 YOKE_ALIGN=2 '%s' %llu %d modes 2>&1",
		 self, (unsigned long long)first, programs);
	ok(tap_run(command), "%d programs with padded products", programs);
}

static void elsewhere(const char *self, uint64_t first)
{
	const char *modules = getenv("YOKE_TEST_MODULES"), *opencl = getenv("YOKE_TEST_OPENCL");
	if (!modules)
		skip("packed programs on other devices",
		     "YOKE_TEST_MODULES does not say where they are");
	tap_plugin_path();
	setenv("YOKE_FAULT_LAG", "3", 1);
	if (modules) {
		padded(self, first, tap_cases(100, 3000));
		packed_on(self, "skeleton", first, tap_cases(100, 1000));
		packed_on(self, "fault", first, tap_cases(200, 2000));
	}
	if (opencl)
		packed_on(self, "opencl", first, tap_cases(2, 100));
	else
		skip("packed programs on OpenCL", "YOKE_TEST_OPENCL does not name the module");
}

// The same bits in processes with 1 and 2 threads.
static void threads(const char *self, uint64_t first, int programs)
{
	char one[32], two[32];
	hash_of(self, "YOKE_THREADS=1", first, programs, one);
	hash_of(self, "YOKE_THREADS=2", first, programs, two);
	ok(strlen(one) == 16 && !strcmp(one, two), "%d programs on 1 and 2 threads: %s and %s",
	   programs, one, two);
}

// On a device whose queues work late and in random order, and which lacks ops, so that copies and
// the CPU's work overlap with its own.
static void late(const char *self, uint64_t first, int programs)
{
	static const char *const lacks[] = { "reduce", "contract", "gather,sort", "map",
					     "move,scatter_add" };
	const char *modules = getenv("YOKE_TEST_MODULES");
	char want[32], got[32], settings[2400];
	if (!modules) {
		skip("late queues", "YOKE_TEST_MODULES does not say where the fault backend is");
		return;
	}
	hash_of(self, "YOKE_BACKEND=cpu", first, programs, want);
	for (size_t k = 0; k < sizeof lacks / sizeof *lacks; k++) {
		snprintf(
			settings, sizeof settings,
			"YOKE_PLUGIN_PATH='%s' YOKE_BACKEND=fault YOKE_FAULT_HOST=0 YOKE_FAULT_DEFER=1 "
			"YOKE_FAULT_CHANCE=%llu YOKE_FAULT_LACKS=%s",
			modules, (unsigned long long)(first + k), lacks[k]);
		hash_of(self, settings, first, programs, got);
		ok(strlen(got) == 16 && !strcmp(got, want),
		   "%d programs on late queues without %s: %s and %s", programs, lacks[k], got,
		   want);
	}
}

int main(int argc, char **argv)
{
	onnx_find();
	yoke_setting_set("log", "error"); // new plans are expected throughout
	if (argc == 2) {
		ok(try_program(strtoull(argv[1], NULL, 0), MODES, true), "program %s", argv[1]);
		return done();
	}
	int programs = argc > 2 ? atoi(argv[2]) : tap_cases(PROGRAMS, 30000);
	uint64_t first = argc > 2   ? strtoull(argv[1], NULL, 0) :
			 tap_long() ? 1 :
				      1 + tap_seed_value() % 7 * PROGRAMS;
	if (argc > 3 && (!strcmp(argv[3], "modes") || !strcmp(argv[3], "plain"))) {
		compare_modes(first, programs, strcmp(argv[3], "plain") ? MODES : 1);
		return done();
	}
	if (argc > 3 && !strcmp(argv[3], "onnx")) {
		as_onnx(first, programs);
		return done();
	}
	if (argc > 3)
		return strcmp(argv[3], "packed") ? print_hash(first, programs) :
						   compare_packed(first, programs);
	diag("from program %llu on", (unsigned long long)first);
	compare_modes(first, programs, MODES);
	diag("%lld elements compared, %lld of them open; plans found again %llu times",
	     checked, skipped, plan_hits);
	ok(peaks > programs, "peaks of %lld evaluations are predicted", peaks);
	// an undetermined value makes all its readers undetermined: 2 to 11 % of each 2,000
	// programs
	ok(skipped < checked / 5, "most elements are determined");
	ok(plan_hits > 0, "plans are reused");
	ok(pack_copies > 0, "%llu versions of packed variables were copied to their offsets",
	   pack_copies);
	threads(argv[0], first, programs);
	late(argv[0], first, tap_cases(100, 2000));
	elsewhere(argv[0], first);
	tap_folder();
	as_onnx(first, tap_cases(50, 300));
	return done();
}
