// SPDX-License-Identifier: Apache-2.0
// yoke export: writes a model in the format of other programs.
#include "config.h"

#include "tool/tool.h"

#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "export/export.h"
#include "yoke-quant.h"

static const struct {
	const char *name;
	int format;
} formats[] = {
	{ "f32", YOKE_QUANT_F32 }, { "f16", YOKE_QUANT_F16 }, { "bf16", YOKE_QUANT_BF16 }, { "q8_0", YOKE_QUANT_Q8_0 },
	{ "q4_0", YOKE_QUANT_Q4_0 }, { "q4_1", YOKE_QUANT_Q4_1 }, { "q5_0", YOKE_QUANT_Q5_0 }, { "q5_1", YOKE_QUANT_Q5_1 },
};
enum { FORMATS = sizeof formats / sizeof *formats, FLOATS = 3 };

// The command line: values point into its arguments.
struct arguments {
	const char *out, *format, *quant, *dtype, *pre, *shard, *overwrite;
};

static const char **value_of(struct arguments *a, const char *key, size_t n)
{
	const struct {
		const char *key;
		const char **value;
	} keys[] = {
		{ "out", &a->out }, { "format", &a->format }, { "quant", &a->quant }, { "dtype", &a->dtype }, { "pre", &a->pre },
		{ "shard", &a->shard }, { "overwrite", &a->overwrite },
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strlen(keys[i].key) == n && !strncmp(keys[i].key, key, n))
			return keys[i].value;
	return NULL;
}

// Returns YK_DONE or YK_USAGE.
static int parse(int argc, char **argv, struct arguments *a)
{
	for (int i = 2; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		const char **to = equals ? value_of(a, argv[i], (size_t)(equals - argv[i])) : NULL;
		if (!to)
			return yk_usage(argv[0], "unknown argument '%s'; there are out, format, quant, dtype, pre, shard, overwrite", argv[i]);
		if (*to)
			return yk_usage(argv[0], "'%s' is given twice", argv[i]);
		*to = equals + 1;
	}
	if (!a->out || !*a->out)
		return yk_usage(argv[0], "no target given: out=PATH");
	if (a->overwrite && strcmp(a->overwrite, "0") && strcmp(a->overwrite, "1"))
		return yk_usage(argv[0], "overwrite=%s: is 0 or 1", a->overwrite);
	return YK_DONE;
}

// The first `n` names of formats; -2: another name.
static int format_of(const char *name, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(formats[i].name, name))
			return formats[i].format;
	return -2;
}

static int options_of(const char *command, const struct arguments *a, bool gguf, struct yk_export_options *o)
{
	const char *key = gguf ? "quant" : "dtype", *given = gguf ? a->quant : a->dtype;
	int64_t shard = 0;
	if (gguf ? a->dtype != NULL : a->quant != NULL)
		return yk_usage(command, "format=%s has the key %s, not %s", a->format, key, gguf ? "dtype" : "quant");
	if ((!gguf && a->pre) || (gguf && a->shard))
		return yk_usage(command, "format=%s has no key %s", a->format, gguf ? "shard" : "pre");
	*o = (struct yk_export_options){
		.format = given ? format_of(given, gguf ? FORMATS : FLOATS) : -1,
		.shard = UINT64_C(5000000000), // as transformers writes them
		.overwrite = a->overwrite && *a->overwrite == '1',
		.pre = a->pre,
	};
	if (o->format == -2)
		return yk_usage(command, "%s=%s: is one of f32, f16, bf16%s", key, given, gguf ? ", q8_0, q4_0, q4_1, q5_0, q5_1" : "");
	if (a->shard && (yk_parse_bytes(a->shard, &shard) < 0 || shard < 1))
		return yk_usage(command, "shard=%s: is a number of bytes, as 2G", a->shard);
	if (shard)
		o->shard = (uint64_t)shard;
	return YK_DONE;
}

int yk_cmd_export(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct yk_export_options o;
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(argv[0], "no model given: it comes before the keys");
	int status = parse(argc, argv, &a);
	if (status != YK_DONE)
		return status;
	const bool gguf = a.format && !strcmp(a.format, "gguf");
	if (!gguf && (!a.format || strcmp(a.format, "hf")))
		return yk_usage(argv[0], "format=%s: is one of hf, gguf", a.format ? a.format : "");
	status = options_of(argv[0], &a, gguf, &o);
	if (status != YK_DONE)
		return status;
	return (gguf ? yk_export_gguf(argv[1], a.out, &o) : yk_export_hf(argv[1], a.out, &o)) < 0 ? yk_failed(argv[0]) : YK_DONE;
}
