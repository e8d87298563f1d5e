// SPDX-License-Identifier: Apache-2.0
// Opening a model for a sub-command.
#include "config.h"

#include "tool/model_open.h"

#include <string.h>

#include "base/error.h"
#include "tool/tool.h"

static int open_all(struct yk_opened *o)
{
	int e = yk_config_check(&o->config);
	if (e == 0)
		e = yk_config_apply(&o->config);
	if (e == 0)
		e = yk_checkpoint_open(o->folder, &o->checkpoint);
	if (e < 0)
		return e;
	o->tokenizer = yk_tokenizer_load(o->checkpoint.tokenizer, o->folder);
	if (!o->tokenizer)
		return yoke_error_code();
	e = yk_model_load(o->folder, &o->checkpoint, &o->gpt);
	if (e < 0)
		return e;
	int64_t vocab = o->gpt->shape.vocab, size = yk_tokenizer_size(o->tokenizer);
	if (vocab == size)
		return 0;
	return yk_fail(YOKE_EFORMAT, "%s: the model knows %lld tokens, its tokenizer %lld",
		       o->folder, (long long)vocab, (long long)size);
}

int yk_open_model(struct yk_opened *o, unsigned command, int argc, char **argv)
{
	*o = (struct yk_opened){ 0 };
	const char *name = argv[0];
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(name, "no model given: its folder comes before the keys");
	o->folder = argv[1];
	if (yk_config_init(&o->config, command) < 0)
		return yk_failed(name);
	int status = YK_DONE;
	if (yk_config_arguments(&o->config, argc - 2, argv + 2) < 0) {
		yk_failed(name);
		status = YK_USAGE;
	} else if (open_all(o) < 0) {
		status = yk_failed(name);
	}
	if (status != YK_DONE)
		yk_close_model(o);
	return status;
}

void yk_close_model(struct yk_opened *o)
{
	yk_gpt_free(o->gpt);
	yk_tokenizer_free(o->tokenizer);
	if (o->checkpoint.model)
		yk_checkpoint_fini(&o->checkpoint);
	yk_config_fini(&o->config);
}
