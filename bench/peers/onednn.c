// SPDX-License-Identifier: Apache-2.0
// Calls oneDNN's matmul through its C interface, version 2: prepared once, executed many times.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#endif

#include "peers.h"

#if defined HAVE_ONEDNN && DNNL_VERSION_MAJOR == 2

struct peer_matmul {
	dnnl_primitive_t primitive;
	dnnl_stream_t stream;
	dnnl_exec_arg_t args[3];
};

static dnnl_engine_t engine;

static bool describe(dnnl_memory_desc_t *d, const struct peer_shape *s, int64_t rows,
		     int64_t cols, bool t)
{
	dnnl_dims_t dims = { s->batch, rows, cols };
	dnnl_dims_t strides = { rows * cols, t ? 1 : cols, t ? rows : 1 };
	int first = s->batch == 1; // a plain matrix

	return !dnnl_memory_desc_init_by_strides(d, 3 - first, dims + first,
						 s->bf16 ? dnnl_bf16 : dnnl_f32,
						 strides + first);
}

struct peer_matmul *peer_matmul_new(const struct peer_shape *s, void *a, void *b, void *c)
{
	struct peer_matmul *p = calloc(1, sizeof *p);
	dnnl_memory_desc_t md[3];
	dnnl_matmul_desc_t d;
	dnnl_primitive_desc_t pd = NULL;
	void *data[3] = { a, b, c };
	static const int args[3] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };

	if (!p || (!engine && dnnl_engine_create(&engine, dnnl_cpu, 0)) ||
	    !describe(&md[0], s, s->m, s->k, s->ta) ||
	    !describe(&md[1], s, s->k, s->n, s->tb) ||
	    !describe(&md[2], s, s->m, s->n, false) ||
	    dnnl_matmul_desc_init(&d, &md[0], &md[1], NULL, &md[2]) ||
	    dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL) ||
	    dnnl_primitive_create(&p->primitive, pd) ||
	    dnnl_stream_create(&p->stream, engine, dnnl_stream_default_flags))
		goto fail;
	for (int i = 0; i < 3; i++) {
		p->args[i].arg = args[i];
		if (dnnl_memory_create(&p->args[i].memory, &md[i], engine, data[i]))
			goto fail;
	}
	dnnl_primitive_desc_destroy(pd);
	return p;
fail:
	if (pd)
		dnnl_primitive_desc_destroy(pd);
	peer_matmul_free(p);
	return NULL;
}

void peer_matmul_run(struct peer_matmul *p)
{
	if (dnnl_primitive_execute(p->primitive, p->stream, 3, p->args) ||
	    dnnl_stream_wait(p->stream)) {
		fprintf(stderr, "oneDNN: matmul failed\n");
		exit(1);
	}
}

void peer_matmul_free(struct peer_matmul *p)
{
	if (!p)
		return;
	for (int i = 0; i < 3; i++)
		if (p->args[i].memory)
			dnnl_memory_destroy(p->args[i].memory);
	if (p->stream)
		dnnl_stream_destroy(p->stream);
	if (p->primitive)
		dnnl_primitive_destroy(p->primitive);
	free(p);
}

const char *peer_matmul_name(void)
{
	static char name[64];
	const dnnl_version_t *v = dnnl_version();

	snprintf(name, sizeof name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
	return name;
}

#else

struct peer_matmul *peer_matmul_new(const struct peer_shape *s, void *a, void *b, void *c)
{
	(void)s, (void)a, (void)b, (void)c;
	return NULL;
}

void peer_matmul_run(struct peer_matmul *p)
{
	(void)p;
}

void peer_matmul_free(struct peer_matmul *p)
{
	(void)p;
}

const char *peer_matmul_name(void)
{
	return "no oneDNN 2";
}

#endif
