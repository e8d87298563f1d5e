// SPDX-License-Identifier: Apache-2.0
// Opens a trained model for the sub-commands that use one.
#include "config.h"

#include "tool/model_open.h"

#include <string.h>

#include "base/error.h"
#include "tool/tool.h"

struct yoke_model_options yk_opened_options(const struct yk_config *c)
{
	const char *dtype = yk_config_str(c, YK_KEY_dtype), *quant = yk_config_str(c, YK_KEY_quant);
	const char *kv = c->command & (YK_G | YK_C | YK_S) ? yk_config_str(c, YK_KEY_kv) : "auto";
	return (struct yoke_model_options){
		.size = sizeof(struct yoke_model_options),
		.context =
			yk_config_is_set(c, YK_KEY_context) ? yk_config_int(c, YK_KEY_context) : 0,
		.dtype = strcmp(dtype, "file") ? dtype : NULL,
		.quant = strcmp(quant, "none") ? quant : NULL,
		.kv = strcmp(kv, "auto") ? kv : NULL,
	};
}

static int open_model(unsigned command, struct yk_opened *o)
{
	const struct yoke_model_options options = yk_opened_options(&o->config);
	int e = yk_config_apply(&o->config);
	if (e == 0)
		e = yk_trained_open(o->folder, &options, &o->model);
	const char *adapter = yk_config_str(&o->config, YK_KEY_adapter);
	if (e == 0 && *adapter)
		e = yk_trained_attach(&o->model, o->folder, adapter);
	if (e == 0 && command & (YK_G | YK_C) && !options.context)
		yk_trained_widen(&o->model);
	return e;
}

int yk_with_model(unsigned command, int argc, char **argv,
		  int (*fn)(const struct yk_opened *, void *arg), void *arg)
{
	struct yk_opened o = { 0 };
	const char *name = argv[0];
	int status = YK_DONE;
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(name, "no model given; put its folder before the keys");
	o.folder = argv[1];
	if (yk_config_init(&o.config, command) < 0)
		return yk_failed(name);
	if (yk_config_arguments(&o.config, argc - 2, argv + 2) < 0) {
		yk_failed(name);
		status = YK_USAGE;
	} else if (open_model(command, &o) < 0 || fn(&o, arg) < 0) {
		status = yk_reader_exited() ? YK_DONE : yk_failed(name);
	}
	yk_trained_close(&o.model);
	yk_config_fini(&o.config);
	return status;
}

struct yk_sampling yk_opened_sampling(const struct yk_opened *o)
{
	const struct yk_config *c = &o->config;
	return (struct yk_sampling){
		.temperature = yk_config_real(c, YK_KEY_temperature),
		.top_p = yk_config_real(c, YK_KEY_top_p),
		.top_k = yk_config_int(c, YK_KEY_top_k),
		.min_p = yk_config_real(c, YK_KEY_min_p),
		.repetition = yk_config_real(c, YK_KEY_repetition),
		.frequency = yk_config_real(c, YK_KEY_frequency),
		.presence = yk_config_real(c, YK_KEY_presence),
		.seed = (uint64_t)yk_config_int(c, YK_KEY_seed),
	};
}
