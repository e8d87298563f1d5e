// SPDX-License-Identifier: Apache-2.0
// Saves and loads checkpoints.  Saving writes new files, renames the manifest over the old one,
// then removes the old files. A manifest contains a checksum of itself besides those of its files,
// so that an altered one is refused.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "formats/checkpoint.h"

#define MANIFEST "manifest.json"
#define MAX_GENERATION ((int64_t)1000000000000)

static const char *const part_name[YK_CHECKPOINT_PARTS] = {
	[YK_CHECKPOINT_MODEL] = "model",
	[YK_CHECKPOINT_OPTIMIZER] = "optimizer",
};

// "folder/name", for the caller to free; NULL with ENOMEM.
static char *join(const char *folder, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) >= 0)
		return path;
	yk_fail(YOKE_ENOMEM, "out of memory for a path in %s", folder);
	return NULL;
}

static void file_name(char to[64], int part, int64_t generation)
{
	snprintf(to, 64, "%s.%" PRId64 ".safetensors", part_name[part], generation);
}

// ---- files of a generation ----

// The generation of a name such as "model.12.safetensors" or its temporary file; 0 for a temporary
// file of the manifest, -1 for any other file.
static int64_t generation_of(const char *name)
{
	size_t n = strlen(name);
	bool temporary = n > 4 && !strcmp(name + n - 4, ".tmp");

	if (temporary && !strncmp(name, MANIFEST ".", strlen(MANIFEST ".")))
		return 0;
	for (int part = 0; part < YK_CHECKPOINT_PARTS; part++) {
		size_t prefix = strlen(part_name[part]);
		char want[64];
		int64_t g;
		if (strncmp(name, part_name[part], prefix) || name[prefix] != '.')
			continue;
		g = strtoll(name + prefix + 1, NULL, 10);
		if (g < 1 || g > MAX_GENERATION)
			continue;
		file_name(want, part, g);
		prefix = strlen(want);
		if (!strncmp(name, want, prefix) &&
		    (!name[prefix] || (temporary && name[prefix] == '.')))
			return g;
	}
	return -1;
}

// Finds the largest generation in the folder, 0 if there is none; with `keep` > 0, removes all
// files of other generations and all temporary files.
static int sweep(const char *folder, int64_t keep, int64_t *largest)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int64_t max = 0;

	if (!dir)
		return yk_fail(YOKE_EIO, "%s: %s", folder, strerror(errno));
	while (errno = 0, (entry = readdir(dir))) {
		int64_t g = generation_of(entry->d_name);
		if (g > max)
			max = g;
		// A file that cannot be removed only occupies space: the next save tries again.
		if (keep > 0 && g >= 0 && g != keep)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (errno) {
		int reason = errno;
		closedir(dir);
		return yk_fail(YOKE_EIO, "%s: %s", folder, strerror(reason));
	}
	closedir(dir);
	*largest = max;
	return 0;
}

// ---- the manifest ----

// XXH64 of an object's text in canonical form, independent of layout and key order, as 16 hex
// digits.
static int checksum(const json_t *o, char hex[17])
{
	char *text = yk_json_text(o, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		return yk_fail(YOKE_ENOMEM, "out of memory for a manifest");
	snprintf(hex, 17, "%016" PRIx64, yk_hash(text, strlen(text), 0));
	free(text);
	return 0;
}

// jansson accepts NULL arguments after an earlier failure, so one check at the end is enough.
static json_t *to_json(const struct yk_checkpoint *c)
{
	json_t *files = json_object();
	char hex[17];
	int bad = 0;

	for (int part = 0; part < YK_CHECKPOINT_PARTS; part++) {
		const struct yk_checkpoint_file *f = &c->file[part];
		snprintf(hex, sizeof hex, "%016" PRIx64, f->hash);
		bad |= json_object_set_new(files, part_name[part],
					   json_pack("{s:s, s:I, s:s}", "name", f->name, "bytes",
						     (json_int_t)f->bytes, "xxh64", hex));
	}
	snprintf(hex, sizeof hex, "%016" PRIx64, c->text);
	json_t *o =
		json_pack("{s:i, s:s, s:I, s:I, s:O, s:O, s:O, s:O, s:{s:I, s:I}, "
			  "s:{s:I, s:I, s:s}, s:o}",
			  "format", YK_CHECKPOINT_FORMAT, "yoke", yoke_version(), "generation",
			  (json_int_t)c->generation, "step", (json_int_t)c->step, "model", c->model,
			  "tokenizer", c->tokenizer, "config", c->config, "schedule", c->schedule,
			  "random", "seed", (json_int_t)c->seed, "step", (json_int_t)c->random_step,
			  "data", "epoch", (json_int_t)c->data.epoch, "index",
			  (json_int_t)c->data.index, "xxh64", hex, "files", files);
	if (c->skipped)
		bad |= json_object_set_new(o, "skipped", json_integer((json_int_t)c->skipped));
	if (c->data.failed)
		bad |= json_object_set_new(json_object_get(o, "data"), "failed",
					   json_integer((json_int_t)c->data.failed));
	if (c->adapter)
		bad |= json_object_set(o, "adapter", c->adapter);
	if (c->best)
		bad |= json_object_set(o, "best", c->best);
	if (c->scaler)
		bad |= json_object_set(o, "scaler", c->scaler);
	if (c->sources)
		bad |= json_object_set(json_object_get(o, "data"), "sources", c->sources);
	bad = bad || checksum(o, hex) < 0 ||
	      json_object_set_new(o, "xxh64", json_string(hex));
	if (!bad)
		return o;
	yk_fail(YOKE_ENOMEM, "out of memory for a manifest");
	json_decref(o);
	return NULL;
}

static int check_self(json_t *o, const char *path)
{
	const char *stored = "";
	char hex[17];
	int e = yk_json_str(o, path, "xxh64", &stored);

	if (e < 0)
		return e;
	json_t *whole = json_copy(o); // shallow: the members are shared
	if (!whole || json_object_del(whole, "xxh64") < 0)
		e = yk_fail(YOKE_ENOMEM, "out of memory for a manifest");
	else
		e = checksum(whole, hex);
	if (e == 0 && strcmp(hex, stored))
		e = yk_fail(YOKE_EFORMAT, "%s: altered: its checksum is %s, not %.16s",
			    path, hex, stored);
	json_decref(whole);
	return e;
}

// Parses 16 hex digits.
static int take_hash(const char *hex, const char *path, uint64_t *to)
{
	if (strlen(hex) != 16 || strspn(hex, "0123456789abcdef") != 16)
		return yk_fail(YOKE_EFORMAT, "%s: '%.20s' is no checksum", path, hex);
	*to = strtoull(hex, NULL, 16);
	return 0;
}

static int take_file(const json_t *files, const char *path, int part, int64_t generation,
		     struct yk_checkpoint_file *to)
{
	const json_t *f = json_object_get(files, part_name[part]);
	const char *name, *hex;
	int64_t bytes;

	if (yk_json_str(f, path, "name", &name) < 0 ||
	    yk_json_str(f, path, "xxh64", &hex) < 0 ||
	    yk_json_int(f, path, "bytes", 0, INT64_MAX, &bytes) < 0)
		return YOKE_EFORMAT;
	file_name(to->name, part, generation); // not taken from the manifest, so it cannot be
					       // another path
	if (strcmp(name, to->name))
		return yk_fail(YOKE_EFORMAT, "%s: names the file '%.80s' instead of '%s'",
			       path, name, to->name);
	to->bytes = (uint64_t)bytes;
	return take_hash(hex, path, &to->hash);
}

static int take_object(const json_t *o, const char *path, const char *key, json_t **to)
{
	json_t *member = json_object_get(o, key);

	if (!json_is_object(member))
		return yk_fail(YOKE_EFORMAT, "%s: no object '%s'", path, key);
	*to = member;
	return 0;
}

// The format version is checked before the checksum, which another version may compute
// differently.
int yk_checkpoint_parse(json_t *o, const char *path, struct yk_checkpoint *to)
{
	const int64_t max = 1000000000000; // max of the key steps; positions are far below
	struct yk_checkpoint all = { 0 }, *c = &all;
	json_t *random = NULL, *data = NULL, *files = NULL;
	int64_t format, seed, *g = &c->generation;
	int e = yk_json_int(o, path, "format", 1, INT64_MAX, &format);

	if (e < 0)
		return e;
	if (format != YK_CHECKPOINT_FORMAT)
		return yk_fail(YOKE_EFORMAT,
			       "%s: format %lld; this version reads format %d", path,
			       (long long)format, YK_CHECKPOINT_FORMAT);
	if ((e = check_self(o, path)) < 0 || (e = take_object(o, path, "model", &c->model)) < 0 ||
	    (e = take_object(o, path, "tokenizer", &c->tokenizer)) < 0 ||
	    (e = take_object(o, path, "config", &c->config)) < 0 ||
	    (e = take_object(o, path, "schedule", &c->schedule)) < 0 ||
	    (e = take_object(o, path, "random", &random)) < 0 ||
	    (e = take_object(o, path, "data", &data)) < 0 ||
	    (e = take_object(o, path, "files", &files)) < 0 ||
	    (e = yk_json_int(o, path, "generation", 1, MAX_GENERATION, g)) < 0 ||
	    (e = yk_json_int(o, path, "step", 0, max, &c->step)) < 0 ||
	    (json_object_get(o, "skipped") &&
	     (e = yk_json_int(o, path, "skipped", 0, c->step, &c->skipped)) < 0) ||
	    (json_object_get(o, "adapter") &&
	     (e = take_object(o, path, "adapter", &c->adapter)) < 0) ||
	    (json_object_get(o, "best") && (e = take_object(o, path, "best", &c->best)) < 0) ||
	    (json_object_get(o, "scaler") &&
	     (e = take_object(o, path, "scaler", &c->scaler)) < 0) ||
	    (e = yk_json_int(random, path, "seed", INT64_MIN, INT64_MAX, &seed)) < 0 ||
	    (e = yk_json_int(random, path, "step", 0, max, &c->random_step)) < 0 ||
	    (e = yk_json_int(data, path, "epoch", 0, max, &c->data.epoch)) < 0 ||
	    (e = yk_json_int(data, path, "index", 0, max, &c->data.index)) < 0 ||
	    (json_object_get(data, "failed") &&
	     (e = yk_json_int(data, path, "failed", 0, max, &c->data.failed)) < 0))
		return e;
	const char *text = json_string_value(json_object_get(data, "xxh64"));
	if (text && (e = take_hash(text, path, &c->text)) < 0)
		return e;
	c->sources = json_object_get(data, "sources");
	if (c->sources && !json_is_array(c->sources))
		return yk_fail(YOKE_EFORMAT, "%s: the sources of its data are no list", path);
	c->seed = (uint64_t)seed;
	for (int part = 0; part < YK_CHECKPOINT_PARTS; part++)
		if ((e = take_file(files, path, part, c->generation, &c->file[part])) < 0)
			return e;
	json_incref(c->model);
	json_incref(c->tokenizer);
	json_incref(c->config);
	json_incref(c->schedule);
	json_incref(c->adapter);
	json_incref(c->best);
	json_incref(c->scaler);
	json_incref(c->sources);
	*to = all;
	return 0;
}

// ---- arrays of a part ----

// Opens the part's file and checks its size against the manifest; returns the descriptor.
static int open_part(const char *path, const struct yk_checkpoint_file *f)
{
	uint64_t bytes;
	int fd = yk_file_open(path, &bytes);

	if (fd < 0 || bytes == f->bytes)
		return fd;
	close(fd);
	return yk_fail(YOKE_EFORMAT,
		       "%s: %llu bytes, but the manifest records %llu: truncated or altered", path,
		       (unsigned long long)bytes, (unsigned long long)f->bytes);
}

static int check_hash(int fd, const char *path, const struct yk_checkpoint_file *f)
{
	uint64_t hash;
	int e = yk_file_hash(fd, path, 0, f->bytes, &hash);

	if (e == 0 && hash != f->hash)
		e = yk_fail(YOKE_EFORMAT,
			    "%s: altered: its checksum is %016" PRIx64
			    ", not %016" PRIx64,
			    path, hash, f->hash);
	return e;
}

static int check_tensor(const struct yk_safetensors *s, const struct yk_host_tensor *want)
{
	const struct yk_safetensors_entry *got = yk_safetensors_find(s, want->name);
	char a[YK_SHAPE_TEXT], b[YK_SHAPE_TEXT];

	if (!got)
		return yk_fail(YOKE_ESHAPE, "%s: belongs to another model: no tensor '%s'",
			       s->path, want->name);
	if (got->dtype != want->dtype)
		return yk_fail(YOKE_EDTYPE, "%s: belongs to another model: '%s' is %s, expected %s",
			       s->path, want->name, yk_safetensors_dtype(got->dtype),
			       yk_safetensors_dtype(want->dtype));
	if (got->rank != want->rank ||
	    memcmp(got->dims, want->dims, (size_t)got->rank * sizeof *got->dims))
		return yk_fail(YOKE_ESHAPE, "%s: belongs to another model: '%s' is %s, expected %s",
			       s->path, want->name, yk_shape_text(a, got->rank, got->dims),
			       yk_shape_text(b, want->rank, want->dims));
	return 0;
}

static int load_tensors(const char *path, int n, const struct yk_host_tensor *t,
			yk_checkpoint_sink_fn *take, void *arg)
{
	struct yk_safetensors s;
	uint64_t max = 0;
	void *data = NULL;
	int e = yk_safetensors_open(&s, path);

	if (e < 0)
		return e;
	for (int i = 0; e == 0 && i < n; i++)
		e = check_tensor(&s, &t[i]);
	if (e == 0 && s.count != n)
		e = yk_fail(YOKE_ESHAPE, "%s: belongs to another model: %d tensors, expected %d",
			    path, s.count, n);
	for (int i = 0; e == 0 && i < s.count; i++)
		max = s.entries[i].bytes > max ? s.entries[i].bytes : max;
	if (e == 0 && !(data = malloc(max + 1)))
		e = yk_fail(YOKE_ENOMEM, "%s: no host memory for an array of %llu bytes", path,
			    (unsigned long long)max);
	for (int i = 0; e == 0 && i < n; i++) {
		const struct yk_safetensors_entry *x = yk_safetensors_find(&s, t[i].name);
		e = yk_safetensors_read(&s, x, data);
		if (e == 0)
			e = take(arg, i, data, x->bytes);
	}
	free(data);
	yk_safetensors_close(&s);
	return e;
}

// ---- entry points ----

bool yk_checkpoint_exists(const char *folder)
{
	char *path = join(folder, MANIFEST);
	bool exists = path && access(path, F_OK) == 0;

	free(path);
	return exists;
}

struct giver { // data callback of a part's arrays
	yk_checkpoint_source_fn *give;
	void *arg;
	int part;
};

static int give_of(void *arg, int i, uint64_t from, size_t bytes, void *to)
{
	const struct giver *g = arg;
	return g->give(g->arg, g->part, i, from, bytes, to);
}

static int save_part(const char *folder, struct yk_checkpoint *c, int part,
		     const struct yk_checkpoint_arrays *a, yk_checkpoint_source_fn *give, void *arg)
{
	struct yk_checkpoint_file *f = &c->file[part];
	char *path;
	int e;

	file_name(f->name, part, c->generation);
	path = join(folder, f->name);
	if (!path)
		return YOKE_ENOMEM;
	e = yk_safetensors_write_by(path, a->n, a->tensor, give ? give_of : NULL,
				    &(struct giver){ give, arg, part }, &f->bytes, &f->hash);
	free(path);
	return e;
}

// The generation of the checkpoint in the folder; 0 if there is none that can
// be read.  Keeps the thread's error.
static int64_t existing_generation(const char *folder)
{
	bool had = yoke_error_code() != 0;
	struct yk_checkpoint c;
	int64_t generation = 0;

	if (yk_checkpoint_open(folder, &c) == 0) {
		generation = c.generation;
		yk_checkpoint_fini(&c);
	}
	if (!had)
		yoke_error_clear();
	return generation;
}

// Writes the manifest; replaces a symbolic link instead of following it, since the target may be
// the manifest of another folder.  *stands: the folder's manifest may be the new one.  After a
// failure only reading it can exclude that, because the failed call may be the sync after the
// rename.
static int save_manifest(const char *folder, const struct yk_checkpoint *c, bool *stands)
{
	char *path = join(folder, MANIFEST);
	json_t *o = path ? to_json(c) : NULL;
	struct yk_file_writer w;
	int e = o ? yk_file_begin_here(&w, path) : YOKE_ENOMEM;
	if (e == 0)
		e = yk_json_write(&w, o);
	int64_t generation = existing_generation(folder);

	*stands = generation ? generation == c->generation : yk_checkpoint_exists(folder);
	json_decref(o);
	free(path);
	return e;
}

static void clean(const char *folder, int64_t keep)
{
	bool had = yoke_error_code() != 0;
	int64_t largest;

	if (sweep(folder, keep, &largest) < 0 && !had)
		yoke_error_clear();
}

static void remove_parts(const char *folder, const struct yk_checkpoint *c)
{
	for (int part = 0; part < YK_CHECKPOINT_PARTS; part++) {
		const char *name = c->file[part].name;
		char *path = *name ? join(folder, name) : NULL;
		if (path)
			unlink(path);
		free(path);
	}
}

int yk_checkpoint_save_by(const char *folder, struct yk_checkpoint *c,
			  const struct yk_checkpoint_arrays arrays[YK_CHECKPOINT_PARTS],
			  yk_checkpoint_source_fn *give, void *arg)
{
	struct yk_checkpoint next = *c;
	bool stands = false;
	int64_t largest = 0;
	int e = yk_dir_make(folder);

	memset(next.file, 0, sizeof next.file);
	if (e == 0) // files of interrupted saves are removed first, to free their space
		e = sweep(folder, existing_generation(folder), &largest);
	if (e < 0)
		return e;
	if (largest >= MAX_GENERATION)
		return yk_fail(YOKE_ERANGE,
			       "%s: generation %lld is the largest possible", folder,
			       (long long)largest);
	next.generation = largest + 1;
	for (int part = 0; part < YK_CHECKPOINT_PARTS && e == 0; part++)
		e = save_part(folder, &next, part, &arrays[part], give, arg);
	if (e == 0)
		e = save_manifest(folder, &next, &stands);
	if (e < 0) {
		if (!stands)
			remove_parts(folder, &next);
		return e;
	}
	*c = next;
	// the checkpoint is complete; the next save removes remaining files
	clean(folder, next.generation);
	return 0;
}

int yk_checkpoint_save(const char *folder, struct yk_checkpoint *c, int nmodel,
		       const struct yk_host_tensor *model, int noptimizer,
		       const struct yk_host_tensor *optimizer)
{
	const struct yk_checkpoint_arrays arrays[] = {
		[YK_CHECKPOINT_MODEL] = { nmodel, model },
		[YK_CHECKPOINT_OPTIMIZER] = { noptimizer, optimizer }
	};
	return yk_checkpoint_save_by(folder, c, arrays, NULL, NULL);
}

int yk_checkpoint_open(const char *folder, struct yk_checkpoint *to)
{
	char *path = join(folder, MANIFEST);
	json_t *o = NULL;
	int e;

	if (!path)
		return YOKE_ENOMEM;
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		e = yk_fail(YOKE_ENOENT, "%s: no model here (%s is missing)", folder,
			    MANIFEST);
	} else {
		o = yk_json_load(path);
		e = o ? yk_checkpoint_parse(o, path, to) : yoke_error_code();
	}
	json_decref(o);
	free(path);
	return e;
}

void yk_checkpoint_fini(struct yk_checkpoint *c)
{
	json_decref(c->model);
	json_decref(c->tokenizer);
	json_decref(c->config);
	json_decref(c->schedule);
	json_decref(c->adapter);
	json_decref(c->best);
	json_decref(c->scaler);
	json_decref(c->sources);
	memset(c, 0, sizeof *c);
}

int yk_checkpoint_holds(const char *folder, const struct yk_checkpoint *c, int part,
			uint64_t bytes)
{
	const struct yk_checkpoint_file *f = &c->file[part];
	char *path = join(folder, f->name);

	if (!path)
		return YOKE_ENOMEM;
	int e = 0, fd = open_part(path, f);
	if (fd < 0)
		e = fd;
	else if (f->bytes < bytes)
		e = yk_fail(YOKE_EFORMAT,
			    "%s: %llu bytes, but the model that the manifest describes "
			    "has %llu",
			    path, (unsigned long long)f->bytes,
			    (unsigned long long)bytes);
	if (fd >= 0)
		close(fd);
	free(path);
	return e;
}

static int verify(const char *path, const struct yk_checkpoint_file *f)
{
	const int fd = open_part(path, f);
	if (fd < 0)
		return fd;
	const int e = check_hash(fd, path, f);
	close(fd);
	return e;
}

int yk_checkpoint_verify(const char *folder, const struct yk_checkpoint *c, int part)
{
	char *path = join(folder, c->file[part].name);
	const int e = path ? verify(path, &c->file[part]) : YOKE_ENOMEM;
	free(path);
	return e;
}

int yk_checkpoint_load(const char *folder, const struct yk_checkpoint *c, int part, int n,
		       const struct yk_host_tensor *t, yk_checkpoint_sink_fn *take, void *arg)
{
	char *path = join(folder, c->file[part].name);

	if (!path)
		return YOKE_ENOMEM;
	int e = verify(path, &c->file[part]);
	if (e == 0)
		e = load_tensors(path, n, t, take, arg);
	free(path);
	return e;
}
