// SPDX-License-Identifier: Apache-2.0
// Computes the occupancy of kernels from the limits of GPU generations.
#include "config.h"

#include "observe/occupancy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// Limits of a multiprocessor; CUDA C++ programming guide, "Technical Specifications per Compute
// Capability".
static const struct multiprocessor {
	int capability;
	unsigned warps, groups;
	unsigned local_kib;
} multiprocessors[] = {
	{ 50, 64, 32, 64 },   { 52, 64, 32, 96 },   { 53, 64, 32, 64 },   { 60, 64, 32, 64 },
	{ 61, 64, 32, 96 },   { 62, 64, 32, 64 },   { 70, 64, 32, 96 },   { 72, 64, 32, 96 },
	{ 75, 32, 16, 64 },   { 80, 64, 32, 164 },  { 86, 48, 16, 100 },  { 87, 48, 16, 164 },
	{ 89, 48, 24, 100 },  { 90, 64, 32, 228 },  { 100, 64, 32, 228 }, { 103, 64, 32, 228 },
	{ 120, 48, 24, 100 }, { 121, 48, 24, 100 },
};

static uint64_t up(uint64_t n, uint64_t step)
{
	return (n + step - 1) / step * step;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// groups = min(max groups, max warps / w, register limit, local memory limit); 64 Ki registers in 4
// partitions.
static double nvidia(const struct multiprocessor *m, const struct yoke_occupancy *o)
{
	const uint64_t w = (o->group + 31) / 32;
	uint64_t groups = min(m->groups, m->warps / w);
	if (o->registers)
		groups = min(groups, 4 * (16384 / up(32 * (uint64_t)o->registers, 256)) / w);
	const uint64_t local =
		m->capability < 80 ? up(o->local_bytes, 256) : up(o->local_bytes + 1024, 128);
	if (local)
		groups = min(groups, (uint64_t)m->local_kib * 1024 / local);
	return (double)(groups * w) / (double)m->warps;
}

double yk_occupancy(const char *generation, const struct yoke_occupancy *o)
{
	if (o->share >= 0 && o->share <= 1)
		return o->share;
	if (strncmp(generation, "sm_", 3) || !o->group || !o->registers || o->registers > 512)
		return NAN;
	const int capability = atoi(generation + 3);
	for (size_t i = 0; i < sizeof multiprocessors / sizeof *multiprocessors; i++)
		if (multiprocessors[i].capability == capability)
			return nvidia(&multiprocessors[i], o);
	return NAN;
}

double yk_step_occupancy(const struct yoke_context *ctx, const struct yk_plan *p, uint64_t step)
{
	const struct yk_step *s = &p->step[step];
	const struct yk_stream *stream = &ctx->stream[s->stream];
	struct yoke_occupancy o = { .size = sizeof o, .share = -1 };
	char why[8];
	if (s->kind != YK_STEP_RUN || ctx->mode.dry)
		return NAN;
	const struct yoke_occupancy_ext *x = stream->device->ops->ext("occupancy");
	if (!x || x->size < sizeof *x)
		return NAN;
	struct yoke_op op = s->op;
	op.out = &p->view[s->view];
	op.in = op.out + op.nout;
	const bool had = yoke_error_code() != 0;
	const int code = x->ask(stream->queue->handle, &op, s->impl, &o);
	if (code < 0)
		yk_backend_detail(had, code, why, sizeof why);
	return code < 0 ? NAN : yk_occupancy(stream->device->info.generation, &o);
}
