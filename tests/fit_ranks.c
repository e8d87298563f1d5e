// SPDX-License-Identifier: Apache-2.0
// Tests yoke_fit on several ranks: threads, processes started by yoke_group_spawn or by a
// launcher, and mpirun where it is installed. Results have the bits of one rank with as many
// batches per step, with and without sharded states, also when a run resumes with another number
// of ranks. All ranks end together; a failing rank ends all; only one run at a time uses a
// directory.
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "yoke-dist.h"
#include "yoke-fit.h"

enum { ROWS = 8, IN = 3, WIDE = 16, PARTS = 24, LIMIT = 512 };

static float data_x[PARTS][ROWS][IN], data_y[PARTS][ROWS];

// A run and the result of each rank.
struct run {
	int ranks, accumulate, zero, steps;
	const char *out, *precision;
	int resume, over_at, ends_at, fails_at, raises_at; // numbers of batches or steps; 0: never
	float weight[LIMIT];
	double loss[64];
	int64_t asked; // batches
	int code[4], end_code;
	int64_t step[4];
	bool again; // log tries to start a second run in the same directory
	int busy;
};

struct rank {
	struct run *run;
	int number;
	int64_t asked;
};

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	struct rank *r = arg;
	(void)max;
	if (part != r->asked++)
		return YOKE_ERANGE; // not in order
	if (r->run->over_at && part >= r->run->over_at)
		return 0;
	if (r->run->fails_at && part >= r->run->fails_at && r->number == 1)
		return YOKE_EIO;
	in[0] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, IN }, data_x[part % PARTS]);
	in[1] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, 1 }, data_y[part % PARTS]);
	return 2;
}

static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg;
	return n == 2 ? yoke_mse(yoke_call(net, in[0]), in[1]) : NULL;
}

static yoke_module *network(void)
{
	yoke_random_set(3, 0);
	return yoke_nn_sequential(
		4, (yoke_module *[]){ yoke_nn_linear(IN, WIDE, 1), yoke_nn_activation("gelu"),
				      yoke_nn_dropout(0.2), yoke_nn_linear(WIDE, 1, 1) });
}

static int note(void *arg, const struct yoke_fit_step *s);

static struct yoke_fit fit_of(struct rank *r, yoke_module *net, yoke_optim *o)
{
	const struct run *x = r->run;
	return (struct yoke_fit){ .size = sizeof(struct yoke_fit),
				  .net = net,
				  .optim = o,
				  .steps = x->steps,
				  .next = next,
				  .accumulate = x->accumulate,
				  .loss = loss,
				  .log = note,
				  .arg = r,
				  .log_every = 1,
				  .seed = 5,
				  .out = x->out,
				  .resume = x->resume,
				  .precision = x->precision,
				  .allow_emulated = 1,
				  .ranks = x->ranks,
				  .zero = x->zero };
}

static int note(void *arg, const struct yoke_fit_step *s)
{
	struct rank *r = arg;
	if (s->step < 64 && r->number == 0)
		r->run->loss[s->step] = s->loss;
	if (r->run->raises_at && s->step == r->run->raises_at && r->number == 0)
		kill(getpid(), SIGTERM);
	if (r->run->again && s->step == 2 && r->number == 0) {
		struct run other = { .ranks = 1, .accumulate = 1, .steps = 1, .out = r->run->out };
		struct rank alone = { .run = &other };
		yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
		yoke_module *net = network();
		yoke_optim *o = yoke_optim_new("sgd", NULL);
		struct yoke_fit f = fit_of(&alone, net, o);
		r->run->busy = yoke_fit(&f, NULL);
		yoke_error_clear();
		yoke_optim_free(o);
		yoke_module_free(net);
		yoke_use(was);
		yoke_context_free(ctx);
	}
	return r->run->ends_at && s->step == r->run->ends_at;
}

static int gather(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	float **to = arg;
	(void)path, (void)flags;
	const int err = yoke_read(t, *to, yoke_bytes(t));
	*to += yoke_count(t);
	return err;
}

static int rank_main(yoke_group *world, void *arg)
{
	struct run *x = arg;
	struct rank r = { .run = x, .number = yoke_group_rank(world) };
	struct yoke_fit_end end = { .size = sizeof end };
	yoke_module *net = network();
	yoke_optim *o =
		yoke_optim_new("adamw", "lr=1e-2 clip=0.5 schedule=cosine steps=12 warmup=3");
	struct yoke_fit f = fit_of(&r, net, o);
	if (x->resume) // batches continue after those already trained on
		r.asked = x->asked;
	f.signals = x->raises_at != 0;
	if (r.number > 0) { // all begin with rank 0's parameters
		float other = 7;
		yoke_put(yoke_module_find(net, "3.bias"), &other, sizeof other);
	}
	const int err = yoke_fit(&f, &end);
	float *to = x->weight;
	if (r.number == 0 && !err)
		yoke_module_each(net, gather, &to);
	x->code[r.number] = err;
	x->step[r.number] = end.step;
	yoke_optim_free(o);
	yoke_module_free(net);
	return err;
}

static int threads(struct run *x)
{
	return x->end_code = yoke_group_run(x->ranks, NULL, rank_main, x);
}

// ---- the bits of one ----

static bool same(const struct run *a, const struct run *b, int first, int last)
{
	bool good = !memcmp(a->weight, b->weight, sizeof a->weight) && a->weight[0] != 0;
	for (int t = first; t <= last; t++)
		good = good && a->loss[t] == b->loss[t] && a->loss[t] > 0;
	return good;
}

static void test_bits(const char *precision, int ranks, int accumulate)
{
	static struct run one, many;
	one = (struct run){
		.ranks = 1, .accumulate = ranks * accumulate, .steps = 6, .precision = precision
	};
	threads(&one);
	for (int zero = 0; zero < 3; zero++) {
		many = (struct run){ .ranks = ranks,
				     .accumulate = accumulate,
				     .zero = zero,
				     .steps = 6,
				     .precision = precision };
		threads(&many);
		ok(!one.end_code && !many.end_code && same(&one, &many, 1, 6),
		   "%s: %d ranks of %d batches with zero=%d have the bits of one with %d: %s",
		   precision, ranks, accumulate, zero, ranks * accumulate, yoke_error());
		yoke_error_clear();
	}
}

static void test_resumed(void)
{
	static struct run whole, parts;
	whole = (struct run){ .ranks = 1, .accumulate = 4, .steps = 9, .precision = "fp16-mixed" };
	threads(&whole);
	parts = (struct run){ .ranks = 2,
			      .accumulate = 2,
			      .zero = 1,
			      .steps = 3,
			      .precision = "fp16-mixed",
			      .out = "resumed" };
	int err = threads(&parts);
	parts.ranks = 4, parts.accumulate = 1, parts.zero = 2, parts.steps = 6, parts.resume = 1,
	parts.asked = 12;
	err = err ? err : threads(&parts);
	parts.ranks = 1, parts.accumulate = 4, parts.zero = 0, parts.steps = 9, parts.asked = 24;
	err = err ? err : threads(&parts);
	ok(!err && same(&whole, &parts, 1, 9),
	   "a run of 2, then 4 ranks, then one has the bits of one: %s", yoke_error());
	yoke_error_clear();
}

// ---- ends ----

static void test_ends(void)
{
	static struct run x, y;
	x = (struct run){ .ranks = 2, .accumulate = 2, .over_at = 14, .out = "over" };
	threads(&x);
	y = (struct run){ .ranks = 1, .accumulate = 4, .steps = 3 };
	threads(&y);
	ok(!x.end_code && x.step[0] == 3 && x.step[1] == 3 && same(&x, &y, 1, 3) &&
		   !access("over/manifest.json", F_OK),
	   "data that ends within a step ends all ranks after the step before: %lld and %lld, %s",
	   (long long)x.step[0], (long long)x.step[1], yoke_error());
	yoke_error_clear();
	for (int zero = 0; zero < 3; zero += 2) {
		x = (struct run){ .ranks = 2, .accumulate = 2, .zero = zero, .over_at = 15 };
		threads(&x);
		ok(!x.end_code && x.step[0] == 3 && x.step[1] == 3,
		   "zero=%d: the same between micro-batches: %lld and %lld, %s",
		   zero, (long long)x.step[0], (long long)x.step[1], yoke_error());
		yoke_error_clear();
	}
	x = (struct run){
		.ranks = 2, .accumulate = 1, .steps = 1000000, .ends_at = 4, .out = "log"
	};
	threads(&x);
	ok(!x.end_code && x.step[0] == x.step[1] && x.step[0] >= 4 && x.step[0] <= 6 &&
		   !access("log/manifest.json", F_OK),
	   "the log callback ends all ranks after one step: %lld and %lld", (long long)x.step[0],
	   (long long)x.step[1]);
	x = (struct run){
		.ranks = 2, .accumulate = 1, .steps = 1000000, .raises_at = 4, .out = "signal"
	};
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &old); // also in the thread that waits for the ranks
	threads(&x);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ok(!x.end_code && x.step[0] == x.step[1] && x.step[0] >= 4 &&
		   !access("signal/manifest.json", F_OK),
	   "a signal ends all ranks after one step: %lld and %lld", (long long)x.step[0],
	   (long long)x.step[1]);
	x = (struct run){ .ranks = 2, .accumulate = 1, .steps = 100, .fails_at = 6 };
	threads(&x);
	ok(x.code[1] == YOKE_EIO && x.code[0] == YOKE_ERANK && x.end_code == YOKE_EIO,
	   "a rank without data ends all: %s", yoke_error());
	yoke_error_clear();
}

static void test_folder(void)
{
	static struct run x;
	x = (struct run){ .ranks = 1, .accumulate = 1, .steps = 3, .out = "busy", .again = true };
	threads(&x);
	ok(!x.end_code && x.step[0] == 3 && x.busy == YOKE_EBUSY,
	   "a second run in the same directory is refused: %d", x.busy);
	x = (struct run){
		.ranks = 1, .accumulate = 1, .steps = 4, .out = "busy", .resume = 1, .asked = 3
	};
	threads(&x);
	ok(!x.end_code && x.step[0] == 4, "the directory is free afterwards: %s", yoke_error());
	yoke_error_clear();
}

// ---- refused ----

static int wrong_count(yoke_group *world, void *arg)
{
	struct run *x = arg;
	struct rank r = { .run = x, .number = yoke_group_rank(world) };
	yoke_module *net = network();
	yoke_optim *o = yoke_optim_new("sgd", NULL);
	struct yoke_fit f = fit_of(&r, net, o);
	f.ranks = 3;
	x->code[r.number] = yoke_fit(&f, NULL);
	yoke_error_clear();
	yoke_optim_free(o);
	yoke_module_free(net);
	return 0;
}

static void test_refused(void)
{
	static struct run x;
	x = (struct run){ .ranks = 2, .accumulate = 1, .steps = 1 };
	yoke_group_run(2, NULL, wrong_count, &x);
	ok(x.code[0] == YOKE_EINVAL && x.code[1] == YOKE_EINVAL,
	   "ranks=3 with two ranks: %d and %d", x.code[0], x.code[1]);
	yoke_error_clear();
	x = (struct run){ .ranks = 1, .accumulate = 1, .steps = 1, .zero = 3 };
	threads(&x);
	ok(x.end_code == YOKE_EINVAL, "zero=3: %s", yoke_error());
	yoke_error_clear();
}

// ---- processes ----

// This program as a rank: trains a run of two ranks, of which rank 0 writes the parameters and
// losses.
static int child(const char *out, const char *to)
{
	static struct run x;
	x = (struct run){ .accumulate = 2, .zero = 1, .steps = 6, .precision = "fp32", .out = out };
	yoke_group *world = yoke_group_world();
	const int err = world ? rank_main(world, &x) : yoke_error_code();
	if (err)
		fprintf(stderr, "%s\n", yoke_error());
	FILE *f = err || yoke_group_rank(world) ? NULL : fopen(to, "wb");
	if (f) {
		fwrite(&x, sizeof x, 1, f);
		fclose(f);
	}
	return err ? 1 : 0;
}

static bool result(const char *path, struct run *to)
{
	FILE *f = fopen(path, "rb");
	const bool good = f && fread(to, sizeof *to, 1, f) == 1;
	if (f)
		fclose(f);
	return good;
}

static void test_spawned(const char *self, const struct run *one)
{
	static struct run x;
	char *const argv[] = { (char *)(uintptr_t)self, "child", "spawned", "spawned.run", NULL };
	const int err = yoke_group_spawn(2, argv);
	ok(!err && result("spawned.run", &x) && same(one, &x, 1, 6) &&
		   !access("spawned/manifest.json", F_OK),
	   "processes of yoke_group_spawn have the bits of one: %s", yoke_error());
	yoke_error_clear();
}

// The environment that torchrun sets.
static void test_torchrun(const char *self, const struct run *one)
{
	static struct run x;
	pid_t pid[2];
	int status[2] = { -1, -1 };
	fflush(stdout);
	for (int r = 0; r < 2; r++)
		if ((pid[r] = fork()) == 0) {
			const char number[] = { (char)('0' + r), '\0' };
			setenv("RANK", number, 1);
			setenv("LOCAL_RANK", number, 1);
			setenv("WORLD_SIZE", "2", 1);
			setenv("LOCAL_WORLD_SIZE", "2", 1);
			setenv("MASTER_ADDR", "localhost", 1);
			setenv("MASTER_PORT", "1", 1);
			execl(self, self, "child", "torchrun", "torchrun.run", (char *)NULL);
			_exit(127);
		}
	for (int r = 0; r < 2; r++)
		waitpid(pid[r], &status[r], 0);
	ok(!status[0] && !status[1] && result("torchrun.run", &x) && same(one, &x, 1, 6),
	   "two processes as torchrun starts them train one network: %d and %d", status[0],
	   status[1]);
}

static void test_mpirun(const char *self, const struct run *one)
{
	static struct run x;
	char line[4400];
	if (system("command -v mpirun >/dev/null 2>&1") != 0) {
		skip("mpirun", "it is not installed");
		return;
	}
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
	if (system("mpirun -n 2 true >mpirun.out 2>&1") != 0) {
		skip("mpirun", "it starts no two processes here");
		return;
	}
	snprintf(line, sizeof line, "mpirun -n 2 '%s' child mpirun mpirun.run >mpirun.out 2>&1",
		 self);
	const int status = system(line);
	ok(!status && result("mpirun.run", &x) && same(one, &x, 1, 6) &&
		   !access("mpirun/manifest.json", F_OK),
	   "mpirun -n 2 trains one network: status %d", status);
}

int main(int argc, char **argv)
{
	static struct run one;
	char self[4096] = "";
	setenv("YOKE_BACKEND", "cpu", 1);
	setenv("YOKE_THREADS", "1", 1);
	for (int i = 0; i < PARTS; i++)
		for (int r = 0; r < ROWS; r++) {
			for (int c = 0; c < IN; c++)
				data_x[i][r][c] = (float)sin(i * 31 + r * 7 + c * 3);
			data_y[i][r] = data_x[i][r][0] * data_x[i][r][1] - 0.3f;
		}
	if (argc == 4 && !strcmp(argv[1], "child"))
		return child(argv[2], argv[3]);
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		return 99;
	tap_folder();
	one = (struct run){ .ranks = 1, .accumulate = 4, .steps = 6, .precision = "fp32" };
	yoke_setting_set("cpu.devices", "4");
	yoke_setting_set("dist.share", "1");
	threads(&one);
	test_bits("fp32", 2, 2);
	test_bits("fp16-mixed", 2, 1);
	test_bits("fp32", 3, 1);
	test_resumed();
	test_ends();
	test_folder();
	test_refused();
	test_spawned(self, &one);
	test_torchrun(self, &one);
	test_mpirun(self, &one);
	return done();
}
