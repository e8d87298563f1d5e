// SPDX-License-Identifier: Apache-2.0
// The public functions that fine-tune a model: adapters, trainable parameters, the loss of windows.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sized.h"
#include "data/chats.h"
#include "models/adapter.h"
#include "models/pretrained.h"
#include "nn/layer.h"
#include "nn/windows.h"
#include "yoke-quant.h"

int yk_pretrained_trains(const yoke_model *m, const char *call)
{
	if (!m)
		return yk_fail(YOKE_EINVAL, "%s: the model is NULL", call);
	return m->is.family->encoder ? yk_fail(YOKE_EUNSUPPORTED,
					       "%s: %s is an encoder, which predicts no tokens: it "
					       "cannot be trained",
					       call, m->path) :
				       0;
}

// ---- adapters ----

int yoke_model_adapt(yoke_model *m, const struct yoke_lora_options *options)
{
	struct yoke_lora_options o = { 0 };
	struct yk_lora_layer *l;
	size_t n;
	int e = yk_pretrained_trains(m, "model_adapt");
	if (e == 0)
		e = yk_sized_read(&o, sizeof o, options, "model_adapt", "yoke_lora_options");
	if (e < 0)
		return e;
	struct yk_network *net = m->is.net;
	if (net->adapters)
		return yk_fail(YOKE_EINVAL,
			       "model_adapt: %s has adapters already; merge them, or train these",
			       m->path);
	if (!(o.dropout >= 0 && o.dropout < 1))
		return yk_fail(YOKE_EINVAL, "model_adapt: dropout %g is not in 0 .. below 1",
			       o.dropout);
	e = yk_lora_layers(&net->shape, o.targets ? o.targets : "q,v", o.rank, o.alpha, &l, &n);
	if (e < 0)
		return e;
	e = yk_network_adapt(net, n, l);
	free(l);
	if (e == 0)
		e = yk_parameters_draw(&net->params, o.seed);
	if (e < 0)
		yk_network_unadapt(net);
	else
		net->adapter_dropout = o.dropout;
	return e;
}

int yoke_model_load_adapter(yoke_model *m, const char *folder)
{
	int e = yk_pretrained_trains(m, "model_load_adapter");
	if (e == 0 && !folder)
		e = yk_fail(YOKE_EINVAL, "model_load_adapter: the folder is NULL");
	if (e < 0)
		return e;
	const bool had = m->is.net->adapters;
	e = yk_adapter_attach(folder, m->path, m->is.net);
	if (e < 0 && !had)
		yk_network_unadapt(m->is.net);
	return e;
}

// ---- merging ----

static int find_weight(const struct yk_parameters *p, const char *layer)
{
	const size_t n = strlen(layer);
	for (int i = 0; i < p->count; i++)
		if (!strncmp(p->row[i].name, layer, n) && !strcmp(p->row[i].name + n, ".weight"))
			return i;
	return -1;
}

// The sum of a weight and its adapter, in the format of the weight; the caller frees it.
static int merged(const yoke_model *m, int i, const struct yk_adapter_layer *l, void **to)
{
	const struct yk_parameters *p = &m->is.net->frozen;
	const int format = p->row[i].format;
	if (format != YOKE_QUANT_F32 && format != YOKE_QUANT_F16 && format != YOKE_QUANT_BF16)
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"model_merge_adapter: %s of %s is quantized; open the model with dtype "
			"f32, f16 or bf16",
			p->row[i].name, m->path);
	const size_t bytes = (size_t)(l->in * l->out) * sizeof(float);
	float *sum = malloc(bytes);
	void *rows = malloc((size_t)(l->out * yoke_quant_bytes(format, l->in)));
	if (!sum || !rows) {
		free(sum);
		free(rows);
		return yk_fail(YOKE_ENOMEM, "model_merge_adapter: no memory for %s",
			       p->row[i].name);
	}
	yoke_scope *s = yoke_scope_begin("merge");
	yoke_read(format == YOKE_QUANT_F32 ? p->var[i] :
					     yoke_dequant(p->var[i], format, l->in, yoke_f32),
		  sum, bytes);
	int e = yoke_scope_end(s);
	if (e == 0) {
		yk_adapter_add_rows(l, 0, l->out, sum);
		for (int64_t k = 0; k < l->out * l->in && format == YOKE_QUANT_F16 && e == 0; k++)
			if (isfinite(sum[k]) && fabsf(sum[k]) >= 65520)
				e = yk_fail(
					YOKE_ERANGE,
					"model_merge_adapter: %s of %s becomes %g, which f16 does not have; open "
					"the model with dtype=bf16",
					p->row[i].name, m->path, (double)sum[k]);
		if (e == 0)
			e = yoke_quantize(format, l->out, l->in, sum, rows);
	}
	free(sum);
	if (e < 0)
		free(rows);
	else
		*to = rows;
	return e;
}

// Sets a weight to these numbers; a variable stays the same object.
static int set_weight(const yoke_model *m, int i, void *host)
{
	struct yk_parameters *p = &m->is.net->frozen;
	yoke_tensor *was = p->var[i];
	const size_t bytes = yoke_bytes(was);
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yoke_rank(was);
	if (m->is.variables)
		return yoke_put(was, host, bytes);
	for (int d = 0; d < rank; d++)
		dims[d] = yoke_dim(was, d);
	const int e = yk_parameters_set(p, i, yoke_from(yoke_dtype(was), rank, dims, host),
					p->row[i].format);
	if (e == 0)
		yoke_free(was);
	return e;
}

int yoke_model_merge_adapter(yoke_model *m)
{
	struct yk_adapter x = { 0 };
	int e = yk_pretrained_trains(m, "model_merge_adapter");
	if (e < 0)
		return e;
	if (!m->is.net->adapters)
		return yk_fail(YOKE_EINVAL, "model_merge_adapter: %s has no adapters", m->path);
	e = yk_adapter_copy(m->is.net, &x);
	void **host = e == 0 ? calloc(x.n + 1, sizeof *host) : NULL;
	if (e == 0 && !host)
		e = yk_fail(YOKE_ENOMEM, "model_merge_adapter: no memory");
	for (size_t i = 0; i < x.n && e == 0; i++) // all, before the model changes
		e = merged(m, find_weight(&m->is.net->frozen, x.layer[i].is.name), &x.layer[i],
			   &host[i]);
	for (size_t i = 0; i < x.n && e == 0; i++)
		e = set_weight(m, find_weight(&m->is.net->frozen, x.layer[i].is.name), host[i]);
	if (e == 0)
		yk_network_unadapt(m->is.net);
	for (size_t i = 0; i < x.n && host; i++)
		free(host[i]);
	free(host);
	yk_adapter_close(&x);
	return e;
}

// ---- trainable parameters ----

static int forward(yoke_module *module, void *model, int n, yoke_tensor *const *in, int k,
		   yoke_tensor **out)
{
	const int e = yk_layer_one(module, n, k);
	if (e == 0)
		out[0] = yoke_model_logits(model, in[0]);
	return e < 0 ? e : out[0] ? 0 : yoke_error_code();
}

static const struct yoke_module_class class = {
	.size = sizeof class,
	.name = "language model",
	.forward = forward,
};

yoke_module *yoke_model_module(yoke_model *m)
{
	if (yk_pretrained_trains(m, "model_module") < 0)
		return NULL;
	const struct yk_network *net = m->is.net;
	if (!net->adapters && !m->is.variables) {
		yk_fail(YOKE_EINVAL,
			"model_module: the weights of %s cannot be trained; add adapters, or open "
			"it "
			"with dtype f32",
			m->path);
		return NULL;
	}
	yoke_module *module = yoke_module_new(&class, m);
	for (int i = 0; module && i < net->params.count; i++) {
		char *name = strdup(net->params.row[i].name);
		if (!name ||
		    yk_grow(&module->own, &module->cap, module->n + 1, sizeof *module->own) < 0) {
			free(name);
			yoke_module_free(module);
			yk_fail(YOKE_ENOMEM, "model_module: no memory");
			return NULL;
		}
		// the network frees the tensor
		module->own[module->n++] = (struct yk_module_own){ .name = name,
								   .tensor = net->params.var[i],
								   .shared = true };
	}
	return module;
}

// ---- the loss ----

int yoke_model_mode(yoke_model *m, int training)
{
	if (!m)
		return yk_fail(YOKE_EINVAL, "model_mode: the model is NULL");
	m->trains = training;
	return 0;
}

yoke_tensor *yoke_model_loss(yoke_model *m, yoke_tensor *windows)
{
	if (yk_pretrained_trains(m, "model_loss") < 0 ||
	    yk_require_as(windows, "model_loss", "windows") < 0)
		return NULL;
	struct yk_network *net = m->is.net;
	const int rank = yoke_rank(windows);
	if (rank < 0)
		return NULL;
	const int64_t last = rank ? yoke_dim(windows, rank - 1) : 0;
	const bool packed = rank == 3 && yoke_dim(windows, 1) == YK_PACKED_FIELDS;
	const int64_t tokens = packed ? last : last - 1;
	if ((rank != 2 && !packed) || tokens < 1 || tokens > net->shape.context) {
		yk_fail(YOKE_ESHAPE,
			"model_loss: windows are i32 [B,T + 1] or [B,3,T] with T in 1 .. %lld, got "
			"rank %d, last axis %lld",
			(long long)net->shape.context, rank, (long long)last);
		return NULL;
	}
	net->trains = m->trains;
	yoke_tensor *loss = yk_windows_loss(net, windows, 0);
	net->trains = false;
	return loss;
}
