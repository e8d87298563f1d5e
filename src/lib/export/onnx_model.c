// SPDX-License-Identifier: Apache-2.0
// Language models as ONNX files: input_ids [batch,context] i64 -> logits f32; of encoders also
// attention_mask -> last_hidden_state.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "export/export.h"
#include "nn/encoder.h"
#include "nn/model.h"
#include "yoke-model.h"

enum { MAX_CONTEXT = 1024 }; // by default: each run computes all positions

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *mask)
{
	const int64_t b = yoke_dim(ids, 0), t = yoke_dim(ids, 1);
	ids = yoke_cast(ids, yoke_i32);
	if (n->model == &yk_model_encoder)
		return yk_encoder_forward(
			n, ids,
			yoke_reshape(yoke_ne(mask, yoke_const(0)), 4, (int64_t[]){ b, 1, 1, t }));
	yoke_tensor *x = yk_network_forward(n, ids, 0);
	return x ? n->model->logits(n, x) : NULL;
}

int yk_export_onnx(const struct yk_network *n, const char *path, const char *to,
		   const struct yk_onnx_export *o)
{
	const bool encoder = n->model == &yk_model_encoder;
	const int64_t usual = n->shape.context < MAX_CONTEXT ? n->shape.context : MAX_CONTEXT;
	const int64_t dims[] = { o->batch ? o->batch : 1, o->context ? o->context : usual };
	if (dims[1] > n->shape.context)
		return yk_fail(YOKE_EINVAL, "context=%" PRId64 ": %s has %" PRId64, dims[1], path,
			       n->shape.context);
	char *data = NULL; // of large models
	int e = asprintf(&data, "%s.data", to) < 0 ? yk_fail(YOKE_ENOMEM, "%s: no memory", to) :
						     yk_export_target(path, to, o->overwrite);
	if (e == 0)
		e = yk_export_target(path, data, o->overwrite);
	int64_t *zeros = e < 0 ? NULL : calloc((size_t)(dims[0] * dims[1]), sizeof *zeros);
	const char **names = e < 0 ? NULL : calloc((size_t)n->params.count + 1, sizeof *names);
	if (e == 0 && (!zeros || !names))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for %" PRId64 " tokens", to,
			    dims[0] * dims[1]);
	for (int i = 0; i < n->params.count && e == 0; i++)
		names[i] = n->params.row[i].name;
	if (e == 0) {
		yoke_scope *scope = yoke_scope_begin("model");
		yoke_tensor *in[] = { yoke_from(yoke_i64, 2, dims, zeros),
				      yoke_from(yoke_i64, 2, dims, zeros) };
		yoke_tensor *out = forward(n, in[0], in[1]);
		const struct yoke_onnx_options options = {
			.size = sizeof options,
			.name = n->model->name,
			.inputs = (const char *const[]){ "input_ids", "attention_mask" },
			.outputs =
				(const char *const[]){ encoder ? "last_hidden_state" : "logits" },
			.weights = n->params.count,
			.weight = n->params.var,
			.weight_names = names,
			.external = o->external,
		};
		e = out ? yoke_onnx_write(to, encoder ? 2 : 1, in, 1, &out, &options) :
			  yoke_error_code();
		const int end = yoke_scope_end(scope);
		e = e < 0 ? e : end;
	}
	free(data);
	free(zeros);
	free(names);
	return e;
}
