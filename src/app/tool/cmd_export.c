// SPDX-License-Identifier: Apache-2.0
// yoke export: writes a model in the format of other programs.
#include "config.h"

#include "tool/tool.h"

#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "export/export.h"
#include "models/pretrained.h"
#include "train/trained.h"
#include "yoke-quant.h"

static const struct {
	const char *name;
	int format;
} formats[] = {
	{ "f32", YOKE_QUANT_F32 },   { "f16", YOKE_QUANT_F16 },   { "bf16", YOKE_QUANT_BF16 },
	{ "q8_0", YOKE_QUANT_Q8_0 }, { "q4_0", YOKE_QUANT_Q4_0 }, { "q4_1", YOKE_QUANT_Q4_1 },
	{ "q5_0", YOKE_QUANT_Q5_0 }, { "q5_1", YOKE_QUANT_Q5_1 },
};
enum { FORMATS = sizeof formats / sizeof *formats, FLOATS = 3 };

// The command line: values point into its arguments.
struct arguments {
	const char *out, *format, *quant, *dtype, *pre, *shard, *overwrite, *batch, *context,
		*external, *adapter, *merge;
};

static const char **value_of(struct arguments *a, const char *key, size_t n)
{
	const struct {
		const char *key;
		const char **value;
	} keys[] = {
		{ "out", &a->out },
		{ "format", &a->format },
		{ "quant", &a->quant },
		{ "dtype", &a->dtype },
		{ "pre", &a->pre },
		{ "shard", &a->shard },
		{ "overwrite", &a->overwrite },
		{ "batch", &a->batch },
		{ "context", &a->context },
		{ "external", &a->external },
		{ "adapter", &a->adapter },
		{ "merge", &a->merge },
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
			return yk_usage(
				argv[0],
				"unknown argument '%s'; there are out, format, quant, dtype, pre, shard, batch, context, external, adapter, "
				"merge, overwrite",
				argv[i]);
		if (*to)
			return yk_usage(argv[0], "'%s' is given twice", argv[i]);
		*to = equals + 1;
	}
	if (!a->out || !*a->out)
		return yk_usage(argv[0], "no target given: out=PATH");
	if (a->overwrite && strcmp(a->overwrite, "0") && strcmp(a->overwrite, "1"))
		return yk_usage(argv[0], "overwrite=%s: must be 0 or 1", a->overwrite);
	if (a->merge && strcmp(a->merge, "0") && strcmp(a->merge, "1"))
		return yk_usage(argv[0], "merge=%s: must be 0 or 1", a->merge);
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

// Rejects keys that the chosen format does not have.  Returns YK_DONE or YK_USAGE.
static int check_keys(const char *command, const struct arguments *a)
{
	const struct {
		const char *key, *value, *formats;
	} keys[] = {
		{ "quant", a->quant, "gguf" },       { "dtype", a->dtype, "hf onnx" },
		{ "pre", a->pre, "gguf" },           { "shard", a->shard, "hf" },
		{ "batch", a->batch, "onnx" },       { "context", a->context, "onnx" },
		{ "external", a->external, "onnx" }, { "adapter", a->adapter, "hf gguf peft" },
		{ "merge", a->merge, "hf gguf" },
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].value && !strstr(keys[i].formats, a->format))
			return yk_usage(command, "format=%s has no key %s", a->format, keys[i].key);
	return YK_DONE;
}

static int options_of(const char *command, const struct arguments *a, bool gguf,
		      struct yk_export_options *o)
{
	const char *key = gguf ? "quant" : "dtype", *given = gguf ? a->quant : a->dtype;
	int64_t shard = 0;
	*o = (struct yk_export_options){
		.format = given ? format_of(given, gguf ? FORMATS : FLOATS) : -1,
		.shard = UINT64_C(5000000000), // as transformers writes them
		.overwrite = a->overwrite && *a->overwrite == '1',
		.pre = a->pre,
		.adapter = a->adapter && *a->adapter ? a->adapter : NULL,
		.merge = a->merge && *a->merge == '1',
	};
	if (o->format == -2)
		return yk_usage(command, "%s=%s: must be one of f32, f16, bf16%s", key, given,
				gguf ? ", q8_0, q4_0, q4_1, q5_0, q5_1" : "");
	if (a->shard && (yk_parse_bytes(a->shard, &shard) < 0 || shard < 1))
		return yk_usage(command, "shard=%s: must be a number of bytes, e.g. 2G", a->shard);
	if (shard)
		o->shard = (uint64_t)shard;
	return YK_DONE;
}

// ---- ONNX ----

static int count_of(const char *command, const char *key, const char *text, int64_t *to)
{
	*to = 0;
	if (text && (yk_parse_bytes(text, to) < 0 || *to < 1 || *to > INT32_MAX))
		return yk_usage(command, "%s=%s: must be a positive number", key, text);
	return YK_DONE;
}

// Opens the model, and writes its network.
static int write_onnx(const char *path, const struct arguments *a, int64_t context,
		      const struct yk_onnx_export *o)
{
	const struct yoke_model_options options = { .size = sizeof options,
						    .context = context,
						    .dtype = a->dtype };
	struct yk_pretrained published = { 0 };
	struct yk_trained trained = { 0 };
	const bool is = yk_pretrained_is(path);
	int e = is ? yk_pretrained_open(path, &options, &published) :
		     yk_trained_open(path, a->dtype ? &options : NULL, &trained);
	if (e == 0 && !is && trained.net->adapters)
		e = yk_fail(
			YOKE_EINVAL,
			"%s: has adapters; export it with format=hf merge=1, and the result with format=onnx",
			path);
	if (e == 0 && !is)
		yk_trained_widen(&trained);
	if (e == 0)
		e = yk_export_onnx(is ? published.net : trained.net, path, a->out, o);
	yk_pretrained_close(&published);
	yk_trained_close(&trained);
	return e;
}

static int export_onnx(const char *command, const char *path, const struct arguments *a)
{
	struct yk_onnx_export o = { .overwrite = a->overwrite && *a->overwrite == '1' };
	int64_t external = 0;
	int status = count_of(command, "batch", a->batch, &o.batch);
	if (status == YK_DONE)
		status = count_of(command, "context", a->context, &o.context);
	if (status == YK_DONE && a->dtype && format_of(a->dtype, FLOATS) == -2)
		status = yk_usage(command, "dtype=%s: must be one of f32, f16, bf16", a->dtype);
	if (status == YK_DONE && a->external &&
	    (yk_parse_bytes(a->external, &external) < 0 || external < 1))
		status = yk_usage(command, "external=%s: must be a number of bytes, e.g. 500M",
				  a->external);
	o.external = (uint64_t)external;
	if (status != YK_DONE)
		return status;
	return write_onnx(path, a, o.context, &o) < 0 ? yk_failed(command) : YK_DONE;
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
	const char *format = a.format ? a.format : "";
	const bool gguf = !strcmp(format, "gguf"), onnx = !strcmp(format, "onnx"),
		   peft = !strcmp(format, "peft");
	if (!gguf && !onnx && !peft && strcmp(format, "hf"))
		return yk_usage(argv[0], "format=%s: must be one of hf, gguf, onnx, peft", format);
	status = check_keys(argv[0], &a);
	if (status != YK_DONE)
		return status;
	if (onnx)
		return export_onnx(argv[0], argv[1], &a);
	status = options_of(argv[0], &a, gguf, &o);
	if (status != YK_DONE)
		return status;
	int (*const export)(const char *, const char *, const struct yk_export_options *) =
		gguf ? yk_export_gguf : yk_export_hf;
	const int e = peft ? yk_export_peft(argv[1], a.out, &o) : export(argv[1], a.out, &o);
	return e < 0 ? yk_failed(argv[0]) : YK_DONE;
}
