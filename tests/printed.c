// SPDX-License-Identifier: Apache-2.0
// Tests printed plans (YOKE_LOG=plan): every recorded node is in one step or in a list with the
// reason why it has none; scopes and copied assignments are shown.

#include "config.h"

#include "base/log.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { LIMIT = 2000 };

static struct plan { // the last printed plan
	int nodes, lowered, steps, copies, lines;
	int in_steps[LIMIT], in_lists[LIMIT]; // number of occurrences of each node
	char text[1 << 17];
} plan;

// Counts the numbers of a list, "1,5-9"; stops at a blank.
static void count_list(const char *s, int *count)
{
	while (*s >= '0' && *s <= '9') {
		char *end;
		long first = strtol(s, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long k = first; k <= last && k < LIMIT; k++)
			count[k]++;
		s = *end == ',' ? end + 1 : end;
	}
}

static const char *field(const char *line, int n)
{
	for (; n > 0 && line; n--)
		line = strchr(line, '\t') ? strchr(line, '\t') + 1 : NULL;
	return line ? line : "";
}

static void on_log(int level, const char *topic, const char *line, void *arg)
{
	struct plan *p = arg;
	if (level != YOKE_LOG_DEBUG || strcmp(topic, "plan"))
		return;
	if (strstr(line, " lowered, ")) {
		memset(p, 0, sizeof *p);
		sscanf(line, "%d nodes, %d lowered, %d steps", &p->nodes, &p->lowered, &p->steps);
		p->copies = atoi(strchr(strstr(line, "new roots"), ',') + 1);
	} else if (*line == '-') {
		count_list(field(line, 2), p->in_lists);
	} else {
		p->lines++;
		count_list(field(line, 7), p->in_steps);
	}
	strncat(p->text, line, sizeof p->text - strlen(p->text) - 2);
	strcat(p->text, "\n");
}

// Each node once, in a step or in a list; in decomposed ops, or where some are recomputed: in any
// number of steps.
static void covered(const char *what, bool parts)
{
	int missing = 0, twice = 0, both = 0, steps = 0;
	for (int k = 0; k < plan.nodes; k++) {
		missing += !plan.in_steps[k] && !plan.in_lists[k];
		twice += plan.in_steps[k] > 1 || plan.in_lists[k] > 1;
		both += plan.in_steps[k] && plan.in_lists[k];
		steps += plan.in_steps[k] > 0;
	}
	bool good = plan.nodes > 0 && plan.nodes < LIMIT && !missing && !both &&
		    (parts || !twice) && plan.lines == plan.steps && steps > 0;
	if (!good)
		diag("%.20000s", plan.text);
	ok(good,
	   "%s: %d nodes in %d steps: %d are missing, %d in two places, %d in a step and a list",
	   what, plan.nodes, plan.lines, missing, twice, both);
}

static yoke_tensor *of(int rank, const int64_t *dims, double scale)
{
	float data[4096];
	for (int i = 0; i < 4096; i++)
		data[i] = (float)rnd_real(-scale, scale);
	return yoke_from(yoke_f32, rank, dims, data);
}

// A block of a transformer with its update.
static void step(void)
{
	enum { B = 2, T = 5, E = 8, P = 4 };
	static const int64_t dims[P][2] = { { 3 * E, E }, { E, E }, { 4 * E, E }, { E, 4 * E } };
	yoke_tensor *p[P], *m[P], *v[P], *g[P], *qkv, *part[3], *h, *loss;
	float l = NAN;
	for (int i = 0; i < P; i++) {
		p[i] = yoke_variable("p", yoke_f32, 2, dims[i]);
		m[i] = yoke_variable("m", yoke_f32, 2, dims[i]);
		v[i] = yoke_variable("v", yoke_f32, 2, dims[i]);
	}
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *x = of(3, DIMS(B, T, E), 1);
	yoke_scope *a = yoke_scope_begin("attn");
	qkv = yoke_linear(yoke_layer_norm(x, YOKE_NONE, YOKE_NONE, 1e-5), p[0], YOKE_NONE);
	for (int i = 0; i < 3; i++)
		part[i] = yoke_reshape(yoke_slice(qkv, 2, i * E, i * E + E, 1), 4,
				       DIMS(B, T, 2, E / 2));
	h = yoke_attention(part[0], part[1], part[2], YOKE_NONE, 1, 0, 0.1);
	h = yoke_lift(yoke_add(x, yoke_linear(yoke_reshape(h, 3, DIMS(B, T, E)), p[1], YOKE_NONE)));
	yoke_scope_end(a);
	a = yoke_scope_begin("mlp");
	h = yoke_lift(yoke_linear(yoke_gelu(yoke_linear(h, p[2], YOKE_NONE)), p[3], YOKE_NONE));
	yoke_scope_end(a);
	loss = yoke_mean(yoke_square(yoke_softmax(h, -1)), YOKE_ALL);
	yoke_grad(loss, P, p, g);
	yoke_tensor *one = yoke_scalar(1);
	yoke_adamw_step(P, p, g, m, v,
			&(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
					      one, one, one, YOKE_NONE, 0.9, 0.99, 1e-8, 0.1 });
	ok(!yoke_read(loss, &l, sizeof l) && l > 0, "a step runs: %s", yoke_error());
	yoke_scope_end(s);
	for (int i = 0; i < P; i++) {
		yoke_free(p[i]);
		yoke_free(m[i]);
		yoke_free(v[i]);
	}
}

static void reasons(void)
{
	float got[64];
	yoke_scope *s = yoke_scope_begin("why");
	yoke_tensor *x = of(2, DIMS(3, 4), 1), *y = of(2, DIMS(3, 4), 1);
	yoke_tensor *same = yoke_add(yoke_exp(x), yoke_exp(x));
	yoke_tensor *one = yoke_mul(same, yoke_const(1));
	yoke_tensor *empty = yoke_exp(yoke_slice(x, 0, 1, 1, 1)); // no elements
	yoke_tensor *c = yoke_concat(3, (yoke_tensor *[]){ yoke_neg(y), empty, yoke_abs(one) }, 0);
	yoke_read(yoke_softmax(c, -1), got, 24 * sizeof *got);
	covered("merged, empty and placed nodes", false);
	ok(strstr(plan.text, "-\tequal to an earlier one, or a product with 1\t") &&
		   strstr(plan.text, "-\tempty\t") && strstr(plan.text, "-\tview\t") &&
		   strstr(plan.text, "-\tin place\t") && strstr(plan.text, "-\tleaf\t"),
	   "each listed node has a reason");
	yoke_scope_end(s);
}

static void scopes(void)
{
	float got[4];
	yoke_scope *s = yoke_scope_begin("outer"), *t;
	yoke_tensor *x = of(1, DIMS(4), 1), *y = yoke_exp(x);
	t = yoke_scope_begin("a");
	y = yoke_lift(yoke_neg(y));
	yoke_scope_end(t);
	t = yoke_scope_begin("b");
	y = yoke_lift(yoke_abs(y));
	yoke_scope_end(t);
	yoke_read(y, got, sizeof got);
	yoke_scope_end(s);
	ok(strstr(plan.text, "\t1-3 in outer,outer/a,outer/b\tfused"),
	   "a fused step has the scopes of all its nodes");
	if (!strstr(plan.text, "in outer,outer/a,outer/b"))
		diag("%s", plan.text);
}

// The old version has later readers: the new one cannot replace it.
static void copies(void)
{
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(64));
	yoke_assign(v, yoke_add(v, yoke_const(1)));
	yoke_eval(0, NULL);
	ok(plan.copies == 0 && strstr(plan.text, "root0+0 in place"),
	   "an update in place is shown");
	yoke_tensor *kept = yoke_variable("kept", yoke_f32, 1, DIMS(64));
	yoke_assign(kept, v);
	yoke_eval(0, NULL);
	yoke_assign(v, yoke_add(v, yoke_const(1)));
	yoke_eval(0, NULL);
	ok(plan.copies == 1 && strstr(plan.text, "1 assignments copied (256 bytes)"),
	   "one that is copied, too: %d", plan.copies);
	yoke_free(v);
	yoke_free(kept);
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	yoke_setting_set("log", "plan");
	yk_log_to(on_log, &plan);
	step();
	covered("a training step", true);
	yoke_setting_set("fuse", "0");
	step();
	covered("without fusion", false);
	yoke_setting_set("fuse", "1");
	yoke_setting_set("plan.named", "0");
	step();
	covered("decomposed", true);
	yoke_setting_set("plan.named", "1");
	reasons();
	scopes();
	copies();
	return done();
}
