// SPDX-License-Identifier: Apache-2.0
// Copies the tokenizer of a model into a checkpoint's folder, and opens it from there.
#include "config.h"

#include "models/tokenizer_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "formats/gguf.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train.h"

#define FOLDER "tokenizer"
#define GGUF "tokenizer.gguf" // the metadata of a GGUF file that concern the tokenizer

static const char *const files[] = { GGUF,
				     "tokenizer.json",
				     "tokenizer.model",
				     "tokenizer_config.json",
				     "generation_config.json",
				     "special_tokens_map.json",
				     "added_tokens.json",
				     "chat_template.jinja",
				     "spiece.model" };
enum { FILES = sizeof files / sizeof *files, MAX_BYTES = 1 << 28, MAX_PATH = 4096 };

static int join(char to[MAX_PATH], const char *folder, const char *name)
{
	const int n = snprintf(to, MAX_PATH, "%s/%s", folder, name);
	return n < MAX_PATH ? 0 :
			      yk_fail(YOKE_EINVAL, "%s/%s: the path is longer than %d bytes",
				      folder, name, MAX_PATH - 1);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool yk_tokenizer_has_files(const struct yk_tokenizer *t)
{
	return !strcmp(yk_tokenizer_name(t), YK_TOKENIZER_PUBLISHED);
}

// ---- saving ----

static bool put_name(FILE *f, const char *name)
{
	const uint64_t n = strlen(name);
	return fwrite(&n, sizeof n, 1, f) == 1 && fwrite(name, 1, n, f) == n;
}

static bool put_key(FILE *f, const struct yk_gguf_key *k)
{
	const uint32_t array = YK_GGUF_ARRAY, type = k->type;
	if (!put_name(f, k->name))
		return false;
	if (k->array && fwrite(&array, sizeof array, 1, f) != 1)
		return false;
	if (fwrite(&type, sizeof type, 1, f) != 1 ||
	    (k->array && fwrite(&k->count, sizeof k->count, 1, f) != 1))
		return false;
	return fwrite(k->data, 1, k->bytes, f) == k->bytes;
}

// A GGUF file without tensors that has the keys of the tokenizer.
static int extract(const char *model, const char *to)
{
	static const char prefix[] = "tokenizer.";
	const uint32_t version = 3;
	const uint64_t tensors = 0;
	struct yk_gguf g;
	char *text = NULL;
	size_t bytes = 0;
	uint64_t keys = 0;
	int e = yk_gguf_open(&g, model);
	if (e < 0)
		return e;
	for (size_t i = 0; i < g.keys; i++)
		keys += !strncmp(g.key[i].name, prefix, strlen(prefix));
	FILE *f = open_memstream(&text, &bytes);
	bool good = f && fwrite("GGUF", 1, 4, f) == 4 &&
		    fwrite(&version, sizeof version, 1, f) == 1 &&
		    fwrite(&tensors, sizeof tensors, 1, f) == 1 &&
		    fwrite(&keys, sizeof keys, 1, f) == 1;
	for (size_t i = 0; i < g.keys && good; i++)
		good = strncmp(g.key[i].name, prefix, strlen(prefix)) || put_key(f, &g.key[i]);
	if (f && fclose(f))
		good = false;
	e = good ? yk_file_write(to, text, bytes) :
		   yk_fail(YOKE_ENOMEM, "%s: out of memory for its tokenizer", model);
	free(text);
	yk_gguf_close(&g);
	return e;
}

static int copy(const char *from, const char *to)
{
	char *text;
	size_t bytes;
	int e = yk_file_read(from, MAX_BYTES, &text, &bytes);
	if (e < 0)
		return e;
	e = yk_file_write(to, text, bytes);
	free(text);
	return e;
}

// The file of a tokenizer, which may have any name, and the settings beside it.
static int copy_file(const char *file, const yoke_tokenizer *t, const char *to)
{
	char folder[MAX_PATH], path[MAX_PATH], target[MAX_PATH];
	const char *slash = strrchr(file, '/');
	int e = join(target, to, t->spm.on ? "tokenizer.model" : "tokenizer.json");
	if (e == 0)
		e = copy(file, target);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) : 1,
		 slash ? file : ".");
	for (int i = 0; i < FILES && e == 0; i++) {
		if (!strcmp(files[i], GGUF) || !strcmp(files[i], "tokenizer.json") ||
		    strstr(files[i], ".model"))
			continue;
		e = join(path, *folder ? folder : "/", files[i]);
		if (e == 0)
			e = join(target, to, files[i]);
		if (e == 0 && access(path, F_OK) == 0)
			e = copy(path, target);
	}
	return e;
}

// tokenizer.json of a trained tokenizer, and the settings with which transformers opens it.
static int write_trained(const yoke_tokenizer *t, const char *to)
{
	char path[MAX_PATH];
	int e = join(path, to, "tokenizer.json");
	if (e == 0)
		e = yoke_tokenizer_save(t, path);
	if (e == 0)
		e = join(path, to, "tokenizer_config.json");
	if (e < 0)
		return e;
	json_t *o = json_pack("{s:s, s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
			      "eos_token", YK_END_OF_TEXT, "clean_up_tokenization_spaces", 0);
	e = o ? yk_json_save(path, o) : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	json_decref(o);
	return e;
}

static int copy_all(const char *from, const char *to)
{
	char source[MAX_PATH], target[MAX_PATH];
	int e = 0;
	for (int i = 0; i < FILES && e == 0; i++) {
		e = join(source, from, files[i]);
		if (e == 0)
			e = join(target, to, files[i]);
		if (e == 0 && access(source, F_OK) == 0)
			e = copy(source, target);
	}
	return e;
}

// XXH64 of all files, in the order of the list.
static int hash_of(const char *folder, char hex[17])
{
	char path[MAX_PATH], *text;
	uint64_t hash = 0;
	size_t bytes;
	for (int i = 0; i < FILES; i++) {
		int e = join(path, folder, files[i]);
		if (e == 0 && access(path, F_OK) < 0)
			continue;
		if (e == 0)
			e = yk_file_read(path, MAX_BYTES, &text, &bytes);
		if (e < 0)
			return e;
		hash = yk_hash(text, bytes, hash + (uint64_t)i + 1);
		free(text);
	}
	snprintf(hex, 17, "%016" PRIx64, hash);
	return 0;
}

// Makes the folder under a temporary name, so that it exists only when it is complete.
static int make(const char *source, const yoke_tokenizer *t, const char *folder, const char *final)
{
	char begun[MAX_PATH], beside[MAX_PATH], path[MAX_PATH];
	int e = join(begun, folder, "." FOLDER);
	if (e == 0)
		e = yk_dir_remove(begun);
	if (e == 0)
		e = yk_dir_make(begun);
	if (e == 0)
		e = join(beside, source, FOLDER);
	if (e == 0)
		e = join(path, begun, GGUF);
	if (e == 0 && t->json)
		e = write_trained(t, begun);
	else if (e == 0 && (is_folder(beside) || is_folder(source)))
		e = copy_all(is_folder(beside) ? beside : source, begun);
	else if (e == 0)
		e = yk_gguf_is(source) ? extract(source, path) : copy_file(source, t, begun);
	if (e == 0 && rename(begun, final) < 0)
		e = yk_fail(YOKE_EIO, "%s: cannot be renamed to %s", begun, final);
	return e;
}

int yk_tokenizer_files_save(const char *source, const struct yk_tokenizer *t, const char *folder,
			    json_t *json)
{
	char path[MAX_PATH], hex[17];
	int e = join(path, folder, FOLDER);
	if (e == 0 && !is_folder(path))
		e = yk_dir_make(folder);
	if (e == 0 && !is_folder(path))
		e = make(source, yk_tokenizer_source(t), folder, path);
	if (e == 0)
		e = hash_of(path, hex);
	if (e == 0 && json_object_set_new(json, "xxh64", json_string(hex)) < 0)
		e = yk_fail(YOKE_ENOMEM, "%s: out of memory for a hash", path);
	return e;
}

// ---- opening ----

// Opens the files of a folder as copied by save.
static struct yk_tokenizer *open_files(const json_t *o, const char *folder)
{
	char path[MAX_PATH], hex[17], gguf[MAX_PATH];
	const char *want;
	int64_t size;
	if (yk_json_int(o, folder, "size", 1, INT32_MAX, &size) < 0 ||
	    yk_json_str(o, folder, "xxh64", &want) < 0 || join(path, folder, FOLDER) < 0 ||
	    join(gguf, path, GGUF) < 0 || hash_of(path, hex) < 0)
		return NULL;
	if (strcmp(hex, want)) {
		yk_fail(YOKE_EFORMAT, "%s: the files have changed since the checkpoint was saved",
			path);
		return NULL;
	}
	yoke_tokenizer *t = yoke_tokenizer_open(access(gguf, F_OK) == 0 ? gguf : path);
	return t ? yk_tokenizer_published(t, (int32_t)size) : NULL;
}

struct yk_tokenizer *yk_tokenizer_of_checkpoint(const struct yk_checkpoint *ck, const char *folder)
{
	const char *name = json_string_value(json_object_get(ck->tokenizer, "name"));
	if (!name || strcmp(name, YK_TOKENIZER_PUBLISHED))
		return yk_tokenizer_load(ck->tokenizer, folder);
	struct yk_tokenizer *t = open_files(ck->tokenizer, folder);
	const char *init = json_string_value(json_object_get(ck->config, "init"));
	if (t && (!init || !*init))
		yk_tokenizer_bare(t);
	return t;
}

struct yk_tokenizer *yk_tokenizer_of_files(const char *source)
{
	char beside[MAX_PATH], gguf[MAX_PATH];
	if (join(beside, source, FOLDER) < 0 || join(gguf, beside, GGUF) < 0)
		return NULL;
	yoke_tokenizer *t = yoke_tokenizer_open(access(gguf, F_OK) == 0 ? gguf :
						is_folder(beside) ? beside :
						source);
	struct yk_tokenizer *made = t ? yk_tokenizer_published(t, yoke_tokenizer_size(t)) : NULL;
	if (made)
		yk_tokenizer_bare(made);
	return made;
}

struct yk_tokenizer *yk_tokenizer_of_pretrained(const char *path, int64_t vocab)
{
	yoke_tokenizer *published = yoke_tokenizer_open(path);
	if (published)
		return yk_tokenizer_published(published, (int32_t)vocab);
	if (yoke_error_code() != YOKE_ENOENT)
		return NULL;
	yk_warn("model", "%s; texts are given and printed as token ids separated by blanks",
		yoke_error());
	yoke_error_clear();
	return yk_tokenizer_ids(vocab, path);
}
