// SPDX-License-Identifier: Apache-2.0
// Tests collective schedules by running them on symbolic terms, for 1 .. 64 ranks: every addend
// once, sums in order T, no deadlock although buffers in transit are not written, no read of
// unwritten data, and message and chunk counts equal to the formulas.
#include "config.h"

#include "comm/schedule.h"
#include "tap.h"

// A term: an addend, or the sum of two terms. Equal terms have one number; 0 is the empty term.
struct term {
	uint32_t a, b; // of a sum
	uint64_t weight; // sum of the addends' random numbers
};
static struct term *terms;
static uint32_t nterms, *table, table_size;

static uint32_t term_of(uint32_t a, uint32_t b, uint64_t weight)
{
	uint64_t h = (a * 0x9e3779b97f4a7c15u ^ b) * 0xbf58476d1ce4e5b9u ^ weight;
	uint32_t at = (uint32_t)(h >> 32) % table_size;
	for (; table[at]; at = (at + 1) % table_size) {
		const struct term *t = &terms[table[at]];
		if (t->a == a && t->b == b && t->weight == weight)
			return table[at];
	}
	if (++nterms * 2 >= table_size) {
		printf("Bail out! too many terms\n");
		exit(1);
	}
	terms[nterms] = (struct term){ a, b, weight };
	return table[at] = nterms;
}

static uint32_t plus(uint32_t a, uint32_t b)
{
	return a && b ? term_of(a, b, terms[a].weight + terms[b].weight) : 0;
}

static uint32_t order_t(uint32_t *x, uint32_t n)
{
	for (uint32_t d = 1; d < n; d *= 2)
		for (uint32_t i = 0; i + d < n; i += 2 * d)
			x[i] = plus(x[i], x[i + d]);
	return x[0];
}

// ---- running all ranks ----

enum { LIMIT = 64 };
static struct rank {
	struct yk_schedule s;
	size_t at;
	uint32_t *place[3], *slot; // a term for each chunk; slot k at k * room
	uint32_t *sent; // by action: 1 until its receiver has it
	uint64_t heard; // bit k: data from rank k arrived
} rank[LIMIT];
static struct line { // messages from one rank to another: the sender's actions, in order
	uint32_t *action;
	uint64_t *heard; // by the sender then
	size_t n, cap, taken;
} line[LIMIT][LIMIT];

static uint32_t *chunk_at(struct rank *r, int place, uint32_t slot, const struct yk_action *a,
			  uint32_t k)
{
	if (place == YK_SLOT)
		return &r->slot[slot * r->s.room + k];
	return &r->place[place == YK_WORK && !r->s.work ? YK_OUT : place][a->chunk + k * a->step];
}

// Would this action of r overwrite data that it is sending?
static bool must_wait(struct rank *r, const struct yk_action *a)
{
	if (a->kind == YK_ACT_SEND)
		return false;
	const int place = a->kind == YK_ACT_SUM ? YK_OUT : a->place;
	for (size_t i = 0; i < r->at; i++) {
		const struct yk_action *b = &r->s.action[i];
		for (uint32_t k = 0; r->sent[i] && k < a->chunks; k++)
			for (uint32_t l = 0; l < b->chunks; l++)
				if (chunk_at(r, place, a->slot, a, k) ==
				    chunk_at(r, b->place, b->slot, b, l))
					return true;
	}
	return false;
}

static const char *wrong;

static void receive(struct rank *r, const struct yk_action *a, struct rank *from,
		    const struct yk_action *b)
{
	if (a->chunks != b->chunks ||
	    (a->chunks && b->place != YK_IN && (a->chunk != b->chunk || a->step != b->step)))
		wrong = "another message";
	for (uint32_t k = 0; k < a->chunks && !wrong; k++) {
		uint32_t *to = chunk_at(r, a->place, a->slot, a, k),
			 x = *chunk_at(from, b->place, b->slot, b, k);
		if (!x)
			wrong = "what is sent was not there";
		if (a->kind == YK_ACT_RECV_ADD) {
			const uint32_t y = *chunk_at(r, a->source, 0, a, k);
			x = a->first ? plus(x, y) : plus(y, x);
		}
		*to = x;
	}
}

static void compute(struct rank *r, const struct yk_action *a)
{
	for (uint32_t k = 0; k < a->chunks; k++) {
		uint32_t *to = chunk_at(r, a->kind == YK_ACT_SUM ? YK_OUT : a->place, a->slot, a,
					k),
			 x[LIMIT];
		if (a->kind == YK_ACT_COPY) {
			*to = *chunk_at(r, a->source, 0, a, k);
		} else if (a->kind == YK_ACT_ADD) {
			uint32_t y = *chunk_at(r, YK_SLOT, a->slot, a, k),
				 z = *chunk_at(r, a->source, 0, a, k);
			*to = a->first ? plus(y, z) : plus(z, y);
		} else {
			for (uint32_t i = 0; i < a->terms; i++)
				x[i] = i == a->own ? *chunk_at(r, a->place, 0, a, k) :
						     *chunk_at(r, YK_SLOT,
							       a->slot + i - (i > a->own), a, k);
			*to = order_t(x, a->terms);
		}
		if (!*to)
			wrong = "computed of what was not there";
	}
}

// Executes one action of rank i, if it is possible now.
static bool advance(uint32_t i)
{
	struct rank *r = &rank[i];
	if (r->at == r->s.n)
		return false;
	const struct yk_action *a = &r->s.action[r->at];
	if (must_wait(r, a))
		return false;
	struct line *l = a->kind == YK_ACT_SEND ? &line[i][a->peer] : &line[a->peer][i];
	if (a->kind == YK_ACT_SEND) {
		if (l->n == l->cap) {
			l->cap = 2 * l->cap + 16;
			l->action = realloc(l->action, l->cap * sizeof *l->action);
			l->heard = realloc(l->heard, l->cap * sizeof *l->heard);
		}
		l->heard[l->n] = r->heard;
		l->action[l->n++] = (uint32_t)r->at;
		r->sent[r->at] = 1;
	} else if (a->kind == YK_ACT_RECV || a->kind == YK_ACT_RECV_ADD) {
		if (l->taken == l->n)
			return false;
		struct rank *from = &rank[a->peer];
		r->heard |= l->heard[l->taken];
		receive(r, a, from, &from->s.action[l->action[l->taken]]);
		from->sent[l->action[l->taken++]] = 0;
	} else {
		compute(r, a);
	}
	r->at++;
	return true;
}

static void begin(const struct yk_schedule_request *w, uint32_t n, bool in_place)
{
	nterms = 0;
	table_size = 1u << (n > 32 ? 20 : n > 8 ? 17 : 12);
	memset(table, 0, table_size * sizeof *table);
	for (uint32_t i = 0; i < n; i++) {
		struct yk_schedule_request mine = *w;
		struct rank *r = &rank[i];
		mine.rank = i;
		yk_schedule_make(&mine, &r->s);
		r->at = 0;
		r->heard = UINT64_C(1) << i;
		r->sent = calloc(r->s.n + 1, sizeof *r->sent);
		for (int p = 0; p < 3; p++)
			r->place[p] = in_place && p == YK_OUT ?
					      r->place[YK_IN] :
					      calloc(r->s.chunks, sizeof *r->place[p]);
		r->slot = calloc((size_t)r->s.slots * r->s.room + 1, sizeof *r->slot);
		for (uint32_t c = 0; c < r->s.chunks; c++) {
			const bool has = w->what == YK_DO_ALL_GATHER ? c == i :
					 w->what == YK_DO_BROADCAST  ? i == w->root || in_place :
								       true;
			const uint64_t weight = (i * 65536u + c + 1) * 0x9e3779b97f4a7c15u;
			if (has)
				r->place[YK_IN][c] = term_of(0, 0, weight);
		}
	}
}

static void end(uint32_t n, bool in_place)
{
	for (uint32_t i = 0; i < n; i++) {
		for (int p = 0; p < 3; p++)
			if (!in_place || p != YK_OUT)
				free(rank[i].place[p]);
		free(rank[i].slot);
		free(rank[i].sent);
		yk_schedule_fini(&rank[i].s);
		for (uint32_t k = 0; k < n; k++)
			line[i][k].n = line[i][k].taken = 0;
	}
}

static uint32_t leaf(uint32_t i, uint32_t c)
{
	return term_of(0, 0, (i * 65536u + c + 1) * 0x9e3779b97f4a7c15u);
}

// The term that rank i must have in chunk c; 0: any.
static uint32_t wanted(const struct yk_schedule_request *w, uint32_t i, uint32_t c)
{
	uint32_t x[LIMIT];
	switch (w->what) {
	case YK_DO_ALL_GATHER: return leaf(c, c);
	case YK_DO_BROADCAST: return leaf(w->root, c);
	case YK_DO_ALL_TO_ALL: return leaf(c, i);
	case YK_DO_BARRIER: return 0;
	case YK_DO_REDUCE:
		if (i != w->root)
			return 0;
		break;
	case YK_DO_REDUCE_SCATTER:
		if (i != c)
			return 0;
	}
	for (uint32_t k = 0; k < w->ranks; k++)
		x[k] = leaf(k, c);
	return order_t(x, w->ranks);
}

// Runs all ranks, in the order given by `turn`; NULL, or the error.
static const char *run(const struct yk_schedule_request *w, bool in_place, uint64_t turn)
{
	const uint32_t n = w->ranks;
	wrong = NULL;
	begin(w, n, in_place);
	for (bool any = true; any && !wrong;) {
		any = false;
		for (uint32_t k = 0; k < n; k++) {
			const uint32_t i = (uint32_t)((k * (2 * turn + 1) + turn) % n);
			const uint64_t few = 1 + (turn ? rnd() % 8 : 1000000);
			for (uint64_t j = 0; j < few && advance(i); j++)
				any = true;
		}
		for (uint32_t k = 0; k < n; k++) // strides that share a factor with n miss some
			any |= advance(k);
	}
	for (uint32_t i = 0; i < n && !wrong; i++) {
		const struct rank *r = &rank[i];
		if (r->at < r->s.n)
			wrong = "deadlock";
		if (w->what == YK_DO_BARRIER && r->heard != UINT64_MAX >> (64 - n))
			wrong = "a rank left before all came";
		for (uint32_t c = 0; c < r->s.chunks && !wrong; c++) {
			const uint32_t want = wanted(w, i, c), got = r->place[YK_OUT][c];
			if (want && terms[got].weight != terms[want].weight)
				wrong = "an addend is missing or twice";
			else if (want && yk_schedule_in_order(w) && got != want)
				wrong = "not in order T";
		}
		for (uint32_t k = 0; k < n && !wrong; k++)
			if (line[i][k].taken < line[i][k].n)
				wrong = "a message nobody took";
	}
	return wrong;
}

// ---- formulas ----

static uint32_t log2_up(uint32_t n)
{
	uint32_t k = 0;
	while (1u << k < n)
		k++;
	return k;
}

// Messages, and chunks sent, by each rank at most and by all: the table of the definitions. exact:
// each rank sends that many.
static bool formula(const struct yk_schedule_request *w, uint64_t *each, uint64_t *sent,
		    uint64_t *all, bool *exact)
{
	const uint64_t n = w->ranks, l = log2_up(w->ranks);
	*exact = w->what != YK_DO_BROADCAST && w->what != YK_DO_REDUCE &&
		 (w->what != YK_DO_ALL_REDUCE || w->how != YK_BY_TREE);
	switch (w->what) {
	case YK_DO_REDUCE_SCATTER:
	case YK_DO_ALL_GATHER: // halves of an all_reduce
		*each = w->how == YK_BY_HALVING ? l : n - 1;
		*sent = n - 1;
		*all = n * *each;
		return true;
	case YK_DO_BROADCAST:
	// by chunks: half of pairwise, and everything except the root's data from it or to it
	case YK_DO_REDUCE:
		*each = w->how == YK_BY_TREE ? l : 2 * (n - 1);
		*sent = w->how == YK_BY_TREE ? l * n : 2 * (n - 1);
		*all = w->how == YK_BY_TREE ? n - 1 : n * (n - 1) + n - 1;
		return true;
	case YK_DO_ALL_TO_ALL: *each = *sent = n - 1; *all = n * (n - 1); return true;
	case YK_DO_BARRIER: *each = l; *sent = 0; *all = n * l; return true;
	}
	switch (w->how) {
	case YK_BY_TREE: *each = 2 * l; *sent = l * n; *all = 2 * (n - 1); return true;
	case YK_BY_DOUBLING: *each = l; *sent = l * n; *all = n * l; return true;
	case YK_BY_HALVING: *each = 2 * l; *sent = 2 * (n - 1); *all = 2 * n * l; return true;
	case YK_BY_PAIRWISE:
	case YK_BY_RING:
		*each = 2 * (n - 1);
		*sent = 2 * (n - 1);
		*all = 2 * n * (n - 1);
		return true;
	}
	return false;
}

static void check_counts(const struct yk_schedule_request *w)
{
	uint64_t each, sent, all, max = 0, max_sent = 0, sum = 0;
	bool exact;
	for (uint32_t i = 0; i < w->ranks; i++) {
		max = rank[i].s.messages > max ? rank[i].s.messages : max;
		max_sent = rank[i].s.sent > max_sent ? rank[i].s.sent : max_sent;
		sum += rank[i].s.messages;
	}
	if (!formula(w, &each, &sent, &all, &exact))
		return;
	if (sum != all || max > each || max_sent > sent ||
	    (exact && (max != each || max_sent != sent)))
		ok(false,
		   "%s by %s of %u ranks: a rank sends %llu messages, %llu chunks, all %llu; wanted %llu, %llu, %llu",
		   yk_collective_name[w->what], yk_algorithm_name[w->how], w->ranks,
		   (unsigned long long)max, (unsigned long long)max_sent, (unsigned long long)sum,
		   (unsigned long long)each, (unsigned long long)sent, (unsigned long long)all);
}

// Between nodes each full node's rank sends 2 (M - 1) / M of its shard, 1 / g of the data.
static void check_nodes(const struct yk_schedule_request *w)
{
	const uint32_t m = (w->ranks + w->node - 1) / w->node;
	uint64_t between = 0;
	for (size_t i = 0; i < rank[0].s.n; i++) {
		const struct yk_action *a = &rank[0].s.action[i];
		if (a->kind == YK_ACT_SEND && a->peer >= w->node)
			between += a->chunks;
	}
	if (between != 2 * (m - 1))
		ok(false, "2d of %u ranks in nodes of %u: %llu chunks between nodes, wanted %u",
		   w->ranks, w->node, (unsigned long long)between, 2 * (m - 1));
}

static void check_all(int what, int how, uint32_t max)
{
	static const bool roots[YK_COLLECTIVES] = {
		[YK_DO_BROADCAST] = true, [YK_DO_REDUCE] = true
	};
	int cases = 0, bad = 0;
	for (uint32_t n = 1; n <= max; n++) {
		const uint32_t nodes = how == YK_BY_2D ? n : 1;
		for (uint32_t g = 1; g <= nodes; g = g < 9 ? g + 1 : 2 * g) {
			struct yk_schedule_request w = {
				.what = (uint8_t)what,
				.how = (uint8_t)how,
				.ranks = n,
				.node = g,
				.root = roots[what] ? (uint32_t)rnd_int(0, n - 1) : 0
			};
			if (!yk_schedule_exists(&w))
				continue;
			for (int turn = 0; turn < 2; turn++) {
				const bool in_place =
					turn && (what == YK_DO_ALL_REDUCE || what == YK_DO_REDUCE ||
						 what == YK_DO_BROADCAST);
				const char *why = run(&w, in_place, turn ? rnd() : 0);
				if (why && bad++ < 5)
					diag("%u ranks, root %u, nodes of %u%s: %s", n, w.root, g,
					     in_place ? ", in place" : "", why);
				if (!why && n > 1 && how != YK_BY_2D)
					check_counts(&w);
				else if (!why && how == YK_BY_2D && n > g)
					check_nodes(&w);
				end(n, in_place);
				cases++;
			}
		}
	}
	ok(!bad && cases, "%s by %s, 1 .. %u ranks: %d cases", yk_collective_name[what],
	   yk_algorithm_name[how], max, cases);
}

int main(void)
{
	tap_seed();
	terms = calloc(1u << 20, sizeof *terms);
	table = calloc(1u << 20, sizeof *table);
	for (int what = 0; what <= YK_DO_BARRIER; what++)
		for (int how = 0; how < YK_BY_SHARED; how++) {
			struct yk_schedule_request w = {
				.what = (uint8_t)what, .how = (uint8_t)how, .ranks = 4, .node = 2
			};
			if (yk_schedule_exists(&w))
				check_all(what, how, how == YK_BY_2D && !tap_long() ? 24 : 64);
		}
	free(terms);
	free(table);
	for (uint32_t i = 0; i < LIMIT; i++)
		for (uint32_t k = 0; k < LIMIT; k++) {
			free(line[i][k].action);
			free(line[i][k].heard);
		}
	return done();
}
