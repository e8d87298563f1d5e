// SPDX-License-Identifier: Apache-2.0
// Loss of a model over windows of text.
#include "config.h"

#include "train/validate.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "train/advise.h"

yoke_tensor *yk_windows_loss(const struct yk_network *net, yoke_tensor *ids, double dropout)
{
	int64_t width = yoke_dim(ids, 1);
	return net->model->loss(net, yoke_slice(ids, 1, 0, width - 1, 1),
				yoke_slice(ids, 1, 1, width, 1), dropout);
}

// Window k of `windows` that are spread evenly over `all`, as k * all / windows without overflow.
static int64_t spread(int64_t k, int64_t windows, int64_t all)
{
	return k * (all / windows) + k * (all % windows) / windows;
}

// Losses of windows, weighted by rows: full batches share one plan, a last, smaller one has its own.
int yk_model_validate(const struct yk_network *net, const struct yk_data *data, int64_t batch,
		      int64_t most, yk_validate_fn *go_on, void *arg, double *to)
{
	int64_t all = yk_data_valid_windows(data), width = net->shape.context + 1;
	int64_t windows = most < all ? most : all, done = 0;
	*to = NAN;
	if (windows == 0)
		return 0;
	if (batch > windows)
		batch = windows;
	int32_t *host = yk_data_windows(data, batch);
	if (!host)
		return yoke_error_code();
	double sum = 0;
	int e = 0;
	while (done < windows && e == 0 && (!go_on || go_on(arg, done, windows))) {
		int64_t rows = 0;
		for (; rows < batch && done + rows < windows && e == 0; rows++) {
			const int64_t got = yk_data_valid(data, spread(done + rows, windows, all), 1, host + rows * width);
			e = got < 0 ? (int)got : 0;
		}
		if (e < 0)
			break;
		float loss = NAN;
		yoke_scope *s = yoke_scope_begin("validate");
		yoke_tensor *ids = yoke_from(yoke_i32, 2, (int64_t[]){ rows, width }, host);
		yoke_read(yk_windows_loss(net, ids, 0), &loss, sizeof loss);
		e = yoke_scope_end(s);
		sum += (double)loss * (double)rows;
		done += rows;
	}
	free(host);
	if (e == 0 && done == windows)
		*to = sum / (double)windows;
	return e;
}

struct validation {
	const struct yk_network *net;
	const struct yk_data *data;
};

// With a network like it, whose values do not matter.
static int rehearse(void *arg, int64_t batch)
{
	const struct validation *v = arg;
	struct yk_network *net = NULL;
	double loss;
	int e = yk_network_new(v->net->model, &v->net->shape, &net);
	if (e == 0)
		e = yk_model_validate(net, v->data, batch, batch, NULL, NULL, &loss);
	yk_network_free(net);
	return e;
}

int yk_validate_advise(const struct yk_network *net, const struct yk_data *data, int64_t batch)
{
	struct validation v = { net, data };
	int64_t windows = yk_data_valid_windows(data);
	return yk_advise_batch(batch < windows ? batch : windows, "YOKE_BACKEND=cpu may", rehearse, &v);
}
