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

static int read_pooling(const char *folder, const char *name, struct yk_embedding *to)
{
	static const struct {
		const char *key;
		int pooling;
	} modes[] = {
		{ "mean_tokens", YK_POOLING_MEAN }, { "cls_token", YK_POOLING_CLS }, { "max_tokens", YK_POOLING_MAX }, { "lasttoken", YK_POOLING_LAST },
		{ "mean_sqrt_len_tokens", -1 }, { "weightedmean_tokens", -1 },
	};
	json_t *o = NULL;
	char key[64];
	int set = 0, e = read_json(folder, name, "config.json", &o);
	for (size_t i = 0; i < sizeof modes / sizeof *modes && e == 0 && o; i++) {
		snprintf(key, sizeof key, "pooling_mode_%s", modes[i].key);
		if (!json_is_true(json_object_get(o, key)))
			continue;
		if (modes[i].pooling < 0 || set++)
			e = yk_fail(YOKE_EFORMAT, "%s/%s/config.json: '%s'%s is not supported; one of mean, cls, max, last is", folder, name, key,
				    set > 1 ? " beside another mode" : "");
		else
			to->pooling = (enum yk_pooling)modes[i].pooling;
	}
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
		const char *type = json_string_value(json_object_get(module, "type")), *path = json_string_value(json_object_get(module, "path"));
		const char *last = type ? strrchr(type, '.') : NULL;
		last = last ? last + 1 : type;
		if (!type || !path || strstr(path, ".."))
			e = yk_fail(YOKE_EFORMAT, "%s/modules.json: module %zu lacks 'type' or 'path'", folder, i);
		else if (!strcmp(last, "Pooling"))
			e = read_pooling(folder, path, to);
		else if (!strcmp(last, "Normalize"))
			to->normalize = true;
		else if (strcmp(last, "Transformer"))
			e = yk_fail(YOKE_EFORMAT, "%s/modules.json: a module of type '%.60s' is not supported; Transformer, Pooling and Normalize are",
				    folder, type);
		if (e < 0)
			return e;
	}
	return 0;
}

static int of_folder(const char *folder, struct yk_embedding *to)
{
	json_t *modules = NULL, *transformer = NULL;
	int e = read_json(folder, "", "modules.json", &modules);
	if (e == 0 && modules)
		e = read_modules(folder, modules, to);
	if (e == 0)
		e = read_json(folder, "", "sentence_bert_config.json", &transformer);
	const json_t *max = json_object_get(transformer, "max_seq_length");
	if (e == 0 && max && !json_is_null(max))
		e = yk_json_int(transformer, folder, "max_seq_length", 1, INT32_MAX, &to->max_tokens);
	if (e == 0 && json_is_true(json_object_get(transformer, "do_lower_case")))
		e = yk_fail(YOKE_EFORMAT, "%s/sentence_bert_config.json: 'do_lower_case' is not supported", folder);
	json_decref(modules);
	json_decref(transformer);
	return e;
}

static int of_gguf(const char *path, struct yk_embedding *to)
{
	static const enum yk_pooling modes[] = { [1] = YK_POOLING_MEAN, [2] = YK_POOLING_CLS, [3] = YK_POOLING_LAST };
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
		snprintf(key, sizeof key, "%.*s.pooling_type", (int)(bytes < 40 ? bytes : 40), name);
		e = yk_gguf_int(&g, key, 0, 4, &type);
	}
	if (e >= 0 && type == 4)
		e = yk_fail(YOKE_EFORMAT, "%s: '%s' is 4, a ranking model, which is not supported", path, key);
	yk_gguf_close(&g);
	to->pooling = modes[e < 0 || type == 0 ? 1 : type];
	to->normalize = true;
	return e < 0 ? e : 0;
}

int yk_embedding_of(const char *path, struct yk_embedding *to)
{
	struct stat st;
	*to = (struct yk_embedding){ .pooling = YK_POOLING_MEAN };
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? of_folder(path, to) : of_gguf(path, to);
}
