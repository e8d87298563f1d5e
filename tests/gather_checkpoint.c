// SPDX-License-Identifier: Apache-2.0
// Tests how the checkpoints of several ranks are written and read: rank 0 receives the same bytes
// from the owners in windows of any length, and they equal the checkpoint of a single rank; the
// ranks of one machine read the files only once.
#include "config.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "tap.h"
#include "parallel/ranks.h"
#include "parallel/gather_checkpoint.h"
#include "train/check.h"
#include "train/trainer_open.h"

enum { RANKS = 4, STEPS = 2 };

static char folder[256], text_path[300];

// keys: words separated by blanks
static bool configure(struct yk_config *c, const char *keys)
{
	char all[1024], *save = NULL;
	int e = yk_config_init(c, YK_T);
	snprintf(
		all, sizeof all,
		"data=%s context=8 layers=2 heads=4 embed=32 batch=1 tied=0 micro_batches=4 steps=60 lr=1e-2 %s",
		text_path, keys);
	for (char *word; e == 0 && (word = strtok_r(save ? NULL : all, " ", &save));)
		e = yk_config_argument(c, word);
	return e == 0 && yk_config_check(c) == 0;
}

static bool steps(struct yk_trainer *t, int n)
{
	struct yk_record r;
	for (int i = 0; i < n; i++)
		if (yk_trainer_step(t) < 0 || yk_trainer_record(t, &r) < 0)
			return false;
	return true;
}

// ---- windows ----

static _Atomic int wrong;

// All arrays, each at once and then in windows; wrong counts those that differ.
static int compare(const struct yk_checkpoint_gather *w, uint64_t *seed)
{
	struct yk_checkpoint_arrays part[YK_CHECKPOINT_PARTS];
	int e = 0;
	yk_checkpoint_gather_arrays(w, part);
	for (int p = 0; p < YK_CHECKPOINT_PARTS; p++)
		for (int i = 0; i < part[p].n && e == 0; i++) {
			const size_t all = yk_host_bytes(&part[p].tensor[i]),
				     each = yoke_dtype_size(part[p].tensor[i].dtype);
			char *whole = malloc(all + 1), *windows = malloc(all + 1);
			memset(whole, 1, all);
			memset(windows, 2, all);
			e = yk_checkpoint_gather_source((void *)(uintptr_t)w, p, i, 0, all, whole);
			for (size_t at = 0, n; at < all && e == 0; at += n) {
				*seed = *seed * 6364136223846793005u + 1442695040888963407u;
				n = each * (1 + (size_t)(*seed >> 33) % 700);
				n = n < all - at ? n : all - at;
				e = yk_checkpoint_gather_source((void *)(uintptr_t)w, p, i, at, n,
								windows + at);
			}
			if (e == 0 && memcmp(whole, windows, all)) {
				diag("%s differs", part[p].tensor[i].name);
				wrong++;
			}
			free(whole);
			free(windows);
		}
	return e;
}

struct job {
	const char *keys;
	const struct yk_checkpoint *from; // to be read
	uint64_t seed;
	bool saves;
};

static int rank(yoke_group *world, void *arg)
{
	const struct job *j = arg;
	struct yk_trainer *t = NULL;
	struct yk_config c;
	uint64_t seed = j->seed;
	int e = configure(&c, j->keys) ? yk_trainer_new(&c, folder, j->from, &t) :
					 yoke_error_code();
	if (e == 0 && !j->from && !steps(t, STEPS))
		e = yoke_error_code();
	if (e == 0)
		e = yk_checkpoint_gather_begin(&t->replica);
	if (e == 0 && yoke_group_rank(world) > 0)
		e = yk_checkpoint_gather_serve(&t->replica);
	else if (e == 0)
		e = j->saves ? yk_trainer_save(t, folder) : compare(t->replica.whole, &seed);
	if (t)
		yk_checkpoint_gather_end(&t->replica);
	yk_trainer_free(t);
	yk_config_fini(&c);
	return e;
}

static void test_windows(void)
{
	static const char *const keys[] = { "zero=1",
					    "zero=2 optimizer=lamb",
					    "zero=3",
					    "stages=2 zero=1",
					    "tensor=2 zero=3",
					    "stages=2 tensor=2",
					    "tensor=4 optimizer=sgd",
					    "compress=topk compress_after=1" };
	char all[200];
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (!tap_turn(keys[i], 3))
			continue;
		wrong = 0;
		snprintf(all, sizeof all, "ranks=%d %s", RANKS, keys[i]);
		const int e = yoke_group_run(RANKS, NULL, rank,
					     &(struct job){ .keys = all, .seed = rnd() });
		ok(!e && !wrong, "%s: windows of any length: %d wrong: %s", keys[i], wrong,
		   yoke_error());
		yoke_error_clear();
	}
}

// ---- reading ----

// Bytes that the process has read by system calls; 0: not available.
static uint64_t has_read(void)
{
	char line[80];
	unsigned long long n = 0;
	FILE *f = fopen("/proc/self/io", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "rchar: %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static void test_reads(void)
{
	struct yk_checkpoint ck;
	const uint64_t before = has_read();
	int e = yoke_group_run(RANKS, NULL, rank,
			       &(struct job){ .keys = "ranks=4 tensor=2 zero=1", .saves = true });
	if (!ok(!e && yk_checkpoint_open(folder, &ck) == 0, "a checkpoint of 4 ranks: %s",
		yoke_error()))
		return;
	static const char *const keys[] = { "ranks=4 zero=3", "ranks=4 stages=2 tensor=2" };
	uint64_t bytes = 0;
	for (int p = 0; p < YK_CHECKPOINT_PARTS; p++)
		bytes += ck.file[p].bytes;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const uint64_t began = has_read();
		wrong = 0;
		e = yoke_group_run(RANKS, NULL, rank,
				   &(struct job){ .keys = keys[i], .from = &ck, .seed = rnd() });
		const uint64_t read = has_read() - began;
		// once for the checksum, once for the arrays; and each rank reads its text and
		// manifest
		if (before)
			ok(!e && !wrong && read >= bytes && read < 2 * bytes + bytes / 2,
			   "%s: %llu bytes of files of %llu are read: %s", keys[i],
			   (unsigned long long)read, (unsigned long long)bytes, yoke_error());
		else
			skip("bytes that are read", "the system does not count them");
		yoke_error_clear();
	}
	char path[400];
	char *data;
	size_t n;
	snprintf(path, sizeof path, "%s/%s", folder, ck.file[YK_CHECKPOINT_OPTIMIZER].name);
	bool good = yk_file_read(path, 1 << 24, &data, &n) == 0;
	if (good) { // the reading rank reports for all
		data[n - 5] ^= 1;
		good = yk_file_write(path, data, n) == 0;
		free(data);
	}
	e = good ? yoke_group_run(RANKS, NULL, rank,
				  &(struct job){ .keys = keys[0], .from = &ck }) :
		   0;
	ok(e == YOKE_EFORMAT && strstr(yoke_error(), "altered: its checksum"),
	   "all ranks report an altered file: %s", yoke_error());
	yoke_error_clear();
	yk_checkpoint_fini(&ck);
}

int main(void)
{
	char text[4000];
	tap_seed();
	const char *temporary = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/yoke-whole-%d", temporary ? temporary : "/tmp",
		 (int)getpid());
	snprintf(text_path, sizeof text_path, "%s.txt", folder);
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + (i * i / 3) % 12);
	yoke_setting_set("cpu.devices", "4");
	if (!ok(yk_file_write(text_path, text, sizeof text) == 0, "a text %s", yoke_error()))
		return done();
	test_windows();
	test_reads();
	yk_dir_remove(folder);
	unlink(text_path);
	return done();
}
