// SPDX-License-Identifier: Apache-2.0
// Finds layers with misaligned matrix products, and times these with and without padding.
#include "config.h"

#include "observe/misaligned.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "plan/planner.h"

enum { RUNS = 3 };                     // min runs of a product; more while time remains
static const double RUNNING = 0.02;    // seconds
static const double SECONDS = 5;       // for all products; none is started later

// ---- layers ----

static struct yk_layer *layer_of(struct yk_layers *l, uint32_t path)
{
	const int kept = l->n < YK_LAYERS ? l->n : YK_LAYERS;
	for (int i = 0; i < kept; i++)
		if (l->layer[i].path == path)
			return &l->layer[i];
	return NULL;
}

// Whether it is the first product of its layer.
static bool is_first(const struct yk_planner *pl, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (pl->misaligned.product[k].scope == pl->misaligned.product[i].scope)
			return false;
	return true;
}

static void add_size(struct yk_layer *to, int64_t size, int64_t wants)
{
	const int kept = to->sizes < YK_LAYER_SIZES ? to->sizes : YK_LAYER_SIZES;
	for (int i = 0; i < kept; i++)
		if (to->size[i][0] == size && to->size[i][1] == wants)
			return;
	if (kept < YK_LAYER_SIZES) {
		to->size[kept][0] = size;
		to->size[kept][1] = wants;
	}
	to->sizes++;
}

void yk_layers_find(const struct yoke_context *ctx, struct yk_layers *to)
{
	const struct yk_planner *pl = ctx->planner;
	*to = (struct yk_layers){ 0 };
	for (size_t i = 0; pl && i < pl->misaligned.n; i++) {
		const struct yk_misaligned *m = &pl->misaligned.product[i];
		struct yk_layer *l = layer_of(to, m->scope);
		if (!l && is_first(pl, i) && to->n++ < YK_LAYERS) {
			l = &to->layer[to->n - 1];
			l->path = m->scope;
			snprintf(l->scope, sizeof l->scope, "%s",
				 yk_path_name(&ctx->scopes.paths, m->scope));
		}
		for (int k = 0; l && k < 3; k++)
			if (m->size[k] != m->wants[k])
				add_size(l, m->size[k], m->wants[k]);
		if (l) {
			l->products++;
			l->padded += m->padded;
		}
	}
}

// ---- rates ----

// A factor with values like activations, because zeros may be multiplied faster.
static yoke_tensor *factor(const struct yk_misaligned *m, int i)
{
	const bool turned = m->flags & (i ? YOKE_TB : YOKE_TA);
	const int64_t rows = m->size[i ? 2 : 0], columns = m->size[i ? 1 : 2];
	const int64_t dims[] = { m->matrices[i], turned ? columns : rows, turned ? rows : columns };
	const int one = m->matrices[i] == 1;
	return yoke_keep(yoke_cast(yoke_normal(yoke_f32, 3 - one, dims + one), m->dtype));
}

static int run(const struct yk_misaligned *m, yoke_tensor *a, yoke_tensor *b, double *seconds)
{
	yoke_scope *s = yoke_scope_begin("rate");
	yoke_tensor *y = yoke_matmul_to(a, b, m->flags, m->to);
	const double began = yk_seconds();
	int err = yoke_eval(1, &y);
	if (!err)
		err = yoke_sync();
	*seconds = yk_seconds() - began;
	int end = yoke_scope_end(s);
	return err ? err : end;
}

// Shortest time of a product in seconds; 0: not measured.
static double seconds_of(const struct yk_misaligned *m, const struct yk_device *device, bool plain)
{
	const bool had = yoke_error_code() != 0;
	yoke_context *ctx = yoke_context_new(NULL), *former = ctx ? yoke_use(ctx) : NULL;
	yoke_tensor *a = ctx && ctx->device == device ? factor(m, 0) : NULL,
		    *b = a ? factor(m, 1) : NULL;
	struct yk_planner *pl =
		b && !yoke_eval(2, (yoke_tensor *[]){ a, b }) ? yk_planner_of(ctx) : NULL;
	double min = INFINITY, elapsed = 0, t;
	int err = pl ? 0 : YOKE_ENOMEM;
	if (pl)
		pl->plain = plain;
	for (int i = 0; (i <= RUNS || elapsed < RUNNING) && !err; i++) {
		err = run(m, a, b, &t);
		elapsed += t;
		if (i && t < min) // the first run plans
			min = t;
	}
	// alone, the product may be merged into another one by joined axes, or there may be no
	// memory to pad it
	const bool same = pl && pl->misaligned.n == 1 &&
			  pl->misaligned.product[0].padded == !plain &&
			  !memcmp(pl->misaligned.product[0].size, m->size, sizeof m->size);
	if (ctx) {
		yoke_free(a);
		yoke_free(b);
		yoke_use(former);
		yoke_context_free(ctx);
	}
	if (!had)
		yoke_error_clear();
	return !err && same ? min : 0;
}

static double flops_of(const struct yk_misaligned *m)
{
	return 2. * (double)m->matrices[2] * (double)m->size[0] * (double)m->size[1] *
	       (double)m->size[2];
}

// An equal product of another layer that was measured before; NULL: none.
static const struct yk_misaligned *equal_before(const struct yk_planner *pl, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		struct yk_misaligned x = pl->misaligned.product[k];
		x.scope = pl->misaligned.product[i].scope;
		if (!memcmp(&x, &pl->misaligned.product[i], sizeof x))
			return &pl->misaligned.product[k];
	}
	return NULL;
}

void yk_layers_measure(const struct yoke_context *ctx, struct yk_layers *to)
{
	const struct yk_planner *pl = ctx->planner;
	const size_t n = pl ? pl->misaligned.n : 0;
	double (*seconds)[2] = calloc(n + 1, sizeof *seconds); // by product: not padded, padded
	const double began = yk_seconds();
	for (size_t i = 0; i < n && seconds; i++) {
		const struct yk_misaligned *m = &pl->misaligned.product[i],
					   *was = equal_before(pl, i);
		// if matrices of a factor serve several matrices of the product, only a plan knows
		// which
		const bool plain = (m->matrices[0] == m->matrices[2] || m->matrices[0] == 1) &&
				   (m->matrices[1] == m->matrices[2] || m->matrices[1] == 1);
		for (int k = 0; k < 2 && m->padded && plain; k++)
			seconds[i][k] = was ? seconds[was - pl->misaligned.product][k] :
					yk_seconds() - began < SECONDS ?
					      seconds_of(m, ctx->device, k == 0) :
					      0;
	}
	for (int l = 0; l < to->n && l < YK_LAYERS && seconds; l++) {
		double flops = 0, elapsed[2] = { 0 };
		bool all = to->layer[l].padded > 0;
		for (size_t i = 0; i < n; i++) {
			const struct yk_misaligned *m = &pl->misaligned.product[i];
			if (!m->padded || layer_of(to, m->scope) != &to->layer[l])
				continue;
			all &= seconds[i][0] > 0 && seconds[i][1] > 0;
			flops += flops_of(m);
			elapsed[0] += seconds[i][0];
			elapsed[1] += seconds[i][1];
		}
		to->layer[l].before = all ? flops / elapsed[0] : 0;
		to->layer[l].after = all ? flops / elapsed[1] : 0;
	}
	free(seconds);
}

// ---- output ----

// " misaligned: layer3/mlp: 1003 wants 1008, 4012 wants 4016; 3 products, 3 padded, 310 GFLOP/s
// before, 590 after"
void yk_layers_print(const struct yk_layers *to, void (*line)(void *arg, const char *), void *arg)
{
	char text[512];
	for (int i = 0; i < to->n && i < YK_LAYERS; i++) {
		const struct yk_layer *l = &to->layer[i];
		size_t at = (size_t)snprintf(text, sizeof text,
					     "    misaligned: %s:", *l->scope ? l->scope : "-");
		for (int k = 0; k < l->sizes && k < YK_LAYER_SIZES; k++)
			at += (size_t)snprintf(text + at, sizeof text - at,
					       "%s %" PRId64 " wants %" PRId64, k ? "," : "",
					       l->size[k][0], l->size[k][1]);
		at += (size_t)snprintf(text + at, sizeof text - at, "%s; %d products, %d padded",
				       l->sizes > YK_LAYER_SIZES ? ", .." : "", l->products,
				       l->padded);
		if (l->after > 0)
			yk_snprintf(text + at, sizeof text - at,
				    ", %.4g GFLOP/s before, %.4g after", 1e-9 * l->before,
				    1e-9 * l->after);
		line(arg, text);
	}
	if (to->n > YK_LAYERS) {
		snprintf(text, sizeof text, "    and %d more", to->n - YK_LAYERS);
		line(arg, text);
	}
}

json_t *yk_layers_json(const struct yk_layers *to)
{
	json_t *all = json_array();
	for (int i = 0; i < to->n && i < YK_LAYERS; i++) {
		const struct yk_layer *l = &to->layer[i];
		json_t *sizes = json_array(), *o;
		for (int k = 0; k < l->sizes && k < YK_LAYER_SIZES; k++)
			json_array_append_new(sizes, json_pack("[I, I]", (json_int_t)l->size[k][0],
							       (json_int_t)l->size[k][1]));
		o = json_pack("{s:s, s:o, s:i, s:i}", "scope", l->scope, "sizes", sizes, "products",
			      l->products, "padded", l->padded);
		if (l->after > 0) {
			json_object_set_new(o, "flops_before", json_real(l->before));
			json_object_set_new(o, "flops_after", json_real(l->after));
		}
		json_array_append_new(all, o);
	}
	return all;
}
