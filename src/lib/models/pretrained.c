// SPDX-License-Identifier: Apache-2.0
// Opens pretrained models: finds the files, makes the network of their configuration, loads the
// weights.
#include "config.h"

#include "models/pretrained.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sized.h"
#include "formats/checkpoint.h"
#include "models/adapter.h"
#include "models/run_files.h"
#include "models/weights.h"
#include "yoke-quant.h"

static char *in_folder(const char *path, const char *name)
{
	char *full = malloc(strlen(path) + strlen(name) + 2);
	if (full)
		sprintf(full, "%s/%s", path, name);
	else
		yk_fail(YOKE_ENOMEM, "%s: no memory for a path", path);
	return full;
}

static bool exists(const char *path, const char *name)
{
	char *full = in_folder(path, name);
	const bool yes = full && access(full, R_OK) == 0;
	free(full);
	return yes;
}

bool yk_pretrained_is(const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return exists(path, "config.json");
	return yk_gguf_is(path);
}

// ---- a folder ----

static int open_set(const char *path, struct yk_safetensors_set *to)
{
	const char *names[] = { "model.safetensors.index.json", "model.safetensors" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!exists(path, names[i]))
			continue;
		char *full = in_folder(path, names[i]);
		const int e = full ? yk_safetensors_set_open(to, full) : YOKE_ENOMEM;
		free(full);
		return e;
	}
	return yk_fail(
		YOKE_ENOENT, "%s: has neither model.safetensors nor model.safetensors.index.json%s",
		path,
		exists(path, "pytorch_model.bin") ?
			"; convert its pytorch_model.bin, which can run code when opened, to safetensors" :
			"");
}

static int open_folder(const char *path, int64_t context, struct yk_weights *w,
		       const struct yk_family **f, struct yk_model_shape *s, json_t **config)
{
	char *name = in_folder(path, "config.json");
	*config = name ? yk_json_load(name) : NULL;
	int e = *config ? yk_family_of_hf(*config, name, context, f, s) : yoke_error_code();
	free(name);
	return e < 0 ? e : open_set(path, &w->set);
}

static int open_gguf(const char *path, int64_t context, struct yk_weights *w,
		     const struct yk_family **f, struct yk_model_shape *s)
{
	const int e = yk_gguf_open(&w->gguf, path);
	w->is_gguf = true;
	return e < 0 ? e : yk_family_of_gguf(&w->gguf, context, f, s);
}

int yk_pretrained_files(const char *path, int64_t context, struct yk_weights *w,
			const struct yk_family **f, struct yk_model_shape *s, json_t **config)
{
	struct stat st;
	*config = NULL;
	const bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	const int e = folder ? open_folder(path, context, w, f, s, config) :
			       open_gguf(path, context, w, f, s);
	if (e < 0)
		return e;
	snprintf(s->decoder.family, sizeof s->decoder.family, "%s", (*f)->name);
	s->decoder.positions = s->context;
	return 0;
}

const struct yk_model *yk_pretrained_model(const struct yk_family *f)
{
	return f->encoder ? &yk_model_encoder : &yk_model_decoder;
}

// Is it the shape of a possible model?  Its message is about the file.
static int check_shape(const char *path, const struct yk_model *model,
		       const struct yk_model_shape *s)
{
	char why[256];
	int e = yk_model_check(model, s);
	if (e == YOKE_EINVAL) {
		snprintf(why, sizeof why, "%s", yoke_error());
		yoke_error_clear();
		e = yk_fail(YOKE_EFORMAT, "%s: describes no possible model: %s", path, why);
	}
	return e;
}

int yk_pretrained_check(const char *path, const struct yk_weights *w, const struct yk_family *f,
			const struct yk_model_shape *s)
{
	const struct yk_model *model = yk_pretrained_model(f);
	const int e = check_shape(path, model, s);
	const int64_t described = e == 0 ? yk_model_elements(model, s) : 0;
	if ((uint64_t)described > 2 * yk_weights_elements(w) + (1 << 20))
		return yk_fail(YOKE_EFORMAT,
			       "%s: the configuration describes %" PRId64
			       " weights, but the files have %" PRIu64,
			       path, described, yk_weights_elements(w));
	return e;
}

// stored: names and layout of the weights in the files.
static int make_network(const char *path, struct yk_weights *w, const struct yk_family *stored,
			const struct yk_model_shape *s, int format, struct yk_pretrained *p)
{
	int e = yk_pretrained_check(path, w, p->family, s);
	if (e == 0)
		e = yk_network_new_deferred(yk_pretrained_model(p->family), s, &p->net);
	return e < 0 ? e : yk_weights_load(w, stored, format, p->net);
}

// The format of the matrices: YK_WEIGHTS_AS_PUBLISHED unless dtype or quant is given.
static int format_of(const char *path, const struct yoke_model_options *o, int *to)
{
	static const struct {
		const char *name;
		int format;
	} dtypes[] = { { "f32", YOKE_QUANT_F32 },
		       { "f16", YOKE_QUANT_F16 },
		       { "bf16", YOKE_QUANT_BF16 } },
	  quants[] = { { "q8_0", YOKE_QUANT_Q8_0 },
		       { "q4_0", YOKE_QUANT_Q4_0 },
		       { "q4_1", YOKE_QUANT_Q4_1 },
		       { "q5_0", YOKE_QUANT_Q5_0 },
		       { "q5_1", YOKE_QUANT_Q5_1 } };
	if (o->dtype && o->quant)
		return yk_fail(YOKE_EINVAL, "%s: dtype %s and quant %s are both given; drop one",
			       path, o->dtype, o->quant);
	*to = YK_WEIGHTS_AS_PUBLISHED;
	for (size_t i = 0; o->dtype && i < sizeof dtypes / sizeof *dtypes; i++)
		if (!strcmp(dtypes[i].name, o->dtype))
			*to = dtypes[i].format;
	for (size_t i = 0; o->quant && i < sizeof quants / sizeof *quants; i++)
		if (!strcmp(quants[i].name, o->quant))
			*to = quants[i].format;
	if (*to == YK_WEIGHTS_AS_PUBLISHED && o->dtype)
		return yk_fail(YOKE_EINVAL, "%s: dtype '%.40s' is not f32, f16 or bf16", path,
			       o->dtype);
	if (*to == YK_WEIGHTS_AS_PUBLISHED && o->quant)
		return yk_fail(YOKE_EINVAL,
			       "%s: quant '%.40s' is not q8_0, q4_0, q4_1, q5_0 or q5_1", path,
			       o->quant);
	return 0;
}

// Sets the dtype of the network's caches.
static int set_cache(const char *path, const char *kv, struct yk_network *n)
{
	bool half = kv && !strcmp(kv, "f16");
	if (kv && !half && strcmp(kv, "f32"))
		return yk_fail(YOKE_EINVAL, "%s: kv '%.40s' is neither f16 nor f32", path, kv);
	for (int i = 0; i < n->params.count && !kv; i++)
		half |= n->params.row[i].format != YOKE_QUANT_F32;
	n->cache_dtype = half ? yoke_f16 : YOKE_DTYPE_NONE;
	return 0;
}

static int limit_context(const char *path, int64_t context, int64_t max, struct yk_model_shape *s)
{
	if (context < 0 || context > max)
		return yk_fail(YOKE_EINVAL,
			       "%s: context %" PRId64 " is not in 1 .. %" PRId64 ", the model's",
			       path, context, max);
	if (context)
		s->context = context;
	return 0;
}

// The shape of a network whose sequences have at most that many tokens; 0: as the files say.
static int open_files(const char *path, int64_t context, struct yk_weights *w,
		      const struct yk_family **f, struct yk_model_shape *s)
{
	json_t *config;
	const int e = yk_pretrained_files(path, context, w, f, s, &config);
	json_decref(config);
	return e < 0 ? e : limit_context(path, context, s->context, s);
}

int yk_pretrained_hash(const char *path, uint64_t *hash, uint64_t *state)
{
	const struct yk_family *family;
	struct yk_model_shape shape;
	struct yk_weights *w = yk_weights_new(path);
	int e = w ? open_files(path, 0, w, &family, &shape) : YOKE_ENOMEM;
	if (e == 0 && state)
		e = yk_weights_state(w, state);
	if (e == 0 && hash)
		e = yk_weights_hash(w, hash);
	yk_weights_release(w);
	return e;
}

int yk_pretrained_shape(const char *path, int64_t context, struct yk_model_shape *to)
{
	const struct yk_family *family;
	struct yk_model_shape shape;
	struct yk_weights *w = yk_weights_new(path);
	int e = w ? open_files(path, context, w, &family, &shape) : YOKE_ENOMEM;
	yk_weights_release(w);
	if (e == 0)
		e = family->encoder ?
			    yk_fail(YOKE_EUNSUPPORTED,
				    "%s: is an encoder, which predicts no tokens: it cannot be trained",
				    path) :
			    check_shape(path, &yk_model_decoder, &shape);
	if (e == 0)
		*to = shape;
	return e;
}

// Opens a model without adapters.  ck: a run's checkpoint; NULL: a published model.
static int open_weights(const char *path, const struct yk_checkpoint *ck,
			const struct yoke_model_options *o, struct yk_pretrained *p)
{
	const struct yk_family *stored;
	struct yk_model_shape shape;
	int format = YK_WEIGHTS_AS_PUBLISHED, e = format_of(path, o, &format);
	struct yk_weights *w = e == 0 ? yk_weights_new(path) : NULL;
	if (e == 0 && !w)
		e = YOKE_ENOMEM;
	if (e == 0 && ck) {
		e = yk_run_files(path, ck, w, &p->family, &stored, &shape);
		if (e == 0)
			e = limit_context(path, o->context, shape.decoder.positions, &shape);
	} else if (e == 0) {
		e = open_files(path, o->context, w, &p->family, &shape);
		stored = p->family;
	}
	if (e == 0)
		e = make_network(path, w, stored, &shape, format, p);
	if (e == 0)
		e = set_cache(path, o->kv, p->net);
	yk_weights_release(w);
	p->variables = format == YOKE_QUANT_F32;
	return e;
}

// Opens the frozen model of a run with its adapters.
static int open_adapted(const char *path, const struct yk_checkpoint *ck,
			const struct yoke_model_options *options, struct yk_pretrained *p)
{
	struct yk_adapter_manifest x = { 0 };
	struct yoke_model_options o = *options;
	const struct yk_model *model;
	struct yk_model_shape s;
	struct yk_checkpoint base = { 0 };
	int e = yk_model_parse(ck->model, path, &model, &s);
	if (e == 0)
		e = yk_adapter_parse(path, ck->adapter, &x);
	if (e < 0)
		return e;
	free(x.layer);
	if (!o.dtype && !o.quant) {
		o.dtype = x.dtype;
		o.quant = x.quant;
	}
	const bool published = yk_pretrained_is(x.base);
	o.context = s.context;
	if (!published)
		e = yk_checkpoint_open(x.base, &base);
	if (e == 0 && base.adapter)
		e = yk_fail(YOKE_EINVAL, "%s: has adapters only, and no weights to freeze", x.base);
	if (e == 0)
		e = open_weights(x.base, published ? NULL : &base, &o, p);
	yk_checkpoint_fini(&base);
	if (e == 0)
		e = yk_adapter_attach(path, x.base, p->net);
	if (e == 0 && options->context)
		e = limit_context(path, options->context, s.decoder.positions, &p->net->shape);
	if (e == 0 && !(p->base = strdup(x.base)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for a path", path);
	return e;
}

// Does a folder have the files of a run, complete or not?
static bool is_run(const char *path)
{
	struct stat st;
	char *manifest = yk_pretrained_is(path) ? NULL : in_folder(path, "manifest.json");
	const bool yes = manifest && (lstat(manifest, &st) == 0 || exists(path, "run.json"));
	free(manifest);
	return yes;
}

static int open_run(const char *path, const struct yoke_model_options *o, struct yk_pretrained *p)
{
	struct yk_checkpoint ck;
	int e = yk_checkpoint_open(path, &ck);
	if (e < 0)
		return e;
	e = ck.adapter ? open_adapted(path, &ck, o, p) : open_weights(path, &ck, o, p);
	yk_checkpoint_fini(&ck);
	p->run = true;
	return e;
}

int yk_pretrained_open(const char *path, const struct yoke_model_options *options,
		       struct yk_pretrained *to)
{
	struct yoke_model_options o = { 0 };
	struct yk_pretrained p = { 0 };
	if (options && yk_sized_read(&o, sizeof o, options, "model_open", "yoke_model_options") < 0)
		return yoke_error_code();
	if (!path)
		return yk_fail(YOKE_EINVAL, "model_open: the path is NULL");
	const int e = is_run(path) ? open_run(path, &o, &p) : open_weights(path, NULL, &o, &p);
	if (e < 0)
		yk_pretrained_close(&p);
	else
		*to = p;
	return e;
}

void yk_pretrained_close(struct yk_pretrained *p)
{
	yk_network_free(p->net);
	free(p->base);
	*p = (struct yk_pretrained){ 0 };
}

// ---- public functions ----

yoke_model *yoke_model_open(const char *path, const struct yoke_model_options *options)
{
	yoke_model *m = calloc(1, sizeof *m);
	if (!m)
		yk_fail(YOKE_ENOMEM, "model_open: no memory");
	else if (yk_pretrained_open(path, options, &m->is) == 0) {
		m->path = strdup(path);
		if (m->path)
			return m;
		yk_fail(YOKE_ENOMEM, "model_open: no memory");
	}
	yoke_model_free(m);
	return NULL;
}

void yoke_model_free(yoke_model *m)
{
	if (m) {
		yk_pretrained_close(&m->is);
		yoke_tokenizer_free(m->tokenizer);
		free(m->path);
	}
	free(m);
}

static int given(const yoke_model *m, const char *function)
{
	return m ? 0 : yk_fail(YOKE_EINVAL, "%s: the model is NULL", function);
}

const yoke_tokenizer *yoke_model_tokenizer(yoke_model *m)
{
	if (given(m, "model_tokenizer") < 0)
		return NULL;
	if (!m->tokenizer)
		m->tokenizer = m->is.run ? yk_run_tokenizer(m->path, m->is.net->shape.vocab) :
					   yoke_tokenizer_open(m->path);
	return m->tokenizer;
}

int yoke_model_info(const yoke_model *m, struct yoke_model_info *to)
{
	const int e = given(m, "model_info");
	if (e < 0)
		return e;
	const struct yk_model_shape *s = &m->is.net->shape;
	const struct yoke_model_info info = {
		.family = m->is.family->name,
		.vocabulary = s->vocab,
		.context = s->context,
		.layers = s->layers,
		.width = s->embed,
		.heads = s->heads,
		.kv_heads = s->decoder.kv_heads,
		.head_dim = s->decoder.head_dim,
		.hidden = s->decoder.hidden,
		.parameters = yk_network_base(m->is.net)->elements,
	};
	return yk_sized_write(to, sizeof info, &info, "model_info", "yoke_model_info");
}

yoke_tensor *yoke_model_logits(yoke_model *m, yoke_tensor *ids)
{
	if (given(m, "model_logits") < 0 || !ids)
		return NULL;
	if (yoke_rank(ids) != 2) {
		yk_fail(YOKE_ESHAPE, "model_logits: ids have %d dims; they are [B,T]",
			yoke_rank(ids));
		return NULL;
	}
	if (m->is.family->encoder) {
		yk_fail(YOKE_EUNSUPPORTED,
			"model_logits: %s is an encoder, which predicts no tokens; use yoke_model_embed",
			m->path);
		return NULL;
	}
	yoke_tensor *x = yk_network_forward(m->is.net, ids, 0);
	return x ? m->is.net->model->logits(m->is.net, x) : NULL;
}

int yoke_model_parameters(yoke_model *m, int max, yoke_tensor **to, const char **names)
{
	const int e = given(m, "model_parameters");
	if (e < 0)
		return e;
	const struct yk_parameters *p = yk_network_base(m->is.net);
	for (int i = 0; i < p->count && i < max; i++) {
		to[i] = p->var[i];
		if (names)
			names[i] = p->row[i].name;
	}
	return p->count;
}
