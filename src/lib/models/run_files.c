// SPDX-License-Identifier: Apache-2.0
// The weights in the checkpoint of a run, as those of a decoder.
#include "config.h"

#include "models/run_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "formats/checkpoint.h"

const struct yk_family yk_family_gpt = { .name = "gpt", .names = YK_NAMES_YOKE };
static const struct yk_family decoder = { .name = "decoder", .names = YK_NAMES_DECODER };

void yk_gpt_as_decoder(const struct yk_model_shape *gpt, struct yk_model_shape *to)
{
	const struct yk_family *gpt2 = yk_family_named("gpt2");
	struct yk_decoder d = gpt2->is;
	d.kv_heads = gpt->heads;
	d.head_dim = gpt->embed / gpt->heads;
	d.hidden = 4 * gpt->embed;
	d.norm_eps = 1e-5;
	d.positions = gpt->context;
	d.activation = YK_DECODER_GELU_TANH;
	d.embed_scale = 1;
	d.attention_scale = 1 / sqrt((double)d.head_dim);
	d.tied = gpt->tied == 0; // the first word of the key's choices
	snprintf(d.family, sizeof d.family, "%s", gpt2->name);
	*to = *gpt;
	to->decoder = d;
}

int yk_run_files(const char *path, const struct yk_checkpoint *ck, struct yk_weights *w,
		 const struct yk_family **family, const struct yk_family **stored,
		 struct yk_model_shape *to)
{
	const struct yk_model *model;
	struct yk_model_shape s;
	char *file = NULL;
	int e = yk_model_parse(ck->model, path, &model, &s);
	if (e == 0 && model != &yk_model_gpt && model != &yk_model_decoder)
		e = yk_fail(YOKE_EUNSUPPORTED,
			    "%s: is a model of kind '%s'; only model=gpt and models from init= can "
			    "be opened",
			    path, model->name);
	if (e == 0)
		e = yk_checkpoint_holds(path, ck, YK_CHECKPOINT_MODEL,
					sizeof(float) * (uint64_t)yk_model_elements(model, &s));
	if (e == 0)
		e = yk_checkpoint_verify(path, ck, YK_CHECKPOINT_MODEL);
	if (e == 0 && asprintf(&file, "%s/%s", path, ck->file[YK_CHECKPOINT_MODEL].name) < 0)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for a path", path);
	if (e == 0)
		e = yk_safetensors_set_open(&w->set, file);
	free(file);
	if (e < 0)
		return e;
	*stored = model == &yk_model_gpt ? &yk_family_gpt : &decoder;
	if (model == &yk_model_gpt)
		yk_gpt_as_decoder(&s, to);
	else
		*to = s;
	*family = yk_family_named(to->decoder.family);
	return *family && !(*family)->encoder ?
		       0 :
		       yk_fail(YOKE_EFORMAT,
			       "%s: describes a decoder of the family '%.40s', which there is not",
			       path, to->decoder.family);
}
