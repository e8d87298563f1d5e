// SPDX-License-Identifier: Apache-2.0
// Tests graphs 300,000 operations deep with a stack of 256 KiB: built, evaluated, differentiated,
// and released unevaluated; nothing in the engine may recurse. Also a step over 20,000 variables,
// which needs seconds as long as the engine does no search over all variables for each one.

#include "config.h"

#include <unistd.h>

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { DEPTH = 300000 };

// x - (x - (x - ..)): x for an even depth; its gradient is 1.
static yoke_tensor *maps(yoke_tensor *x)
{
	yoke_tensor *h = x;
	for (int i = 0; i < DEPTH; i++)
		h = yoke_sub(x, h);
	return h;
}

// Steps that do not fuse: a sum between maps.
static yoke_tensor *sums(yoke_tensor *x)
{
	yoke_tensor *h = x;
	for (int i = 0; i < DEPTH / 2; i++)
		h = yoke_neg(yoke_sum(h, YOKE_AXIS(0) | YOKE_KEEP));
	return h;
}

static yoke_tensor *views(yoke_tensor *x)
{
	yoke_tensor *h = x;
	for (int i = 0; i < DEPTH / 2; i++)
		h = yoke_reshape(yoke_reshape(h, 2, DIMS(1, 1)), 1, DIMS(1));
	return yoke_neg(h);
}

static const struct {
	const char *name;
	yoke_tensor *(*build)(yoke_tensor *);
	double want, grad;
} chain[] = { { "maps", maps, 3, 1 }, { "sums", sums, 3, 1 }, { "views", views, -3, -1 } };

static uint64_t pending(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.pending_nodes;
}

static int run(void)
{
	float three = 3;
	for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) {
		float y = NAN, g = NAN;
		yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(1), &three), *grad;
		yoke_scope *s = yoke_scope_begin("deep");
		yoke_read(chain[i].build(x), &y, sizeof y);
		ok((double)y == chain[i].want, "%s, evaluated: %g %s", chain[i].name, (double)y,
		   yoke_error());
		yoke_tensor *h = yoke_sum(chain[i].build(x), YOKE_ALL);
		int err = yoke_grad(h, 1, &x, &grad);
		if (!err)
			yoke_read(grad, &g, sizeof g);
		ok((double)g == chain[i].grad, "%s, gradient: %g %s", chain[i].name, (double)g,
		   yoke_error());
		yoke_tensor *left = chain[i].build(x);
		ok(left && pending() >= DEPTH, "%s, not evaluated: %llu are pending", chain[i].name,
		   (unsigned long long)pending());
		yoke_scope_end(s);
		yoke_free(x);
		yoke_context_free(yoke_use(NULL));
	}
	return done();
}

// Squares of N variables, their gradients, and AdamW over all of them: one step of lr down from 1,
// 2.
static void many(void)
{
	enum { N = 20000 };
	static yoke_tensor *p[N], *g[N], *m[N], *v[N];
	const float start[2] = { 1, 2 };
	yoke_tensor *lr = yoke_scalar(0.25), *one = yoke_scalar(1), *loss = NULL;
	int wrong = 0;
	for (int i = 0; i < N; i++) {
		p[i] = yoke_variable("p", yoke_f32, 1, DIMS(2));
		m[i] = yoke_variable("m", yoke_f32, 1, DIMS(2));
		v[i] = yoke_variable("v", yoke_f32, 1, DIMS(2));
		wrong += yoke_put(p[i], start, sizeof start) < 0;
	}
	yoke_scope *s = yoke_scope_begin("step");
	for (int i = 0; i < N; i++) {
		yoke_tensor *own = yoke_scalar(i + 1); // a constant for each variable
		yoke_tensor *l = yoke_sum(yoke_mul(own, yoke_square(p[i])), YOKE_ALL);
		loss = loss ? yoke_add(loss, l) : l;
	}
	wrong += yoke_grad(loss, N, p, g) < 0;
	struct yoke_adamw o = { .size = sizeof o,
				.lr = lr, .c1 = one, .c2 = one, .scale = YOKE_NONE, .eps = 1e-30 };
	wrong += yoke_adamw_step(N, p, g, m, v, &o) < 0;
	alarm(1500); // catches time that grows as the square of N
	wrong += yoke_eval(0, NULL) < 0;
	alarm(0);
	wrong += yoke_scope_end(s) < 0;
	for (int i = 0; i < N; i += 1) {
		float got[2] = { NAN, NAN };
		wrong += yoke_read(p[i], got, sizeof got) < 0 || got[0] != 0.75f || got[1] != 1.75f;
		yoke_free(p[i]);
		yoke_free(m[i]);
		yoke_free(v[i]);
	}
	ok(!wrong, "a step of %d variables: %d wrong, %s", N, wrong, yoke_error());
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		yoke_setting_set("log", "error"); // many pending nodes are expected
		many();
		return run();
	}
	char command[1024];
	snprintf(command, sizeof command, "ulimit -s 256 && exec '%s' run", argv[0]);
	fflush(stdout);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	return 99;
}
