// SPDX-License-Identifier: Apache-2.0
// Remembers ops that a device reported as supported but whose kernels then failed to build, so that
// this process does not request the same form again.
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/device.h"
#include "device/quirks.h"
#include "device/trust.h"

struct yk_refusal {
	uint64_t form;
	uint64_t impls; // bit i: implementation i does not build
	struct yk_refusal *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects changes to any device's list

// Hashes the op's properties on which the kernel source depends, but only properties that are the
// same when a plan is lowered and when its step is built; otherwise the refused op would be
// requested again and again. Between the two, strides and with them the number of merged axes
// change if a value is placed inside another; and unused results of several are dropped, whose
// dtypes follow from the rest if there is no map.
static uint64_t form_of(const struct yoke_op *op)
{
	uint64_t h = yk_hash(op->attr, op->nattr * sizeof *op->attr, op->code);
	for (uint32_t i = op->nout > 1 && !op->map ? op->nout : 0; i < op->nout + op->nin; i++) {
		const struct yoke_view *v = i < op->nout ? &op->out[i] : &op->in[i - op->nout];
		uint8_t one[] = { v->kind, v->dtype };
		h = yk_hash(one, sizeof one, h);
	}
	if (op->source)
		h = yk_hash(&op->source->hash, sizeof op->source->hash, h);
	return op->map ? yk_hash(op->map->insn, op->map->ninsn * sizeof *op->map->insn, h) : h;
}

static struct yk_refusal *find(const struct yk_device *d, uint64_t form)
{
	struct yk_refusal *r = atomic_load_explicit(&d->refusals, memory_order_acquire);
	while (r && r->form != form)
		r = r->next;
	return r;
}

int yk_device_refuse(struct yk_device *d, const struct yoke_op *op, uint32_t impl)
{
	uint64_t form = form_of(op);

	d = yk_device_real(d);
	pthread_mutex_lock(&lock);
	struct yk_refusal *r = find(d, form);
	if (r) {
		__atomic_fetch_or(&r->impls, (uint64_t)1 << impl, __ATOMIC_RELAXED);
	} else if ((r = malloc(sizeof *r))) {
		*r = (struct yk_refusal){ form, (uint64_t)1 << impl, atomic_load(&d->refusals) };
		atomic_store_explicit(&d->refusals, r, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return r ? 0 : yk_fail(YOKE_ENOMEM, "no memory to record an implementation that does not "
		"build");
}

uint64_t yk_refused_mask(const struct yk_device *d, const struct yoke_op *op, uint64_t impls)
{
	d = d->real ? d->real : d;
	if (!atomic_load_explicit(&d->refusals, memory_order_relaxed))
		return impls;
	const struct yk_refusal *r = find(d, form_of(op));
	return r ? impls & ~__atomic_load_n(&r->impls, __ATOMIC_RELAXED) : impls;
}

uint64_t yk_device_left_out(const struct yk_device *d)
{
	d = d->real ? d->real : d;
	uint64_t hash = yk_trust_hash(d);
	for (const struct yk_refusal *r = atomic_load_explicit(&d->refusals, memory_order_acquire);
	     r; r = r->next) {
		const uint64_t one[] = { r->form, __atomic_load_n(&r->impls, __ATOMIC_RELAXED) };
		hash += yk_hash(one, sizeof one, 1);
	}
	return hash;
}

uint64_t yk_device_can(const struct yk_device *d, const struct yoke_op *op)
{
	uint64_t impls = d->ops->can(d->index, op);
	if (impls && d->quirks)
		impls = yk_quirks_mask(d, op, impls);
	return impls ? yk_refused_mask(d, op, impls) : 0;
}
