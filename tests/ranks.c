// SPDX-License-Identifier: Apache-2.0
// Tests operations between ranks, as threads: every collective in every dtype against float64
// sums in order T; all ranks have the same bits whichever is late; gradients against finite
// differences; group splits, sends, and the errors when ranks disagree, fail or do not arrive.
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <stdatomic.h>
#include <time.h>

#include "base/log.h"
#include "base/num.h"
#include "tap.h"
#include "comm/process.h"
#include "comm/ranks.h"

enum { LIMIT = 8 };

int splits(yoke_group *, void *);
int around(yoke_group *);

// ---- one case, which all ranks know ----

static bool counts_bytes = true;
static struct {
	int what, kind, dtype, ranks, root;
	int64_t n, unit; // elements of each operand; of a piece
	bool late; // ranks arrive one after another
	void *in[LIMIT], *out[LIMIT];
	int64_t results;
	uint64_t sent[LIMIT];
} now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char wrong[400];
static int bad;

__attribute__((format(printf, 1, 2))) static int complain(const char *fmt, ...)
{
	va_list ap;
	pthread_mutex_lock(&lock);
	if (!bad++) {
		va_start(ap, fmt);
		vsnprintf(wrong, sizeof wrong, fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&lock);
	return YOKE_EFAILED;
}

static void nap(int64_t microseconds)
{
	struct timespec t = { microseconds / 1000000, microseconds % 1000000 * 1000 };
	nanosleep(&t, NULL);
}

enum {
	ALL_REDUCE,
	LIST,
	REDUCE_SCATTER,
	ALL_GATHER,
	BROADCAST,
	REDUCE,
	ALL_TO_ALL,
	SHARES,
	REDUCED,
	WHATS
};
static const char *const names[] = { "all_reduce", "all_reduce_list", "reduce_scatter",
				     "all_gather", "broadcast",       "reduce",
				     "all_to_all", "gather_shares",   "reduce_shares" };
static const int dtypes[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16,
			      yoke_i8,  yoke_u8,  yoke_i32, yoke_i64 };

// The rank that owns element i of three tensors with n/3, n/3 and the remaining elements: their
// chunks begin at every now.unit-th element of each.
static int owner_of(int64_t i)
{
	const int64_t third = now.n / 3,
		      start = i < third     ? 0 :
			      i < 2 * third ? third :
					      2 * third,
		      share = (now.n + now.ranks - 1) / now.ranks,
		      piece = now.unit ? (i - start) / now.unit * now.unit : 0;
	return (int)((start + piece) / share);
}

static void cut_in_three(yoke_tensor *x, yoke_tensor **part)
{
	const int64_t third = now.n / 3;
	part[0] = yoke_slice(x, 0, 0, third, 1);
	part[1] = yoke_slice(x, 0, third, 2 * third, 1);
	part[2] = yoke_slice(x, 0, 2 * third, now.n, 1);
}

// Elements of x in the rank's shard.
static int64_t share_of(int rank, int64_t *first)
{
	int64_t n = 0;
	*first = 0;
	while (*first < now.n && owner_of(*first) < rank)
		++*first;
	while (*first + n < now.n && owner_of(*first + n) == rank)
		n++;
	return n;
}

// The sums of the rank's shard, at their positions; -1 elsewhere.
static yoke_tensor *reduced_shares(yoke_group *g, yoke_tensor *x)
{
	int64_t first, n = share_of(yoke_group_rank(g), &first), front = first,
		       back = now.n - first - n;
	yoke_tensor *part[3];
	cut_in_three(x, part);
	yoke_tensor *mine = yk_reduce_shards(g, now.unit, 3, part);
	if (yoke_count(mine) != (n ? n : 1))
		complain("rank %d: a share of %lld elements, not %lld", yoke_group_rank(g),
			 (long long)yoke_count(mine), (long long)n);
	part[0] = yoke_full(now.dtype, 1, &front, 1);
	part[1] = yoke_slice(mine, 0, 0, n, 1);
	part[2] = yoke_full(now.dtype, 1, &back, 1);
	return yoke_concat(3, part, 0);
}

// only the shard's elements of x count.
static yoke_tensor *shares(yoke_group *g, yoke_tensor *x)
{
	const int64_t one = 1;
	int64_t first;
	const int64_t n = share_of(yoke_group_rank(g), &first);
	yoke_tensor *mine = n ? yoke_slice(x, 0, first, first + n, 1) :
				yoke_full(now.dtype, 1, &one, 0),
		    *part[3];
	cut_in_three(yoke_full(now.dtype, 1, &now.n, 0), part);
	yk_gather_shards(g, now.unit, 3, part, mine, part);
	return yoke_concat(3, part, 0);
}

// x and, for a list, two slices of it, concatenated again.
static yoke_tensor *together(yoke_group *g, yoke_tensor *x)
{
	const int64_t cut = now.n / 3;
	yoke_tensor *part[2];
	switch (now.what) {
	case ALL_REDUCE: return yoke_all_reduce(g, now.kind, x);
	case REDUCE_SCATTER: return yoke_reduce_scatter(g, now.kind, x);
	case ALL_GATHER: return yoke_all_gather(g, x);
	case BROADCAST: return yoke_broadcast(g, now.root, x);
	case REDUCE: return yoke_reduce(g, now.kind, now.root, x);
	case ALL_TO_ALL: return yoke_all_to_all(g, x);
	case SHARES: return shares(g, x);
	case REDUCED: return reduced_shares(g, x);
	}
	part[0] = yoke_slice(x, 0, 0, cut, 1);
	part[1] = yoke_slice(x, 0, cut, now.n, 1);
	yoke_all_reduce_list(g, now.kind, 2, part, part);
	return yoke_concat(2, part, 0);
}

static int one_case(yoke_group *g, void *unused)
{
	const int r = yoke_group_rank(g);
	(void)unused;
	if (now.late)
		nap(200 * ((r * 5 + now.what) % now.ranks));
	yoke_scope *s = yoke_scope_begin("case");
	yoke_tensor *x = yoke_from(now.dtype, 1, &now.n, now.in[r]), *y = together(g, x);
	int err = y ? yoke_read(y, now.out[r], yoke_bytes(y)) : yoke_error_code();
	if (!err && yoke_count(y) != now.results)
		err = complain("%lld results", (long long)yoke_count(y));
	struct yoke_group_state state = { .size = sizeof state };
	yoke_group_state(g, &state);
	now.sent[r] = state.sent;
	int end = yoke_scope_end(s);
	return err ? err : end;
}

// ---- what it has to be ----

static double pair(double a, double b)
{
	if (now.kind == YOKE_REDUCE_SUM)
		return now.dtype == yoke_f64  ? a + b :
		       yk_num_real(now.dtype) ? (double)((float)a + (float)b) :
						0;
	if (isnan(a) || isnan(b))
		return NAN;
	return now.kind == YOKE_REDUCE_MAX ? (a > b ? a : b) : (a < b ? a : b);
}

static int64_t pair_int(int64_t a, int64_t b)
{
	if (now.kind == YOKE_REDUCE_SUM)
		return yk_num_wrap((uint64_t)a + (uint64_t)b, now.dtype);
	return now.kind == YOKE_REDUCE_MAX ? (a > b ? a : b) : (a < b ? a : b);
}

static struct yk_num input(int r, int64_t i)
{
	return yk_num_load((char *)now.in[r] + (size_t)i * yoke_dtype_size(now.dtype), now.dtype);
}

// Order T, in the accumulator's dtype.
static struct yk_num reduced(int64_t i)
{
	struct yk_num x[LIMIT];
	for (int r = 0; r < now.ranks; r++)
		x[r] = input(r, i);
	for (int d = 1; d < now.ranks; d *= 2)
		for (int k = 0; k + d < now.ranks; k += 2 * d)
			x[k] = (struct yk_num){ pair(x[k].f, x[k + d].f),
						pair_int(x[k].i, x[k + d].i) };
	return x[0];
}

static struct yk_num wanted(int r, int64_t i)
{
	const int64_t part = now.n / now.ranks;
	switch (now.what) {
	case REDUCE_SCATTER: return reduced(r * part + i);
	case ALL_GATHER: return input((int)(i / now.n), i % now.n);
	case BROADCAST: return input(now.root, i);
	case ALL_TO_ALL: return input((int)(i / part), r * part + i % part);
	case SHARES: return input(owner_of(i), i);
	case REDUCED:
		if (owner_of(i) != r)
			return (struct yk_num){ 1, !yk_num_real(now.dtype) };
		break;
	case REDUCE:
		if (r != now.root)
			return (struct yk_num){ 0, 0 };
	}
	return reduced(i);
}

// Minimum bytes that all ranks of a new group send together, for each algorithm except tree and
// doubling.
static void check_sent(void)
{
	const uint64_t bytes = (uint64_t)now.n * yoke_dtype_size(now.dtype),
		       others = (uint64_t)now.ranks - 1;
	const bool twice = now.what == ALL_REDUCE || now.what == LIST;
	uint64_t sent = 0;
	for (int r = 0; r < now.ranks; r++)
		sent += now.sent[r];
	const uint64_t want = others * bytes * (twice ? 2 : now.what == ALL_GATHER ? now.ranks : 1);
	if (now.what != REDUCE && now.what != BROADCAST && sent != want)
		complain("%llu bytes were sent, not %llu", (unsigned long long)sent,
			 (unsigned long long)want);
}

static double in_any_order; // relative tolerance of sums, as a fraction of the sum of magnitudes

static double magnitude(int64_t i)
{
	double sum = 0;
	for (int r = 0; r < now.ranks; r++)
		sum += fabs(input(r, i).f);
	return sum;
}

// Is it within tolerance, where the order of sums differs and halves are rounded on the way? Each
// of ranks - 1 sums, and the reference, is off by half an ulp of numbers that are together no
// larger than all magnitudes.
static bool is_near(struct yk_num got, struct yk_num want, int r, int64_t i)
{
	const double all = 1.01 * now.ranks;
	const double unit = now.dtype == yoke_bf16 ? all * 0x1p-8 :
			    now.dtype == yoke_f16  ? all * 0x1p-11 :
						     in_any_order;
	if (!in_any_order || now.kind != YOKE_REDUCE_SUM || now.what == ALL_GATHER ||
	    now.what == SHARES)
		return false;
	return fabs(got.f - want.f) <=
	       unit * magnitude(now.what == REDUCE_SCATTER ? r * now.results + i : i);
}

static void check(int first, int end)
{
	const size_t size = yoke_dtype_size(now.dtype);
	for (int r = first; r < end; r++)
		for (int64_t i = 0; i < now.results && !bad; i++) {
			struct yk_num got = yk_num_load((char *)now.out[r] + (size_t)i * size,
							now.dtype),
				      want = wanted(r, i);
			want.f = yk_num_real(now.dtype) ? yk_num_round(want.f, now.dtype) : 0;
			if (!(got.f == want.f || (isnan(got.f) && isnan(want.f)) ||
			      is_near(got, want, r, i)) ||
			    got.i != want.i)
				complain(
					"rank %d, element %lld: got %.17g, %lld, wanted %.17g, %lld",
					r, (long long)i, got.f, (long long)got.i, want.f,
					(long long)want.i);
		}
}

static void fill(void *to, int64_t n)
{
	const size_t size = yoke_dtype_size(now.dtype);
	for (int64_t i = 0; i < n; i++) {
		const int wild = (int)rnd_int(0, 40);
		struct yk_num x = { wild                        ? rnd_real(-100, 100) :
				    now.kind == YOKE_REDUCE_SUM ? 1e-3 :
								  NAN,
				    yk_num_wrap(rnd(), now.dtype) };
		yk_num_store((char *)to + (size_t)i * size, x, now.dtype);
	}
}

// world: NULL, all ranks are threads; otherwise that of this process.
static bool run_case(yoke_group *world, int what, int kind, int dtype, int ranks, int64_t n,
		     bool late)
{
	now.what = what;
	now.kind = kind;
	now.dtype = dtype;
	now.ranks = ranks;
	now.root = (int)rnd_int(0, ranks - 1);
	now.unit = rnd_int(0, 3) ? rnd_int(0, 60) : 0;
	now.late = late;
	if (what == REDUCE_SCATTER || what == ALL_TO_ALL)
		n = n / ranks * ranks;
	now.n = n;
	now.results = what == ALL_GATHER ? n * ranks : what == REDUCE_SCATTER ? n / ranks : n;
	bad = 0;
	const size_t size = yoke_dtype_size(dtype);
	for (int r = 0; r < ranks; r++) {
		now.in[r] = malloc((size_t)n * size + 8);
		now.out[r] = malloc((size_t)now.results * size + 8);
		memset(now.out[r], 0xff, (size_t)now.results * size + 8);
		fill(now.in[r], n);
	}
	yoke_error_clear();
	int err = world ? one_case(world, NULL) : yoke_group_run(ranks, NULL, one_case, NULL);
	if (err)
		complain("%s: %s", yoke_error_name(err), yoke_error());
	else if (world)
		check(yoke_group_rank(world), yoke_group_rank(world) + 1);
	else
		check(0, ranks);
	if (!world && !err && counts_bytes)
		check_sent();
	for (int r = 0; r < ranks; r++) {
		free(now.in[r]);
		free(now.out[r]);
	}
	if (bad)
		diag("%s of %lld %s, kind %d, %d ranks: %s", names[what], (long long)n,
		     yoke_dtype_name(dtype), kind, ranks, wrong);
	return !bad;
}

static bool sums(int what)
{
	return what != ALL_GATHER && what != BROADCAST && what != ALL_TO_ALL && what != SHARES &&
	       what != REDUCED;
}

static void collectives(void)
{
	static const int64_t sizes[] = { 0, 1, 2, 7, 8, 61, 64, 509, 10007 };
	for (int what = 0; what < WHATS; what++) {
		int failed = 0, cases = 0;
		for (int ranks = 1; ranks <= LIMIT; ranks++)
			for (int d = 0; d < 8; d++) {
				const int64_t n = (d + ranks + what) % 9 == 8 ?
							  ranks - 1 :
							  sizes[(d * 5 + ranks + what) % 9];
				if (((uint64_t)(d * 3 + ranks + what) + tap_seed_value()) % 4 &&
				    !tap_long())
					continue;
				failed +=
					!run_case(NULL, what,
						  sums(what) ? (int)rnd_int(1, 3) : YOKE_REDUCE_SUM,
						  dtypes[d], ranks, n, rnd() % 3 == 0);
				cases++;
			}
		ok(!failed, "%s, 1 to %d ranks, all dtypes: %d cases", names[what], LIMIT, cases);
	}
	if (tap_long())
		ok(run_case(NULL, ALL_REDUCE, YOKE_REDUCE_SUM, yoke_f32, 5, 1000003, false),
		   "all_reduce of 1,000,003");
	else
		ok(run_case(NULL, ALL_REDUCE, YOKE_REDUCE_SUM, yoke_f32, 3, 100003, false),
		   "all_reduce of 100,003");
}

// By messages between threads: the same numbers with every algorithm but the ring, whose sums have
// another order.
static void by_messages(void)
{
	static const char *const ways[] = {
		"tree", "doubling", "halving", "pairwise", "ring", "2d"
	};
	for (int way = 0; way < 6; way++) {
		int failed = 0;
		yoke_setting_set("dist.algorithm", ways[way]);
		counts_bytes = way == 3;
		for (int k = 0; k < tap_cases(9, 300); k++) {
			const bool ring = way == 4;
			const int what = k % 3 ? (int)rnd_int(0, WHATS - 1 - ring) : ALL_REDUCE,
				  ranks = (int)rnd_int(2, LIMIT);
			const int kind = ring || !sums(what) ? YOKE_REDUCE_MAX : (int)rnd_int(1, 3);
			failed += !run_case(NULL, what, sums(what) ? kind : YOKE_REDUCE_SUM,
					    dtypes[rnd_int(0, 7)], ranks,
					    rnd_int(0, 3) ? rnd_int(0, 40) : rnd_int(1000, 9000),
					    k % 4 == 0);
		}
		ok(!failed, "by messages: %s", ways[way]);
	}
	ok(run_case(NULL, ALL_REDUCE, YOKE_REDUCE_SUM, yoke_i32, 5, 1000, false),
	   "the ring's sum of integers");
	yoke_setting_set("dist.algorithm", "");
	counts_bytes = true;
}

// ---- processes ----

// A slow link: the same sums, and no sooner than its messages arrive.
static int one_sum(yoke_group *g, void *unused)
{
	const int64_t n = 250;
	(void)unused;
	yoke_scope *s = yoke_scope_begin("link");
	yoke_tensor *x = yoke_full(yoke_f32, 1, &n, 1 + yoke_group_rank(g)),
		    *y = yoke_all_reduce(g, YOKE_REDUCE_SUM, x);
	float got[250];
	int err = y ? yoke_read(y, got, sizeof got) : yoke_error_code();
	for (int i = 0; i < n && !err; i++)
		if (got[i] != 10) // of 1, 2, 3, 4
			err = complain("element %d is %g", i, (double)got[i]);
	int end = yoke_scope_end(s);
	return err ? err : end;
}

static double sum_by(const char *algorithm)
{
	struct timespec from, to;
	yoke_setting_set("dist.algorithm", algorithm);
	clock_gettime(CLOCK_MONOTONIC, &from);
	const int err = yoke_group_run(4, NULL, one_sum, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	yoke_setting_set("dist.algorithm", "");
	return err ? 0 :
		     (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static void slow_link(void)
{
	bad = 0;
	yoke_setting_set("dist.link", "0.01,1e-5"); // 20 ms for 1000 bytes
	ok(sum_by("doubling") >= 0.04 && !bad,
	   "dist.link: two messages in sequence take their time %s", wrong);
	ok(sum_by("tree") >= 0.08 && !bad, "four messages by a tree %s", wrong);
	ok(sum_by("pairwise") >= 2 * 3 * 0.0125 && !bad,
	   "three chunks each way, through one port %s", wrong);
	yoke_setting_set("dist.link", "0.001,1e-6");
	// regression, 1 in 30: a rank that waits for its own messages missed rank 0, which had
	// finished
	int failed = 0;
	for (int i = 0; i < tap_cases(100, 1000); i++)
		failed += sum_by("doubling") <= 0;
	ok(!failed && !bad, "no rank misses one that has finished: %d did %s", failed, wrong);
	yoke_setting_set("dist.link", "fast");
	const int err = yoke_group_run(2, NULL, one_sum, NULL);
	ok(err == YOKE_EINVAL && strstr(yoke_error(), "dist.link 'fast'"),
	   "an invalid link: %s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("dist.link", "");
}

static const char *self;

// More groups than there are slots: all ranks get the error, and earlier groups still work.
static int many_groups(yoke_group *g)
{
	int made = 0, err = 0;
	while (made < 30 && !err) {
		yoke_group *all = yoke_group_split(g, 0, yoke_group_rank(g));
		err = all ? 0 : yoke_error_code();
		made += !err;
		yoke_group_free(all);
	}
	if (err != YOKE_ENOMEM && err != YOKE_ERANK)
		return complain("the %d-th group: %s", made, yoke_error());
	yoke_error_clear();
	return made < 20 ? complain("%d groups", made) : yoke_group_barrier(g);
}

// Does a rank on a device use the vendor's collective library?
static int is_native(yoke_group *g, void *unused)
{
	(void)unused;
	return g->native ? 0 : complain("rank %d goes by the host's memory", yoke_group_rank(g));
}

// The work of each process: cases, equally drawn in all of them; subgroups; sends.
static int among_processes(yoke_group *g)
{
	int failed = 0;
	if (!g) {
		fprintf(stderr, "# %s\n", yoke_error());
		return 1;
	}
	const int ranks = yoke_group_size(g);
	for (int k = 0; k < tap_cases(30, 300) && !failed; k++) {
		const int what = (int)rnd_int(0, WHATS - 1),
			  kind = sums(what) ? (int)rnd_int(1, 3) : YOKE_REDUCE_SUM;
		const int dtype = dtypes[rnd_int(0, 7)];
		const int64_t n = rnd_int(0, 3) ? rnd_int(0, 40) : rnd_int(1000, 300000);
		failed += !run_case(g, what, kind, dtype, ranks, n, k % 4 == 0);
	}
	failed += splits(g, NULL) < 0;
	failed += around(g) < 0;
	failed += many_groups(g) < 0;
	failed += ranks > 1 && strcmp(getenv("YOKE_BACKEND"), "cpu") && is_native(g, NULL);
	if (failed)
		fprintf(stderr, "# rank %d: %s %s\n", yoke_group_rank(g), wrong, yoke_error());
	return failed != 0;
}

static int spawn(int n, const char *what)
{
	char *argv[] = { (char *)(uintptr_t)self, (char *)(uintptr_t)what, NULL };
	yoke_error_clear();
	return yoke_group_spawn(n, argv);
}

static int open_files(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

// Is a process running, rather than a zombie?
static bool is_alive(int pid)
{
	char path[64], state = 'X';
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	if (f)
		fclose(f);
	return state != 'X' && state != 'Z';
}

// When their launcher is killed, they end.
static void orphans(void)
{
	int end[2], pid[2] = { 0, 0 }, left = 500;
	if (pipe(end) < 0) {
		ok(false, "cannot make a pipe");
		return;
	}
	const pid_t parent = fork();
	if (!parent) {
		dup2(end[1], 1);
		close(end[0]);
		close(end[1]);
		execl(self, self, "parent", (char *)NULL);
		_exit(127);
	}
	close(end[1]);
	FILE *f = fdopen(end[0], "r");
	const bool both = f && fscanf(f, "%d %d", &pid[0], &pid[1]) == 2;
	const bool began = both && is_alive(pid[0]) && is_alive(pid[1]);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	while (left-- && both && (is_alive(pid[0]) || is_alive(pid[1])))
		nap(10000);
	ok(began && !is_alive(pid[0]) && !is_alive(pid[1]),
	   "processes end when their parent is killed");
	if (f)
		fclose(f);
}

static void processes(void)
{
	const int files = open_files();
	for (int n = 1; n <= 5; n += 1 + n % 2) {
		int err = spawn(n, "cases");
		ok(!err, "%d processes%s%s", n, err ? ": " : "", err ? yoke_error() : "");
	}
	int err = spawn(3, "killed");
	ok(err == YOKE_ERANK && strstr(yoke_error(), "was ended by signal 9"),
	   "a rank is killed: %s", yoke_error());
	err = spawn(3, "gone");
	ok(err == YOKE_ERANK && strstr(yoke_error(), "exit status 3"), "a rank ends: %s",
	   yoke_error());
	err = spawn(3, "disagree");
	ok(err == YOKE_ERANK, "processes that disagree: %s", yoke_error());
	yoke_error_clear();
	orphans();
	ok(open_files() == files, "no file descriptor is leaked: %d, %d before", open_files(),
	   files);
}

// ---- gradients ----

enum { N = 3, WIDE = 6 };
static double theta[N][WIDE], weight[N][2 * WIDE * N];

// A loss of each rank: sum over i of w_i f(y_i), y a collective of a function of x.
static yoke_tensor *loss_of(yoke_group *g, int what, yoke_tensor *x)
{
	const int r = yoke_group_rank(g), to = (r + 1) % N, from = (r + N - 1) % N;
	yoke_tensor *y, *sq = yoke_square(x), *token = NULL;
	const int64_t six = WIDE;
	switch (what) {
	case REDUCE_SCATTER: y = yoke_reduce_scatter(g, YOKE_REDUCE_SUM, sq); break;
	case ALL_GATHER: y = yoke_all_gather(g, sq); break;
	case BROADCAST: y = yoke_broadcast(g, 1, sq); break;
	case REDUCE: y = yoke_reduce(g, YOKE_REDUCE_SUM, 2, sq); break;
	case ALL_TO_ALL: y = yoke_all_to_all(g, sq); break;
	case LIST: {
		yoke_tensor *l[2] = { sq, yoke_mul(x, yoke_const(0.5)) };
		yoke_all_reduce_list(g, YOKE_REDUCE_SUM, 2, l, l);
		y = yoke_add(l[0], yoke_sin(l[1]));
		break;
	}
	case WHATS: { // send and recv around a ring
		yoke_tensor *some =
			yoke_mul(yoke_cast(yoke_sum(x, YOKE_ALL), yoke_f32), yoke_const(0));
		token = yoke_send(g, to, sq);
		y = yoke_recv(g, from, yoke_f64, 1, &six, some);
		break;
	}
	default: y = yoke_all_reduce(g, YOKE_REDUCE_SUM, sq);
	}
	const int64_t n = yoke_count(y);
	yoke_tensor *w = yoke_from(yoke_f64, 1, &n, weight[r]);
	yoke_tensor *loss = yoke_sum(yoke_mul(w, yoke_square(y)), YOKE_ALL);
	return token ? yoke_add(loss, yoke_cast(token, yoke_f64)) : loss;
}

static struct {
	int what;
	double loss[N], grad[N][WIDE];
	bool back;
} deriv;

static int derive(yoke_group *g, void *unused)
{
	const int r = yoke_group_rank(g);
	const int64_t n = WIDE;
	(void)unused;
	yoke_scope *s = yoke_scope_begin("derive");
	yoke_tensor *x = yoke_variable("x", yoke_f64, 1, &n), *d;
	yoke_put(x, theta[r], sizeof theta[r]);
	yoke_tensor *loss = loss_of(g, deriv.what, x);
	int err = 0;
	if (deriv.back)
		err = yoke_grad(loss, 1, &x, &d);
	if (!err)
		err = deriv.back ? yoke_read(d, deriv.grad[r], sizeof deriv.grad[r]) :
				   yoke_read(loss, &deriv.loss[r], sizeof deriv.loss[r]);
	yoke_free(x);
	int end = yoke_scope_end(s);
	return err ? err : end;
}

static double total(void)
{
	deriv.back = false;
	if (yoke_group_run(N, NULL, derive, NULL))
		diag("%s", yoke_error());
	return deriv.loss[0] + deriv.loss[1] + deriv.loss[2];
}

static void gradients(void)
{
	for (int r = 0; r < N; r++) {
		for (int i = 0; i < WIDE; i++)
			theta[r][i] = rnd_real(0.5, 1.5);
		for (int i = 0; i < 2 * WIDE * N; i++)
			weight[r][i] = rnd_real(-1, 1);
	}
	for (deriv.what = 0; deriv.what <= WHATS; deriv.what++) {
		if (deriv.what == SHARES) // it has none
			continue;
		double worst = 0;
		deriv.back = true;
		memset(deriv.grad, 0xff, sizeof deriv.grad);
		int err = yoke_group_run(N, NULL, derive, NULL);
		if (err)
			diag("%s", yoke_error());
		yoke_error_clear();
		for (int k = 0; k < 4; k++) {
			const int r = (int)rnd_int(0, N - 1), i = (int)rnd_int(0, WIDE - 1);
			const double x = theta[r][i], h = 1e-5;
			theta[r][i] = x + h;
			double up = total();
			theta[r][i] = x - h;
			double slope = (up - total()) / (2 * h);
			theta[r][i] = x;
			double off = fabs(slope - deriv.grad[r][i]) / (1 + fabs(slope));
			if (!(off < 1e-7)) // so that NaN differs
				diag("rank %d, %d: got %.12g, differences %.12g", r, i,
				     deriv.grad[r][i], slope);
			worst = off <= worst ? worst : off;
		}
		ok(!err && worst < 1e-7, "gradient of %s over %d ranks, error %.1e",
		   deriv.what == WHATS ? "send and recv" : names[deriv.what], N, worst);
	}
}

// All ranks have one loss, a sum of terms: the gradient of each term, and of the common operand.
static int halves(yoke_group *g, void *to)
{
	double(*grad)[2] = to;
	const int r = yoke_group_rank(g);
	double all = 1.25, mine = r + 1;
	yoke_tensor *w = yoke_variable("w", yoke_f64, 0, NULL),
		    *x = yoke_variable("x", yoke_f64, 0, NULL), *d[2];
	yoke_put(w, &mine, sizeof mine);
	yoke_put(x, &all, sizeof all);
	yoke_scope *s = yoke_scope_begin("halves");
	yoke_tensor *y = yoke_tensor_out(g, yoke_mul(w, yoke_tensor_in(g, x)));
	int err = yoke_grad(yoke_square(y), 2, (yoke_tensor *[]){ w, x }, d);
	if (!err)
		err = yoke_eval(2, d);
	if (!err)
		err = yoke_read(d[0], &grad[r][0], sizeof(double));
	if (!err)
		err = yoke_read(d[1], &grad[r][1], sizeof(double));
	yoke_scope_end(s);
	yoke_free(w);
	yoke_free(x);
	return err;
}

// ---- groups ----

int splits(yoke_group *g, void *unused)
{
	const int r = yoke_group_rank(g), n = yoke_group_size(g);
	const int64_t one = 1;
	int all[LIMIT], err = yoke_group_exchange(g, &r, sizeof r, all);
	(void)unused;
	for (int i = 0; i < n && !err; i++)
		if (all[i] != i)
			err = complain("rank %d heard %d of rank %d", r, all[i], i);
	// odd and even ranks, backwards; rank 0 in none
	yoke_group *half = yoke_group_split(g, r ? r % 2 : -1, -r);
	if (!half != !r)
		return complain("rank %d: %s", r, yoke_error());
	float x = (float)r, want = 0, got = -1;
	for (int i = 1; i < n; i++)
		want += i % 2 == r % 2 ? (float)i : 0;
	if (half) {
		yoke_scope *s = yoke_scope_begin("half");
		yoke_tensor *y =
			yoke_all_reduce(half, YOKE_REDUCE_SUM, yoke_from(yoke_f32, 1, &one, &x));
		err = y ? yoke_read(y, &got, sizeof got) : yoke_error_code();
		yoke_scope_end(s);
		const int place = (n - 1 - r) / 2;
		if (!err && (got != want || yoke_group_rank(half) != place))
			err = complain("rank %d: %g, wanted %g; place %d, wanted %d", r,
				       (double)got, (double)want, yoke_group_rank(half), place);
	}
	yoke_group_free(half);
	return err ? err : yoke_group_barrier(g);
}

// Each rank sends its number around, and receives that of the rank before it.
int around(yoke_group *g)
{
	const int r = yoke_group_rank(g), n = yoke_group_size(g);
	const int64_t many = 70000;
	if (n == 1 || tap_eager()) // then each waits for its send before it receives
		return 0;
	yoke_scope *s = yoke_scope_begin("around");
	float *got = malloc((size_t)many * sizeof *got);
	yoke_tensor *x = yoke_full(yoke_f32, 1, &many, r), *y;
	yoke_send(g, (r + 1) % n, x);
	y = yoke_recv(g, (r + n - 1) % n, yoke_f32, 1, &many, YOKE_NONE);
	int err = yoke_read(y, got, (size_t)many * sizeof *got);
	for (int64_t i = 0; i < many && !err; i++)
		if (got[i] != (float)((r + n - 1) % n))
			err = complain("element %lld of rank %d: %g", (long long)i, r,
				       (double)got[i]);
	free(got);
	yoke_scope_end(s);
	return err;
}

// Training steps that overlap computation with sums of gradients; the second one has a plan.
static int steps(yoke_group *g, void *to)
{
	float(*last)[16] = to;
	const int r = yoke_group_rank(g), n = yoke_group_size(g);
	const int64_t dims[] = { 4, 4 };
	float w[16], x[16];
	yoke_tensor *p[2] = { yoke_variable("a", yoke_f32, 2, dims),
			      yoke_variable("b", yoke_f32, 2, dims) };
	for (int i = 0; i < 16; i++) {
		w[i] = 0.1f * (float)(i % 5) - 0.2f;
		x[i] = (float)((i * 7 + r * 3) % 11) * 0.1f;
	}
	yoke_put(p[0], w, sizeof w);
	yoke_put(p[1], w, sizeof w);
	int err = 0;
	for (int i = 0; i < 4 && !err; i++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *d[2],
			*y = yoke_matmul(
				yoke_tanh(yoke_matmul(yoke_from(yoke_f32, 2, dims, x), p[0], 0)),
				p[1], 0);
		err = yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), 2, p, d);
		for (int k = 2; k-- > 0 && !err;)
			err = yoke_all_reduce_list(g, YOKE_REDUCE_SUM, 1, &d[k], &d[k]);
		for (int k = 0; k < 2 && !err; k++)
			err = yoke_assign(p[k],
					  yoke_sub(p[k], yoke_mul(yoke_const(0.05 / n), d[k])));
		if (!err)
			err = yoke_eval(0, NULL);
		int end = yoke_scope_end(s);
		err = err ? err : end;
	}
	struct yoke_stats stats = { .size = sizeof stats };
	yoke_stats(&stats);
	if (!err && stats.plan_misses != 1)
		err = complain("%llu plans were made", (unsigned long long)stats.plan_misses);
	if (!err)
		err = yoke_read(p[1], last[r], sizeof last[r]);
	yoke_free(p[0]);
	yoke_free(p[1]);
	return err;
}

// The gradient of 3 y.y' for y in two slices, from cotangents: equal to the whole.
static void from_cotangents(void)
{
	const int64_t n = 5;
	double x[5], got[5];
	bool good = true;
	yoke_scope *s = yoke_scope_begin("from");
	for (int i = 0; i < 5; i++)
		x[i] = rnd_real(0.5, 2);
	yoke_tensor *v = yoke_variable("v", yoke_f64, 1, &n), *d;
	yoke_put(v, x, sizeof x);
	yoke_tensor *y[2] = { yoke_square(v), yoke_exp(v) };
	yoke_tensor *cot[2] = { yoke_from(yoke_f64, 1, &n, x), yoke_full(yoke_f64, 1, &n, 3) };
	int err = yoke_grad_from(2, y, cot, 1, &v, &d);
	if (!err)
		err = yoke_read(d, got, sizeof got);
	for (int i = 0; i < 5; i++)
		good &= fabs(got[i] - (2 * x[i] * x[i] + 3 * exp(x[i]))) < 1e-12 * exp(x[i]) * 3;
	ok(!err && good, "a gradient from the cotangents of two values");
	yoke_free(v);
	yoke_tensor *one = yoke_full(yoke_f64, 0, NULL, 1);
	err = yoke_grad_from(1, y, &one, 1, &y[1], &d);
	ok(err == YOKE_ESHAPE && !d && strstr(yoke_error(), "its cotangent f64 []"),
	   "a cotangent of another shape: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// Each sample once, or as many per rank.
static int samples(yoke_group *g, void *to)
{
	_Atomic int(*times)[3][20] = to;
	const int n = yoke_group_size(g);
	for (int k = 0; k < 3; k++) {
		const int64_t m = yoke_sampler_count(g, k, 20);
		if (m != (k == YOKE_SAMPLER_PAD ? (20 + n - 1) / n :
						  20 / n + (k == YOKE_SAMPLER_EXACT &&
							    yoke_group_rank(g) < 20 % n)))
			return complain("%lld samples of kind %d", (long long)m, k);
		for (int64_t i = 0; i < m; i++) {
			int64_t at = yoke_sampler(g, k, 20, 7, 3, i);
			if (at < 0 || at >= 20)
				return complain("sample %lld", (long long)at);
			atomic_fetch_add(&(*times)[k][at], 1);
		}
		if (yoke_sampler(g, k, 20, 7, 3, m) != YOKE_ERANGE)
			return complain("a sample too many");
		yoke_error_clear();
	}
	return 0;
}

// ---- where it stands in a plan ----

static char warned[400]; // the late rank

static void quiet(int level, const char *topic, const char *line, void *arg)
{
	if (strstr(line, "is in host code since") && strstr(line, "waits in"))
		snprintf(warned, sizeof warned, "%s", line);
	(void)topic;
	(void)arg;
	if (level <= YOKE_LOG_WARN)
		diag("%s", line);
}

static char plan[1 << 14]; // its lines

static void keep_line(int level, const char *topic, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (!strcmp(topic, "plan"))
		snprintf(plan + strlen(plan), sizeof plan - strlen(plan), "%s\n", line);
}

// The step whose line contains both texts; -1: none.
static int step_of(const char *scope, const char *op)
{
	char line[400];
	for (const char *at = plan; *at; at += strcspn(at, "\n") + 1) {
		snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
		if (strstr(line, scope) && strstr(line, op))
			return atoi(line);
	}
	return -1;
}

// A sum over ranks that is recorded after all gradients starts after the gradient that it needs,
// and the update that waits for it runs after the other gradients.
static void beside(void)
{
	const int64_t dims[] = { 64, 64 };
	yoke_tensor *p[2] = { yoke_variable("a", yoke_f32, 2, dims),
			      yoke_variable("b", yoke_f32, 2, dims) },
		    *d[2];
	yk_log_to(keep_line, NULL);
	yoke_scope *s = yoke_scope_begin("beside"), *in = yoke_scope_begin("first");
	yoke_tensor *x =
		yoke_lift(yoke_tanh(yoke_matmul(yoke_full(yoke_f32, 2, dims, 1), p[0], 0)));
	yoke_scope_end(in);
	in = yoke_scope_begin("second");
	yoke_tensor *y = yoke_lift(yoke_matmul(x, p[1], 0));
	yoke_scope_end(in);
	yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), 2, p, d);
	in = yoke_scope_begin("sums");
	for (int k = 2; k-- > 0;)
		yoke_lift(d[k] = yoke_all_reduce(yoke_group_world(), YOKE_REDUCE_SUM, d[k]));
	yoke_scope_end(in);
	in = yoke_scope_begin("update");
	for (int k = 2; k-- > 0;)
		yoke_assign(p[k], yoke_sub(p[k], d[k]));
	yoke_scope_end(in);
	int err = yoke_eval(0, NULL);
	yoke_scope_end(s);
	yk_log_to(quiet, NULL);
	const int sum = step_of("beside/sums", "all_reduce"),
		  update = step_of("beside/update", "sub");
	int last = -1;
	for (const char *at = plan; (at = strstr(at, " in beside/first")); at++) {
		const char *line = at;
		while (line > plan && line[-1] != '\n')
			line--;
		last = atoi(line) > last ? atoi(line) : last;
	}
	ok(!err && sum >= 0 && sum < last && update > last,
	   "a sum, step %d, begins before the last gradient, step %d, and its update, step %d, waits",
	   sum, last, update);
	if (sum < 0 || sum >= last || update <= last)
		diag("%s", plan);
	yoke_free(p[0]);
	yoke_free(p[1]);
}

// A value with no later reader is summed in place.
static void in_place(void)
{
	const int64_t n = 1 << 20;
	float got[2];
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &n), *l[2];
	*plan = '\0';
	yk_log_to(keep_line, NULL);
	yoke_scope *s = yoke_scope_begin("place");
	l[0] = yoke_add(x, yoke_const(1));
	l[1] = yoke_add(x, yoke_const(2));
	yoke_all_reduce_list(yoke_group_world(), YOKE_REDUCE_SUM, 2, l, l);
	l[0] = yoke_sum(l[0], YOKE_ALL);
	l[1] = yoke_sum(l[1], YOKE_ALL);
	int err = yoke_eval(2, l);
	for (int k = 0; k < 2 && !err; k++)
		err = yoke_read(l[k], &got[k], sizeof got[k]);
	yoke_scope_end(s);
	yk_log_to(quiet, NULL);
	const char *at = strstr(plan, "arena ");
	const long long bytes = at ? atoll(at + 6) : -1;
	ok(!err && got[0] == (float)n && got[1] == 2 * (float)n && bytes >= 8 << 20 &&
		   bytes < 9 << 20,
	   "two sums of 4 MiB in place: %lld bytes in the arena, %g, %g", bytes, (double)got[0],
	   (double)got[1]);
	yoke_free(x);
}

// ---- what goes wrong ----

static char said[LIMIT][1200];
static int codes[LIMIT];

// Saves the error of a rank for later.
static int keep(yoke_group *g, int err)
{
	codes[yoke_group_rank(g)] = err;
	snprintf(said[yoke_group_rank(g)], sizeof *said, "%s", yoke_error());
	return err;
}

static int disagree(yoke_group *g, void *which)
{
	const int r = yoke_group_rank(g);
	const int64_t n = 6 + (r == 1 && *(int *)which == 0);
	float x[8] = { 0 }, y[8];
	yoke_scope *s = yoke_scope_begin("disagree");
	yoke_tensor *a = yoke_from(yoke_f32, 1, &n, x);
	if (*(int *)which == 1 && r == 1)
		a = yoke_cast(a, yoke_f64);
	if (*(int *)which == 2 && r == 1)
		a = yoke_broadcast(g, 0, a);
	else
		a = yoke_all_reduce(g, YOKE_REDUCE_SUM, a);
	int err = keep(g, a ? yoke_read(a, y, yoke_bytes(a)) : yoke_error_code());
	yoke_scope_end(s);
	return err;
}

static int leaves(yoke_group *g, void *which)
{
	const int r = yoke_group_rank(g), how = *(int *)which;
	int err = yoke_group_barrier(g);
	if (r == 1 && how == 0) // ends successfully, but early
		return keep(g, err);
	if (r == 1 && how == 1)
		return keep(g, YOKE_ENOMEM);
	// until the group gives up
	for (int k = 0;
	     k < 60000 && r == 1 && how == 2 && !atomic_load(&g->rendezvous->area->broken); k++)
		nap(10000);
	return keep(g, err ? err : yoke_group_barrier(g));
}

// Rank 1 fails before the others split the group: they get no group, and all calls on it return
// that error.
static int splits_too_late(yoke_group *g, void *unused)
{
	(void)unused;
	if (yoke_group_rank(g) == 1)
		return keep(g, YOKE_ENOMEM);
	yoke_group *none = yoke_group_split(g, 0, 0);
	char text[sizeof *said];
	snprintf(text, sizeof text, "%s", yoke_error());
	if (none || yoke_error_code() != YOKE_ERANK)
		return complain("the split gives %s: %s", none ? "a group" : "none", text);
	yoke_tensor *x = yoke_full(yoke_f32, 1, (int64_t[]){ 2 }, 1), *to = x;
	char all[8];
	struct yoke_group_state state = { .size = sizeof state };
	const int code[] = { yoke_group_rank(none),
			     yoke_group_size(none),
			     yoke_group_barrier(none),
			     yoke_group_state(none, &state),
			     yoke_group_exchange(none, "", 1, all),
			     yoke_all_reduce_list(none, YOKE_REDUCE_SUM, 1, &x, &to),
			     yoke_broadcast_list(none, 0, 1, &x, &to),
			     (int)yoke_sampler_count(none, 0, 4),
			     (int)yoke_sampler(none, 0, 4, 0, 0, 0) };
	for (size_t i = 0; i < sizeof code / sizeof *code; i++)
		if (code[i] != YOKE_ERANK)
			return complain("call %zu on no group: %s", i, yoke_error_name(code[i]));
	if (to || yoke_all_reduce(none, YOKE_REDUCE_SUM, x) ||
	    yoke_reduce_scatter(none, YOKE_REDUCE_SUM, x) || yoke_all_gather(none, x) ||
	    yoke_broadcast(none, 0, x) || yoke_reduce(none, YOKE_REDUCE_SUM, 0, x) ||
	    yoke_all_to_all(none, x) || yoke_send(none, 0, x) ||
	    yoke_recv(none, 0, yoke_f32, 0, NULL, YOKE_NONE) || yoke_tensor_in(none, x) ||
	    yoke_tensor_out(none, x) || yoke_group_split(none, 0, 0))
		return complain("a call on no group gave something");
	yoke_group_free(none);
	if (strcmp(text, yoke_error()))
		return complain("the error became %s", yoke_error());
	return keep(g, YOKE_ERANK);
}

// Rank 1 repeats an earlier message, with one field of the header changed.
static int forges(yoke_group *g, void *which)
{
	const bool odd = yoke_group_rank(g) == 1;
	struct yk_rank_link *l = yk_rendezvous_link(g->rendezvous, false, 1, 0);
	const uint32_t ring = g->rendezvous->area->ring;
	const int64_t n = 6;
	float x[6] = { 1 }, y[6];
	struct yk_head h;
	int err = 0;
	yoke_scope *s = yoke_scope_begin("forges");
	const uint64_t before = atomic_load(&l->head);
	for (int again = 0; again < 2 && !err; again++) {
		if (odd && again) {
			memcpy(&h, l->data + before % ring, sizeof h); // far from the ring's end
			h.sequence++;
			h.bytes += *(int *)which == 0 ? 8 : 0;
			h.from += *(int *)which == 1;
			h.group += *(int *)which == 2;
			h.sequence += *(int *)which == 3;
			memcpy(l->data + atomic_load(&l->head) % ring, &h, sizeof h);
			atomic_fetch_add(&l->head,
					 *(int *)which == 4 ? 2 * (uint64_t)ring : sizeof h);
			yk_wakeup_ring(atomic_load(&g->rendezvous->wakeup[0]));
		}
		yoke_tensor *a = yoke_all_reduce(g, YOKE_REDUCE_SUM, yoke_from(yoke_f32, 1, &n, x));
		err = a ? yoke_read(a, y, sizeof y) : yoke_error_code();
	}
	err = keep(g, err);
	yoke_scope_end(s);
	return err;
}

static void expect(int which, int (*fn)(yoke_group *, void *), int code, const char *words,
		   const char *what)
{
	memset(codes, 0, sizeof codes);
	yoke_error_clear();
	int err = yoke_group_run(3, NULL, fn, &which);
	bool good = err < 0 && codes[0] == code && codes[2] == code && strstr(said[0], words) &&
		    !strcmp(said[0], said[2]);
	if (!good)
		diag("run %s; rank 0 %s: %s; rank 2 %s: %s", yoke_error_name(err),
		     yoke_error_name(codes[0]), said[0], yoke_error_name(codes[2]), said[2]);
	ok(good, "%s: %s on all ranks", what, yoke_error_name(code));
	yoke_error_clear();
}

static int nothing(yoke_group *g, void *unused)
{
	(void)unused;
	return yoke_group_size(g);
}

// One of several processes, selected by its argument.
// Calls the library in all ways, for faults of single calls.
static int all_once(yoke_group *g, void *unused)
{
	const int64_t n = 8;
	(void)unused;
	yoke_scope *s = yoke_scope_begin("once");
	yoke_tensor *x = yoke_full(yoke_f32, 1, &n, 1), *y = yoke_all_reduce(g, YOKE_REDUCE_SUM, x);
	y = yoke_add(y, yoke_broadcast(g, 1, yoke_reduce(g, YOKE_REDUCE_SUM, 0, x)));
	y = yoke_add(y, yoke_all_gather(g, yoke_reduce_scatter(g, YOKE_REDUCE_SUM, x)));
	float got[8] = { 0 };
	int err = y ? yoke_read(y, got, sizeof got) : yoke_error_code();
	yoke_scope_end(s);
	// all_reduce 2, of the reduced 0 on rank 1, the gathered 2
	return err ? err : got[0] == 4 && got[7] == 4 ? 0 : complain("%g, not 4", (double)got[0]);
}

// One plan again and again, with new numbers in the same memory: device graphs must not contain
// collectives.
static int again(yoke_group *g, void *unused)
{
	const int64_t n = 28;
	float in[28], out[28];
	int err = 0;
	(void)unused;
	for (int round = 0; round < 8 && !err; round++) {
		for (int i = 0; i < n; i++)
			in[i] = (float)(100 * round + i);
		yoke_scope *s = yoke_scope_begin("again");
		err = yoke_read(yoke_all_reduce(g, YOKE_REDUCE_SUM, yoke_from(yoke_f32, 1, &n, in)),
				out, sizeof out);
		for (int i = 0; i < n && !err && !bad; i++)
			if (out[i] != (float)yoke_group_size(g) * in[i])
				complain("round %d, element %d: %g, not %g", round, i,
					 (double)out[i], (double)yoke_group_size(g) * in[i]);
		const int end = yoke_scope_end(s);
		err = err ? err : end;
	}
	return err;
}

static int on_devices(const char *how)
{
	bad = 0;
	if (!strcmp(how, "once")) {
		const int err = yoke_group_run(2, NULL, all_once, NULL);
		printf("%s: %s\n", yoke_error_name(err), err ? yoke_error() : "done");
		// no rank may wait until the timeout for a rank that failed
		return err && strstr(yoke_error(), "(dist.timeout)");
	}
	int err = yoke_group_run(3, NULL, is_native, NULL);
	ok(!err && !bad, "ranks use the vendor's library %s%s", bad ? wrong : "",
	   err && !bad ? yoke_error() : "");
	collectives();
	bad = 0;
	err = yoke_group_run(7, NULL, splits, NULL);
	ok(!err && !bad, "splits%s%s %s", err ? ": " : "", err ? yoke_error() : "",
	   bad ? wrong : "");
	bad = 0;
	err = yoke_group_run(2, NULL, again, NULL);
	ok(!err && !bad, "a plan launched again and again%s%s %s", err ? ": " : "",
	   err ? yoke_error() : "", bad ? wrong : "");
	in_any_order = 1e-5;
	yoke_setting_set("dist.order", "fast");
	collectives();
	yoke_setting_set("dist.order", "fixed");
	in_any_order = 0;
	for (int n = 2; n <= 4; n += 2) {
		err = spawn(n, "cases");
		ok(!err, "%d processes%s%s", n, err ? ": " : "", err ? yoke_error() : "");
	}
	err = spawn(3, "killed");
	ok(err == YOKE_ERANK && strstr(yoke_error(), "was ended by signal 9"),
	   "a rank is killed: %s", yoke_error());
	err = spawn(3, "midway");
	ok(err == YOKE_ERANK && strstr(yoke_error(), "was ended by signal 9"),
	   "a rank is killed during its work: %s", yoke_error());
	err = spawn(3, "disagree");
	ok(err == YOKE_ERANK, "processes that disagree: %s", yoke_error());
	return done();
}

static void end_now(int signal)
{
	(void)signal;
	raise(SIGKILL);
}

// Sums without end, from which one rank is killed. 0: the other rank gets its name.
static int midway(yoke_group *g, bool dies)
{
	const int64_t n = 20000;
	const struct itimerval soon = {
		.it_value = { 0, 300000 + (int)(tap_seed_value() % 100) * 1000 }
	};
	float got;
	int err = 0;
	if (dies) {
		signal(SIGALRM, end_now);
		setitimer(ITIMER_REAL, &soon, NULL);
	}
	for (int k = 0; k < 1000000 && !err; k++) {
		yoke_scope *s = yoke_scope_begin("midway");
		yoke_tensor *x = yoke_full(yoke_f32, 1, &n, 1),
			    *y = yoke_all_reduce(g, YOKE_REDUCE_SUM, x);
		err = y ? yoke_read(yoke_slice(y, 0, 0, 1, 1), &got, sizeof got) :
			  yoke_error_code();
		yoke_scope_end(s);
	}
	if (err == YOKE_ERANK && strstr(yoke_error(), "was ended by signal 9"))
		return 0;
	fprintf(stderr, "# %s\n", yoke_error());
	return 7;
}

// The work of a process; on devices it uses its own device.
static int as_rank(yoke_group *g, void *what);

static int child(const char *what)
{
	if (!strcmp(what, "devices") || !strcmp(what, "once"))
		return on_devices(what);
	if (!strcmp(what, "parent"))
		return spawn(2, "sleep") < 0;
	if (strcmp(getenv("YOKE_BACKEND"), "cpu"))
		return yk_process_run(NULL, as_rank, (void *)(uintptr_t)what);
	return as_rank(yoke_group_world(), (void *)(uintptr_t)what);
}

static int as_rank(yoke_group *g, void *arg)
{
	const char *what = arg;
	if (!strcmp(what, "cases"))
		return among_processes(g);
	int which = 0;
	if (!g || yoke_group_barrier(g)) {
		diag("%s: %s", what, yoke_error());
		return 1;
	}
	const bool odd = yoke_group_rank(g) == 1;
	if (!strcmp(what, "sleep")) {
		printf("%d\n", (int)getpid());
		fflush(stdout);
		nap(600000000);
	}
	if (!strcmp(what, "disagree"))
		return disagree(g, &which) == YOKE_EMISMATCH ? 5 : 0;
	if (!strcmp(what, "midway"))
		return midway(g, odd);
	if (odd && !strcmp(what, "killed"))
		raise(SIGKILL);
	if (odd)
		exit(3);
	// the other ranks get its name
	const int err = yoke_group_barrier(g);
	const char *why =
		strcmp(what, "killed") ? "ended with exit status 3" : "was ended by signal 9";
	if (err == YOKE_ERANK && strstr(yoke_error(), why))
		return 0;
	fprintf(stderr, "# %s\n", yoke_error());
	return 7;
}

int main(int argc, char **argv)
{
	static double grad[LIMIT][2];
	static float last[LIMIT][16];
	self = argv[0];
	tap_state = tap_seed_value();
	if (argc < 2)
		tap_seed();
	setenv("YOKE_BACKEND", "cpu", 0);
	// longer than a rank waits for a processor on a loaded machine
	setenv("YOKE_DIST_TIMEOUT", "60", 1);
	setenv("YOKE_DIST_WARN", "1", 1);
	setenv("YOKE_LOG", "plan", 1);
	yk_log_to(quiet, NULL);
	if (argc > 1)
		return child(argv[1]);
	int err = yoke_group_run(2, NULL, nothing, NULL);
	ok(err == YOKE_ENODEV && strstr(yoke_error(), "2 ranks, but 1 device"),
	   "more ranks than devices: %s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("dist.share", "1");
	yoke_setting_set("dist.algorithm", "rign");
	const bool none = !yoke_group_world();
	ok(none && strstr(yoke_error(), "did you mean 'ring'"), "an unknown algorithm: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_setting_set("dist.algorithm", "");
	yoke_group *alone = yoke_group_world();
	ok(alone && yoke_group_size(alone) == 1 && !yoke_group_rank(alone) &&
		   !yoke_group_barrier(alone),
	   "a single process is a world of one rank");
	collectives();
	by_messages();
	slow_link();
	processes();
	gradients();
	err = yoke_group_run(3, NULL, halves, grad);
	const double y = 1.25 * (1 + 2 + 3);
	bool good = !err;
	for (int r = 0; r < 3; r++)
		good &= fabs(grad[r][0] - 2 * y * 1.25) < 1e-12 &&
			fabs(grad[r][1] - 2 * y * 6) < 1e-12;
	ok(good, "tensor_in and tensor_out: one loss of all ranks%s%s", err ? ": " : "",
	   err ? yoke_error() : "");
	from_cotangents();
	if (!tap_eager()) {
		beside();
		if (!getenv("YOKE_CHECK")) // then nothing is
			in_place();
	}
	static _Atomic int times[3][20];
	int twice = 0, left = 0, once = 1;
	bad = 0;
	err = yoke_group_run(6, NULL, samples, times);
	for (int i = 0; i < 20; i++) {
		twice += times[YOKE_SAMPLER_PAD][i] == 2;
		left += !times[YOKE_SAMPLER_DROP][i];
		once &= times[YOKE_SAMPLER_EXACT][i] == 1 && times[YOKE_SAMPLER_PAD][i] > 0 &&
			times[YOKE_SAMPLER_DROP][i] < 2;
	}
	ok(!err && !bad && once && twice == 4 && left == 2,
	   "samplers: each sample once; %d twice; %d dropped %s", twice, left, wrong);
	bad = 0;
	err = yoke_group_run(7, NULL, splits, NULL);
	ok(!err && !bad, "splits%s%s %s", err ? ": " : "", err ? yoke_error() : "",
	   bad ? wrong : "");
	bad = 0;
	err = yoke_group_run(4, NULL, steps, last);
	good = !err && !bad;
	for (int r = 1; r < 4; r++)
		good &= !memcmp(last[0], last[r], sizeof *last);
	ok(good, "4 ranks run equal steps, by one plan%s%s %s", err ? ": " : "",
	   err ? yoke_error() : "", bad ? wrong : "");
	yoke_error_clear();
	expect(0, disagree, YOKE_EMISMATCH, "rank 1", "another count");
	ok(strstr(said[0], "all_reduce sum f32 [6]") && strstr(said[0], "all_reduce sum f32 [7]"),
	   "the error describes two ranks' operations: %s",
	   said[0]);
	expect(1, disagree, YOKE_EMISMATCH, "all_reduce sum f64 [6]", "another dtype");
	expect(2, disagree, YOKE_EMISMATCH, "broadcast f32 [6] root 0", "another operation");
	yoke_setting_set("dist.algorithm", "pairwise");
	const char *const field[] = { "length", "rank", "group", "sequence" };
	for (int i = 0; i < 4; i++)
		expect(i, forges, YOKE_ERANK,
		       "got a message that rank 1 cannot have sent in all_reduce", field[i]);
	expect(4, forges, YOKE_ERANK, "the link from rank 1 is damaged", "more than a link holds");
	yoke_setting_set("dist.algorithm", "");
	expect(1, leaves, YOKE_ERANK, "rank 1 of world failed", "a rank that fails");
	expect(0, splits_too_late, YOKE_ERANK, "rank 1 of world failed",
	       "a rank that fails before a split");
	*warned = '\0';
	yoke_setting_set("dist.timeout", "10"); // the warning comes 9 s before
	expect(2, leaves, YOKE_ERANK, "within 10 s (dist.timeout): rank 1",
	       "a rank that does not come");
	yoke_setting_set("dist.timeout", "60");
	ok(strstr(warned, "waits in barrier, operation 2 of world: rank 1 (thread") &&
		   strstr(warned, "after barrier"),
	   "the late rank is named in a warning before: %s", warned);
	int how = 1;
	err = yoke_group_run(3, NULL, leaves, &how);
	ok(err == YOKE_ENOMEM && strstr(yoke_error(), "YOKE_ENOMEM") &&
		   strstr(said[0], "YOKE_ENOMEM"),
	   "a rank that fails without a message is reported by its code's name: %s", yoke_error());
	yoke_error_clear();
	how = 0;
	memset(codes, 0, sizeof codes);
	err = yoke_group_run(3, NULL, leaves, &how);
	ok(codes[0] == YOKE_ERANK && strstr(said[0], "rank 1 has left world"),
	   "a rank that ends early: %s", said[0]);
	return done();
}
