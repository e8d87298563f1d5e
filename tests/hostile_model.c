// SPDX-License-Identifier: Apache-2.0
// Tests hostile models: manifests with one flaw each and correct checksums, and other kinds of
// files in place of a model's files. Opening the model and resuming its training both refuse it
// with one line; nothing is lost or left open, and no memory is allocated on a manifest's claim.
// With an argument FOLDER the program writes the manifests there, as seeds for tests/fuzz.
#include "config.h"

#include "hostile.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/json.h"
#include "fuzz/targets.h"
#include "hostile_manifest.h"
#include "train/run.h"
#include "train/trained.h"

static const char folder[] = "model";

// A checksum over names and bytes of a model's files.
static uint64_t fingerprint(void)
{
	DIR *dir = opendir(folder);
	uint64_t sum = 0;

	for (struct dirent *d; dir && (d = readdir(dir));) {
		char file[512], *data;
		struct stat st;
		size_t n;
		snprintf(file, sizeof file, "%s/%s", folder, d->d_name);
		if (*d->d_name == '.' || lstat(file, &st) < 0)
			continue;
		sum += yk_hash(d->d_name, strlen(d->d_name), st.st_mode);
		if (S_ISREG(st.st_mode) && st.st_size < 1 << 20 &&
		    yk_file_read(file, 1 << 20, &data, &n) == 0) {
			sum += yk_hash(data, n, 1);
			free(data);
		}
	}
	if (dir)
		closedir(dir);
	return sum;
}

static int train_model(const char *layers, const char *embed, const char *steps)
{
	char out[160];
	struct yk_config c;

	snprintf(out, sizeof out, "out=%s", folder);
	const char *keys[] = { out, "data=text.txt", layers, "heads=1", embed, "context=8",
			       "batch=2", steps, "warmup=1", "backend=cpu", "resume=auto" };
	bool resumes = yk_checkpoint_exists(folder);
	int e = yk_config_init(&c, YK_T);
	// Resuming takes all keys but `out` from the manifest.
	for (size_t i = 0; e == 0 && i < sizeof keys / sizeof *keys; i++)
		if (!resumes || !i || !strncmp(keys[i], "resume", 6))
			e = yk_config_argument(&c, keys[i]);
	if (e == 0)
		e = yk_train(&c, NULL);
	yk_config_fini(&c);
	return e;
}

static int train(void)
{
	return train_model("layers=1", "embed=8", "steps=1");
}

// As `yoke generate` does, and yoke_model_open, which refuses the same with the same code.
static int open_model(void)
{
	struct yk_trained t;
	yoke_model *m = yoke_model_open(folder, NULL);
	const int code = m && yoke_model_tokenizer(m) ? 0 : yoke_error_code();
	yoke_error_clear();
	yoke_model_free(m);
	int e = yk_trained_open(folder, NULL, &t);

	if (e == 0)
		yk_trained_close(&t);
	if (code == e || (code == YOKE_EFORMAT && e == YOKE_ESHAPE))
		return e;
	diag("yoke_model_open: %d, not %d", code, e);
	return YOKE_EINVAL;
}

// Checks the directory as it is: is it refused where it must be, and are all files still there?
static void check_model(const char *what, enum hostile_who who, int code, const char *part)
{
	uint64_t was = fingerprint();
	int before = open_files(), e = open_model();
	bool good = who == ALL ? is_error(e, code, part) : e == 0;

	if (who == ALL)
		yoke_error_clear();
	e = train();
	good = good && (who == NOBODY ? e == 0 : is_error(e, code, part));
	good = good && (who == NOBODY || fingerprint() == was) && open_files() == before;
	ok(good, "%s: %s%s%s%s", who == NOBODY ? "read" : "refused", what, e ? " (" : "",
	   yoke_error(), e ? ")" : "");
	yoke_error_clear();
}

// Sets or removes a member ("files.model.name") and corrects the checksum; returns the text.
static char *changed(const json_t *manifest, const char *member, const char *json)
{
	json_t *o = json_deep_copy(manifest), *at = o;
	char names[64], hex[17], *rest = names, *key = NULL, *text;

	snprintf(names, sizeof names, "%s", member);
	while ((key = strsep(&rest, ".")) && rest)
		at = json_object_get(at, key);
	if (json)
		json_object_set_new(at, key, json_loads(json, JSON_DECODE_ANY, NULL));
	else
		json_object_del(at, key);
	json_object_del(o, "xxh64");
	text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	snprintf(hex, sizeof hex, "%016" PRIx64, yk_hash(text, strlen(text), 0));
	free(text);
	json_object_set_new(o, "xxh64", json_string(hex));
	text = json_dumps(o, JSON_INDENT(2));
	json_decref(o);
	return text;
}

static void test_manifests(const char *manifest, const json_t *o)
{
	char *deep = malloc(1 << 20);

	for (size_t i = 0; i < HOSTILE_CHANGES; i++) {
		const struct hostile_change *c = &hostile_changes[i];
		char *text = changed(o, c->member, c->json);
		yk_file_write(manifest, text, strlen(text));
		// Errors about keys also name the manifest's directory or the key.
		check_model(c->what, c->who, c->code, c->code == YOKE_ENOENT ? "tokenizer" :
			    c->code == YOKE_EINVAL && strncmp(c->member, "data", 4) ?
			    strchr(c->member, '.') + 1 : folder);
		yk_fuzz_manifest((uint8_t *)text, strlen(text));
		free(text);
	}
	for (size_t i = 0; i < HOSTILE_TEXTS; i++) {
		const struct hostile_text *t = &hostile_texts[i];
		yk_file_write(manifest, t->text, t->bytes);
		check_model(t->what, ALL, YOKE_EFORMAT, folder);
		yk_fuzz_manifest((const uint8_t *)t->text, t->bytes);
	}
	memset(deep, '[', 1 << 20);
	yk_file_write(manifest, deep, 1 << 20);
	check_model("nested a million deep", ALL, YOKE_EFORMAT, folder);
	free(deep);
	unlink(manifest);
	yk_file_write(manifest, "{", 1);
	if (truncate(manifest, (off_t)1 << 40) == 0)
		check_model("a manifest of a terabyte", ALL, YOKE_EFORMAT, folder);
	else
		skip("a manifest of a terabyte", "no file can be that large here");
}

// Other file types in place of a file.
static void test_places(const char *manifest, const char *weights)
{
	static const char *const what[] = { "a folder", "a pipe", "a link to a device",
					    "a link to nowhere", "a link to itself" };
	const char *const file[] = { manifest, weights };
	static const char saved[] = "saved";
	char name[256];

	for (int f = 0; f < 2; f++) {
		rename(file[f], saved);
		for (int i = 0; i < 5; i++) {
			bool made = !(i == 0 ? mkdir(file[f], 0700) :
				      i == 1 ? mkfifo(file[f], 0600) :
					       symlink(i == 2 ? "/dev/zero" :
						       i == 3 ? "nowhere" :
								strrchr(file[f], '/') + 1,
						       file[f]));
			snprintf(name, sizeof name, "%s for %s", what[i],
				 f ? "weights" : "a manifest");
			int code = i < 3 ? YOKE_EFORMAT : i == 3 ? YOKE_ENOENT : YOKE_EIO;
			if (!f && i >= 3) { // no checkpoint: opening fails, training starts
				int e = open_model();
				ok(made && is_error(e, code, folder), "refused: %s (%s)", name,
				   yoke_error());
				yoke_error_clear();
			} else {
				check_model(name, ALL, code, folder);
			}
			(void)(i ? unlink(file[f]) : rmdir(file[f]));
		}
		rename(saved, file[f]);
	}
	// Only the bytes count, wherever they are: weights may be on another disk.
	rename(weights, saved);
	ok(symlink("../saved", weights) == 0, "weights moved away");
	check_model("a link to the weights", NOBODY, 0, "");
	unlink(weights);
	rename(saved, weights);
}

// A symbolic link to another directory's manifest is not overwritten by a save.
static void test_link(const char *manifest)
{
	static const char other[] = "other.json";
	char *before, *after;
	size_t n, m;
	struct yk_checkpoint c;
	struct stat st;

	rename(manifest, other);
	ok(symlink("../other.json", manifest) == 0, "a link for a manifest");
	int e = yk_checkpoint_open(folder, &c);
	if (e == 0 && yk_file_read(other, 1 << 20, &before, &n) == 0) {
		c.step++;
		e = yk_checkpoint_save(folder, &c, 0, NULL, 0, NULL);
		yk_checkpoint_fini(&c);
		bool same = yk_file_read(other, 1 << 20, &after, &m) == 0 && n == m &&
			    !memcmp(before, after, n);
		ok(e == 0 && same && !lstat(manifest, &st) && S_ISREG(st.st_mode),
		   "saving replaces the link and leaves its target unchanged %s", yoke_error());
		free(before);
		free(after);
	} else {
		ok(false, "opens through the link: %s", yoke_error());
	}
	yoke_error_clear();
}

// Weights with a correct checksum and a defective header.
static void test_weights(const json_t *o, const char *manifest, const char *weights)
{
	char hex[24], *text, *sound;
	size_t n, size;

	if (yk_file_read(weights, 1 << 20, &sound, &size) < 0)
		return;
	for (size_t i = 0; i < HOSTILE_HEADERS; i += 9) {
		const struct hostile_header *h = &hostile_headers[i];
		// as many bytes as the model needs, so that they are read
		char *file = craft(h->header, strlen(h->header), NULL, size, &n);
		yk_file_write(weights, file, n);
		json_t *with = json_deep_copy(o), *f;
		f = json_object_get(json_object_get(with, "files"), "model");
		snprintf(hex, sizeof hex, "%016" PRIx64, yk_hash(file, n, 0));
		json_object_set_new(f, "xxh64", json_string(hex));
		snprintf(hex, sizeof hex, "%zu", n);
		text = changed(with, "files.model.bytes", hex);
		yk_file_write(manifest, text, strlen(text));
		check_model(h->what, ALL, YOKE_EFORMAT, weights);
		json_decref(with);
		free(text);
		free(file);
	}
	yk_file_write(weights, sound, size);
	free(sound);
}

static void test_models(void)
{
	char manifest[160], weights[160], *text;
	size_t n;

	snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
	snprintf(weights, sizeof weights, "%s/model.1.safetensors", folder);
	if (!ok(train() == 0 && open_model() == 0, "a model %s", yoke_error()) ||
	    yk_file_read(manifest, 1 << 20, &text, &n) < 0)
		return;
	json_t *o = yk_json_load(manifest);
	check_model("as it is", NOBODY, 0, "");
	limit(256);
	test_manifests(manifest, o);
	test_weights(o, manifest, weights);
	yk_file_write(manifest, text, n);
	test_places(manifest, weights);
	check_model("as it was", NOBODY, 0, "");
	limit(0);
	test_link(manifest);
	json_decref(o);
	free(text);
}

// Weights of 60 MB are opened when there is no memory for a second copy. Another process writes
// them, so that no memory of this process can be reused.
static void test_once(void)
{
	int status = -1;
	struct yk_trained t = { 0 };
	pid_t child = fork();

	if (child == 0)
		_exit(train_model("layers=3", "embed=640", "steps=0") < 0);
	waitpid(child, &status, 0);
	yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
	limit(100);
	int e = yk_trained_open(folder, NULL, &t);
	ok(!status && e == 0 && t.net->params.elements > 14e6, "weights are in memory only once %s",
	   yoke_error());
	limit(0);
	yk_trained_close(&t);
	yoke_use(was);
	yoke_context_free(ctx);
	yoke_error_clear();
	yk_dir_remove(folder);
}

static int write_seeds(const char *to)
{
	char manifest[160];

	snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
	json_t *o = train() == 0 ? yk_json_load(manifest) : NULL;
	for (size_t i = 0; o && i < HOSTILE_CHANGES; i++) {
		char *text = changed(o, hostile_changes[i].member, hostile_changes[i].json);
		seed(to, "manifest", (int)i, text, strlen(text));
		free(text);
	}
	json_decref(o);
	for (size_t i = 0; i < HOSTILE_TEXTS; i++)
		seed(to, "manifest", 500 + (int)i, hostile_texts[i].text,
		     hostile_texts[i].bytes);
	if (yoke_error_code())
		fprintf(stderr, "%s\n", yoke_error());
	return yoke_error_code() != 0;
}

int main(int argc, char **argv)
{
	char words[600];

	setenv("YOKE_BACKEND", "cpu", 1);
	tap_seed();
	tap_folder();
	for (size_t i = 0; i < sizeof words; i++)
		words[i] = (char)('a' + i * i % 26);
	yk_file_write("text.txt", words, sizeof words);
	if (argc > 1)
		return write_seeds(argv[1]);
	test_once();
	test_models();
	return done();
}
