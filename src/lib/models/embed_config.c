// SPDX-License-Identifier: Apache-2.0
// How a model's files say that texts become vectors: modules.json and 1_Pooling/config.json of
// sentence-transformers, or pooling_type of GGUF.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "models/pretrained.h"

// Reads a JSON file of the folder; *to stays NULL if there is none.
static int read_json(const char *folder, const char *name, const char *file, json_t **to)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s%s%s", folder, name, *name ? "/" : "", file) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a path", folder);
	*to = access(path, F_OK) == 0 ? yk_json_load(path) : NULL;
	const int e = *to || access(path, F_OK) < 0 ? 0 : yoke_error_code();
	free(path);
	return e;
}

// Modes of pooling, with their members in older and in newer files.
static const struct {
	const char *key, *word;
	int pooling; // -1: not supported
} modes[] = {
	{ "pooling_mode_mean_tokens", "mean", YK_POOLING_MEAN },
	{ "pooling_mode_cls_token", "cls", YK_POOLING_CLS },
	{ "pooling_mode_max_tokens", "max", YK_POOLING_MAX },
	{ "pooling_mode_lasttoken", "lasttoken", YK_POOLING_LAST },
	{ "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1 },
	{ "pooling_mode_weightedmean_tokens", "weightedmean", -1 },
};
enum { MODES = sizeof modes / sizeof *modes };

// "pooling_mode": "mean", which replaces the flags; also as a list of one.
static int pooling_word(const char *path, const json_t *mode, struct yk_embedding *to)
{
	const char *word =
		json_string_value(json_array_size(mode) == 1 ? json_array_get(mode, 0) : mode);
	for (int i = 0; word && i < MODES; i++)
		if (!strcmp(word, modes[i].word) && modes[i].pooling >= 0) {
			to->pooling = (enum yk_pooling)modes[i].pooling;
			return 0;
		}
	return yk_fail(YOKE_EFORMAT,
		       "%s: 'pooling_mode' is %.60s; one of mean, cls, max, lasttoken is supported",
		       path, word ? word : "not one word");
}

static int pooling_flags(const char *path, const json_t *o, struct yk_embedding *to)
{
	int set = 0;
	for (int i = 0; i < MODES; i++) {
		if (!json_is_true(json_object_get(o, modes[i].key)))
			continue;
		if (modes[i].pooling < 0 || set++)
			return yk_fail(
				YOKE_EFORMAT,
				"%s: '%s'%s is not supported; one of mean, cls, max, last is", path,
				modes[i].key, set > 1 ? " beside another mode" : "");
		to->pooling = (enum yk_pooling)modes[i].pooling;
	}
	if (!set && json_is_false(json_object_get(o, modes[0].key)))
		return yk_fail(YOKE_EFORMAT, "%s: no mode of pooling is true", path);
	return 0;
}

static int read_pooling(const char *folder, const char *name, struct yk_embedding *to)
{
	json_t *o = NULL;
	char *path = NULL;
	int e = read_json(folder, name, "config.json", &o);
	if (e == 0 && asprintf(&path, "%s/%s/config.json", folder, name) < 0)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for a path", folder);
	const json_t *mode = json_object_get(o, "pooling_mode");
	if (e == 0 && o)
		e = mode && !json_is_null(mode) ? pooling_word(path, mode, to) :
						  pooling_flags(path, o, to);
	to->without_prompt = json_is_false(json_object_get(o, "include_prompt"));
	free(path);
	json_decref(o);
	return e;
}

// The prompt of a name; NULL: the one that the file names, if it does.
static int read_prompt(const char *folder, const char *name, struct yk_embedding *to)
{
	static const char file[] = "config_sentence_transformers.json";
	json_t *o = NULL;
	int e = read_json(folder, "", file, &o);
	const json_t *prompts = json_object_get(o, "prompts"),
		     *given = json_object_get(o, "default_prompt_name");
	if (e == 0 && !name && given && !json_is_null(given) && !(name = json_string_value(given)))
		e = yk_fail(YOKE_EFORMAT, "%s/%s: 'default_prompt_name' is not a string", folder,
			    file);
	const json_t *prompt = name && *name ? json_object_get(prompts, name) : NULL;
	if (e == 0 && name && *name && !json_is_string(prompt))
		e = yk_fail(prompt ? YOKE_EFORMAT : YOKE_ENOENT,
			    "%s/%s: 'prompts' has no text '%.60s'", folder, file, name);
	if (e == 0 && prompt && json_string_length(prompt) >= sizeof to->prompt)
		e = yk_fail(YOKE_EFORMAT, "%s/%s: prompt '%.60s' has %zu bytes, at most %zu",
			    folder, file, name, json_string_length(prompt), sizeof to->prompt - 1);
	if (e == 0 && prompt)
		strcpy(to->prompt, json_string_value(prompt));
	if (e == 0 && *to->prompt && to->without_prompt)
		e = yk_fail(
			YOKE_EFORMAT,
			"%s: 'include_prompt' is false, and prompt '%.60s' is used; pooling without a prompt is not supported",
			folder, name);
	json_decref(o);
	return e;
}

static int read_modules(const char *folder, const json_t *list, struct yk_embedding *to)
{
	const json_t *module;
	size_t i;
	int e = 0;
	if (!json_is_array(list))
		return yk_fail(YOKE_EFORMAT, "%s/modules.json: is not a list", folder);
	json_array_foreach(list, i, module) {
		const char *type = json_string_value(json_object_get(module, "type")),
			   *path = json_string_value(json_object_get(module, "path"));
		const char *last = type ? strrchr(type, '.') : NULL;
		last = last ? last + 1 : type;
		if (!type || !path || strstr(path, ".."))
			e = yk_fail(YOKE_EFORMAT,
				    "%s/modules.json: module %zu lacks 'type' or 'path'", folder,
				    i);
		else if (!strcmp(last, "Pooling"))
			e = read_pooling(folder, path, to);
		else if (!strcmp(last, "Normalize"))
			to->normalize = true;
		else if (strcmp(last, "Transformer"))
			e = yk_fail(
				YOKE_EFORMAT,
				"%s/modules.json: a module of type '%.60s' is not supported; Transformer, Pooling and Normalize are",
				folder, type);
		if (e < 0)
			return e;
	}
	return 0;
}

static int of_folder(const char *folder, const char *prompt, struct yk_embedding *to)
{
	json_t *modules = NULL, *transformer = NULL;
	int e = read_json(folder, "", "modules.json", &modules);
	if (e == 0 && modules)
		e = read_modules(folder, modules, to);
	if (e == 0)
		e = read_json(folder, "", "sentence_bert_config.json", &transformer);
	const json_t *max = json_object_get(transformer, "max_seq_length");
	if (e == 0 && max && !json_is_null(max))
		e = yk_json_int(transformer, folder, "max_seq_length", 1, INT32_MAX,
				&to->max_tokens);
	if (e == 0 && json_is_true(json_object_get(transformer, "do_lower_case")))
		e = yk_fail(YOKE_EFORMAT,
			    "%s/sentence_bert_config.json: 'do_lower_case' is not supported",
			    folder);
	json_decref(modules);
	json_decref(transformer);
	return e == 0 ? read_prompt(folder, prompt, to) : e;
}

static int of_gguf(const char *path, struct yk_embedding *to)
{
	static const enum yk_pooling types[] = {
		[1] = YK_POOLING_MEAN, [2] = YK_POOLING_CLS, [3] = YK_POOLING_LAST
	};
	struct yk_gguf g;
	const char *name;
	char key[80];
	size_t bytes;
	int64_t type = 1;
	int e = yk_gguf_open(&g, path);
	if (e < 0)
		return e;
	e = yk_gguf_string(&g, "general.architecture", &name, &bytes);
	if (e > 0) {
		snprintf(key, sizeof key, "%.*s.pooling_type", (int)(bytes < 40 ? bytes : 40),
			 name);
		e = yk_gguf_int(&g, key, 0, 4, &type);
	}
	if (e >= 0 && type == 4)
		e = yk_fail(YOKE_EFORMAT, "%s: '%s' is 4, a ranking model, which is not supported",
			    path, key);
	yk_gguf_close(&g);
	to->pooling = types[e < 0 || type == 0 ? 1 : type];
	to->normalize = true;
	return e < 0 ? e : 0;
}

int yk_embedding_of(const char *path, const char *prompt, struct yk_embedding *to)
{
	struct stat st;
	*to = (struct yk_embedding){ .pooling = YK_POOLING_MEAN };
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return of_folder(path, prompt, to);
	if (prompt && *prompt)
		return yk_fail(YOKE_ENOENT,
			       "%s: GGUF files have no prompts, so none is named '%.60s'", path,
			       prompt);
	return of_gguf(path, to);
}
