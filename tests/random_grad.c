// SPDX-License-Identifier: Apache-2.0
// Tests random sequences of operations, assignments, reads, evaluations, graph collections,
// scopes and gradients against a float64 tape: the time of evaluation or release changes no
// number and no gradient.
// All values are vectors of N elements and all operations elementwise. The tape differentiates
// itself by appending nodes, so gradients of gradients are compared too.
#include "config.h"

#include "graph/context.h"
#include "tap.h"
#include "yoke.h"

enum { N = 3, VARIABLES = 3, VALUES = 24, NODES = 4000, STATEMENTS = 60, PROGRAMS = 400 };

enum op { LEAF, ADD, SUB, MUL, NEG, SIN, COS, STOP, SCALE };

struct node {
	enum op op;
	int a, b;    // operands
	double c;    // SCALE: the factor
	int leaf_of; // the variable whose leaf it is, or -1
	int of;      // variables whose version it once was, as bits
	int uses;    // variables from which it was computed directly, as bits
	int replaced; // number of the evaluation before which one of these was replaced, -1: none
	bool back;    // part of a gradient
	// several variables had it at once: one value, but only until the graph is emptied
	bool shared;
	double x[N];
};

struct value {
	yoke_tensor *t; // NULL: free
	int node, depth; // depth: of the scope that owns it
};

static struct node node[NODES];
static int nodes, depth, evaluations;
static struct value value[VALUES];
static struct {
	yoke_tensor *t;
	int node;
	bool assigned; // in the outermost open scope
} variable[VARIABLES];
static yoke_scope *scope[2];
static long compared, refused, forgotten;
static bool bad, traces; // traces: each statement is printed
static bool back, collected; // back: a gradient is being recorded
static uint64_t seed;

static void trace(const char *what, int a, int b, int to)
{
	if (traces)
		diag("%s %d %d -> %d", what, a, b, to);
}

static int append(enum op op, int a, int b, double c)
{
	struct node *n = &node[nodes];
	*n = (struct node){
		.op = op, .a = a, .b = b, .c = c, .leaf_of = -1, .replaced = -1, .back = back
	};
	for (int i = 0; i < N; i++) {
		double x = a < 0 ? 0 : node[a].x[i], y = b < 0 ? 0 : node[b].x[i];
		switch (op) {
		case LEAF: break;
		case ADD: n->x[i] = x + y; break;
		case SUB: n->x[i] = x - y; break;
		case MUL: n->x[i] = x * y; break;
		case NEG: n->x[i] = -x; break;
		case SIN: n->x[i] = sin(x); break;
		case COS: n->x[i] = cos(x); break;
		case STOP: n->x[i] = x; break;
		case SCALE: n->x[i] = c * x; break;
		}
	}
	return nodes++;
}

// of: the variable whose version it is, or -1
static int leaf(const double *x, int of)
{
	int n = append(LEAF, -1, -1, 0);
	node[n].leaf_of = of;
	memcpy(node[n].x, x, sizeof node[n].x);
	return n;
}

// The nodes up to y that a gradient of y reaches.
static void reach(int y, bool *to)
{
	memset(to, 0, (size_t)nodes * sizeof *to);
	to[y] = true;
	for (int k = y; k >= 0; k--)
		if (to[k] && node[k].op != STOP && node[k].op != LEAF) {
			to[node[k].a] = true;
			if (node[k].b >= 0)
				to[node[k].b] = true;
		}
}

static void add_to(int *cot, int by)
{
	*cot = *cot < 0 ? by : append(ADD, *cot, by, 0);
}

// d sum(y) / d p as a new node.
static int differentiate(int y, int p)
{
	static int cot[NODES];
	const double one[N] = { 1, 1, 1 }, zero[N] = { 0 };
	memset(cot, 0xff, sizeof cot);
	back = true;
	cot[y] = leaf(one, -1);
	for (int k = y; k > p; k--) {
		const struct node n = node[k];
		if (cot[k] < 0)
			continue;
		if (n.op == ADD || n.op == SUB) {
			add_to(&cot[n.a], cot[k]);
			add_to(&cot[n.b], n.op == ADD ? cot[k] : append(NEG, cot[k], -1, 0));
		} else if (n.op == MUL) {
			add_to(&cot[n.a], append(MUL, cot[k], n.b, 0));
			add_to(&cot[n.b], append(MUL, cot[k], n.a, 0));
		} else if (n.op == NEG) {
			add_to(&cot[n.a], append(NEG, cot[k], -1, 0));
		} else if (n.op == SIN) {
			add_to(&cot[n.a], append(MUL, cot[k], append(COS, n.a, -1, 0), 0));
		} else if (n.op == COS) {
			add_to(&cot[n.a],
			       append(MUL, cot[k], append(NEG, append(SIN, n.a, -1, 0), -1, 0), 0));
		} else if (n.op == SCALE) {
			add_to(&cot[n.a], append(SCALE, cot[k], -1, n.c));
		}
	}
	const int n = cot[p] < 0 ? leaf(zero, -1) : cot[p];
	back = false;
	return n;
}

// May the operands of y have been overwritten? A replaced version may be, by the next evaluation.
static bool may_be_released(int y)
{
	static bool on[NODES];
	memset(on, 0, (size_t)nodes);
	on[y] = true;
	for (int k = y; k >= 0; k--) {
		if (on[k] && node[k].replaced >= 0 && node[k].replaced < evaluations)
			return true;
		if (on[k] && node[k].op != LEAF) {
			on[node[k].a] = true;
			if (node[k].b >= 0)
				on[node[k].b] = true;
		}
	}
	return false;
}

// Does a gradient of y by p go through another gradient's operations?
static bool goes_through_gradient(int y, int p)
{
	// 1: there is a path from y; 2: there is one with such an operation
	static uint8_t on[NODES];
	memset(on, 0, (size_t)nodes);
	on[y] = 1;
	for (int k = y; k > p; k--) {
		const uint8_t to = on[k] && node[k].back ? 3 : on[k];
		if (node[k].op == STOP || node[k].op == LEAF)
			continue;
		on[node[k].a] |= to;
		if (node[k].b >= 0)
			on[node[k].b] |= to;
	}
	return on[p] & 2;
}

static void wrong(const char *what, int at, double got, double want)
{
	if (!bad)
		diag("program %llu: %s: element %d is %.17g, want %.17g; %s",
		     (unsigned long long)seed, what, at, got, want,
		     yoke_error_code() ? yoke_error() : "no error");
	bad = true;
}

// May its evaluation fail, including that of the variables' versions?
static bool may_fail(int n)
{
	bool may = may_be_released(n);
	for (int v = 0; v < VARIABLES; v++)
		may |= may_be_released(variable[v].node);
	return may;
}

static void read_one(yoke_tensor *t, int n, const char *what)
{
	double got[N] = { NAN, NAN, NAN };
	const int err = yoke_read(t, got, sizeof got);
	evaluations++;
	trace(what, n, 0, 0);
	if (err == YOKE_ERELEASED && may_fail(n)) {
		refused++;
		yoke_error_clear();
		return;
	}
	compared++;
	for (int i = 0; i < N; i++)
		if (err || !(fabs(got[i] - node[n].x[i]) <= 1e-9 * (1 + fabs(node[n].x[i]))))
			wrong(what, i, got[i], node[n].x[i]);
}

// ---- statements ----

static void fresh(yoke_tensor *t, int n)
{
	const int k = rnd_int(0, VALUES - 1);
	if (value[k].t && value[k].depth > 0) { // the scope frees it
		value[k].t = NULL;
	} else if (value[k].t) {
		yoke_free(value[k].t);
	}
	value[k] = (struct value){ t, n, depth };
	trace("value", node[n].a, node[n].b, n);
}

// A value or a variable.
static yoke_tensor *pick(int *n)
{
	const int k = rnd_int(0, VALUES + 2 * VARIABLES - 1);
	if (k < VALUES && value[k].t) {
		*n = value[k].node;
		return value[k].t;
	}
	*n = variable[k % VARIABLES].node;
	return variable[k % VARIABLES].t;
}

// The variable as a bit, or 0: no variable, or it was assigned another one that holds a leaf.
static int bit_of(const yoke_tensor *t)
{
	for (int v = 0; v < VARIABLES; v++)
		if (variable[v].t == t &&
		    (node[variable[v].node].leaf_of < 0 || node[variable[v].node].leaf_of == v))
			return 1 << v;
	return 0;
}

static void operate(void)
{
	int a, b;
	yoke_tensor *x = pick(&a), *y = pick(&b);
	const double c = rnd_int(-3, 3) * 0.25;
	int n;
	switch (rnd_int(0, 6)) {
	case 0:
		fresh(yoke_add(x, y), n = append(ADD, a, b, 0));
		node[n].uses = bit_of(x) | bit_of(y);
		return;
	case 1:
		fresh(yoke_sub(x, y), n = append(SUB, a, b, 0));
		node[n].uses = bit_of(x) | bit_of(y);
		return;
	case 2:
		n = append(MUL, a, b, 0);
		node[n].uses = bit_of(x) | bit_of(y);
		x = yoke_mul(x, y);
		fresh(yoke_sin(x), append(SIN, n, -1, 0));
		yoke_free(x);
		return;
	case 3:
		fresh(yoke_neg(x), n = append(NEG, a, -1, 0));
		node[n].uses = bit_of(x);
		return;
	case 4:
		fresh(yoke_sin(x), n = append(SIN, a, -1, 0));
		node[n].uses = bit_of(x);
		return;
	case 5: fresh(yoke_stop_grad(x), append(STOP, a, -1, 0)); return;
	default:
		y = yoke_const(c);
		fresh(yoke_mul(x, y), n = append(SCALE, a, -1, c));
		node[n].uses = bit_of(x);
		yoke_free(y);
	}
}

static void give_version(int v, int n)
{
	trace("version of", v, variable[v].node, n);
	for (int k = 0; k < VARIABLES; k++)
		node[n].shared |= k != v && variable[k].node == n;
	node[variable[v].node].of |= 1 << v;
	if (node[variable[v].node].replaced < 0)
		node[variable[v].node].replaced = evaluations;
	variable[v].node = n;
	variable[v].assigned |= depth > 0;
}

static void assign(void)
{
	int n;
	const int v = rnd_int(0, VARIABLES - 1);
	yoke_tensor *x = pick(&n);
	if (n == variable[v].node)
		return;
	yoke_assign(variable[v].t, x);
	give_version(v, n);
}

// A training step: the variable minus a multiple of a gradient, which has no handle afterwards.
static void update(void)
{
	int a;
	const int v = rnd_int(0, VARIABLES - 1), now = variable[v].node;
	yoke_tensor *t = variable[v].t, *x = pick(&a), *quarter = yoke_const(0.25), *g = NULL;
	yoke_tensor *product = yoke_mul(t, x), *y = yoke_sin(product), *sum = yoke_sum(y, YOKE_ALL);
	const int ny = append(SIN, append(MUL, now, a, 0), -1, 0);
	if (!node[now].shared && !yoke_grad(sum, 1, &t, &g)) {
		const int n = append(SUB, now, append(SCALE, differentiate(ny, now), -1, 0.25), 0);
		yoke_tensor *less = yoke_mul(g, quarter), *next = yoke_sub(t, less);
		yoke_assign(t, next);
		give_version(v, n);
		yoke_free(less);
		yoke_free(next);
	} else if (yoke_error_code() ==
		   YOKE_ERELEASED) { // x depends on the variable through a released value
		forgotten++;
		yoke_error_clear();
	}
	yoke_tensor *const all[] = { quarter, g, product, y, sum };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		yoke_free(all[i]);
}

static void put(void)
{
	double x[N];
	const int v = rnd_int(0, VARIABLES - 1);
	for (int i = 0; i < N; i++)
		x[i] = rnd_int(-8, 8) * 0.125;
	yoke_put(variable[v].t, x, sizeof x);
	give_version(v, leaf(x, v));
}

static void gradient(void)
{
	static bool on[NODES];
	int y, p, v = -1;
	yoke_tensor *ty = pick(&y), *tp = pick(&p), *g = NULL;
	for (int k = 0; k < VARIABLES; k++)
		v = variable[k].t == tp ? k : v;
	if (node[p].shared)
		return;
	reach(y, on);
	bool former = false, used = false; // y depends on an earlier version, and used it as one
	for (int k = 0; k <= y && v >= 0 && !on[p]; k++) {
		former |= on[k] && node[k].of & 1 << v;
		used |= on[k] && node[k].uses & 1 << v;
	}
	trace("gradient of, by", y, p, nodes);
	yoke_tensor *sum = yoke_sum(ty, YOKE_ALL);
	const int err = yoke_grad(sum, 1, &tp, &g);
	yoke_free(sum);
	if (err == YOKE_ERELEASED && former) {
		refused++;
		yoke_error_clear();
		return;
	}
	const int n = differentiate(y, p);
	collected |= yk_current()->history.collected > 0; // long graphs are, without a statement
	if (err == YOKE_ERELEASED && collected &&
	    (may_be_released(n) || goes_through_gradient(y, p))) {
		forgotten++;
		yoke_error_clear();
		return;
	}
	if (!err && used)
		wrong("gradient by a former version", 0, NAN, 0);
	if (err) {
		wrong("gradient", 0, NAN, 0);
		return;
	}
	if (rnd_int(0, 1))
		read_one(g, n, "gradient");
	fresh(g, n);
}

static void close_scope(void)
{
	trace("scope end", depth, 0, 0);
	const int n = yoke_scope_end(scope[--depth]);
	if (n < 0)
		wrong("scope_end", 0, n, 0);
	for (int k = 0; k < VALUES; k++)
		if (value[k].t && value[k].depth > depth)
			value[k].t = NULL;
	for (int v = 0; v < VARIABLES && !depth; v++) {
		if (variable[v].assigned)
			give_version(v, append(STOP, variable[v].node, -1, 0)),
				node[nodes - 1].leaf_of = v;
		variable[v].assigned = false;
	}
}

static void statement(void)
{
	int n;
	yoke_tensor *t;
	switch (rnd_int(0, 22)) {
	case 0 ... 8: operate(); return;
	case 9 ... 11: assign(); return;
	case 12:
		t = pick(&n);
		read_one(t, n, "read");
		return;
	case 13:
		t = pick(&n);
		trace("eval", n, 0, 0);
		if (yoke_eval(1, &t) == YOKE_ERELEASED && may_fail(n))
			yoke_error_clear();
		evaluations++;
		return;
	case 14: put(); return;
	case 15:
		if (depth < 2 && scope[depth] == NULL)
			scope[depth] = yoke_scope_begin("random"), depth++,
			trace("scope", depth, 0, 0);
		return;
	case 16:
		if (depth > 0) {
			close_scope();
			scope[depth] = NULL;
		}
		return;
	case 17 ... 18: update(); return;
	case 19:
		trace("collect", 0, 0, 0);
		yk_history_collect(yk_current());
		collected = true;
		return;
	default: gradient(); return;
	}
}

static void program(void)
{
	nodes = evaluations = 0;
	collected = false;
	for (int v = 0; v < VARIABLES; v++) {
		double x[N];
		for (int i = 0; i < N; i++)
			x[i] = rnd_int(-8, 8) * 0.125;
		variable[v].t = yoke_variable("v", yoke_f64, 1, (int64_t[]){ N });
		yoke_put(variable[v].t, x, sizeof x);
		variable[v].node = leaf(x, v);
		variable[v].assigned = false;
	}
	for (int k = 0; k < STATEMENTS && nodes < NODES / 4 && !bad; k++)
		statement();
	for (int k = 0; k < VALUES && !bad; k++)
		if (value[k].t)
			read_one(value[k].t, value[k].node, "value at the end");
	for (int v = 0; v < VARIABLES && !bad; v++)
		read_one(variable[v].t, variable[v].node, "variable at the end");
	while (depth)
		close_scope(), scope[depth] = NULL;
	for (int k = 0; k < VALUES; k++) {
		yoke_free(value[k].t);
		value[k].t = NULL;
	}
	for (int v = 0; v < VARIABLES; v++)
		yoke_free(variable[v].t);
	yoke_error_clear();
}

int main(int argc, char **argv)
{
	yoke_setting_set("log", "error");
	const int programs = argc > 1 ? 1 : tap_cases(PROGRAMS, 50 * PROGRAMS);
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	int failed = 0;
	traces = argc > 1;
	for (int i = 0; i < programs && failed < 5; i++) {
		seed = first + (uint64_t)i;
		tap_state = seed;
		bad = false;
		program();
		failed += bad;
	}
	ok(!failed, "%d random programs from %llu on: %d differ", programs,
	   (unsigned long long)first, failed);
	ok(compared > 4 * refused && compared > 20 * forgotten,
	   "%ld values compared, %ld refused because a version was overwritten, %ld "
	   "since it was forgotten", compared, refused, forgotten);
	return done();
}
