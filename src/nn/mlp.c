// SPDX-License-Identifier: Apache-2.0
// The MLP, built of operations.
#include "config.h"

#include "nn/mlp.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "nn/init.h"

int yk_mlp_new(int layers, const int64_t *sizes, yoke_tensor *(*activation)(yoke_tensor *),
	       struct yk_mlp **to)
{
	struct yk_mlp *m = calloc(1, sizeof *m);
	if (!m)
		return yk_fail(YOKE_ENOMEM, "mlp: no memory");
	m->layers = layers;
	m->activation = activation;
	for (int i = 0; i < layers; i++) {
		int64_t in = sizes[i], out = sizes[i + 1];
		if (!yk_parameters_add(&m->params, true, 2, (int64_t[]){ out, in },
				       "layer%d.weight", i) ||
		    !yk_parameters_add(&m->params, false, 1, &out, "layer%d.bias", i)) {
			yk_mlp_free(m);
			return yoke_error_code();
		}
	}
	*to = m;
	return 0;
}

void yk_mlp_free(struct yk_mlp *m)
{
	if (!m)
		return;
	yk_parameters_fini(&m->params);
	free(m);
}

int yk_mlp_init(struct yk_mlp *m, uint64_t seed)
{
	yoke_random_set(seed, 0);
	yoke_scope *s = yoke_scope_begin("init");
	for (int i = 0; i < m->layers; i++) {
		yoke_tensor *w = m->params.var[2 * i];
		yk_init_normal(w, m->params.row[2 * i].name, sqrt(2 / (double)yoke_dim(w, 1)));
		yk_init_fill(m->params.var[2 * i + 1], 0);
	}
	yoke_eval(0, NULL);
	return yoke_scope_end(s);
}

yoke_tensor *yk_mlp_forward(const struct yk_mlp *m, yoke_tensor *x)
{
	for (int i = 0; i < m->layers; i++) {
		if (i > 0)
			x = m->activation(x);
		x = yoke_linear(x, m->params.var[2 * i], m->params.var[2 * i + 1]);
	}
	return x;
}
