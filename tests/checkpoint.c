// SPDX-License-Identifier: Apache-2.0
// Tests checkpoints: saved values are loaded unchanged; every altered byte and every truncated
// file is refused; a save that fails or is killed keeps the previous checkpoint.
// With arguments FOLDER [N] the program is the writer and the judge for kill.sh: without N it
// saves generation after generation until it is killed; with N = 0 it loads the checkpoint and
// prints its generation.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "tap.h"
#include "formats/checkpoint.h"

enum { NM = 3, NO = 2, LIMIT = 1 << 16 };

// A model of NM arrays and an optimizer of NO arrays, whose elements are functions of the step.
struct state {
	struct yk_host_tensor model[NM], optimizer[NO];
	float data[NM + NO][LIMIT];
};

static struct state a, b;

static void describe(struct state *s, int64_t width)
{
	static const char *const names[] = { "embed", "head.w", "scale", "m.embed",
					     "v.embed" };

	for (int i = 0; i < NM + NO; i++) {
		struct yk_host_tensor *t = i < NM ? &s->model[i] : &s->optimizer[i - NM];
		*t = (struct yk_host_tensor){
			names[i], yoke_f32, i == 2 ? 0 : 2, { width, 31 }, s->data[i]
		};
	}
}

static size_t elements(int i, int64_t width)
{
	return i == 2 ? 1 : (size_t)width * 31;
}

static float element(int64_t step, int array, size_t i)
{
	return (float)((double)step * 1000 + array) + (float)i / 65536;
}

static int save(const char *folder, int64_t step, int64_t width)
{
	struct yk_checkpoint c = {
		.model = json_pack("{s:s, s:i}", "kind", "gpt", "layers", 2),
		.tokenizer = json_pack("{s:s}", "name", "byte"),
		.config = json_pack("{s:s, s:s}", "lr", "1e-3", "data", "b\xc3\xbcrger"),
		.schedule = json_pack("{s:f}", "lr", 0.1 / 3),
		.step = step,
		.seed = UINT64_MAX - 4,
		.random_step = step + 1,
		.data = { 3, 17, 2 },
	};

	describe(&a, width);
	for (int i = 0; i < NM + NO; i++)
		for (size_t k = 0; k < elements(i, width); k++)
			a.data[i][k] = element(step, i, k);
	int e = yk_checkpoint_save(folder, &c, NM, a.model, NO, a.optimizer);
	yk_checkpoint_fini(&c);
	return e;
}

static int take(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct yk_host_tensor *to = arg;
	memcpy(to[i].data, data, bytes);
	return 0;
}

static int load_part(const char *folder, const struct yk_checkpoint *c, int part, int n,
		     struct yk_host_tensor *to)
{
	return yk_checkpoint_load(folder, c, part, n, to, take, to);
}

// Loads everything and returns the step, or a negative error.
static int64_t load(const char *folder, int64_t width)
{
	struct yk_checkpoint c;
	int e = yk_checkpoint_open(folder, &c);

	if (e < 0)
		return e;
	int64_t step = c.step;
	describe(&b, width);
	memset(b.data, 0xff, sizeof b.data); // NaN
	e = load_part(folder, &c, YK_CHECKPOINT_MODEL, NM, b.model);
	if (e == 0)
		e = load_part(folder, &c, YK_CHECKPOINT_OPTIMIZER, NO, b.optimizer);
	for (int i = 0; e == 0 && i < NM + NO; i++)
		for (size_t k = 0; k < elements(i, width); k++)
			if (b.data[i][k] != element(step, i, k)) {
				e = yk_fail(YOKE_EFAILED,
					    "array %d[%zu] of step %lld is %g, not %g", i,
					    k, (long long)step, b.data[i][k],
					    element(step, i, k));
				break;
			}
	yk_checkpoint_fini(&c);
	return e < 0 ? e : step;
}

// Is the code as expected, in one line that contains `part`? Clears the error.
static void fails(int64_t got, int code, const char *part, const char *what)
{
	bool good =
		got == code && strstr(yoke_error(), part) && !strchr(yoke_error(), '\n');

	if (!good)
		diag("got %lld, wanted %d with '%s'", (long long)got, code, part);
	ok(good, "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static int files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	for (struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void put(const char *folder, const char *name, const void *data, size_t n)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	yk_file_write(path, data, n);
}

static void test_round(const char *folder)
{
	struct yk_checkpoint c;

	ok(!yk_checkpoint_exists(folder), "a new directory has no checkpoint");
	fails(load(folder, 37), YOKE_ENOENT, folder, "none to open");
	mkdir(folder, 0777);
	put(folder, "metrics.jsonl", "{}\n", 3);
	put(folder, "model.safetensors", "mine", 4);
	put(folder, "model.99.bak.safetensors", "mine", 4);
	put(folder, "optimizer.7.safetensors.12-0.tmp", "half",
	    4); // file of a save that was killed
	put(folder, "manifest.json.12-0.tmp", "half", 4);
	ok(save(folder, 500, 37) == 0, "a checkpoint is saved %s", yoke_error());
	ok(yk_checkpoint_exists(folder), "it is found");
	ok(load(folder, 37) == 500, "it is loaded bit for bit %s", yoke_error());
	if (yk_checkpoint_open(folder, &c) == 0) {
		ok(c.generation == 8 && c.step == 500 && c.seed == UINT64_MAX - 4 &&
			   c.random_step == 501 && c.data.epoch == 3 && c.data.index == 17 &&
			   c.data.failed == 2 &&
			   json_real_value(json_object_get(c.schedule, "lr")) == 0.1 / 3 &&
			   !strcmp(json_string_value(json_object_get(c.config, "lr")), "1e-3"),
		   "step, seed, random step, data position, schedule and configuration are restored");
		yk_checkpoint_fini(&c);
	}
	ok(files_in(folder) == 6,
	   "the directory has three files of the checkpoint, three others, no temporary of a killed save");
	ok(save(folder, 500, 37) == 0 && save(folder, 501, 37) == 0 &&
		   load(folder, 37) == 501,
	   "saved again at the same step and at the next %s", yoke_error());
	ok(files_in(folder) == 6, "files of older checkpoints are removed");
}

static void test_shapes(const char *folder)
{
	struct yk_checkpoint c;

	fails(load(folder, 38), YOKE_ESHAPE, "[38,31]", "another shape");
	if (yk_checkpoint_open(folder, &c) < 0)
		return;
	describe(&b, 37);
	b.data[0][0] = 7;
	b.model[2].dtype = yoke_i32;
	fails(load_part(folder, &c, 0, NM, b.model), YOKE_EDTYPE, "scale",
	      "another dtype");
	b.model[2].dtype = yoke_f32;
	b.model[2].name = "bias";
	fails(load_part(folder, &c, 0, NM, b.model), YOKE_ESHAPE, "bias",
	      "another name");
	fails(load_part(folder, &c, 0, NM - 1, b.model), YOKE_ESHAPE,
	      "3 tensors", "fewer tensors");
	ok(b.data[0][0] == 7, "a failed load fills nothing");
	yk_checkpoint_fini(&c);
}

// Every truncation of each file, and one flipped bit at regular offsets.
static void test_altered(const char *folder)
{
	struct yk_checkpoint c;
	char path[3][256];

	if (yk_checkpoint_open(folder, &c) < 0)
		return;
	snprintf(path[0], sizeof path[0], "%s/manifest.json", folder);
	for (int i = 0; i < 2; i++)
		snprintf(path[1 + i], sizeof path[0], "%s/%s", folder, c.file[i].name);
	yk_checkpoint_fini(&c);
	for (int f = 0; f < 3; f++) {
		char *data;
		size_t n;
		int cut = 0, flipped = 0, tries = 0, lines = 0;
		if (yk_file_read(path[f], UINT64_MAX, &data, &n) < 0)
			return;
		for (size_t i = 0; i < n - 1; i += f ? n / 50 : 1, tries++) {
			yk_file_write(path[f], data, i);
			cut += load(folder, 37) == YOKE_EFORMAT;
			lines += strstr(yoke_error(), folder) &&
				 !strchr(yoke_error(), '\n');
			yoke_error_clear();
		}
		ok(cut == tries && lines == tries, "%s truncated: %d of %d are refused", path[f],
		   cut, tries);
		tries = 0;
		for (size_t i = 0; i < n - 1; i += f ? n / 100 : 1) {
			char old = data[i];
			// whitespace in the manifest is not significant, so other whitespace is
			// permitted
			if (!f && (old == ' ' || old == '\n'))
				continue;
			data[i] ^= (char)(1 << (i % 7));
			yk_file_write(path[f], data, n);
			flipped += load(folder, 37) == YOKE_EFORMAT;
			tries++;
			data[i] = old;
			yoke_error_clear();
		}
		ok(flipped == tries, "%s altered: %d of %d refused", path[f], flipped,
		   tries);
		yk_file_write(path[f], data, n);
		free(data);
	}
	ok(load(folder, 37) == 501, "restored %s", yoke_error());
	char away[300];
	snprintf(away, sizeof away, "%s.away", path[1]);
	rename(path[1], away);
	fails(load(folder, 37), YOKE_ENOENT, path[1], "a missing file");
	rename(away, path[1]);
}

// A limit on the size of files simulates a full disk: a write fails halfway.
static void test_full(const char *folder)
{
	struct rlimit old, low;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	int before = files_in(folder), refused = 0, whole = 0;
	static const rlim_t at[] = { 0, 1, 100, 1000, 5000, 9000 };
	for (int i = 0; i < 6; i++) {
		low = old;
		low.rlim_cur = at[i];
		setrlimit(RLIMIT_FSIZE, &low);
		int e = save(folder, 900, 37);
		refused += e == YOKE_EIO && strstr(yoke_error(), folder);
		setrlimit(RLIMIT_FSIZE, &old);
		if (!i)
			diag("%s", yoke_error());
		yoke_error_clear();
		whole += load(folder, 37) == 501 && files_in(folder) == before;
	}
	ok(refused == 6, "out of space at %d of 6 positions is an error", refused);
	ok(whole == 6, "the previous checkpoint is complete, no temporary is left: %d of 6",
	   whole);
	if (geteuid() == 0) {
		skip("a read-only directory refuses the save", "root may write everywhere");
		return;
	}
	chmod(folder, 0500);
	fails(save(folder, 900, 37), YOKE_EIO, folder,
	      "a folder that must not be written");
	chmod(folder, 0700);
	ok(load(folder, 37) == 501, "and the previous checkpoint is complete");
}

static int serve(const char *folder, bool judge)
{
	enum { WIDTH = 2000 };
	int64_t step;

	if (judge) {
		step = load(folder, WIDTH);
		if (step < 0) {
			fprintf(stderr, "%s\n", yoke_error());
			return 1;
		}
		printf("%lld\n", (long long)step);
		return 0;
	}
	step = yk_checkpoint_exists(folder) ? load(folder, WIDTH) : 0;
	while (step >= 0 && save(folder, ++step, WIDTH) == 0)
		;
	fprintf(stderr, "%s\n", yoke_error());
	return 1;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return serve(argv[1], argc > 2);
	tap_seed();
	tap_folder();
	test_round("model");
	test_shapes("model");
	test_altered("model");
	test_full("model");
	return done();
}
