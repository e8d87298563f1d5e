// SPDX-License-Identifier: Apache-2.0
// The conformance run: the table of ops, and a TAP line for each op, dtype and implementation.  A
// case is identified by its name (contract.f32.17) and the seed, which give the same values on
// every machine.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/param.h"
#include "conform/conform.h"
#include "conform/run.h"
#include "conform/sample.h"
#include "kernel/merge.h"

#define D(dtype) (1u << yoke_##dtype)
enum {
	REALS = D(f32) | D(f64) | D(f16) | D(bf16),
	NUMBERS = REALS | D(i8) | D(u8) | D(i32) | D(i64),
	ALL = NUMBERS | D(bool)
};
#define ROW(code, name, dtypes, full) { YOKE_OP_##code, #name, dtypes, full, yk_make_##name },
const struct yk_case_row yk_case_rows[] = { YK_CASE_ROWS(ROW){ .name = NULL } };

// After this many cases that the device does not accept, some plain ones among them, the rest is
// skipped.
enum { PATIENCE = 9, SHOWN = 3 };

const struct yk_case_row *yk_case_row(int code)
{
	const struct yk_case_row *r = yk_case_rows;
	while (r->name && r->code != code)
		r++;
	return r->name ? r : NULL;
}

bool yk_case_make(struct yk_case *c, const struct yk_case_row *row, int dtype,
		  uint32_t number, uint64_t seed, uint32_t flags, struct yk_arena *memory)
{
	uint64_t from[4] = { seed, row->code, (uint64_t)dtype, number };
	jmp_buf no_memory;

	yk_arena_reset(memory);
	*c = (struct yk_case){ .memory = memory,
			       .no_memory = &no_memory,
			       .number = number,
			       .flushes = flags & YOKE_DEVICE_FLUSHES,
			       .tf32 = flags & YOKE_DEVICE_TF32,
			       .state = yk_hash_numbers(from, sizeof *from, 4, 0) };
	if (setjmp(no_memory))
		return false;
	const bool made = row->make(c, dtype);
	if (made)
		yk_merge_axes(&c->op, c->view, c->view + c->op.nout);
	return made;
}

// ---- names ----

// Whether a list item ("map.f32") matches this case (number < 0: any case of the dtype).
static bool item_has(const char *item, size_t n, const char *op, const char *dtype,
		     int64_t number)
{
	char full[96];
	int len = number < 0 ? snprintf(full, sizeof full, "%s.%s", op, dtype) :
			       snprintf(full, sizeof full, "%s.%s.%lld", op, dtype,
					(long long)number);
	if (len < 0 || (size_t)len >= sizeof full)
		return false;
	if (number < 0 && n > (size_t)len) // a case of this dtype
		return !memcmp(item, full, (size_t)len) && item[len] == '.';
	return n <= (size_t)len && !memcmp(item, full, n) && (!full[n] || full[n] == '.');
}

static bool wanted(const char *list, const char *op, const char *dtype, int64_t number)
{
	if (!list || !*list)
		return true;
	for (; *list; list += *list == ',') {
		size_t n = strcspn(list, ",");
		if (item_has(list, n, op, dtype, number))
			return true;
		list += n;
	}
	return false;
}

// Validates an item of that op: "map", "map.f32", "map.f32.7".
static int check_op_item(const char *item, size_t n, const struct yk_case_row *r)
{
	const char *names[16], *dot = memchr(item, '.', n);
	char word[64], hint[160];
	int count = 0;

	for (int d = yoke_f32; d <= yoke_bool; d++) {
		if (!(r->dtypes >> d & 1))
			continue;
		if (item_has(item, n, r->name, yoke_dtype_name(d), -1))
			return 0;
		names[count++] = yoke_dtype_name(d);
	}
	snprintf(word, sizeof word, "%.*s", (int)strcspn(dot + 1, ".,"), dot + 1);
	return yk_fail(YOKE_EINVAL, "'%.*s': %s has no cases of that dtype; %s", (int)n, item,
		       r->name, yk_hint(word, names, count, hint, sizeof hint));
}

static int check_item(const char *item, size_t n)
{
	const char *names[YOKE_OP_LIMIT]; // an op has one row at most, and some have none
	char word[64], hint[1600];
	int count = 0;

	snprintf(word, sizeof word, "%.*s", (int)(strcspn(item, ".,")), item);
	for (const struct yk_case_row *r = yk_case_rows; r->name; r++) {
		if (!strcmp(word, r->name))
			return check_op_item(item, n, r);
		names[count++] = r->name;
	}
	if (!strcmp(word, "memory") || !strcmp(word, "graph"))
		return 0;
	names[count++] = "memory";
	names[count++] = "graph";
	return yk_fail(YOKE_EINVAL, "'%.*s' is no op of conform; %s", (int)n, item,
		       yk_hint(word, names, count, hint, sizeof hint));
}

int yk_conform_check(const char *ops)
{
	int err = 0;
	for (; ops && *ops && !err; ops += *ops == ',') {
		size_t n = strcspn(ops, ",");
		err = check_item(ops, n);
		ops += n;
	}
	return err;
}

// ---- the run ----

// Totals of one implementation in a dtype.
struct tally {
	uint32_t taken, wrong, silent;
	double worst;
	uint64_t bits;
	char name[48];
	char *shown; // lines about failed cases
	size_t bytes;
	FILE *lines;
};

struct run {
	struct yk_runner runner;
	struct yk_arena memory;
	struct yk_case c;
	const struct yk_conform_options *options;
	FILE *to;
	int count, failed, skipped;
	uint32_t flags; // of the device
};

static void print_result(struct run *r, bool good, const char *what)
{
	fprintf(r->to, "%sok %d - %s\n", good ? "" : "not ", ++r->count, what);
	r->failed += !good;
	fflush(r->to);
}

// Whether the output can no longer be written (e.g. the reader closed the pipe).
static bool ends(const struct run *r)
{
	return ferror(r->to);
}

static void skip(struct run *r, const char *what, const char *why)
{
	char line[120];

	r->skipped++;
	if (!r->options->skipped)
		return;
	snprintf(line, sizeof line, "%s # SKIP %s", what, why);
	print_result(r, true, line);
}

static void note_wrong(struct tally *t, const struct yk_case *c, const char *name,
		       const struct yk_case_verdict *v)
{
	char views[600];

	t->wrong++;
	if (t->wrong > SHOWN)
		return;
	if (!t->lines && !(t->lines = open_memstream(&t->shown, &t->bytes)))
		return;
	yk_case_describe(c, views, sizeof views);
	fprintf(t->lines, "# %s: %s\n#   %s%s%s%s\n", name, v->why, views,
		*c->note ? " (" : "", c->note, *c->note ? ")" : "");
}

static void run_case(struct run *r, const struct yk_case_row *row, int dtype,
		     uint32_t number, struct tally *tally)
{
	const struct yk_device *d = r->runner.device;
	struct yk_case *c = &r->c;
	char name[96];

	snprintf(name, sizeof name, "%s.%s.%u", row->name, yoke_dtype_name(dtype),
		 number);
	uint64_t impls = yk_runner_can(&r->runner, c);
	for (uint32_t i = 0; i < 64 && impls; i++, impls >>= 1) {
		struct tally *t = &tally[i];
		if (!(impls & 1))
			continue;
		const char *impl = d->ops->impl_name(d->index, &c->op, i);
		if (impl && *impl && !*t->name)
			snprintf(t->name, sizeof t->name, " %s", impl);
		else if (!*t->name)
			snprintf(t->name, sizeof t->name, " %u", i);
		struct yk_case_verdict v = yk_runner_run(&r->runner, c, i, number % 4 == 0);
		if (v.good && c->part)
			yk_runner_part(&r->runner, c, &v);
		t->taken++;
		t->silent += v.silent;
		t->bits = yk_hash(&v.bits, sizeof v.bits, t->bits);
		if (v.worst > t->worst)
			t->worst = v.worst;
		if (!v.good)
			note_wrong(t, c, name, &v);
	}
}

static void conclude(struct run *r, const struct yk_case_row *row, int dtype,
		     struct tally *t, uint32_t cases)
{
	char what[300];

	int n = snprintf(what, sizeof what, "%s %s%s: %u of %u cases", row->name,
			 yoke_dtype_name(dtype), t->name, t->taken, cases);
	if (t->wrong)
		snprintf(what + n, sizeof what - (size_t)n, ", %u wrong", t->wrong);
	else if (t->worst > 0)
		yk_snprintf(what + n, sizeof what - (size_t)n,
			 ", at most %.2g of the tolerance", t->worst);
	n = (int)strlen(what);
	if (r->options->bits)
		snprintf(what + n, sizeof what - (size_t)n, ", bits %016llx",
			 (unsigned long long)t->bits);
	print_result(r, !t->wrong, what);
	if (t->lines && !fclose(t->lines))
		fputs(t->shown, r->to);
	free(t->shown);
	if (t->silent)
		fprintf(r->to,
			"# %u values out of range hurt nothing, but were not reported\n",
			t->silent);
}

static int run_group(struct run *r, const struct yk_case_row *row, int dtype)
{
	const char *type = yoke_dtype_name(dtype);
	struct tally tally[64] = { { .taken = 0 } };
	uint32_t cases = 0, tried = 0;
	bool taken = false;
	char what[96];

	// A pass stops at the same case as a run that is not divided: until the device accepts a
	// case, the pass also queries the cases of the other passes.
	for (uint32_t number = 0; number < row->full && (taken || tried < PATIENCE) && !ends(r);
	     number++) {
		const bool ours = !r->options->passes ||
				  number % r->options->passes == r->options->pass;
		if (!wanted(r->options->ops, row->name, type, number) ||
		    !yk_case_sampled(number, r->options->quick) || (taken && !ours))
			continue;
		if (!yk_case_make(&r->c, row, dtype, number, r->options->seed, r->flags,
				  &r->memory))
			return yk_fail(YOKE_ENOMEM, "no host memory for %s.%s.%u",
				       row->name, type, number);
		tried++;
		taken = taken || yk_runner_can(&r->runner, &r->c);
		if (ours) {
			cases++;
			run_case(r, row, dtype, number, tally);
		}
	}
	for (int i = 0; i < 64; i++)
		if (tally[i].taken)
			conclude(r, row, dtype, &tally[i], cases);
	if (!taken && cases) {
		snprintf(what, sizeof what, "%s %s", row->name, type);
		skip(r, what, "not taken");
	}
	return 0;
}

static void run_memory(struct run *r)
{
	struct yk_case_verdict v = yk_runner_memory(&r->runner, r->options->seed);
	print_result(r, v.good, "memory: put, get, copy and fill");
	if (!v.good)
		fprintf(r->to, "# %s\n", v.why);
}

static void run_graph(struct run *r)
{
	struct yk_case_verdict v;
	bool offered = yk_runner_graph(&r->runner, r->options->seed, &v);
	if (offered)
		print_result(r, v.good, "graph: a fill and a copy replayed");
	else
		skip(r, "graph", "not offered");
	if (!v.good)
		fprintf(r->to, "# %s\n", v.why);
}

int yk_conform(struct yk_device *d, const struct yk_conform_options *options, FILE *to)
{
	struct run *r = calloc(1, sizeof *r);
	int err = r ? yk_runner_init(&r->runner, d) :
		      yk_fail(YOKE_ENOMEM, "no host memory");

	if (err) {
		free(r);
		return err;
	}
	uint64_t pair = 0;
	const bool first = !options->shard && !options->pass;
	r->options = options;
	r->to = to;
	r->flags = d->info.flags;
	fprintf(to, "# %s: %s; %s; seed %llu%s\n", d->id, d->info.name, d->info.driver,
		(unsigned long long)options->seed, options->quick ? ", a sample" : "");
	if (first && wanted(options->ops, "memory", "", -1))
		run_memory(r);
	if (first && wanted(options->ops, "graph", "", -1))
		run_graph(r);
	for (const struct yk_case_row *row = yk_case_rows; row->name && !err && !ends(r); row++)
		for (int dtype = yoke_f32; dtype <= yoke_bool && !err && !ends(r); dtype++)
			if (row->dtypes >> dtype & 1 &&
			    wanted(options->ops, row->name, yoke_dtype_name(dtype), -1) &&
			    (!options->shards || pair++ % options->shards == options->shard))
				err = run_group(r, row, dtype);
	fprintf(to, "1..%d\n", r->count);
	fprintf(to, "# %s: %d passed, %d failed, %d skipped, which the device does not take%s\n",
		d->id, r->count - r->failed - (options->skipped ? r->skipped : 0), r->failed,
		r->skipped, r->skipped && !options->skipped ? " (--skipped lists them)" : "");
	int failed = r->failed;
	yk_runner_fini(&r->runner);
	yk_arena_fini(&r->memory);
	free(r);
	return err ? err : failed;
}
