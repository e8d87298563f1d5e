// SPDX-License-Identifier: Apache-2.0
// The self-test: runs a few conformance cases through an implementation before its first use, on a
// separate queue and separate segments.  The choice of cases depends only on op, dtype and, for
// attention, head size.
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "conform/run.h"
#include "conform/sample.h"
#include "conform/selftest.h"
#include "device/trust.h"
#include "device/tuning.h"
#include "device/usable.h"
#include "device/warmup.h"

enum {
	SEED = 20251,
	CASES = 4,     // for kernels built once for many shapes
	GENERATED = 2, // for generated kernels: each case compiles its own program
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // one test at a time

// ---- testing ----

// The command that shows a finding in detail: "`yoke check device opencl:0 --ops sort.f32`".
static const char *command_of(const struct yk_device *d, const struct yk_finding *f, char to[128])
{
	const int code = f->subject == YK_TRUST_MAPPED ? YOKE_OP_CONTRACT : f->subject;
	const struct yk_case_row *row = yk_case_row(code);
	const char *name = f->subject == YK_TRUST_MEMORY ? "memory" : row ? row->name : NULL;
	const char *dtype = row && f->dtype ? yoke_dtype_name(f->dtype) : "";

	snprintf(to, 128, "`yoke check device %s%s%s%s%s`", d->id, name ? " --ops " : "",
		 name ? name : "", *dtype ? "." : "", dtype);
	return to;
}

struct test {
	struct yk_runner runner;
	struct yk_arena memory;
	struct yk_case c;
};

// Whether a failed call proves a fault of the implementation: only if the device still works.
static bool conclusive(struct test *t, const struct yk_case_verdict *v)
{
	if (v->good || !v->code)
		return true;
	if (v->code == YOKE_ENOMEM || v->code == YOKE_EFORK)
		return false;
	return yk_runner_memory(&t->runner, SEED).good;
}

// Attention kernels are built per head size and compile slowest: a case of another size would
// compile a kernel that is not needed otherwise.  0 for other ops.
static int64_t head_of(const struct yoke_op *op)
{
	int64_t n = 32;

	if (op->code != YOKE_OP_ATTENTION && op->code != YOKE_OP_ATTENTION_BACKWARD)
		return 0;
	while (n < op->in[0].dims[3] && n < 128) // there are no cases beyond
		n *= 2;
	return n;
}

// Runs cases until one fails.  False: inconclusive.
static bool run_cases(struct test *t, const struct yk_case_row *row, const struct yoke_op *op,
		      uint32_t impl, struct yk_case_verdict *v)
{
	struct yk_device *d = t->runner.device;
	const bool mapped = yk_usable_subject(op) == YK_TRUST_MAPPED;
	int left = op->map ? GENERATED : CASES, unbuilt = 0;

	*v = (struct yk_case_verdict){ .good = true };
	for (uint32_t k = 0; k < row->full && left && v->good; k++) {
		if (!yk_case_make(&t->c, row, yk_usable_dtype(op), k, SEED, d->info.flags,
				  &t->memory))
			return false;
		if (!(yk_runner_can(&t->runner, &t->c) >> impl & 1) ||
		    head_of(&t->c.op) != head_of(op) ||
		    (op->code == YOKE_OP_CONTRACT && mapped != (t->c.op.map != NULL)))
			continue;
		*v = yk_runner_run(&t->runner, &t->c, impl, false);
		// this is no fault of kernels that do build
		if (v->code == YOKE_EUNSUPPORTED && ++unbuilt)
			*v = (struct yk_case_verdict){ .good = true };
		left--;
	}
	return conclusive(t, v) && !unbuilt;
}

// With the lock held.
static void test(struct yk_device *d, const struct yk_case_row *row, const struct yoke_op *op,
		 struct yk_finding *f)
{
	struct test *t = calloc(1, sizeof *t);
	struct yk_case_verdict v = { .good = true };
	char what[40], whole[160], shown[128];

	yk_trust_subject(f->subject, what);
	snprintf(whole, sizeof whole, "%s%s%s%s%s", what, f->dtype ? " " : "",
		 f->dtype ? yoke_dtype_name(f->dtype) : "", *f->name ? " by " : "", f->name);
	yk_log(YOKE_LOG_INFO, "selftest", "%s: checks %s", d->id, whole);
	yk_warmup_tests(whole);
	bool known = t && !yk_runner_init(&t->runner, d);
	if (known) {
		if (row) {
			known = run_cases(t, row, op, f->impl, &v);
		} else {
			v = yk_runner_memory(&t->runner, SEED);
			known = v.good || !v.code;
		}
		yk_runner_fini(&t->runner);
		yk_arena_fini(&t->memory);
	}
	free(t);
	f->right = !known || v.good;
	snprintf(f->why, sizeof f->why, "%s", v.why);
	f->code = v.code;
	yk_trust_set(d, f, known && !v.code); // a transient failure may pass next time
	if (f->right)
		return;
	yk_warn("selftest", "%s: %s %s and is not used: %s; %s shows more", d->id, whole,
		v.code ? "fails" : "gives wrong results", v.why, command_of(d, f, shown));
}

// Runs the first cases with the implementations in use; false if one fails or none accepts a case.
static bool run_first(struct test *t, const struct yk_case_row *row, int dtype)
{
	struct yk_device *d = t->runner.device;
	int run = 0;

	for (uint32_t k = 0; k < row->full && run < GENERATED; k++) {
		if (!yk_case_make(&t->c, row, dtype, k, SEED, d->info.flags, &t->memory))
			continue;
		uint64_t impls = yk_runner_can(&t->runner, &t->c);
		if (!impls)
			continue;
		uint32_t impl = yk_tuning_pick(d, &t->c.op, impls);
		if (!yk_runner_run(&t->runner, &t->c, impl, false).good)
			return false;
		run++;
	}
	return run > 0;
}

bool yk_selftest_runs(struct yk_device *d, int code, int dtype)
{
	const struct yk_case_row *row = yk_case_row(code);
	bool right = false;

	if (!row || !(row->dtypes >> dtype & 1))
		return false;
	pthread_mutex_lock(&lock);
	struct yk_error_aside *error = yk_error_aside();
	struct test *t = calloc(1, sizeof *t);
	if (t && !yk_runner_init(&t->runner, d)) {
		right = run_first(t, row, dtype);
		yk_runner_fini(&t->runner);
		yk_arena_fini(&t->memory);
	}
	free(t);
	yk_error_restore(error);
	pthread_mutex_unlock(&lock);
	return right;
}

// ---- called by device/usable.c ----

static bool covers(int code, int dtype)
{
	const struct yk_case_row *row = yk_case_row(code);
	return row && row->dtypes >> dtype & 1;
}

static void test_once(struct yk_device *d, const struct yoke_op *op, struct yk_finding *f)
{
	pthread_mutex_lock(&lock);
	if (!yk_trust_of(d, f->subject, f->dtype, f->impl)) {
		struct yk_error_aside *error = yk_error_aside();
		test(d, op ? yk_case_row(op->code) : NULL, op, f);
		yk_error_restore(error);
	}
	pthread_mutex_unlock(&lock);
}

const struct yk_tester yk_tester = { covers, test_once };
