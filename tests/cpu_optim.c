// SPDX-License-Identifier: Apache-2.0
// AdamW, SGD and the global norm of the CPU backend against float64 loops, over lists of
// tensors.
#include "config.h"

#include "named_op.h"

static const int64_t sizes[] = { 1, 7, 16383, 16384, 16385, 31, 40001, 2 };
enum { LIST = sizeof sizes / sizeof *sizes, STEPS = 3, LISTS = 4 };

// Lists of tensors, all in float and in float64.
struct lists {
	float *f[LISTS][LIST];
	double *d[LISTS][LIST];
	struct yoke_view view[LISTS * LIST];
};

static void lists_fill(struct lists *x, int lists)
{
	for (int k = 0; k < lists; k++)
		for (int i = 0; i < LIST; i++) {
			x->f[k][i] = randoms(sizes[i], k == 3 ? 0 : -1, 1);
			x->d[k][i] = array_new((size_t)sizes[i] * sizeof(double));
			for (int64_t e = 0; e < sizes[i]; e++)
				x->d[k][i][e] = x->f[k][i][e];
			x->view[k * LIST + i] = vector(x->f[k][i], sizes[i]);
		}
}

static void lists_compare(const struct lists *x, int k, const struct yoke_view *got,
			  double tol, const char *what)
{
	for (int i = 0; i < LIST; i++)
		near_rows(yk_ptr(&got[i]), sizes[i], x->d[k][i], 1, sizes[i], tol, 1e-2,
			  what);
}

// Views of new arrays shaped as list k, or list k itself.
static void lists_out(const struct lists *x, int k, bool alias, struct yoke_view *to)
{
	for (int i = 0; i < LIST; i++)
		to[i] = alias ? x->view[k * LIST + i] : vector(nans(sizes[i]), sizes[i]);
}

static struct yoke_op list_op(int code, int lists_in, int lists_out_, int rest,
			      const struct yoke_view *out, const struct yoke_view *in)
{
	struct yoke_op op = op_of(code, (uint32_t)(lists_out_ * LIST), out,
				  (uint32_t)(lists_in * LIST + rest), in);
	op.list = LIST;
	op.lists_in = (uint8_t)lists_in;
	op.lists_out = (uint8_t)lists_out_;
	return op;
}

static void adamw(const struct yk_isa *isa, bool alias, int dtype, double scale)
{
	const double lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, wd = 0.1;
	struct lists x;
	struct yoke_view in[4 * LIST + 4], out[3 * LIST];
	static const char *const name[] = { "p", "", "m", "v" };
	lists_fill(&x, 4);
	float *one = nans(1);
	double c1 = 1, c2 = 1;
	for (int t = 1; t <= STEPS; t++) {
		c1 = 1 - pow(beta1, t);
		c2 = 1 - pow(beta2, t);
		if (dtype == yoke_f32) // what the kernel is given
			c1 = (float)c1, c2 = (float)c2;
		memcpy(in, x.view, sizeof x.view);
		in[4 * LIST] = scalar(dtype, lr);
		in[4 * LIST + 1] = scalar(dtype, c1);
		in[4 * LIST + 2] = scalar(dtype, c2);
		*one = (float)scale;
		in[4 * LIST + 3] = scale == 1 ? absent : vector(one, 1);
		for (int k = 0; k < 3; k++)
			lists_out(&x, k ? k + 1 : 0, alias, out + k * LIST);
		struct yoke_op op = list_op(YOKE_OP_MULTI_ADAMW, 4, 3, 4, out, in);
		op.attr[0].f = beta1;
		op.attr[1].f = beta2;
		op.attr[2].f = eps;
		op.attr[3].f = wd;
		op.alias_mask = alias ? 1 | 4 | 8 : 0;
		if (!ok(!call(isa, &op), "%s: adamw step %d runs", isa->name, t))
			return;
		for (int i = 0; i < LIST; i++)
			for (int64_t e = 0; e < sizes[i]; e++) {
				double *p = &x.d[0][i][e], *m = &x.d[2][i][e],
				       *v = &x.d[3][i][e];
				double g = x.d[1][i][e] * (float)scale;
				*p *= 1 - lr * wd;
				*m = beta1 * *m + (1 - beta1) * g;
				*v = beta2 * *v + (1 - beta2) * g * g;
				*p -= lr / c1 * *m / (sqrt(*v) / sqrt(c2) + eps);
			}
		// v starts at random, so its bias correction amplifies rounding by 1/c2
		for (int k = 0; k < 3; k++) {
			memcpy(&x.view[(k ? k + 1 : 0) * LIST], out + k * LIST,
			       sizeof(*out) * LIST);
			lists_compare(&x, k ? k + 1 : 0, out + k * LIST, 3e-5,
				      name[k ? k + 1 : 0]);
		}
	}
	ok(arrays_free(), "%s: adamw%s stays inside", isa->name,
	   alias ? " in place" : "");
}

static void sgd(const struct yk_isa *isa, bool alias, double momentum, double damp,
		bool nesterov)
{
	const double lr = 0.05, wd = 0.01, scale = 0.5;
	const int lists = momentum > 0 ? 3 : 2;
	struct lists x;
	struct yoke_view in[3 * LIST + 3], out[2 * LIST];
	lists_fill(&x, lists);
	for (int t = 1; t <= STEPS; t++) {
		memcpy(in, x.view, sizeof *in * (size_t)(lists * LIST));
		in[lists * LIST] = scalar(yoke_f64, lr);
		in[lists * LIST + 1] = lists == 3 ? scalar(yoke_f32, t == 1) : absent;
		in[lists * LIST + 2] = scalar(yoke_f32, scale);
		lists_out(&x, 0, alias, out);
		if (lists == 3)
			lists_out(&x, 2, alias, out + LIST);
		struct yoke_op op =
			list_op(YOKE_OP_MULTI_SGD, lists, lists - 1, 3, out, in);
		op.attr[0].f = momentum;
		op.attr[1].f = damp;
		op.attr[2].f = wd;
		op.attr[3].i = nesterov;
		op.alias_mask = alias ? 1 | 4 : 0;
		if (!ok(!call(isa, &op), "%s: sgd step %d runs", isa->name, t))
			return;
		for (int i = 0; i < LIST; i++)
			for (int64_t e = 0; e < sizes[i]; e++) {
				double *p = &x.d[0][i][e],
				       g = x.d[1][i][e] * scale + wd * *p;
				if (lists == 3) {
					double *b = &x.d[2][i][e];
					*b = t == 1 ? g : momentum * *b + (1 - damp) * g;
					g = nesterov ? g + momentum * *b : *b;
				}
				*p -= lr * g;
			}
		memcpy(x.view, out, sizeof *out * LIST);
		lists_compare(&x, 0, out, 2e-5, "p");
		if (lists == 3) {
			memcpy(x.view + 2 * LIST, out + LIST, sizeof *out * LIST);
			lists_compare(&x, 2, out + LIST, 2e-5, "b");
		}
	}
	ok(arrays_free(), "%s: sgd momentum %g%s stays inside", isa->name, momentum,
	   alias ? " in place" : "");
}

static void norm(const struct yk_isa *isa)
{
	struct lists x;
	double sum = 0;
	lists_fill(&x, 1);
	for (int i = 0; i < LIST; i++)
		for (int64_t e = 0; e < sizes[i]; e++)
			sum += x.d[0][i][e] * x.d[0][i][e];
	float *got = nans(1);
	struct yoke_view out = dense(got, yoke_f32, 0, NULL);
	struct yoke_op op = list_op(YOKE_OP_MULTI_NORM, 1, 0, 0, &out, x.view);
	op.nout = 1;
	ok(!call(isa, &op), "%s: norm runs", isa->name);
	sum = sqrt(sum);
	near_rows(got, 1, &sum, 1, 1, 1e-7, 1, "norm");
	x.f[0][2][16382] = INFINITY;
	ok(!call(isa, &op) && isinf(*got), "%s: the norm of an infinity", isa->name);
	ok(arrays_free(), "%s: norm stays inside", isa->name);
}

int main(void)
{
	const struct yk_isa *list[3];
	int n = isas(list);
	for (int i = 0; i < n; i++) {
		adamw(list[i], false, yoke_f64, 1);
		adamw(list[i], true, yoke_f32, 0.25);
		sgd(list[i], false, 0, 0, false);
		sgd(list[i], true, 0.9, 0.1, false);
		sgd(list[i], false, 0.9, 0, true);
		norm(list[i]);
	}
	return done();
}
