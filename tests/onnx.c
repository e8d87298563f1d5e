// SPDX-License-Identifier: Apache-2.0
// Tests yoke_onnx_write: each op in small graphs, with the numbers at which definitions differ,
// without elements and without axes, in each dtype.  A reader of the wire format checks the
// structure of each file; with the Python packages onnx and onnxruntime (tests/onnx.py) the results
// are compared, too. YOKE_TEST_ONNX is that Python; default: python3.
#include "config.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scan.h"
#include "export/export.h"
#include "nn/encoder.h"
#include "nn/model.h"
#include "onnx_case.h"
#include "yoke-math.h"
#include "yoke-quant.h"

static const double wild[] = { 0,         -0.0, 1,     -1,  0.5,  2.5, -3.5,  NAN,     INFINITY,
			       -INFINITY, 1e-7, -1e-6, 300, -129, 3e9, -1e19, 65519.9, 127.9 };
static const int64_t whole[] = { 0,         1,         -1,        2, 127, 128, -128, 255, INT32_MAX,
				 INT32_MIN, INT64_MAX, INT64_MIN, 7, -7,  31,  33,   64 };

static yoke_tensor *input[16];
static int inputs;
static yoke_context *context;
static yoke_scope *scope;

static void begin(void)
{
	inputs = 0;
	scope = yoke_scope_begin("case");
}

enum { TAME, WILD, POSITIVE, UNIT };
static yoke_tensor *numbers(int dtype, int kind, int rank, const int64_t *dims)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	double *f = malloc((size_t)(n + 1) * sizeof *f);
	int64_t *k = malloc((size_t)(n + 1) * sizeof *k);
	const bool real = dtype <= yoke_bf16;
	for (int64_t i = 0; i < n; i++) {
		f[i] = kind == UNIT     ? rnd_real(-0.99, 0.99) :
		       kind == POSITIVE ? rnd_real(0.1, 3) :
					  rnd_real(-3, 3);
		k[i] = kind == WILD     ? whole[rnd() % (sizeof whole / sizeof *whole)] :
		       kind == POSITIVE ? rnd_int(1, 5) :
					  rnd_int(-9, 9);
		if (kind == WILD && rnd() % 2)
			f[i] = wild[rnd() % (sizeof wild / sizeof *wild)];
	}
	yoke_tensor *x =
		real ? yoke_from(yoke_f64, rank, dims, f) : yoke_from(yoke_i64, rank, dims, k);
	yoke_tensor *y = dtype == yoke_f64 || dtype == yoke_i64 ? x : yoke_cast(x, dtype);
	if (y != x)
		yoke_eval(1, &y);
	free(f);
	free(k);
	return y;
}
#define DIMS(...) \
	(int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

static yoke_tensor *given(yoke_tensor *x)
{
	return input[inputs++] = x;
}

static yoke_tensor *x(int dtype, int kind, int rank, const int64_t *dims)
{
	return given(numbers(dtype, kind, rank, dims));
}

// Indices below `limit`.
static yoke_tensor *index_of(int dtype, int64_t limit, int rank, const int64_t *dims)
{
	return given(yoke_remainder(yoke_abs(numbers(dtype, TAME, rank, dims)),
				    yoke_const((double)limit)));
}

// ---- a reader of the file ----

struct field {
	unsigned number, type;
	uint64_t value;
	const unsigned char *at;
	size_t n;
};

static bool varint(const unsigned char **p, const unsigned char *end, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; *p < end && shift < 64; shift += 7) {
		const unsigned char c = *(*p)++;
		*v |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			return true;
	}
	return false;
}

// The next field of a message; false at its end, with *good cleared if it is damaged.
static bool next(const unsigned char **p, const unsigned char *end, struct field *f, bool *good)
{
	uint64_t key, n;
	if (*p == end || !*good)
		return false;
	*good = varint(p, end, &key);
	*f = (struct field){ .number = (unsigned)(key >> 3), .type = key & 7 };
	if (*good && f->type == 0)
		*good = varint(p, end, &f->value);
	else if (*good && (f->type == 2 || f->type == 5)) {
		*good = f->type == 5 ? (n = 4, true) : varint(p, end, &n);
		*good = *good && n <= (uint64_t)(end - *p);
		f->at = *p;
		f->n = *good ? (size_t)n : 0;
		*p += f->n;
	} else {
		*good = false;
	}
	return *good;
}

enum { MAX_NAMES = 20000 };
struct model {
	char *name[MAX_NAMES]; // of values that are defined so far
	int maker[MAX_NAMES];  // node or constant that makes them; -1: an input
	bool used[MAX_NAMES];  // by maker
	int names, makers, nodes, constants, inputs, outputs;
	uint64_t bytes, apart; // of constants, inside and outside
	bool good;
};

static char *text_of(const struct field *f)
{
	return strndup((const char *)f->at, f->n);
}

static int find(const struct model *m, const struct field *f)
{
	int i = m->names;
	while (--i >= 0 && (strlen(m->name[i]) != f->n || memcmp(m->name[i], f->at, f->n)))
		;
	return i;
}

static bool defined(const struct model *m, const struct field *f)
{
	return !f->n || find(m, f) >= 0;
}

static void use(struct model *m, const struct field *f)
{
	const int i = f->n ? find(m, f) : -1;
	m->good = m->good && (i >= 0 || !f->n);
	if (i >= 0 && m->maker[i] >= 0)
		m->used[m->maker[i]] = true;
}

// Names are UTF-8 without control characters.
static bool is_valid(const struct field *f)
{
	bool good = true;
	for (size_t i = 0; i < f->n && good;) {
		const unsigned char *s = f->at + i, *end = f->at + f->n;
		const int n = *s < 128 ? *s > ' ' && *s < 127 : yk_utf8(s, end);
		good = n > 0;
		i += (size_t)n;
	}
	return good && f->n <= 320;
}

static void define(struct model *m, const struct field *f, int maker)
{
	m->good = m->good && f->n && m->names < MAX_NAMES && !defined(m, f) && is_valid(f);
	if (!m->good)
		return;
	m->maker[m->names] = maker;
	m->name[m->names++] = text_of(f);
}

static void read_node(struct model *m, const struct field *node)
{
	const unsigned char *p = node->at, *end = p + node->n;
	struct field f;
	bool typed = false, named = false;
	while (next(&p, end, &f, &m->good)) {
		if (f.number == 1)
			use(m, &f);
		if (f.number == 2 && f.n)
			define(m, &f, m->makers);
		named |= f.number == 3 && f.n && is_valid(&f);
		typed |= f.number == 4 && f.n;
	}
	m->good = m->good && named && typed;
	m->makers++;
	m->nodes++;
}

static void read_constant(struct model *m, const struct field *tensor)
{
	static const uint64_t sizes[] = {
		[1] = 4, [2] = 1, [3] = 1, [6] = 4, [7] = 8, [9] = 1, [10] = 2, [11] = 8, [16] = 2
	};
	const unsigned char *p = tensor->at, *end = p + tensor->n;
	struct field f, entry;
	uint64_t count = 1, size = 0, bytes = 0, n, place = 0, length = 0;
	bool inside = false;
	while (next(&p, end, &f, &m->good)) {
		const unsigned char *q = f.at, *last = q + f.n;
		if (f.number == 1)
			while (q < last && (m->good = varint(&q, last, &n)))
				count *= n;
		if (f.number == 2)
			size = f.value < sizeof sizes / sizeof *sizes ? sizes[f.value] : 0;
		if (f.number == 9) {
			inside = true;
			bytes = f.n;
		}
		char *key = NULL, *value = NULL;
		while (f.number == 13 && next(&q, last, &entry, &m->good))
			*(entry.number == 1 ? &key : &value) = text_of(&entry);
		if (key && value && !strcmp(key, "offset"))
			place = strtoull(value, NULL, 10);
		if (key && value && !strcmp(key, "length"))
			length = strtoull(value, NULL, 10);
		free(key);
		free(value);
	}
	m->good = m->good && size && (inside ? bytes : length) == count * size && place % 4096 == 0;
	m->bytes += inside ? bytes : 0;
	m->apart += inside ? 0 : length;
	m->constants++;
}

enum { INPUT, CONSTANT, OUTPUT, DESCRIBED };
static void read_named(struct model *m, const struct field *message, unsigned number, int kind)
{
	const unsigned char *p = message->at, *end = p + message->n;
	struct field f;
	bool named = false;
	while (next(&p, end, &f, &m->good))
		if (f.number == number) {
			named = true;
			if (kind == INPUT || kind == CONSTANT)
				define(m, &f, kind == CONSTANT ? m->makers++ : -1);
			else if (kind == OUTPUT)
				use(m, &f);
			else
				m->good = m->good && defined(m, &f);
		}
	m->good = m->good && named;
}

// First what the nodes read, then these in order.
static void read_graph(struct model *m, const struct field *graph)
{
	struct field f;
	for (int turn = 0; turn < 3; turn++) {
		const unsigned char *p = graph->at, *end = p + graph->n;
		while (next(&p, end, &f, &m->good)) {
			if (turn == 0 && f.number == 5) {
				read_named(m, &f, 8, CONSTANT);
				read_constant(m, &f);
			} else if (turn == 0 && f.number == 11) {
				read_named(m, &f, 1, INPUT);
				m->inputs++;
			} else if (turn == 1 && f.number == 1) {
				read_node(m, &f);
			} else if (turn == 2 && f.number == 12) {
				read_named(m, &f, 1, OUTPUT);
				m->outputs++;
			} else if (turn == 2 && f.number == 13) {
				read_named(m, &f, 1, DESCRIBED);
			}
		}
	}
	for (int i = 0; i < m->makers && m->good; i++)
		m->good = m->used[i];
}

// The structure of a file; all names are freed but counts stay.
static const struct model *read_model(const char *path)
{
	static struct model m;
	m = (struct model){ .good = true };
	FILE *f = fopen(path, "rb");
	struct stat st;
	unsigned char *data = NULL;
	m.good = f && fstat(fileno(f), &st) == 0 && (data = malloc((size_t)st.st_size + 1)) &&
		 fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size;
	const unsigned char *p = data, *end = m.good ? p + st.st_size : p;
	struct field v, o;
	int version = 0, opset = 0, graphs = 0;
	while (next(&p, end, &v, &m.good)) {
		const unsigned char *q = v.at;
		version = v.number == 1 ? (int)v.value : version;
		while (v.number == 8 && next(&q, v.at + v.n, &o, &m.good))
			opset = o.number == 2 ? (int)o.value : opset;
		if (v.number == 2)
			m.good = m.good && v.n == 4 && !memcmp(v.at, "yoke", 4);
		if (v.number == 7) {
			read_graph(&m, &v);
			graphs++;
		}
	}
	m.good = m.good && version == 9 && opset == 20 && graphs == 1;
	for (int i = 0; i < m.names; i++)
		free(m.name[i]);
	free(data);
	if (f)
		fclose(f);
	return &m;
}

// ---- cases ----

static int cases;
static bool structure = true;

static void save_with(const char *name, double tol, int m, yoke_tensor *const *out,
		      const struct yoke_onnx_options *o)
{
	char path[400];
	snprintf(path, sizeof path, "%s.onnx", name);
	const bool written = onnx_case(name, inputs, input, m, out, tol, o);
	const struct model *is = written ? read_model(path) : NULL;
	const bool good = is && is->good && is->inputs == inputs && is->outputs == m;
	if (!good && is)
		diag("%s: %d inputs, %d outputs, %d nodes, %d constants", name, is->inputs,
		     is->outputs, is->nodes, is->constants);
	else if (!good)
		diag("%s: %s", name, yoke_error());
	structure = structure && good;
	yoke_error_clear();
	yoke_scope_end(scope);
	cases++;
}

static void save(const char *name, double tol, yoke_tensor *y)
{
	save_with(name, tol, 1, &y, NULL);
}

static const struct {
	const char *name;
	yoke_tensor *(*fn)(yoke_tensor *);
	int kind; // of numbers
} unary[] = {
	{ "neg", yoke_neg, WILD },
	{ "abs", yoke_abs, WILD },
	{ "sign", yoke_sign, WILD },
	{ "floor", yoke_floor, WILD },
	{ "round", yoke_round, WILD },
	{ "ceil", yoke_ceil, WILD },
	{ "square", yoke_square, TAME },
	{ "exp", yoke_exp, WILD },
	{ "log", yoke_log, WILD },
	{ "log1p", yoke_log1p, WILD },
	{ "expm1", yoke_expm1, WILD },
	{ "sqrt", yoke_sqrt, WILD },
	{ "rsqrt", yoke_rsqrt, WILD },
	{ "recip", yoke_recip, WILD },
	{ "sin", yoke_sin, TAME },
	{ "cos", yoke_cos, TAME },
	{ "tanh", yoke_tanh, WILD },
	{ "sigmoid", yoke_sigmoid, WILD },
	{ "erf", yoke_erf, WILD },
	{ "not", yoke_not, WILD },
	{ "isfinite", yoke_isfinite, WILD },
	{ "relu", yoke_relu, WILD },
	{ "gelu", yoke_gelu, TAME },
	{ "gelu_tanh", yoke_gelu_tanh, TAME },
	{ "silu", yoke_silu, TAME },
	{ "asin", yoke_asin, UNIT },
	{ "acos", yoke_acos, UNIT },
	{ "atan", yoke_atan, WILD },
	{ "erfinv", yoke_erfinv, UNIT },
	{ "lgamma", yoke_lgamma, POSITIVE },
	{ "digamma", yoke_digamma, POSITIVE },
};

static const struct {
	const char *name;
	yoke_tensor *(*fn)(yoke_tensor *, yoke_tensor *);
} binary[] = {
	{ "add", yoke_add }, { "sub", yoke_sub },     { "mul", yoke_mul },
	{ "div", yoke_div }, { "mod", yoke_mod },     { "pow", yoke_pow },
	{ "min", yoke_min }, { "max", yoke_max },     { "eq", yoke_eq },
	{ "ne", yoke_ne },   { "lt", yoke_lt },       { "le", yoke_le },
	{ "gt", yoke_gt },   { "ge", yoke_ge },       { "and", yoke_and },
	{ "or", yoke_or },   { "xor", yoke_xor },     { "shl", yoke_shl },
	{ "shr", yoke_shr }, { "atan2", yoke_atan2 }, { "remainder", yoke_remainder },
};

static const int dtypes[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16, yoke_i8,
			      yoke_u8,  yoke_i32, yoke_i64, yoke_bool };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

// Results differ by a few roundings; erf of f64 has f32's precision.
static double tolerance(int dtype)
{
	return dtype == yoke_f16 ? 2e-3 : dtype == yoke_bf16 ? 1.6e-2 : 1e-5;
}

// bf16 cannot be passed from Python.
static yoke_tensor *of(int dtype, int kind, int rank, const int64_t *dims)
{
	return dtype == yoke_bf16 ? yoke_cast(x(yoke_f32, kind, rank, dims), dtype) :
				    x(dtype, kind, rank, dims);
}

static yoke_tensor *shown(yoke_tensor *y)
{
	return y && yoke_dtype(y) == yoke_bf16 ? yoke_cast(y, yoke_f32) : y;
}

static void maps(int dtype)
{
	char name[80];
	const char *type = yoke_dtype_name(dtype);
	for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
		begin();
		yoke_tensor *y = shown(unary[i].fn(of(dtype, unary[i].kind, DIMS(9, 4))));
		snprintf(name, sizeof name, "%s_%s", unary[i].name, type);
		if (y)
			save(name, tolerance(dtype), y);
		else // no such dtype
			yoke_scope_end(scope);
		yoke_error_clear();
	}
	for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
		begin();
		const bool shifts = !strncmp(binary[i].name, "sh", 2),
			   powers = !strcmp(binary[i].name, "pow");
		yoke_tensor *a = of(dtype, powers ? POSITIVE : WILD, DIMS(9, 1, 6)),
			    *b = of(dtype, powers ? TAME : WILD, DIMS(5, 6));
		yoke_tensor *y = shown(binary[i].fn(a, b));
		snprintf(name, sizeof name, "%s_%s", binary[i].name, type);
		(void)shifts;
		if (y)
			save(name, tolerance(dtype), y);
		else
			yoke_scope_end(scope);
		yoke_error_clear();
	}
	for (int k = 0; k < DTYPES; k++) {
		begin();
		snprintf(name, sizeof name, "cast_%s_%s", type, yoke_dtype_name(dtypes[k]));
		save(name, tolerance(dtypes[k]),
		     shown(yoke_cast(of(dtype, WILD, DIMS(40)), dtypes[k])));
	}
	begin();
	snprintf(name, sizeof name, "select_%s", type);
	save(name, 0,
	     shown(yoke_select(x(yoke_bool, TAME, DIMS(4, 1)), of(dtype, WILD, DIMS(4, 5)),
			       of(dtype, WILD, DIMS(5)))));
}

// Views, copies and indices, which are the same in each dtype.
// ---- sweeps ----

static double rsqrt_of(double x)
{
	return 1 / sqrt(x);
}

static double recip_of(double x)
{
	return 1 / x;
}

static double sigmoid_of(double x)
{
	return 1 / (1 + exp(-x));
}

static double sign_of(double x)
{
	return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double square_of(double x)
{
	return x * x;
}

static double silu_of(double x)
{
	return x == -INFINITY ? NAN : x * sigmoid_of(x);
}

static const struct {
	const char *name;
	yoke_tensor *(*fn)(yoke_tensor *);
	double (*is)(double);
	double max; // |x|; larger ones are left out
	double off; // absolute difference
} swept[] = {
	{ "exp", yoke_exp, exp, INFINITY, 0 },
	{ "log", yoke_log, log, INFINITY, 0 },
	{ "log1p", yoke_log1p, log1p, INFINITY, 0 },
	{ "expm1", yoke_expm1, expm1, INFINITY, 0 },
	{ "sqrt", yoke_sqrt, sqrt, INFINITY, 0 },
	{ "rsqrt", yoke_rsqrt, rsqrt_of, INFINITY, 0 },
	{ "recip", yoke_recip, recip_of, INFINITY, 0 },
	{ "sin", yoke_sin, sin, 100, 1e-6 },
	{ "cos", yoke_cos, cos, 100, 1e-6 },
	{ "tanh", yoke_tanh, tanh, INFINITY, 1e-6 },
	{ "sigmoid", yoke_sigmoid, sigmoid_of, INFINITY, 1e-7 },
	{ "erf", yoke_erf, erf, INFINITY, 1e-6 },
	{ "silu", yoke_silu, silu_of, INFINITY, 1e-5 },
	{ "abs", yoke_abs, fabs, INFINITY, 0 },
	{ "sign", yoke_sign, sign_of, INFINITY, 0 },
	{ "square", yoke_square, square_of, INFINITY, 0 },
	{ "floor", yoke_floor, floor, INFINITY, 0 },
	{ "ceil", yoke_ceil, ceil, INFINITY, 0 },
	{ "round", yoke_round, rint, INFINITY, 0 },
	{ "atan", yoke_atan, atan, INFINITY, 0 },
};

static double *doubles(yoke_tensor *t)
{
	const size_t n = (size_t)yoke_count(t);
	double *to = calloc(n + 1, sizeof *to);
	yoke_tensor *wide = yoke_dtype(t) == yoke_f64 ? t : yoke_cast(t, yoke_f64);
	if (yoke_read(wide, to, n * sizeof *to) < 0)
		diag("%s", yoke_error());
	return to;
}

// Elementwise ops of numbers of each exponent, beside functions in f64.
static void sweep(int dtype)
{
	enum { OPS = sizeof swept / sizeof *swept, MAX = 2100 * 6 };
	static const double mantissas[] = { 1, 1.375, 1.9921875 };
	static const double special[] = { 0,     -0.0,  INFINITY, -INFINITY, NAN, 88.5,
					  -88.5, -95.5, -103.5,   709.5,     -745 };
	static const int lowest[] = {
		[yoke_f32] = -149, [yoke_f64] = -1074, [yoke_f16] = -24, [yoke_bf16] = -133
	};
	static const int highest[] = {
		[yoke_f32] = 127, [yoke_f64] = 1023, [yoke_f16] = 15, [yoke_bf16] = 127
	};
	static const double epsilon[] = {
		[yoke_f32] = 4e-6, [yoke_f64] = 1e-13, [yoke_f16] = 2e-3, [yoke_bf16] = 1.6e-2
	};
	static const double smallest[] = { [yoke_f32] = 1.2e-38,
					   [yoke_f64] = 2.3e-308,
					   [yoke_f16] = 1.2e-7,
					   [yoke_bf16] = 1.2e-38 };
	static double x_values[MAX + 20], bound[MAX + 20];
	char name[80];
	int64_t n = 0;
	for (int e = lowest[dtype]; e <= highest[dtype]; e++)
		for (int i = 0; i < 6; i++)
			x_values[n++] = ldexp(mantissas[i / 2], e) * (i % 2 ? -1 : 1);
	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		x_values[n++] = special[i];
	snprintf(name, sizeof name, "sweep_%s", yoke_dtype_name(dtype));
	begin();
	yoke_tensor *wide = yoke_from(yoke_f64, 1, &n, x_values), *out[OPS];
	yoke_tensor *is = given(
		dtype == yoke_f64 ? wide : yoke_cast(wide, dtype == yoke_bf16 ? yoke_f32 : dtype));
	yoke_tensor *a = dtype == yoke_bf16 ? yoke_cast(is, dtype) : is;
	double *from = doubles(a), *got[OPS];
	for (int k = 0; k < OPS; k++) {
		out[k] = shown(swept[k].fn(a));
		got[k] = doubles(out[k]);
	}
	save_with(name, 0, OPS, out, NULL);
	for (int k = 0; k < OPS; k++) {
		double *want = calloc((size_t)n, sizeof *want);
		int wrong = 0;
		for (int64_t i = 0; i < n; i++)
			want[i] = swept[k].is(from[i]);
		yoke_tensor *w = yoke_from(yoke_f64, 1, &n, want);
		w = dtype == yoke_f64 ? w : shown(yoke_cast(w, dtype));
		onnx_tensor(name, "out", k, w);
		double *rounded = doubles(w);
		for (int64_t i = 0; i < n; i++) {
			const double r = fabs(rounded[i]), d = fabs(got[k][i] - rounded[i]);
			const bool exact = dtype == yoke_f64 &&
					   swept[k].fn != yoke_erf; // erf has f32's precision
			const double off = swept[k].off * (exact ? 1e-8 : 1);
			const double b =
				off + smallest[dtype] + epsilon[dtype] * (isfinite(r) ? r : 0);
			const bool same =
				rounded[i] == got[k][i] || (isnan(rounded[i]) && isnan(got[k][i]));
			bound[i] = fabs(from[i]) > swept[k].max && isfinite(from[i]) ?
					   INFINITY :
					   b / (1 + (isfinite(r) ? r : 0));
			if (!same && !(d <= b) && isfinite(bound[i]) && !wrong++)
				diag("%s of %a: %a, not %a", swept[k].name, from[i], got[k][i],
				     rounded[i]);
		}
		onnx_bytes(name, "bound", k, bound, (size_t)n * sizeof *bound);
		ok(!wrong, "%s of %s is right for %lld of %lld numbers of all exponents",
		   swept[k].name, yoke_dtype_name(dtype), (long long)n - wrong, (long long)n);
		yoke_free(w);
		free(want);
		free(rounded);
		free(got[k]);
	}
	free(from);
}

static void moves(int dtype)
{
	char name[80];
	const int64_t lo[] = { 1, 0, 2 }, hi[] = { 0, 3, 1 }, at[] = { 1, 0, 2 };
	begin();
	yoke_tensor *a = of(dtype, TAME, DIMS(3, 4, 5)), *v = of(dtype, TAME, DIMS(1, 3, 2)),
		    *out[16];
	yoke_tensor *i = index_of(yoke_i64, 3, DIMS(2, 2)),
		    *j = index_of(yoke_i32, 4, DIMS(3, 2, 5));
	yoke_tensor *s = yoke_reshape(index_of(yoke_i64, 2, DIMS(1)), 0, NULL);
	yoke_tensor *flat = of(dtype, TAME, DIMS(12));
	int m = 0;
	out[m++] = yoke_reshape(a, 2, (int64_t[]){ 6, 10 });
	out[m++] = yoke_permute(a, (int[]){ 2, 0, 1 });
	out[m++] = yoke_broadcast_to(v, 4, (int64_t[]){ 2, 4, 3, 2 });
	out[m++] = yoke_slice(a, 2, 1, 5, 2);
	out[m++] = yoke_flip(a, YOKE_AXIS(0) | YOKE_AXIS(2));
	out[m++] = yoke_slice(yoke_flip(yoke_slice(a, 1, 1, 4, 1), YOKE_AXIS(1)), 0, 1, 3, 1);
	out[m++] = yoke_pad(a, lo, hi, dtype == yoke_bool ? 1 : 2);
	out[m++] = yoke_concat(3, (yoke_tensor *[]){ a, yoke_slice(a, 1, 2, 2, 1), a }, 1);
	out[m++] = yoke_slice_update(a, at, v);
	out[m++] = yoke_gather(a, i, 0);
	out[m++] = yoke_take_along(a, j, 1);
	out[m++] = yoke_window(flat, 0, 4, 2, 3);
	out[m++] = yoke_slice_at(a, (yoke_tensor *[]){ YOKE_NONE, s, s }, (int64_t[]){ 2, 3, 3 });
	out[m++] = yoke_slice_update_at(a, (yoke_tensor *[]){ s, YOKE_NONE, s }, v);
	out[m++] = yoke_contiguous(yoke_stop_grad(a));
	out[m++] = yoke_reshape(yoke_slice(flat, 0, 3, 4, 1), 0, NULL);
	for (int k = 0; k < m; k++)
		out[k] = shown(out[k]);
	snprintf(name, sizeof name, "moves_%s", yoke_dtype_name(dtype));
	save_with(name, 0, m, out, NULL);
}

static void sums(int dtype)
{
	char name[80];
	begin();
	const bool real = dtype <= yoke_bf16;
	yoke_tensor *a = of(dtype, TAME, DIMS(3, 4, 5)), *w = of(dtype, WILD, DIMS(4, 7)), *out[24],
		    *at;
	yoke_tensor *b = of(dtype, TAME, DIMS(5, 2)), *c = of(dtype, TAME, DIMS(2, 1, 6, 4));
	yoke_tensor *i = index_of(yoke_i64, 3, DIMS(2, 2)),
		    *j = index_of(yoke_i32, 4, DIMS(3, 2, 5)),
		    *v = of(dtype, TAME, DIMS(2, 2, 4, 5));
	yoke_tensor *d = of(dtype, TAME, DIMS(3, 2, 5)), *square = of(dtype, TAME, DIMS(4, 4));
	int m = 0;
	out[m++] = yoke_sum(a, YOKE_AXIS(1));
	out[m++] = yoke_sum(a, YOKE_ALL | YOKE_KEEP);
	out[m++] = real ? yoke_prod(square, YOKE_AXIS(0)) : yoke_prod(w, YOKE_AXIS(0)); // wraps
	out[m++] = real ? square : yoke_sum(w, YOKE_AXIS(1));
	out[m++] = yoke_reduce_max(w, YOKE_AXIS(1));
	out[m++] = yoke_reduce_min(w, YOKE_AXIS(0) | YOKE_KEEP);
	out[m++] = yoke_argmax(w, 1);
	out[m++] = yoke_argmin(w, 0);
	out[m++] = yoke_cumsum(a, 2, 1);
	out[m++] = yoke_cumprod(square, 0, 0);
	out[m++] = yoke_matmul(a, b, 0);
	out[m++] = yoke_matmul(a, c, YOKE_TA | YOKE_TB);
	out[m++] = yoke_matmul(square, square, YOKE_TB);
	out[m++] = yoke_sort(w, 1, 0, &at);
	out[m++] = at;
	out[m++] = yoke_scatter_add(a, i, v);
	out[m++] = yoke_scatter_add_along(a, j, d, 1);
	for (int k = 0; k < m; k++)
		out[k] = shown(out[k]);
	snprintf(name, sizeof name, "sums_%s", yoke_dtype_name(dtype));
	save_with(name, real ? 4 * tolerance(dtype) : 0, m, out, NULL);
	begin();
	w = of(dtype, WILD, DIMS(5, 9));
	out[0] = shown(yoke_sort(w, 1, 1, &out[1]));
	out[2] = shown(yoke_topk(w, 3, 0, 1, &out[3]));
	out[4] = shown(yoke_topk(w, 4, 1, 0, &out[5]));
	snprintf(name, sizeof name, "order_%s", yoke_dtype_name(dtype));
	save_with(name, 0, 6, out, NULL);
}

static void layers(int dtype)
{
	char name[80];
	const double tol = 4 * tolerance(dtype);
	const char *type = yoke_dtype_name(dtype);
	yoke_tensor *out[16];
	int m = 0;
	begin();
	yoke_tensor *a = of(dtype, TAME, DIMS(2, 3, 8)), *w = of(dtype, TAME, DIMS(8)),
		    *b = of(dtype, TAME, DIMS(8));
	out[m++] = yoke_softmax(a, -1);
	out[m++] = yoke_log_softmax(a, 1);
	out[m++] = yoke_logsumexp(a, 2);
	out[m++] = yoke_layer_norm(a, w, b, 1e-5);
	out[m++] = yoke_layer_norm(a, YOKE_NONE, YOKE_NONE, 1e-3);
	out[m++] = yoke_rms_norm(a, w, 1e-5);
	out[m++] = yoke_mean(a, YOKE_AXIS(0));
	out[m++] = yoke_var(a, YOKE_AXIS(2), 1);
	out[m++] = yoke_cross_entropy(yoke_reshape(a, 2, (int64_t[]){ 6, 8 }),
				      index_of(yoke_i64, 8, DIMS(6)), 3, 0.1);
	for (int k = 0; k < m; k++)
		out[k] = shown(out[k]);
	snprintf(name, sizeof name, "layers_%s", type);
	save_with(name, tol, m, out, NULL);

	begin();
	yoke_tensor *q = of(dtype, TAME, DIMS(2, 5, 4, 6)), *k = of(dtype, TAME, DIMS(2, 7, 2, 6)),
		    *v = of(dtype, TAME, DIMS(2, 7, 2, 6));
	yoke_tensor *mask = x(yoke_bool, TAME, DIMS(1, 4, 5, 7)),
		    *few = index_of(yoke_i64, 7, DIMS(2));
	yoke_tensor *wide = of(dtype, TAME, DIMS(2, 9, 4, 6));
	m = 0;
	out[m++] = yoke_attention(q, k, v, YOKE_NONE, 0, 0, 0);
	out[m++] = yoke_attention(q, k, v, YOKE_NONE, 1, 0.3, 0);
	out[m++] = yoke_attention(q, k, v, mask, 1, 0, 0);
	out[m++] = yoke_attention(wide, k, v, YOKE_NONE, 1, 0, 0); // rows without keys
	out[m++] = yoke_attention_keys(q, k, v, few, YOKE_NONE, 0, 0, 0);
	out[m++] = yoke_rope(q, of(dtype, TAME, DIMS(5, 3)), of(dtype, TAME, DIMS(5, 3)));
	for (int i = 0; i < m; i++)
		out[i] = shown(out[i]);
	snprintf(name, sizeof name, "attention_%s", type);
	save_with(name, tol, m, out, NULL);

	begin();
	const struct yoke_conv_options conv = { .size = sizeof conv,
						.stride = { 2, 1 },
						.dilation = { 1, 2 },
						.lo = { 1, 2 },
						.hi = { 2, 0 },
						.groups = 2 };
	const struct yoke_conv_options up = { .size = sizeof up,
					      .stride = { 3, 2 },
					      .dilation = { 1, 2 },
					      .lo = { 1, 0 },
					      .hi = { 0, 1 },
					      .more = { 2, 1 },
					      .groups = 2 };
	const struct yoke_pool_options pool = { .size = sizeof pool,
						.window = { 3, 2 },
						.stride = { 2, 1 },
						.lo = { 1, 1 },
						.hi = { 2, 0 } };
	yoke_tensor *image = of(dtype, TAME, DIMS(2, 4, 7, 8)),
		    *line = of(dtype, TAME, DIMS(2, 4, 9));
	m = 0;
	out[m++] = yoke_conv(image, of(dtype, TAME, DIMS(6, 2, 3, 2)), &conv);
	out[m++] = yoke_conv(line, of(dtype, TAME, DIMS(3, 4, 3)), NULL);
	out[m++] = yoke_conv_transposed(image, of(dtype, TAME, DIMS(4, 3, 3, 2)), &up);
	out[m++] = yoke_max_pool(image, &pool);
	out[m++] = yoke_mean_pool(image, &pool);
	out[m++] = yoke_adaptive_max_pool(line, (int64_t[]){ 4 });
	out[m++] = yoke_resize(image, (int64_t[]){ 5, 11 }, 1);
	for (int i = 0; i < m; i++)
		out[i] = shown(out[i]);
	snprintf(name, sizeof name, "images_%s", type);
	save_with(name, tol, m, out, NULL);
}

// What has no elements, no axes, or numbers that are not finite.
static void edges(void)
{
	yoke_tensor *out[16];
	int m = 0;
	begin();
	yoke_tensor *none = x(yoke_f32, TAME, DIMS(3, 0)), *some = x(yoke_f32, TAME, DIMS(3, 2)),
		    *v = yoke_slice(some, 1, 1, 1, 1);
	out[m++] = yoke_sum(none, YOKE_AXIS(1));
	out[m++] = yoke_prod(none, YOKE_ALL);
	out[m++] = yoke_matmul(none, none, YOKE_TB);
	out[m++] = yoke_concat(2, (yoke_tensor *[]){ none, some }, 1);
	out[m++] = yoke_pad(none, (int64_t[]){ 0, 2 }, (int64_t[]){ 1, 1 }, -1);
	out[m++] = yoke_exp(none);
	out[m++] = yoke_slice_update(some, (int64_t[]){ 0, 1 }, v);
	out[m++] = yoke_softmax(none, 1);
	out[m++] = yoke_sum(yoke_add(some, yoke_const(2)), YOKE_ALL);
	out[m++] = some; // an input as an output
	out[m++] = yoke_full(yoke_i64, 2, (int64_t[]){ 2, 2 }, -9007199254740993.0);
	out[m++] = yoke_full(yoke_i64, 1, (int64_t[]){ 2 }, 0x1.fffffffffffffp62);
	out[m++] = yoke_pad(x(yoke_i64, TAME, DIMS(2)), (int64_t[]){ 1 }, (int64_t[]){ 1 },
			    0x1.fffffffffffffp62);
	out[m++] =
		yoke_pad(x(yoke_i64, TAME, DIMS(2)), (int64_t[]){ 1 }, (int64_t[]){ 1 }, -0x1p63);
	out[m++] = yoke_iota(yoke_f32, 2, (int64_t[]){ 3, 4 }, 1);
	save_with("empty", 1e-6, m, out, NULL);

	begin();
	m = 0;
	yoke_tensor *one = yoke_reshape(x(yoke_f32, TAME, DIMS(1)), 0, NULL),
		    *wildest = x(yoke_f32, WILD, DIMS(6, 12));
	out[m++] = yoke_mul(one, one);
	out[m++] = yoke_sum(one, YOKE_ALL);
	out[m++] = yoke_permute(yoke_reshape(one, 2, (int64_t[]){ 1, 1 }), (int[]){ 1, 0 });
	out[m++] = yoke_softmax(wildest, 1);
	out[m++] = yoke_reduce_max(wildest, YOKE_AXIS(1));
	out[m++] =
		yoke_max_pool(yoke_reshape(wildest, 3, (int64_t[]){ 2, 3, 12 }),
			      &(struct yoke_pool_options){ .size = sizeof(struct yoke_pool_options),
							   .window = { 3 } });
	out[m++] = yoke_cumsum(wildest, 1, 0);
	out[m++] = yoke_matmul(wildest, wildest, YOKE_TB);
	save_with("scalars", 1e-5, m, out, NULL);
}

// A step of training: gradients through layers, and assignments' values.
static void gradients(void)
{
	yoke_tensor *p[4], *g[4];
	begin();
	yoke_tensor *image = x(yoke_f32, TAME, DIMS(2, 3, 6, 6)),
		    *ids = index_of(yoke_i64, 5, DIMS(2));
	const char *const names[] = { "conv.weight", "norm.weight", "fc.weight", "fc.bias" };
	const int64_t dims[][4] = { { 4, 3, 3, 3 }, { 36 }, { 5, 36 }, { 5 } };
	const int ranks[] = { 4, 1, 2, 1 };
	for (int i = 0; i < 4; i++) {
		p[i] = yoke_variable(names[i], yoke_f32, ranks[i], dims[i]);
		yoke_assign(p[i], numbers(yoke_f32, UNIT, ranks[i], dims[i]));
	}
	yoke_eval(0, NULL);
	yoke_tensor *y = yoke_conv(image, p[0], NULL);
	y = yoke_max_pool(y, &(struct yoke_pool_options){ .size = sizeof(struct yoke_pool_options),
							  .window = { 2, 2 },
							  .stride = { 1, 1 } });
	y = yoke_layer_norm(yoke_reshape(yoke_gelu(y), 2, (int64_t[]){ 2, 36 }), p[1], YOKE_NONE,
			    1e-5);
	y = yoke_cross_entropy(yoke_linear(y, p[2], p[3]), ids, -1, 0);
	yoke_grad(y, 4, p, g);
	save_with("gradients", 1e-4, 5, (yoke_tensor *[]){ y, g[0], g[1], g[2], g[3] }, NULL);
	for (int i = 0; i < 4; i++)
		yoke_free(p[i]);
}

static void quantized(void)
{
	static const int formats[] = { YOKE_QUANT_F16,  YOKE_QUANT_BF16, YOKE_QUANT_Q4_0,
				       YOKE_QUANT_Q4_1, YOKE_QUANT_Q5_0, YOKE_QUANT_Q5_1,
				       YOKE_QUANT_Q8_0 };
	enum { ROWS = 6, K = 64 };
	float values[ROWS * K];
	unsigned char bytes[ROWS * K * 4];
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		char name[40];
		for (int k = 0; k < ROWS * K; k++)
			values[k] = (float)rnd_real(-1, 1);
		begin();
		const int64_t row = yoke_quant_bytes(formats[i], K);
		yoke_quantize(formats[i], ROWS, K, values, bytes);
		yoke_tensor *w = yoke_from(yoke_u8, 2, (int64_t[]){ ROWS, row }, bytes), *out[4];
		yoke_tensor *a = x(yoke_f32, TAME, DIMS(3, 2, K)),
			    *ids = index_of(yoke_i32, ROWS, DIMS(2, 2));
		out[0] = yoke_qlinear(a, w, formats[i]);
		out[1] = yoke_qgather(w, ids, formats[i], K, yoke_f32);
		out[2] = yoke_dequant(w, formats[i], K, yoke_f32);
		out[3] = yoke_qlinear(yoke_cast(a, yoke_f16), w, formats[i]);
		snprintf(name, sizeof name, "quantized_%d", formats[i]);
		save_with(name, 4e-3, 4, out, NULL); // devices may round x
	}
}

// Weights have names, and lie in a file of their own where they are many.
static void names(void)
{
	begin();
	yoke_tensor *w =
		yoke_variable("layers.0.attn.q.weight", yoke_f32, 2, (int64_t[]){ 8, 600 });
	yoke_tensor *half = numbers(yoke_f16, TAME, DIMS(8)), *a = x(yoke_f32, TAME, DIMS(4, 600));
	yoke_assign(w, numbers(yoke_f32, TAME, DIMS(8, 600)));
	yoke_eval(0, NULL);
	yoke_tensor *y = yoke_add(yoke_linear(a, w, YOKE_NONE), yoke_cast(half, yoke_f32));
	struct yoke_onnx_options o = { .size = sizeof o,
				       .name = "network",
				       .inputs = (const char *const[]){ "pixels" },
				       .outputs = (const char *const[]){ "scores" },
				       .weights = 1,
				       .weight = &half,
				       .weight_names =
					       (const char *const[]){ "layers.0.attn.q.bias" } };
	char line[200];
	const char *want[] = { "layers.0.attn.q.weight",
			       "layers.0.attn.q.bias",
			       "pixels",
			       "scores",
			       "network",
			       NULL };
	ok(yoke_onnx_write("named.onnx", 1, input, 1, &y, &o) == 0, "weights are written %s",
	   yoke_error());
	for (int i = 0; want[i]; i++) {
		snprintf(line, sizeof line, "grep -qa '%s' named.onnx", want[i]);
		ok(tap_run(line), "the file has the name %s", want[i]);
	}
	unlink("named.onnx");
	o.external = 1000;
	save_with("apart", 1e-4, 1, &y, &o);
	const struct model *m = read_model("apart.onnx");
	ok(m->good && m->apart == 600 * 8 * 4 + 16 && m->bytes < 1000,
	   "%llu bytes of weights lie in the other file, %llu in the model",
	   (unsigned long long)m->apart, (unsigned long long)m->bytes);
	yoke_free(w);
}

static bool holds_text(const char *path, const char *text)
{
	char line[200];
	FILE *f = fopen(path, "r");
	const bool same = f && fgets(line, sizeof line, f) && !strcmp(line, text);
	if (f)
		fclose(f);
	return same;
}

// The model and its external data are replaced together, and only if both may be.
static void replaced(void)
{
	const struct yk_model_shape shape = {
		.vocab = 19, .context = 4, .layers = 1, .heads = 2, .embed = 8
	};
	struct yk_onnx_export o = { .external = 1 };
	struct yk_network *n = NULL;
	struct stat st;
	ok(yk_network_new(&yk_model_gpt, &shape, &n) == 0 && yk_parameters_draw(&n->params, 7) == 0,
	   "a network %s", yoke_error());
	onnx_bytes("pair.onnx.data", "", 0, "kept", 4);
	rename("pair.onnx.data.0", "pair.onnx.data");
	ok(yk_export_onnx(n, "gpt", "pair.onnx", &o) == YOKE_EINVAL &&
		   strstr(yoke_error(), "pair.onnx.data"),
	   "existing external data are not replaced: %s", yoke_error());
	yoke_error_clear();
	ok(holds_text("pair.onnx.data", "kept") && stat("pair.onnx", &st) < 0,
	   "nothing is written");
	o.overwrite = true;
	ok(yk_export_onnx(n, "gpt", "pair.onnx", &o) == 0 && read_model("pair.onnx")->apart > 0,
	   "with overwrite they are %s", yoke_error());
	ok(stat("pair.onnx.data", &st) == 0 && st.st_size > 4096, "%lld bytes of data",
	   (long long)st.st_size);
	o.overwrite = false;
	unlink("pair.onnx.data");
	ok(yk_export_onnx(n, "gpt", "pair.onnx", &o) == YOKE_EINVAL &&
		   stat("pair.onnx.data", &st) < 0,
	   "an existing model is not replaced: %s", yoke_error());
	yoke_error_clear();
	ok(mkdir("pair.onnx.data", 0777) == 0, "a folder has the name of the data");
	rename("pair.onnx", "pair.was");
	onnx_bytes("pair.onnx", "", 0, "kept", 4);
	rename("pair.onnx.0", "pair.onnx");
	o.overwrite = true;
	ok(yk_export_onnx(n, "gpt", "pair.onnx", &o) == YOKE_EIO && holds_text("pair.onnx", "kept"),
	   "the model stays when its data cannot be written: %s", yoke_error());
	yoke_error_clear();
	rmdir("pair.onnx.data");
	ok(yk_export_onnx(n, "gpt", "\xff.onnx", &o) == YOKE_EINVAL && stat("\xff.onnx", &st) < 0,
	   "a file of data whose name is not UTF-8 is refused: %s", yoke_error());
	yoke_error_clear();
	unlink("pair.onnx");
	unlink("pair.was");
	yk_network_free(n);
}

// Saves results of which yoke refuses some.
static void save_some(const char *what, int dtype, double tol, int m, yoke_tensor *const *all)
{
	char name[80];
	yoke_tensor *out[32];
	int n = 0;
	yoke_error_clear();
	for (int k = 0; k < m; k++)
		if (all[k])
			out[n++] = shown(all[k]);
	snprintf(name, sizeof name, "%s_%s", what, yoke_dtype_name(dtype));
	save_with(name, tol, n, out, NULL);
}

// Without elements, and without axes.
static void none(int dtype)
{
	const bool real = dtype <= yoke_bf16;
	yoke_tensor *out[32], *at;
	for (int first = 0; first < 2; first++) {
		int m = 0;
		begin();
		yoke_tensor *a = first ? of(dtype, TAME, DIMS(0, 3)) : of(dtype, TAME, DIMS(3, 0)),
			    *b = of(dtype, TAME, DIMS(2, 0, 3)), *c = of(dtype, TAME, DIMS(3, 3));
		yoke_tensor *i = index_of(yoke_i64, 3, DIMS(0));
		out[m++] = yoke_neg(a);
		out[m++] = yoke_add(b, yoke_slice(c, 0, 0, 1, 1));
		out[m++] = yoke_sum(b, YOKE_AXIS(1) | YOKE_KEEP);
		out[m++] = yoke_sum(b, YOKE_AXIS(2));
		out[m++] = yoke_prod(a, YOKE_AXIS(1));
		out[m++] = yoke_reduce_max(b, YOKE_AXIS(2));
		out[m++] = yoke_argmax(b, 2);
		out[m++] = yoke_sort(a, 0, 0, &at);
		out[m++] = at;
		out[m++] = yoke_topk(c, 0, 1, 1, &at);
		out[m++] = yoke_cumsum(a, 0, 0);
		out[m++] = yoke_gather(c, i, 0);
		out[m++] = yoke_scatter_add(c, i, of(dtype, TAME, DIMS(0, 3)));
		out[m++] = yoke_slice(c, 0, 1, 1, 1);
		out[m++] = yoke_concat(2, (yoke_tensor *[]){ a, a }, 1 - first);
		out[m++] = yoke_pad(a, (int64_t[]){ 1, 1 }, (int64_t[]){ 0, 0 }, 1);
		out[m++] = yoke_broadcast_to(a, 3, (int64_t[]){ 2, first ? 0 : 3, first ? 3 : 0 });
		out[m++] = yoke_reshape(a, 3, (int64_t[]){ 0, 7, 2 });
		out[m++] = yoke_permute(b, (int[]){ 2, 0, 1 });
		out[m++] = yoke_matmul(a, c, first ? 0 : YOKE_TA);
		out[m++] =
			yoke_matmul(yoke_slice(c, 1, 0, 0, 1), yoke_slice(c, 1, 0, 0, 1), YOKE_TB);
		out[m++] = yoke_cast(a, yoke_i32);
		out[m++] = yoke_select(yoke_eq(a, a), a, a);
		if (real) {
			out[m++] = yoke_softmax(a, 1);
			out[m++] = yoke_rms_norm(b, YOKE_NONE, 1e-5);
			out[m++] = yoke_layer_norm(b, YOKE_NONE, YOKE_NONE, 1e-5);
			out[m++] = yoke_conv(of(dtype, TAME, DIMS(0, 3, 5)),
					     of(dtype, TAME, DIMS(2, 3, 2)), NULL);
		}
		save_some(first ? "no_rows" : "no_columns", dtype, tolerance(dtype), m, out);
	}
	begin();
	int m = 0;
	yoke_tensor *s = yoke_reshape(of(dtype, TAME, DIMS(1)), 0, NULL),
		    *one = of(dtype, TAME, DIMS(1));
	out[m++] = yoke_neg(s);
	out[m++] = yoke_add(s, s);
	out[m++] = yoke_sum(s, YOKE_ALL);
	out[m++] = yoke_reduce_max(s, YOKE_ALL);
	out[m++] = yoke_reshape(s, 2, (int64_t[]){ 1, 1 });
	out[m++] = yoke_broadcast_to(s, 2, (int64_t[]){ 2, 3 });
	out[m++] = yoke_sort(one, 0, 1, &at);
	out[m++] = at;
	out[m++] = yoke_argmin(one, 0);
	out[m++] = yoke_cumsum(one, 0, 1);
	out[m++] = yoke_gather(one, yoke_reshape(index_of(yoke_i32, 1, DIMS(1)), 0, NULL), 0);
	out[m++] = yoke_slice_update(one, (int64_t[]){ 0 }, one);
	out[m++] = yoke_cast(s, yoke_f64);
	out[m++] = yoke_cast(s, yoke_bool);
	save_some("no_axes", dtype, tolerance(dtype), m, out);
}

// Gradients of each op with one, by all floating-point operands.
static void backwards(int dtype)
{
	enum { KINDS = 22 };
	for (int kind = 0; kind < KINDS; kind++) {
		char name[40];
		yoke_tensor *p[4], *g[4], *y = NULL, *more = NULL, *most = NULL;
		int n = 0;
		begin();
		yoke_tensor *a = p[n++] = of(dtype, TAME, DIMS(4, 6)),
			    *b = of(dtype, POSITIVE, DIMS(4, 6)), *w = of(dtype, TAME, DIMS(6)),
			    *q = of(dtype, TAME, DIMS(1, 3, 2, 4)),
			    *k = of(dtype, TAME, DIMS(1, 5, 1, 4)),
			    *image = of(dtype, TAME, DIMS(1, 4, 5, 6));
		yoke_tensor *i = index_of(yoke_i64, 4, DIMS(3)),
			    *j = index_of(yoke_i32, 4, DIMS(4, 6));
		switch (kind) {
		case 0: y = yoke_softmax(a, 1); break;
		case 1: y = yoke_log_softmax(a, 0); break;
		case 2: y = yoke_layer_norm(a, p[n++] = w, YOKE_NONE, 1e-5); break;
		case 3: y = yoke_rms_norm(a, p[n++] = w, 1e-5); break;
		case 4: y = yoke_cross_entropy(a, index_of(yoke_i64, 6, DIMS(4)), 2, 0.1); break;
		case 5:
			p[0] = q;
			p[n++] = k;
			y = yoke_attention(q, k, yoke_neg(k), YOKE_NONE, 1, 0, 0);
			break;
		case 6:
			y = yoke_attention(p[0] = q, k, k,
					   p[n++] = of(dtype, TAME, DIMS(1, 2, 3, 5)), 0, 0, 0);
			break;
		case 7:
			y = yoke_rope(p[0] = q, of(dtype, TAME, DIMS(3, 2)),
				      of(dtype, TAME, DIMS(3, 2)));
			break;
		case 8:
			y = yoke_conv(p[0] = image, p[n++] = of(dtype, TAME, DIMS(2, 4, 2, 3)),
				      NULL);
			break;
		case 9:
			y = yoke_conv_transposed(p[0] = image,
						 p[n++] = of(dtype, TAME, DIMS(4, 2, 2, 3)), NULL);
			break;
		case 10:
			y = yoke_max_pool(p[0] = image,
					  &(struct yoke_pool_options){
						  .size = sizeof(struct yoke_pool_options),
						  .window = { 2, 3 },
						  .stride = { 1, 2 } });
			break;
		case 11: y = yoke_adaptive_mean_pool(p[0] = image, (int64_t[]){ 2, 4 }); break;
		case 12: y = yoke_resize(p[0] = image, (int64_t[]){ 7, 4 }, 1); break;
		case 13:
			y = yoke_batch_norm(p[0] = image, YOKE_NONE, YOKE_NONE, 1e-5, &more, &most);
			break;
		case 14: y = yoke_gather(a, i, 0); break;
		case 15: y = yoke_take_along(a, j, 0); break;
		case 16: y = yoke_sort(a, 1, 1, NULL); break;
		case 17: y = yoke_cumprod(a, 1, 0); break;
		case 18: y = yoke_atan2(a, p[n++] = b); break;
		case 19: y = yoke_pow(p[0] = b, p[n++] = a); break;
		case 20: y = yoke_lgamma(p[0] = b); break;
		case 21: y = yoke_window(a, 1, 3, 2, 1); break;
		}
		const bool has = y && yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), n, p, g) == 0;
		snprintf(name, sizeof name, "backward%d", kind);
		if (has)
			save_some(name, dtype, 8 * tolerance(dtype), n, g);
		else
			yoke_scope_end(scope);
		yoke_error_clear();
	}
}

// Variables that are assigned to, as a whole, in part and by an optimizer; views of them before and
// after.
static void assigned(void)
{
	yoke_tensor *out[16], *p = yoke_variable("p", yoke_f32, DIMS(3, 4)),
			      *mean = yoke_variable("mean", yoke_f32, DIMS(3, 4)),
			      *square = yoke_variable("square", yoke_f32, DIMS(3, 4));
	yoke_assign(p, numbers(yoke_f32, TAME, DIMS(3, 4)));
	yoke_assign(mean, numbers(yoke_f32, TAME, DIMS(3, 4)));
	yoke_assign(square, numbers(yoke_f32, POSITIVE, DIMS(3, 4)));
	yoke_eval(0, NULL);
	int m = 0;
	begin();
	yoke_tensor *a = x(yoke_f32, TAME, DIMS(3, 4)), *g, *row = x(yoke_f32, TAME, DIMS(1, 4));
	yoke_tensor *at = yoke_reshape(index_of(yoke_i64, 3, DIMS(1)), 0, NULL);
	out[m++] = yoke_slice(p, 1, 1, 2, 1);
	yoke_tensor *y = yoke_sum(yoke_square(yoke_mul(p, a)), YOKE_ALL);
	yoke_grad(y, 1, &p, &g);
	const struct yoke_adamw how = { .size = sizeof how,
					.lr = yoke_const(0.1),
					.c1 = yoke_const(0.1),
					.c2 = yoke_const(0.01),
					.scale = YOKE_NONE,
					.beta1 = 0.9,
					.beta2 = 0.99,
					.eps = 1e-8,
					.weight_decay = 0.1,
					.skip = YOKE_NONE };
	ok(yoke_adamw_step(1, &p, &g, &mean, &square, &how) == 0, "a step is recorded %s",
	   yoke_error());
	out[m++] = yoke_add(p, yoke_const(0));
	yoke_assign_at(p, (yoke_tensor *[]){ at, YOKE_NONE }, row);
	out[m++] = yoke_flip(p, YOKE_AXIS(0));
	yoke_assign(p, yoke_mul(p, p));
	out[m++] = yoke_reshape(p, 1, (int64_t[]){ 12 });
	out[m++] = mean;
	out[m++] = square;
	out[m++] = y;
	out[m++] = y;
	save_with("assigned", 1e-5, m, out, NULL);
	yoke_free(p);
	yoke_free(mean);
	yoke_free(square);
}

// Long axes, and functions made of several ops.
static void longer(void)
{
	yoke_tensor *out[32];
	int m = 0;
	begin();
	yoke_tensor *a = x(yoke_f32, UNIT, DIMS(2, 1000)), *i = x(yoke_i64, WILD, DIMS(1000)),
		    *c = x(yoke_bool, TAME, DIMS(3, 70)), *b = x(yoke_f32, TAME, DIMS(5, 6)),
		    *v = x(yoke_f32, TAME, DIMS(5, 4)), *bytes = x(yoke_i8, TAME, DIMS(4, 300));
	yoke_tensor *at = index_of(yoke_i32, 6, DIMS(5, 4)), *half = x(yoke_f16, TAME, DIMS(4, 6)),
		    *once = given(
			    yoke_from(yoke_i64, 2, (int64_t[]){ 1, 4 }, (int64_t[]){ 3, 0, 5, 2 }));
	out[m++] = yoke_cumsum(a, 1, 0);
	out[m++] = yoke_cumsum(i, 0, 1);
	out[m++] = yoke_cumprod(a, 1, 0);
	out[m++] = yoke_cummax(a, 1);
	out[m++] = yoke_cummin(a, 1);
	out[m++] = yoke_logcumsumexp(a, 1);
	out[m++] = yoke_any(c, YOKE_AXIS(1));
	out[m++] = yoke_all(c, YOKE_ALL);
	out[m++] = yoke_embedding(b, yoke_abs(yoke_remainder(at, yoke_const(5))));
	out[m++] = yoke_matmul_to(half, half, YOKE_TB, yoke_f32);
	out[m++] = yoke_sum(bytes, YOKE_AXIS(1));
	out[m++] = yoke_sum(yoke_cast(bytes, yoke_i32), YOKE_ALL);
	yoke_tensor *line = yoke_slice(b, 0, 0, 1, 1);
	out[m++] = yoke_scatter_along(line, once, yoke_slice(v, 0, 0, 1, 1), 1, YOKE_SCATTER_SET);
	for (int kind = YOKE_SCATTER_MAX; kind <= YOKE_SCATTER_PROD; kind++)
		out[m++] = yoke_scatter_along(b, at, v, 1, kind);
	save_some("longer", yoke_f32, 1e-4, m, out);
}

// Constants that are not finite.
static void infinite(int dtype)
{
	const double values[] = {
		INFINITY, -INFINITY, NAN, -0.0, 5e-324, 1.7e308, 1e-40, 6e-8, 0.1
	};
	const int64_t n = sizeof values / sizeof *values;
	yoke_tensor *out[16];
	int m = 0;
	begin();
	yoke_tensor *a = of(dtype, TAME, DIMS(9)),
		    *c = yoke_cast(yoke_from(yoke_f64, 1, &n, values), dtype);
	out[m++] = yoke_add(a, c);
	out[m++] = yoke_select(yoke_isfinite(c), a, c);
	out[m++] = yoke_pad(a, (int64_t[]){ 1 }, (int64_t[]){ 1 }, -INFINITY);
	out[m++] = yoke_max(a, yoke_const(-INFINITY));
	out[m++] = yoke_full(dtype, 1, &n, NAN);
	out[m++] = c;
	save_some("infinite", dtype, tolerance(dtype), m, out);
}

// Names that are no UTF-8, long, empty or equal.
static void strange_names(void)
{
	char text[1001];
	memset(text, 'w', sizeof text - 1);
	text[1000] = 0;
	text[299] = '\xc3'; // a character that begins at the limit
	text[300] = '\xa4';
	begin();
	yoke_scope *inner = yoke_scope_begin(text);
	yoke_scope *invalid = yoke_scope_begin("\xff\x01 \xe4\xb8");
	yoke_tensor *a = x(yoke_f32, TAME, DIMS(3)), *b = x(yoke_f32, TAME, DIMS(3)), *w[4],
		    *out[4];
	x(yoke_f32, TAME, DIMS(2)); // not read
	for (int i = 0; i < 4; i++)
		w[i] = numbers(yoke_f32, TAME, DIMS(3));
	for (int i = 0; i < 4; i++)
		out[i] = yoke_add(yoke_mul(i % 2 ? a : b, w[i]), w[3 - i]);
	const struct yoke_onnx_options o = {
		.size = sizeof o,
		.name = "\xfe\xff",
		.inputs = (const char *const[]){ "gr\xc3\xb6\xc3\x9f"
						 "e",
						 "x y", "" },
		.outputs = (const char *const[]){ text, text, "x_y", "\xed\xa0\x80\n" },
		.weights = 4,
		.weight = w,
		.weight_names = (const char *const[]){ text, text, "\x80", "Add_1" },
	};
	yoke_scope *outer = scope;
	scope = invalid; // which save_with ends
	save_with("strange", 1e-6, 4, out, &o);
	yoke_scope_end(inner);
	yoke_scope_end(outer);
	ok(tap_run("grep -qa 'gr\xc3\xb6\xc3\x9f"
		   "e' strange.onnx"),
	   "UTF-8 stays as it is");
}

// Inputs as outputs, also computed ones whose operands cannot be written, and an output twice.
static void passed(void)
{
	yoke_tensor *out[6], *at, *random = yoke_uniform(yoke_f32, DIMS(4)),
				  *line = numbers(yoke_f32, TAME, DIMS(5));
	yoke_eval(1, &random);
	begin();
	yoke_tensor *sum = yoke_add(random, yoke_const(1)), *sorted = yoke_sort(line, 0, 0, &at);
	yoke_eval(1, &sorted);
	given(random);
	given(sum);
	given(sorted);
	out[0] = random;
	out[1] = sum;
	out[2] = yoke_mul(sum, random);
	out[3] = out[2];
	out[4] = sorted;
	out[5] = at;
	save_with("passed", 1e-6, 6, out, NULL);
}

static void refused(void)
{
	yoke_tensor *out[7], *a, *random, *square;
	struct stat st;
	begin();
	a = x(yoke_f32, TAME, DIMS(4, 4));
	square = yoke_matmul(a, a, YOKE_TB);
	random = yoke_uniform(yoke_f32, DIMS(4, 4));
	out[0] = yoke_dropout(a, 0.5);
	out[1] = yoke_cholesky(square);
	out[2] = yoke_bitcast(a, yoke_i32);
	out[3] = yoke_add(a, random);
	out[4] = yoke_largest(a, YOKE_NONE, 3, NULL, NULL);
	out[5] = yoke_eigh(square, NULL);
	out[6] = yoke_solve_triangular(a, a, 0);
	const char *const words[] = { "random",  "cholesky", "bitcast",         "random",
				      "largest", "eigh",     "solve_triangular" };
	for (int i = 0; i < 7; i++) {
		const int e = yoke_onnx_write("refused.onnx", 1, &a, 1, &out[i], NULL);
		ok(e == YOKE_EUNSUPPORTED && strstr(yoke_error(), words[i]) &&
			   stat("refused.onnx", &st) < 0,
		   "an op without operators is refused by name and nothing is written: %s",
		   yoke_error());
		yoke_error_clear();
	}
	yoke_eval(1, &random);
	ok(yoke_onnx_write("evaluated.onnx", 1, &a, 1, &out[3], NULL) == 0,
	   "a random constant that was evaluated is written %s", yoke_error());
	unlink("evaluated.onnx");
	yoke_error_clear();
	yoke_tensor *twice[] = { a, a };
	ok(yoke_onnx_write("refused.onnx", 2, twice, 1, &square, NULL) == YOKE_EINVAL,
	   "an input that is given twice is refused");
	yoke_error_clear();
	ok(yoke_onnx_write("refused.onnx", 1, &a, 0, &square, NULL) == YOKE_EINVAL,
	   "a model without outputs is refused");
	yoke_error_clear();
	yoke_scope_end(scope);
}

// Functions that are composed, lists, statistics, recurrences: what their decompositions contain.
static void composed(void)
{
	yoke_tensor *out[40], *list[2], *kept[2];
	struct yoke_moments is = { .size = sizeof is };
	int m = 0;
	begin();
	yoke_tensor *a = x(yoke_f32, TAME, DIMS(6, 4)), *b = x(yoke_f32, TAME, DIMS(6, 4)),
		    *line = x(yoke_f32, TAME, DIMS(11));
	yoke_tensor *rows = x(yoke_f32, TAME, DIMS(5, 4)),
		    *experts = x(yoke_f32, TAME, DIMS(3, 4, 2));
	yoke_tensor *first =
		given(yoke_from(yoke_i64, 1, (int64_t[]){ 4 }, (int64_t[]){ 0, 2, 2, 4 }));
	yoke_tensor *whole_numbers = x(yoke_i32, POSITIVE, DIMS(6, 4)),
		    *exponents = x(yoke_i32, POSITIVE, DIMS(4));
	yoke_tensor *chance = yoke_softmax(a, 1), *sorted = yoke_sort(line, 0, 0, NULL);
	out[m++] = yoke_std(a, YOKE_AXIS(0), 1);
	out[m++] = yoke_cov(a, 1);
	out[m++] = yoke_corr(a);
	out[m++] = yoke_norm(a, 2, YOKE_AXIS(1));
	out[m++] = yoke_quantile(
		a, yoke_from(yoke_f32, 1, (int64_t[]){ 2 }, (float[]){ 0.25f, 0.9f }), 0);
	out[m++] = yoke_histogram(line, 4, -2, 2);
	out[m++] = yoke_mse(a, b);
	out[m++] = yoke_bce_logits(a, yoke_sigmoid(b));
	out[m++] = yoke_kl(chance, yoke_softmax(b, 1));
	out[m++] = yoke_grouped_matmul(rows, experts, first);
	out[m++] = yoke_searchsorted(sorted, b, 0);
	out[m++] = yoke_logcumsumexp(a, 1);
	out[m++] = yoke_integer_pow(whole_numbers, exponents);
	out[m++] = yoke_floor_div(a, b);
	out[m++] = yoke_clamp(a, yoke_const(-1), YOKE_NONE);
	out[m++] = yoke_swiglu(a, b);
	out[m++] = yoke_check_finite(a);
	out[m] = yoke_batch_norm(a, YOKE_NONE, YOKE_NONE, 1e-5, &out[m + 1], &out[m + 2]);
	m += 3;
	list[0] = a;
	list[1] = line;
	out[m++] = yoke_global_norm(2, list);
	yoke_barrier(2, list, 1, &b, kept);
	out[m++] = kept[1];
	yoke_moments(a, YOKE_NONE, 0, &is);
	out[m++] = is.mean;
	out[m++] = is.square;
	out[m++] = is.max;
	yoke_tensor *z = given(yoke_from(yoke_f32, 2, (int64_t[]){ 6, 2 },
					 (float[]){ 0, 1, 1, 1, -1, 2, 0, 1, 1, 3, 2, 1 }));
	out[m++] = yoke_resolvent(a, YOKE_NONE, YOKE_NONE, z, NULL);
	save_with("composed", 1e-4, m, out, NULL);
}

// Language models that yoke trains, and an encoder, whose padding has no influence.
static void networks(void)
{
	enum { T = 6 };
	const struct yk_model_shape gpt = {
		.vocab = 19, .context = T, .layers = 2, .heads = 2, .embed = 8
	};
	const struct yk_model_shape bk = { .vocab = 19,
					   .context = T,
					   .layers = 2,
					   .embed = 8,
					   .experts = 2,
					   .active_experts = 1,
					   .eta = 1,
					   .v_max = 3,
					   .feature_clamp = 10,
					   .balance = 0.01 };
	const struct yk_model_shape bert = { .vocab = 19,
					     .context = T,
					     .layers = 2,
					     .heads = 2,
					     .embed = 8,
					     .decoder = { .head_dim = 4,
							  .hidden = 12,
							  .token_types = 2,
							  .norm_eps = 1e-12,
							  .positions = 10 } };
	const struct {
		const char *name;
		const struct yk_model *model;
		const struct yk_model_shape *shape;
	} row[] = { { "gpt", &yk_model_gpt, &gpt },
		    { "bk", &yk_model_bk, &bk },
		    { "bert", &yk_model_encoder, &bert } };
	const struct yk_onnx_export o = { .batch = 2, .overwrite = true };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const bool encoder = row[i].model == &yk_model_encoder;
		struct yk_network *n = NULL;
		char path[80];
		snprintf(path, sizeof path, "%s.onnx", row[i].name);
		bool good = yk_network_new(row[i].model, row[i].shape, &n) == 0 &&
			    yk_parameters_draw(&n->params, 7) == 0 &&
			    yk_export_onnx(n, row[i].name, path, &o) == 0;
		ok(good && read_model(path)->good, "%s is written %s", row[i].name, yoke_error());
		begin();
		yoke_tensor *ids = index_of(yoke_i64, 19, DIMS(2, T)), *out = NULL, *mask = NULL;
		if (encoder) {
			mask = given(yoke_from(yoke_i64, 2, (int64_t[]){ 2, T },
					       (int64_t[]){ 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1 }));
			mask = yoke_reshape(yoke_ne(mask, yoke_const(0)), 4,
					    (int64_t[]){ 2, 1, 1, T });
		}
		ids = yoke_cast(ids, yoke_i32);
		if (good)
			out = encoder ? yk_encoder_forward(n, ids, mask) :
					n->model->logits(n, yk_network_forward(n, ids, 0));
		onnx_bytes(row[i].name, "tol", 0, "1e-4", 4);
		good = good && onnx_tensors(row[i].name, "in", inputs, input) &&
		       onnx_tensors(row[i].name, "out", 1, &out);
		ok(good, "%s computes %s", row[i].name, yoke_error());
		cases += good;
		yoke_error_clear();
		yoke_scope_end(scope);
		yk_network_free(n);
	}
}

int main(void)
{
	tap_seed();
	onnx_find();
	tap_folder();
	context = yoke_context_new("cpu");
	yoke_use(context);
	for (int i = 0; i < DTYPES; i++) {
		maps(dtypes[i]);
		moves(dtypes[i]);
		none(dtypes[i]);
		if (dtypes[i] != yoke_bool)
			sums(dtypes[i]);
		if (dtypes[i] <= yoke_bf16) {
			layers(dtypes[i]);
			sweep(dtypes[i]);
			backwards(dtypes[i]);
			infinite(dtypes[i]);
		}
	}
	edges();
	gradients();
	quantized();
	names();
	composed();
	strange_names();
	passed();
	assigned();
	longer();
	networks();
	replaced();
	ok(structure,
	   "%d models are well formed: each value is defined before it is used, and data have the "
	   "sizes of their shapes",
	   cases);
	refused();
	onnx_compare(cases);
	yoke_context_free(context);
	return done();
}
