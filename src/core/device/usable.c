// SPDX-License-Identifier: Apache-2.0
// Filters a device's implementations by the results of their self-tests, and requests tests that
// are missing.
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "device/trust.h"
#include "device/tuning.h"
#include "device/usable.h"

int yk_usable_subject(const struct yoke_op *op)
{
	return op->code == YOKE_OP_CONTRACT && op->map ? YK_TRUST_MAPPED : op->code;
}

// The dtype as makers of cases define it: of a map's results, otherwise of the first operand.
int yk_usable_dtype(const struct yoke_op *op)
{
	bool from = op->code != YOKE_OP_MAP && op->nin && op->in[0].kind != YOKE_VIEW_NONE;
	return from ? op->in[0].dtype : op->nout ? op->out[0].dtype : YOKE_DTYPE_NONE;
}

// Decompositions end in these ops, so a device without them is unusable.
static bool is_family(int code)
{
	return code == YOKE_OP_MAP || code == YOKE_OP_REDUCE || code == YOKE_OP_CONTRACT ||
	       code == YOKE_OP_MOVE;
}

static enum yk_trust find(struct yk_device *d, const struct yoke_op *op, struct yk_finding *f)
{
	const enum yk_trust known = yk_trust_of(d, f->subject, f->dtype, f->impl);
	if (known)
		return known;
	yk_tester.test(d, op, f);
	return yk_trust_of(d, f->subject, f->dtype, f->impl);
}

static void refuse(struct yk_device *d, const struct yk_finding *cause)
{
	struct yk_finding f = { .subject = YK_TRUST_DEVICE };
	char what[40];

	if (yk_trust_refusal(d))
		return;
	snprintf(f.why, sizeof f.why, "it failed its self-test: %s %s is wrong",
		 yk_trust_subject(cause->subject, what),
		 cause->dtype ? yoke_dtype_name(cause->dtype) : "transfer");
	yk_trust_set(d, &f, !cause->code);
	struct yk_error_aside *error = yk_error_aside();
	yk_device_leave(d); // fails if the user requested this device by name
	yk_error_restore(error);
}

int yk_device_verdict(const struct yk_device *d)
{
	const char *why = yk_trust_refusal(d);
	if (!why)
		return 0;
	return yk_fail(
		YOKE_EDEVICE,
		"%s cannot be used: %s; `yoke check device %s` shows more, YOKE_BACKEND=^%s does without "
		"it, YOKE_SELFTEST=force tests again",
		d->id, why, d->id, d->backend->table.name);
}

// Warns of a finding of an earlier process when it first matters in this one.
static void remind(struct yk_device *d, const struct yk_finding *f)
{
	static atomic_bool reminded;
	char what[40];
	if (yk_trust_remembered(d) && !atomic_exchange(&reminded, true))
		yk_warn("selftest",
			"%s: %s %s, for one, failed its self-test before and is not used; "
			"`yoke doctor` lists what did, `yoke check device %s` shows more",
			d->id, yk_trust_subject(f->subject, what), yoke_dtype_name(f->dtype),
			d->id);
}

uint64_t yk_device_usable(struct yk_device *d, const struct yoke_op *op)
{
	d = yk_device_real(d);
	uint64_t impls = yk_device_can(d, op);
	if (!impls || !d->trust)
		return impls;
	struct yk_finding f = { .subject = YK_TRUST_MEMORY };
	const int dtype = yk_usable_dtype(op);

	if (find(d, NULL, &f) == YK_WRONG)
		refuse(d, &f);
	if (yk_trust_refusal(d))
		return 0;
	if (!yk_tester.covers(op->code, dtype))
		return impls;
	for (uint32_t impl; impls; impls &= ~((uint64_t)1 << impl)) {
		impl = yk_tuning_pick(d, op, impls);
		f = (struct yk_finding){ .subject = (uint16_t)yk_usable_subject(op),
					 .dtype = (uint8_t)dtype,
					 .impl = (uint8_t)impl };
		if (yk_trust_of(d, f.subject, dtype, impl) == YK_RIGHT)
			return impls;
		const char *name = d->ops->impl_name(d->index, op, impl);
		snprintf(f.name, sizeof f.name, "%s", name ? name : "");
		bool known = yk_trust_of(d, f.subject, dtype, impl) != YK_UNTESTED;
		if (find(d, op, &f) != YK_WRONG)
			return impls;
		if (known)
			remind(d, &f);
	}
	if (is_family(f.subject) && dtype == yoke_f32)
		refuse(d, &f);
	return 0;
}
