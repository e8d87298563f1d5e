// SPDX-License-Identifier: Apache-2.0
// yoke serve and yoke serve batch: from keys to the options of a server.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "config/conf.h"
#include "serve/serve.h"
#include "tokenizer/pieces.h"
#include "tool/model_open.h"
#include "tool/tool.h"

#define BODY_MAX (INT64_C(64) << 20)

struct serving {
	const char *command;
	struct yk_config config;
	struct yk_serve_options options;
	const char *embed, *in, *out;
	struct yk_string adapters; // comma-separated
};

// Takes the arguments that are no keys of the table out of argv.  Returns how many are left.
static int take_arguments(struct serving *v, int argc, char **argv)
{
	const struct {
		const char *name;
		const char **to;
	} own[] = { { "embed=", &v->embed }, { "in=", &v->in }, { "out=", &v->out } };
	int left = 0;
	for (int i = 0; i < argc; i++) {
		bool taken = !strncmp(argv[i], "adapter=", 8);
		if (taken && v->adapters.n)
			yk_string_add(&v->adapters, ",", 1);
		if (taken)
			yk_string_add(&v->adapters, argv[i] + 8, strlen(argv[i] + 8));
		for (size_t k = 0; k < sizeof own / sizeof *own && !taken; k++) {
			const size_t n = strlen(own[k].name);
			taken = !strncmp(argv[i], own[k].name, n) && !*own[k].to;
			if (taken)
				*own[k].to = argv[i] + n;
		}
		if (!taken)
			argv[left++] = argv[i];
	}
	yk_string_add(&v->adapters, "", 1);
	return v->adapters.failed ? yk_fail(YOKE_ENOMEM, "no memory for the arguments") : left;
}

static int read_options(struct serving *v, const char *model)
{
	const struct yk_config *c = &v->config;
	struct yk_serve_options *o = &v->options;
	*o = (struct yk_serve_options){
		.model = model,
		.name = yk_config_str(c, YK_KEY_name),
		.embed = v->embed ? v->embed : "",
		.adapters = v->adapters.s,
		.template = yk_config_str(c, YK_KEY_template),
		.open = yk_opened_options(c),
		.slots = yk_config_int(c, YK_KEY_slots),
		.queue = yk_config_int(c, YK_KEY_queue),
		.step = yk_config_int(c, YK_KEY_step),
		.pages = yk_config_int(c, YK_KEY_pages),
		.alike = *yk_config_str(c, YK_KEY_alike) == '1',
		.host = yk_config_str(c, YK_KEY_host),
		.key_file = yk_config_str(c, YK_KEY_key_file),
		.port = (int)yk_config_int(c, YK_KEY_port),
		.connections = (int)yk_config_int(c, YK_KEY_connections),
		.public = *yk_config_str(c, YK_KEY_open) == '1',
		.timeout = (double)yk_config_int(c, YK_KEY_timeout),
		.drain = (double)yk_config_int(c, YK_KEY_drain),
	};
	const char *body = yk_config_str(c, YK_KEY_body);
	if (yk_parse_bytes(body, &o->body) < 0 || o->body < 1 || o->body > BODY_MAX)
		return yk_fail(YOKE_EINVAL, "body=%s: must be a number of bytes, at most 64M",
			       body);
	return yk_config_apply(c);
}

static int run(struct serving *v, int argc, char **argv, int (*serve)(struct serving *))
{
	if (yk_config_init(&v->config, YK_S) < 0)
		return yk_failed(v->command);
	if (yk_config_arguments(&v->config, argc - 2, argv + 2) < 0 ||
	    read_options(v, argv[1]) < 0) {
		yk_failed(v->command);
		return YK_USAGE;
	}
	return serve(v) < 0 ? yk_failed(v->command) : YK_DONE;
}

static int serve_keys(int argc, char **argv, int (*serve)(struct serving *))
{
	struct serving v = { .command = argv[0] };
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(argv[0], "no model given; put its folder before the keys");
	const int left = take_arguments(&v, argc - 2, argv + 2);
	const int status = left < 0 ? yk_failed(argv[0]) : run(&v, left + 2, argv, serve);
	yk_config_fini(&v.config);
	yk_string_fini(&v.adapters);
	return status;
}

static int serve_requests(struct serving *v)
{
	if (v->in || v->out)
		return yk_fail(YOKE_EINVAL, "in= and out= are for `yoke serve batch`");
	return yk_serve_run(&v->options);
}

static int serve_file(struct serving *v)
{
	if (!v->in || !v->out || !*v->in || !*v->out)
		return yk_fail(
			YOKE_EINVAL,
			"give the requests as in=FILE, and where to write the replies as out=FILE");
	return yk_serve_batch(&v->options, v->in, v->out);
}

int yk_cmd_serve(int argc, char **argv)
{
	return serve_keys(argc, argv, serve_requests);
}

int yk_serve_file(int argc, char **argv)
{
	return serve_keys(argc, argv, serve_file);
}
