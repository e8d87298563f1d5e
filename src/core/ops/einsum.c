// SPDX-License-Identifier: Apache-2.0
// Sums of products by the names of axes: einsum, tensordot, outer, kron.  The operands are
// contracted in pairs, in the cheapest order for up to EXACT of them, else greedily.  A pair is one
// matrix product, or, without an axis that only one operand has, a product of elements and a sum.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

enum {
	EXACT = 8,       // operands whose order is found by dynamic programming
	MAX = 64,        // operands
	SHORT = 64,      // rows that are too short for a product of elements
	LETTERS = 52,    // names a to z, A to Z; those of "..." follow, the last axis first
	NAMES = LETTERS + YOKE_MAX_RANK
};

typedef uint64_t names; // a set of axes, by name

static names bit(int name)
{
	return (names)1 << name;
}

// A tensor and the names of its axes.
struct term {
	yk_id x;
	int rank;
	uint8_t name[NAMES];
	names all;
};

struct sum {
	struct yk_rec *r;
	struct yk_graph *g;
	int n;
	struct term term[MAX], out;
	int64_t size[NAMES];
};

static void append(struct term *t, int name)
{
	t->name[t->rank++] = (uint8_t)name;
	t->all |= bit(name);
}

static char *text_of(const struct sum *s, const struct term *t, char *to)
{
	return yk_describe(&s->g->value[t->x], to);
}

// ---- subscripts ----

static int name_of(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a';
	return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

// Reads a term up to , - or the end.  more: the number of axes that "..." stands for, -1: what is
// left of `rank`.
static const char *parse_term(struct sum *s, const char *at, struct term *t, int rank, int more)
{
	int letters = 0, dots = 0;
	const char *end = at;
	for (; *end && *end != ',' && *end != '-'; end++) {
		const bool three = *end == '.' && end[1] == '.' && end[2] == '.';
		if (three) {
			dots++;
			end += 2;
		} else if (name_of(*end) >= 0) {
			letters++;
		} else if (*end != ' ') {
			yk_rec_fail(s->r, YOKE_EINVAL,
				    "'%c' in the subscripts is neither a letter nor \"...\"", *end);
			return NULL;
		}
	}
	if (more < 0)
		more = rank - letters;
	if (dots > 1 || more < 0 || more > YOKE_MAX_RANK || (more && !dots && rank >= 0)) {
		yk_rec_fail(s->r, YOKE_ESHAPE,
			    "the term \"%.*s\" is for another number of axes than %d",
			    (int)(end - at), at, rank);
		return NULL;
	}
	if (letters + (dots ? more : 0) > YOKE_MAX_RANK) {
		yk_rec_fail(s->r, YOKE_ESHAPE, "the term \"%.*s\" has more than %d axes",
			    (int)(end - at), at, YOKE_MAX_RANK);
		return NULL;
	}
	for (; at < end; at++) {
		if (*at == '.') {
			for (int k = more - 1; k >= 0; k--)
				append(t, LETTERS + k);
			at += 2;
		} else if (*at != ' ') {
			append(t, name_of(*at));
		}
	}
	return end;
}

static bool has_twice(const struct term *t)
{
	names seen = 0;
	for (int i = 0; i < t->rank; i++) {
		if (seen & bit(t->name[i]))
			return true;
		seen |= bit(t->name[i]);
	}
	return false;
}

// Without "->": the axes of "...", then the letters that occur once, in alphabetical order, as in
// NumPy.
static void implied_result(struct sum *s, int dots)
{
	int many[LETTERS] = { 0 };
	for (int k = 0; k < s->n; k++)
		for (int i = 0; i < s->term[k].rank; i++)
			if (s->term[k].name[i] < LETTERS)
				many[s->term[k].name[i]]++;
	for (int k = dots - 1; k >= 0; k--)
		append(&s->out, LETTERS + k);
	for (int upper = 1; upper >= 0; upper--) // capitals come first
		for (int i = 0; i < 26; i++)
			if (many[26 * upper + i] == 1)
				append(&s->out, 26 * upper + i);
}

static bool parse(struct sum *s, const char *text)
{
	const char *at = text;
	int dots = 0;
	names all = 0;
	for (int k = 0; k < s->n; k++) {
		struct term *t = &s->term[k];
		if (!(at = parse_term(s, at, t, s->g->value[t->x].rank, -1)))
			return false;
		for (int d = 0; d < YOKE_MAX_RANK; d++)
			if (t->all & bit(LETTERS + d) && d >= dots)
				dots = d + 1;
		all |= t->all;
		if (k + 1 < s->n && *at != ',') {
			yk_rec_fail(s->r, YOKE_EINVAL, "\"%s\" has fewer than %d terms", text,
				    s->n);
			return false;
		}
		at += k + 1 < s->n;
	}
	if (!*at) {
		implied_result(s, dots);
	} else if (at[0] != '-' || at[1] != '>') {
		yk_rec_fail(s->r, YOKE_EINVAL, "\"%s\" has more than %d terms", text, s->n);
		return false;
	} else if (!(at = parse_term(s, at + 2, &s->out, -1, dots))) {
		return false;
	} else if (*at) {
		yk_rec_fail(s->r, YOKE_EINVAL, "\"%s\" has several results", text);
		return false;
	}
	if (has_twice(&s->out) || s->out.all & ~all || s->out.rank > YOKE_MAX_RANK) {
		yk_rec_fail(
			s->r, YOKE_EINVAL,
			"in \"%s\" the result has an axis twice, or one that no operand has, or too many",
			text);
		return false;
	}
	return true;
}

// The size of each name: that of all its axes, of which some may have one element.
static bool find_sizes(struct sum *s)
{
	struct term *first[NAMES] = { NULL };
	char a[160], b[160];
	for (int k = 0; k < s->n; k++) {
		struct term *t = &s->term[k];
		const struct yk_value v = s->g->value[t->x];
		if (v.dtype != s->g->value[s->term[0].x].dtype || v.dtype == yoke_bool) {
			yk_rec_fail(s->r, YOKE_EDTYPE, "takes numbers of one dtype, got %s and %s",
				    text_of(s, &s->term[0], a), text_of(s, t, b));
			return false;
		}
		for (int i = 0; i < t->rank; i++) {
			const int name = t->name[i];
			int64_t *size = &s->size[name];
			if (!first[name] || *size == 1) {
				*size = v.dims[i];
				first[name] = t;
			} else if (v.dims[i] != *size && v.dims[i] != 1) {
				yk_rec_fail(s->r, YOKE_ESHAPE,
					    "an axis has %lld and %lld elements in %s and %s",
					    (long long)*size, (long long)v.dims[i],
					    text_of(s, first[name], a), text_of(s, t, b));
				return false;
			}
		}
	}
	return true;
}

// ---- one operand ----

static void remove_axis(struct term *t, int i)
{
	for (t->rank--; i < t->rank; i++)
		t->name[i] = t->name[i + 1];
}

// Takes the diagonal of two axes of one name, which becomes the last axis.
static void diagonal(struct sum *s, struct term *t, int i, int j)
{
	const int name = t->name[i];
	t->x = yk_diagonal(s->g, t->x, 0, i, j);
	remove_axis(t, j);
	remove_axis(t, i);
	t->name[t->rank++] = (uint8_t)name;
}

static bool take_diagonals(struct sum *s, struct term *t)
{
	for (int i = 0; i < t->rank; i++)
		for (int j = i + 1; j < t->rank; j++) {
			if (t->name[i] != t->name[j])
				continue;
			const struct yk_value v = s->g->value[t->x];
			char text[160];
			if (v.dims[i] != v.dims[j]) {
				yk_rec_fail(
					s->r, YOKE_ESHAPE,
					"axes %d and %d of %s have one name and different sizes", i,
					j, yk_describe(&v, text));
				return false;
			}
			diagonal(s, t, i, j);
			if (t->x == YK_BAD)
				return false;
			i = -1; // the axes moved
			break;
		}
	return true;
}

// Sums over the axes that are not in `keep`.
static void sum_out(struct sum *s, struct term *t, names keep)
{
	unsigned axes = 0;
	for (int i = 0; i < t->rank; i++)
		axes |= keep & bit(t->name[i]) ? 0 : 1u << i;
	if (!axes)
		return;
	t->x = yk_reduce(s->g, YK_SUM, t->x, axes, false);
	for (int i = t->rank - 1; i >= 0; i--)
		if (axes >> i & 1)
			remove_axis(t, i);
	t->all &= keep;
}

// ---- pairs ----

struct order {
	int n;
	uint8_t name[NAMES];
};

static void list(struct order *o, const struct term *t, names which)
{
	for (int i = 0; i < t->rank; i++)
		if (which & bit(t->name[i]))
			o->name[o->n++] = t->name[i];
}

static int axis_of(const struct term *t, int name)
{
	for (int i = 0; i < t->rank; i++)
		if (t->name[i] == name)
			return i;
	return -1;
}

// t with its axes in that order; axes of one element that have more elsewhere are broadcast.
static yk_id ordered(struct sum *s, const struct term *t, const struct order *o)
{
	int order[YOKE_MAX_RANK];
	int64_t dims[YOKE_MAX_RANK];
	bool same = true;
	for (int i = 0; i < o->n; i++) {
		order[i] = axis_of(t, o->name[i]);
		dims[i] = s->size[o->name[i]];
		same &= order[i] == i;
	}
	yk_id x = same ? t->x : yk_permute(s->g, t->x, order);
	const struct yk_value like = { .rank = (uint8_t)o->n };
	if (x == YK_BAD)
		return x;
	struct yk_value to = s->g->value[x];
	for (int i = 0; i < like.rank; i++)
		to.dims[i] = dims[i];
	return yk_broadcast_like(s->g, x, &to);
}

static int64_t count(const struct sum *s, names which)
{
	int64_t n = 1;
	for (int i = 0; i < NAMES; i++)
		if (which & bit(i) && __builtin_mul_overflow(n, s->size[i], &n))
			return INT64_MAX;
	return n;
}

static bool ends_in(const struct term *t, names which)
{
	return t->rank && which & bit(t->name[t->rank - 1]);
}

// The operand of a matrix product: [batch, first, then], where either group may come first.
static yk_id matrix(struct sum *s, const struct term *t, const struct order *batch,
		    const struct order *first, const struct order *then)
{
	struct order o = *batch;
	int64_t dims[3] = { 1, 1, 1 };
	for (int i = 0; i < batch->n; i++)
		dims[0] *= s->size[batch->name[i]];
	for (int i = 0; i < first->n; i++) {
		o.name[o.n++] = first->name[i];
		dims[1] *= s->size[first->name[i]];
	}
	for (int i = 0; i < then->n; i++) {
		o.name[o.n++] = then->name[i];
		dims[2] *= s->size[then->name[i]];
	}
	yk_id x = ordered(s, t, &o);
	if (batch->n == 1 && first->n == 1 && then->n == 1)
		return x;
	return batch->n ? yk_reshape(s->g, x, 3, dims) : yk_reshape(s->g, x, 2, dims + 1);
}

// x with its axes in order, and one element along the names of `o` that it lacks
static yk_id spread(struct sum *s, const struct term *t, const struct order *o)
{
	struct order own = { .n = 0 };
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < o->n; i++) {
		const bool has_it = t->all & bit(o->name[i]);
		dims[i] = has_it ? s->size[o->name[i]] : 1;
		if (has_it)
			own.name[own.n++] = o->name[i];
	}
	return yk_reshape(s->g, ordered(s, t, &own), o->n, dims);
}

// The product of a and b, summed over the names that are not in `later`.
static void pair(struct sum *s, struct term *a, const struct term *b, names later)
{
	const names both = a->all & b->all;
	struct order batch = { .n = 0 }, inner = batch, left = batch, right = batch, all;
	list(&batch, a, both & later);
	list(&inner, a, both & ~later);
	list(&left, a, a->all & ~both);
	list(&right, b, b->all & ~both);
	all = batch;
	for (int i = 0; i < left.n; i++)
		all.name[all.n++] = left.name[i];
	for (int i = 0; i < right.n; i++)
		all.name[all.n++] = right.name[i];
	struct term y = { .rank = all.n, .all = a->all | b->all };
	y.all &= later;
	for (int i = 0; i < all.n; i++)
		y.name[i] = all.name[i];
	if (all.n > YOKE_MAX_RANK) {
		char u[160], v[160];
		yk_rec_fail(s->r, YOKE_ESHAPE, "the product of %s and %s has more than %d axes",
			    text_of(s, a, u), text_of(s, b, v), YOKE_MAX_RANK);
		a->x = YK_BAD;
		return;
	}
	if (!inner.n || (!left.n && !right.n)) {
		for (int i = 0; i < inner.n; i++)
			all.name[all.n++] = inner.name[i];
		y.x = all.n > YOKE_MAX_RANK ?
			      YK_BAD :
			      yk_bin(s->g, YK_MUL, spread(s, a, &all), spread(s, b, &all));
		if (inner.n)
			y.x = yk_reduce(s->g, YK_SUM, y.x, (~0u << y.rank) & ((1u << all.n) - 1),
					false);
	} else {
		const bool ta = ends_in(a, a->all & ~both), tb = ends_in(b, both & ~later);
		yk_id u = ta ? matrix(s, a, &batch, &inner, &left) :
			       matrix(s, a, &batch, &left, &inner);
		yk_id v = tb ? matrix(s, b, &batch, &right, &inner) :
			       matrix(s, b, &batch, &inner, &right);
		int64_t dims[YOKE_MAX_RANK];
		for (int i = 0; i < y.rank; i++)
			dims[i] = s->size[y.name[i]];
		y.x = yk_reshape(s->g,
				 yk_matmul(s->g, u, v, (ta ? YOKE_TA : 0) | (tb ? YOKE_TB : 0)),
				 y.rank, dims);
	}
	*a = y;
}

// ---- the order of contractions ----

// The names that operands outside of the set, or the result, have.
static names needed(const struct sum *s, uint64_t set)
{
	names all = s->out.all;
	for (int k = 0; k < s->n; k++)
		if (!(set >> k & 1))
			all |= s->term[k].all;
	return all;
}

// By subsets: the cost is the number of products.  Each subset is split where both halves and their
// product cost least.
static void find_splits(const struct sum *s, unsigned *split)
{
	double best[1 << EXACT];
	names all[1 << EXACT];
	for (unsigned set = 1; set < 1u << s->n; set++) {
		names mine = 0;
		for (int k = 0; k < s->n; k++)
			mine |= set >> k & 1 ? s->term[k].all : 0;
		all[set] = mine & needed(s, set);
		best[set] = set & (set - 1) ? HUGE_VAL : 0;
		split[set] = 0;
		for (unsigned part = (set - 1) & set; part > (set ^ part);
		     part = (part - 1) & set) {
			double cost = best[part] + best[set ^ part];
			double products = 1;
			for (int i = 0; i < NAMES; i++)
				products *= (all[part] | all[set ^ part]) & bit(i) ?
						    (double)s->size[i] :
						    1;
			if (cost + products < best[set]) {
				best[set] = cost + products;
				split[set] = part;
			}
		}
	}
}

static void contract_set(struct sum *s, const unsigned *split, unsigned set, struct term *to)
{
	if (!(set & (set - 1))) {
		*to = s->term[__builtin_ctz(set)];
		return;
	}
	struct term other;
	unsigned first = split[set], second = set ^ first;
	contract_set(s, split, first, to);
	contract_set(s, split, second, &other);
	if (to->x == YK_BAD || other.x == YK_BAD) {
		to->x = YK_BAD;
		return;
	}
	// the operand that has the result's last axis comes second
	if (s->out.rank && to->all & ~other.all & bit(s->out.name[s->out.rank - 1])) {
		const struct term held = *to;
		*to = other;
		other = held;
	}
	pair(s, to, &other, needed(s, set));
}

// More operands: each time the two whose product has the fewest elements.
static void contract_greedily(struct sum *s)
{
	while (s->n > 1 && s->term[0].x != YK_BAD) {
		int a = 0, b = 1;
		int64_t fewest = INT64_MAX;
		for (int i = 0; i < s->n; i++)
			for (int j = i + 1; j < s->n; j++) {
				const names left = (s->term[i].all | s->term[j].all) &
						   needed(s, bit(i) | bit(j));
				const int64_t n = count(s, left);
				if (n < fewest) {
					fewest = n;
					a = i;
					b = j;
				}
			}
		struct term y = s->term[a];
		pair(s, &y, &s->term[b], needed(s, bit(a) | bit(b)));
		s->term[a] = y;
		s->term[b] = s->term[--s->n];
		if (y.x == YK_BAD)
			s->term[0].x = YK_BAD;
	}
}

// All of it, once terms and result are known.
static yk_id contract(struct sum *s)
{
	unsigned split[1 << EXACT];
	struct term y;
	if (!find_sizes(s))
		return YK_BAD;
	for (int k = 0; k < s->n; k++)
		if (!take_diagonals(s, &s->term[k]))
			return YK_BAD;
	for (int k = 0; k < s->n; k++) {
		sum_out(s, &s->term[k], needed(s, bit(k)));
		if (s->term[k].x == YK_BAD)
			return YK_BAD;
	}
	if (s->n <= EXACT) {
		find_splits(s, split);
		contract_set(s, split, (1u << s->n) - 1, &y);
	} else {
		contract_greedily(s);
		y = s->term[0];
	}
	if (y.x == YK_BAD)
		return YK_BAD;
	struct order o = { .n = s->out.rank };
	for (int i = 0; i < o.n; i++)
		o.name[i] = s->out.name[i];
	return ordered(s, &y, &o);
}

yoke_tensor *yoke_einsum(const char *subscripts, int n, yoke_tensor *const *x)
{
	struct yk_rec r;
	yk_id *in = yk_rec_list(&r, "einsum", YK_MATMUL, n, x), y = YK_BAD;
	struct sum *s = in ? calloc(1, sizeof *s) : NULL;
	if (!subscripts || n > MAX) {
		if (in)
			yk_rec_fail(&r, YOKE_EINVAL,
				    "the subscripts are NULL, or %d operands are more than %d", n,
				    MAX);
	} else if (in && !s) {
		yk_rec_fail(&r, YOKE_ENOMEM, "no memory for %d operands", n);
	} else if (s) {
		s->r = &r;
		s->g = r.g;
		s->n = n;
		for (int k = 0; k < n; k++)
			s->term[k].x = in[k];
		if (parse(s, subscripts))
			y = contract(s);
	}
	free(s);
	free(in);
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_tensordot(yoke_tensor *a, yoke_tensor *b, int n, const int *axes_a,
			    const int *axes_b)
{
	struct yk_rec r = yk_rec_begin_op(YK_MATMUL, 2, (yoke_tensor *[]){ a, b });
	struct sum s = {
		.r = &r, .g = r.g, .n = 2, .term = { { .x = r.in[0] }, { .x = r.in[1] } }
	};
	char u[160], v[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || !yk_rec_array(&r, n, axes_a, "axes_a") ||
	    !yk_rec_array(&r, n, axes_b, "axes_b"))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value va = r.g->value[r.in[0]], vb = r.g->value[r.in[1]];
	int name_b[YOKE_MAX_RANK];
	names summed = 0;
	bool good = n >= 0 && n <= va.rank && n <= vb.rank;
	for (int i = 0; i < va.rank; i++)
		append(&s.term[0], i);
	for (int i = 0; i < vb.rank; i++)
		name_b[i] = YOKE_MAX_RANK + i;
	for (int k = 0; good && k < n; k++) {
		const int i = axes_a[k] + (axes_a[k] < 0 ? va.rank : 0),
			  j = axes_b[k] + (axes_b[k] < 0 ? vb.rank : 0);
		good = i >= 0 && i < va.rank && j >= 0 && j < vb.rank && !(summed & bit(i)) &&
		       name_b[j] >= YOKE_MAX_RANK && va.dims[i] == vb.dims[j];
		summed |= good ? bit(i) : 0;
		if (good)
			name_b[j] = i;
	}
	for (int i = 0; good && i < va.rank; i++)
		if (!(summed & bit(i)))
			append(&s.out, i);
	for (int i = 0; good && i < vb.rank; i++) {
		append(&s.term[1], name_b[i]);
		if (name_b[i] >= YOKE_MAX_RANK)
			append(&s.out, name_b[i]);
	}
	if (!good || s.out.rank > YOKE_MAX_RANK) {
		yk_rec_fail(&r, YOKE_ESHAPE,
			    "%d axes do not pair %s and %s, or the result has too many", n,
			    yk_describe(&va, u), yk_describe(&vb, v));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, contract(&s));
}

yoke_tensor *yoke_outer(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ a, b });
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const int64_t column[] = { yk_count(&r.g->value[r.in[0]]), 1 },
		      row = yk_count(&r.g->value[r.in[1]]);
	return yk_rec_end(&r, yk_bin(r.g, YK_MUL, yk_reshape(r.g, r.in[0], 2, column),
				     yk_reshape(r.g, r.in[1], 1, &row)));
}

// x [..,n,1] or [..,1,n] repeated `times` times along its axis of one element, [..,n times]
static yk_id merged(struct yk_graph *g, yk_id x, const int64_t *dims, int rank, int64_t times)
{
	int64_t wide[YOKE_MAX_RANK];
	memcpy(wide, dims, (size_t)rank * sizeof *wide);
	const int one = dims[rank - 1] == 1 ? rank - 1 : rank - 2;
	wide[one] = times;
	x = yk_un(g, YK_CONTIGUOUS, yk_broadcast(g, x, rank, wide));
	wide[rank - 2] *= wide[rank - 1];
	return yk_reshape(g, x, rank - 1, wide);
}

yoke_tensor *yoke_kron(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ a, b });
	char text[2][160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value va = r.g->value[r.in[0]], vb = r.g->value[r.in[1]];
	const int rank = va.rank > vb.rank ? va.rank : vb.rank;
	int64_t da[2 * YOKE_MAX_RANK], db[2 * YOKE_MAX_RANK], dims[YOKE_MAX_RANK];
	if (2 * rank > YOKE_MAX_RANK) {
		yk_rec_fail(&r, YOKE_ESHAPE, "takes at most %d axes, got %s and %s",
			    YOKE_MAX_RANK / 2, yk_describe(&va, text[0]),
			    yk_describe(&vb, text[1]));
		return yk_rec_end(&r, YK_BAD);
	}
	for (int i = 0; i < rank; i++) {
		const int ia = i - rank + va.rank, ib = i - rank + vb.rank;
		da[2 * i] = ia < 0 ? 1 : va.dims[ia];
		db[2 * i + 1] = ib < 0 ? 1 : vb.dims[ib];
		da[2 * i + 1] = db[2 * i] = 1;
		if (__builtin_mul_overflow(da[2 * i], db[2 * i + 1], &dims[i])) {
			yk_rec_fail(&r, YOKE_ESHAPE, "too many elements: %s and %s",
				    yk_describe(&va, text[0]), yk_describe(&vb, text[1]));
			return yk_rec_end(&r, YK_BAD);
		}
	}
	yk_id u = yk_reshape(r.g, r.in[0], 2 * rank, da),
	      w = yk_reshape(r.g, r.in[1], 2 * rank, db);
	// the last axis of both is repeated first, so that the product has long rows
	if (rank > 1 && db[2 * rank - 1] < SHORT) {
		u = merged(r.g, u, da, 2 * rank, db[2 * rank - 1]);
		w = merged(r.g, w, db, 2 * rank, da[2 * rank - 2]);
	}
	return yk_rec_end(&r, yk_reshape(r.g, yk_bin(r.g, YK_MUL, u, w), rank, dims));
}
