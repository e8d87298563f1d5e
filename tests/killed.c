// SPDX-License-Identifier: Apache-2.0
// Tests training loops of an application that are killed in any step of two epochs and resumed
// from their last checkpoint: losses, weights and data position equal those of an undisturbed run
// bit for bit, for each kind of source, with other thread counts, prefetched batches, and two
// kills within an epoch.
#include "config.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tap.h"
#include "yoke-data.h"

#ifdef HAVE_PNG
#include <png.h>
#endif

// the last step reaches into the third epoch
enum { SAMPLES = 23, BATCH = 4, STEPS = 12, LIMIT = 512 };

// All that a run is, written behind each step.
struct state {
	struct yoke_position at;
	int64_t step;
	float loss[STEPS], weight[LIMIT];
};

static const struct source {
	const char *name, *path, *settings, *loader;
} sources[] = {
	{ "tokens", "tokens.u16", "format=u16 context=8", "" },
	{ "shards", "a.npy,b.npy,c.npy", NULL, "shuffle=5" },
	{ "CSV", "table.csv", "columns=x,y,z", "" },
#ifdef HAVE_PNG
	{ "images", "pictures", "size=6 crop=random flip=1 std=255", "on_error=skip" },
#endif
};
enum { KINDS = sizeof sources / sizeof *sources };

// ---- the run ----

// A step of steepest descent on the mean of (w x - 1)^2, x being all fields of a sample in a row.
static int step(yoke_loader *l, yoke_tensor *w, int fields, float *loss)
{
	yoke_tensor *batch[8], *flat[8], *g = NULL;
	yoke_scope *s = yoke_scope_begin("step");
	if (yoke_loader_next(l, fields, batch, NULL) != BATCH)
		return yoke_scope_end(s) | 1;
	for (int f = 0; f < fields; f++) {
		const int64_t each =
			(int64_t)(yoke_bytes(batch[f]) / yoke_dtype_size(yoke_dtype(batch[f]))) /
			BATCH;
		flat[f] =
			yoke_reshape(yoke_cast(batch[f], yoke_f32), 2, (int64_t[]){ BATCH, each });
	}
	yoke_tensor *x = fields > 1 ? yoke_concat(fields, flat, 1) : flat[0];
	yoke_tensor *off = yoke_sub(yoke_matmul(x, w, 0), yoke_const(1)),
		    *mean = yoke_mean(yoke_square(off), 3);
	yoke_grad(mean, 1, &w, &g);
	yoke_assign(w, yoke_sub(w, yoke_mul(g, yoke_const(1e-3))));
	yoke_read(mean, loss, sizeof *loss);
	return yoke_scope_end(s);
}

static int64_t width_of(const yoke_dataset *d, int *fields)
{
	struct yoke_field f[8] = { { .size = sizeof f[0] } };
	int64_t width = 0;
	*fields = yoke_dataset_fields(d, 8, f);
	for (int k = 0; k < *fields; k++) {
		int64_t n = 1;
		for (int i = 0; i < f[k].rank; i++)
			n *= f[k].dims[i];
		width += n;
	}
	return width;
}

// Goes on from FILE, if it is there, to the end; in step `at`, from 1 on, it is killed before it
// has saved that, or behind.
static int train(const struct source *x, const char *file, int64_t at, int signal, bool behind,
		 int workers, int prefetch)
{
	static struct state s;
	char settings[160], *old;
	int fields;
	size_t n;
	s = (struct state){ .at.size = sizeof s.at };
	if (access(file, F_OK) == 0 && yk_file_read(file, sizeof s, &old, &n) == 0 &&
	    n == sizeof s) {
		memcpy(&s, old, n);
		free(old);
	}
	yoke_dataset *d = yoke_dataset_open(x->path, x->settings);
	snprintf(settings, sizeof settings, "batch=%d seed=5 workers=%d prefetch=%d %s", BATCH,
		 workers, prefetch, x->loader);
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	const int64_t width = d ? width_of(d, &fields) : 0, dims[] = { width, 1 };
	if (!l || width > LIMIT || yoke_dataset_count(d) != SAMPLES ||
	    yoke_loader_seek(l, &s.at) < 0)
		return 1;
	yoke_tensor *w = yoke_keep(yoke_variable("w", yoke_f32, 2, dims));
	int e = yoke_put(w, s.weight, (size_t)width * sizeof(float));
	while (s.step < STEPS && e == 0) {
		e = step(l, w, fields, &s.loss[s.step]);
		s.step++;
		if (e == 0 && s.step == at && !behind)
			raise(signal);
		yoke_loader_position(l, &s.at);
		e |= yoke_read(w, s.weight, (size_t)width * sizeof(float)) |
		     yk_file_write(file, &s, sizeof s);
		if (e == 0 && s.step == at)
			raise(signal);
	}
	if (e)
		fprintf(stderr, "# %s: step %lld: %s\n", x->name, (long long)s.step, yoke_error());
	yoke_loader_free(l);
	yoke_dataset_free(d);
	return e != 0;
}

// The same in a process of its own; false: it ended as it should not.
static bool child(const struct source *x, const char *file, int64_t at, int signal, bool behind,
		  int workers, int prefetch)
{
	int status = 0;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		const int e = train(x, file, at, signal, behind, workers, prefetch);
		fflush(NULL);
		_exit(e);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	return at ? WIFSIGNALED(status) && WTERMSIG(status) == signal :
		    WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool same(const char *file, const struct state *want)
{
	char *got = NULL;
	size_t n = 0;
	const bool good = yk_file_read(file, sizeof *want, &got, &n) == 0 && n == sizeof *want &&
			  !memcmp(got, want, n);
	free(got);
	return good;
}

// ---- sources ----

static void write_npy(const char *path, int rows)
{
	char all[128 + 4 * 8 * SAMPLES];
	memset(all, ' ', 128);
	memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
	const int n =
		snprintf(all + 10, 118,
			 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 8), }", rows);
	all[10 + n] = ' ';
	all[127] = '\n';
	for (int i = 0; i < 8 * rows; i++) {
		const float v = (float)rnd_real(-1, 1);
		memcpy(all + 128 + 4 * i, &v, 4);
	}
	yk_file_write(path, all, 128 + 32 * (size_t)rows);
}

#ifdef HAVE_PNG
// One of them is no image.
static void write_pictures(void)
{
	if (mkdir("pictures", 0700) || mkdir("pictures/a", 0700) || mkdir("pictures/b", 0700))
		abort();
	for (int i = 0; i < SAMPLES; i++) {
		unsigned char rgb[3 * 9 * 12];
		char path[40];
		png_image p = { .version = PNG_IMAGE_VERSION,
				.width = (png_uint_32)rnd_int(6, 12),
				.height = 9,
				.format = PNG_FORMAT_RGB };
		for (size_t k = 0; k < sizeof rgb; k++)
			rgb[k] = (unsigned char)rnd();
		snprintf(path, sizeof path, "pictures/%c/%d.png", i % 3 ? 'a' : 'b', i);
		if (i == 7)
			yk_file_write(path, "none", 4);
		else if (!png_image_write_to_file(&p, path, 0, rgb, 0, NULL))
			abort();
	}
}
#endif

static void write_sources(void)
{
	uint16_t token[8 * SAMPLES + 1];
	char table[64 * (SAMPLES + 1)];
	size_t n = (size_t)snprintf(table, sizeof table, "x,y,z\n");
	for (int i = 0; i <= 8 * SAMPLES; i++)
		token[i] = (uint16_t)rnd_int(0, 3);
	for (int i = 0; i < SAMPLES; i++)
		n += (size_t)snprintf(table + n, sizeof table - n, "%.6f,%.3f,%d\n",
				      rnd_real(-1, 1), rnd_real(-2, 2), (int)rnd_int(-3, 3));
	yk_file_write("tokens.u16", token, sizeof token);
	yk_file_write("table.csv", table, n);
	write_npy("a.npy", 10);
	write_npy("b.npy", 1);
	write_npy("c.npy", SAMPLES - 11);
#ifdef HAVE_PNG
	write_pictures();
#endif
}

// Killed in step k, then in another one of the same epoch, then let to its end.
static bool one_case(const struct source *x, int64_t k, int signal, const struct state *want)
{
	const int64_t again = k + 1 + rnd_int(0, 2) < STEPS ? k + 1 + rnd_int(0, 1) : STEPS;
	const int workers[] = { 0, 4, (int)rnd_int(0, 3) },
		  ahead[] = { (int)rnd_int(0, 4), (int)rnd_int(0, 4), 2 };
	const bool behind = rnd_int(0, 1);
	bool good = unlink("killed") == 0 || errno == ENOENT;
	good = good && child(x, "killed", k, signal, behind, workers[0], ahead[0]);
	if (k < STEPS)
		good = good && child(x, "killed", again, signal, !behind, workers[1], ahead[1]);
	good = good && child(x, "killed", 0, 0, false, workers[2], ahead[2]) &&
	       same("killed", want);
	if (!good)
		diag("%s: killed in step %lld and %lld by %d, %s it was saved", x->name,
		     (long long)k, (long long)again, signal, behind ? "behind where" : "before");
	return good;
}

int main(void)
{
	struct state want;
	tap_seed();
	setenv("YOKE_BACKEND", "cpu", 1);
	setenv("YOKE_THREADS", "1", 1);
	setenv("YOKE_LOG", "error", 1);
	tap_folder();
	write_sources();
	for (int i = 0; i < KINDS; i++) {
		const struct source *x = &sources[i];
		const int kills[] = { SIGKILL, SIGTERM };
		int n = 0, bad = 0;
		char *text = NULL;
		size_t bytes;
		unlink("whole");
		bool good = child(x, "whole", 0, 0, false, 1, 2) &&
			    yk_file_read("whole", sizeof want, &text, &bytes) == 0;
		memcpy(&want, good ? text : (char *)&want, sizeof want);
		free(text);
		good = good && want.step == STEPS && want.at.epoch == 2;
		// batches are too few and too unlike for the last loss to be the least: what counts
		// is that each step moved it
		for (int k = 1; k < STEPS; k++)
			good = good && isfinite(want.loss[k]) && want.loss[k] != want.loss[k - 1];
		ok(good, "%s: %d steps, loss %g to %g", x->name, STEPS, (double)want.loss[0],
		   (double)want.loss[STEPS - 1]);
		for (int64_t k = 1; k <= STEPS; k++)
			for (int how = 0; how < 2; how++) {
				if (!tap_long() &&
				    (k * 2 + how) % 4 !=
					    (int64_t)(tap_seed_value() + (unsigned)i) % 4)
					continue;
				n++;
				bad += !one_case(x, k, kills[how], &want);
			}
		ok(n > 0 && !bad, "%s: killed twice in %d runs: %d differ from the undisturbed run",
		   x->name, n, bad);
	}
	return done();
}
