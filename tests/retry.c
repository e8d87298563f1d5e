// SPDX-License-Identifier: Apache-2.0
// Tests a training whose k-th write, fsync or rename fails, for every k. If it fails once, the
// training continues with the same losses, all of which are written. If it keeps failing, the
// training ends with one line, the previous checkpoint is intact, and resuming gives the losses
// of an unbroken run, except for lines that could not be completed. This program's write, fsync
// and rename precede those of the C library.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "tap.h"
#include "formats/checkpoint.h"
#include "train/run.h"

enum { STEPS = 4 };

static const char folder[] = "model", text_path[] = "text", log_path[] = "log.tsv";
static long calls, nth; // nth 0: nothing fails
static bool sticky;
static int reason;
static long naps;

static bool fails(void)
{
	calls++;
	if (!nth || calls < nth || (calls > nth && !sticky))
		return false;
	errno = reason;
	return true;
}

ssize_t write(int fd, const void *data, size_t n)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fails()) {
		// a disk that becomes full writes a prefix first
		if (reason == ENOSPC && n > 7 && calls == nth)
			return syscall(SYS_write, fd, data, n / 2);
		return -1;
	}
	return syscall(SYS_write, fd, data, n);
}

int fsync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
	return fails() ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}

// The second between two attempts.
int nanosleep(const struct timespec *t, struct timespec *rest)
{
	(void)t, (void)rest;
	naps++;
	return 0;
}

static int train(const char *resume)
{
	char keys[10][200], *argv[11];
	struct yk_config c;
	const char *const plain[] = { "layers=1",   "heads=1", "embed=8",
				      "context=8",  "batch=2", "save_every=2",
				      "log_every=1" };
	for (int i = 0; i < 7; i++)
		argv[i] = (char *)plain[i];
	snprintf(keys[7], 200, "data=%s", text_path);
	snprintf(keys[8], 200, "out=%s", folder);
	snprintf(keys[9], 200, "training_log=%s", log_path);
	for (int i = 7; i < 10; i++)
		argv[i] = keys[i];
	argv[10] = (char *)"telemetry=0"; // a separate thread would write
	yoke_error_clear();
	int e = yk_config_init(&c, YK_T);
	if (e == 0)
		e = yk_config_arguments(&c, 11, argv);
	snprintf(keys[0], 200, "resume=%s", resume);
	snprintf(keys[1], 200, "steps=%d", STEPS);
	if (e == 0)
		e = yk_config_argument(&c, keys[0]);
	if (e == 0)
		e = yk_config_argument(&c, keys[1]);
	if (e == 0)
		e = yk_train(&c, NULL);
	yk_config_fini(&c);
	return e;
}

static void clean(void)
{
	yk_dir_remove(folder);
	unlink(log_path);
	yoke_error_clear();
	calls = naps = 0;
}

// The step of the checkpoint, -1 for none; a negative error.
static int64_t standing(void)
{
	struct yk_checkpoint c;
	if (!yk_checkpoint_exists(folder))
		return -1;
	int e = yk_checkpoint_open(folder, &c);
	if (e < 0)
		return e;
	int64_t step = c.step;
	yk_checkpoint_fini(&c);
	return step;
}

// Losses of the metrics, NaN where there is none; false if a line of the file is not an object.
static bool losses(double *to)
{
	char path[160], *text, *line, *rest;
	size_t n;
	bool good = true;
	for (int i = 0; i < STEPS; i++)
		to[i] = NAN;
	snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
	if (yk_file_read(path, 1 << 20, &text, &n) < 0)
		return false;
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		json_t *o = json_loads(line, 0, NULL);
		int64_t step = json_integer_value(json_object_get(o, "step"));
		if (json_object_get(o, "loss") && step >= 1 && step <= STEPS)
			to[step - 1] = json_number_value(json_object_get(o, "loss"));
		good &= o != NULL;
		json_decref(o);
	}
	free(text);
	return good;
}

// The same losses, except for those whose lines could not be written?
static bool alike(const double *got, const double *want)
{
	bool good = true;
	for (int i = 0; i < STEPS; i++)
		good &= isnan(got[i]) || got[i] == want[i];
	return good;
}

// Only the files of one checkpoint and the records of the run?
static bool tidy(void)
{
	char command[300];
	snprintf(command, sizeof command, "[ $(ls %s | wc -l) -le 6 ]", folder);
	return system(command) == 0;
}

int main(void)
{
	double want[STEPS], got[STEPS];
	tap_seed();
	tap_folder();
	setenv("YOKE_BACKEND", "cpu", 1);
	char text[2000];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + rnd_int(0, 5));
	yk_file_write(text_path, text, sizeof text);
	calls = 0;
	int e = train("0");
	long all = calls;
	ok(e == 0 && losses(want) && !isnan(want[STEPS - 1]) && tidy() && !naps,
	   "an undisturbed run makes %ld writes and syncs %s", all, yoke_error());
	int good[6] = { 0 };
	long stride = tap_long() ? 1 : 3;
	for (long k = 1; k <= all; k += stride) {
		static const int reasons[] = { ENOSPC, EIO };
		clean();
		sticky = false;
		reason = reasons[k % 2];
		nth = k;
		e = train("0");
		nth = 0;
		bool through = e == 0 && losses(got) && !memcmp(got, want, sizeof want) &&
			       standing() == STEPS && tidy();
		good[0] += through;
		if (!through)
			diag("call %ld of %ld, once: %d %s", k, all, e, yoke_error());
		good[1] += naps <= 1;
		clean();
		sticky = true;
		nth = k;
		e = train("0");
		nth = 0;
		int64_t step = standing();
		// the run's row comes last, and its failure is not an error
		bool ended = e == 0 ? step == STEPS :
				      e == YOKE_EIO && strstr(yoke_error(), folder) &&
					      !strchr(yoke_error(), '\n') && step >= -1;
		good[2] += ended;
		if (!ended)
			diag("call %ld of %ld, for good: %d, step %lld: %s", k, all, e,
			     (long long)step, yoke_error());
		good[3] += e == 0 || naps == 1 || (naps == 0 && step < 0);
		if (k / stride % 16 == 0)
			diag("%s", yoke_error());
		e = train("auto");
		bool same = e == 0 && losses(got) && alike(got, want) &&
			    standing() == STEPS;
		good[4] += same;
		if (!same)
			diag("call %ld of %ld, resumed: %d %s", k, all, e, yoke_error());
		good[5]++;
	}
	ok(good[0] == good[5], "one failure is retried: %d of %d", good[0], good[5]);
	ok(good[1] == good[5], "after one failure the run is complete: %d of %d", good[1], good[5]);
	ok(good[2] == good[5],
	   "repeated failures end with a line, the last save is intact: %d of %d", good[2],
	   good[5]);
	ok(good[3] == good[5], "after one more retry: %d of %d", good[3], good[5]);
	ok(good[4] == good[5], "resumed with the same losses: %d of %d", good[4],
	   good[5]);
	return done();
}
