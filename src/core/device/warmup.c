// SPDX-License-Identifier: Apache-2.0
// Progress of testing and compiling for the plan that this thread makes.
#include "config.h"

#include "device/warmup.h"

#include <stdio.h>

#include "base/clock.h"

static _Thread_local struct {
	yk_warmup_fn *fn;
	void *arg;
	struct yk_warmup now;
	char what[160];
	bool planning;
	double began, total;
} mine;

static bool is_warming(void)
{
	return mine.planning && (mine.now.tested || mine.now.compiled);
}

static void notify(void)
{
	if (!mine.fn || !is_warming())
		return;
	mine.now.seconds = yk_seconds() - mine.began;
	mine.fn(&mine.now, mine.arg);
}

void yk_warmup_to(yk_warmup_fn *fn, void *arg)
{
	mine.fn = fn;
	mine.arg = arg;
}

double yk_warmup_seconds(void)
{
	return mine.total;
}

void yk_warmup_begin(const char *device)
{
	mine.now =
		(struct yk_warmup){ .device = device, .doing = "", .items = "", .what = mine.what };
	mine.what[0] = '\0';
	mine.planning = true;
	mine.began = yk_seconds();
}

void yk_warmup_at(const char *doing, const char *items, uint64_t at, uint64_t of)
{
	mine.now.doing = doing;
	mine.now.items = items;
	mine.now.at = at;
	mine.now.of = of;
	mine.what[0] = '\0';
	notify();
}

void yk_warmup_tests(const char *what)
{
	mine.now.tested++;
	snprintf(mine.what, sizeof mine.what, "%s", what);
	notify();
}

void yk_warmup_compiled(uint32_t programs)
{
	mine.now.compiled += programs;
	if (programs)
		notify();
}

void yk_warmup_end(void)
{
	if (is_warming()) {
		mine.now.over = true;
		notify();
		mine.total += yk_seconds() - mine.began;
	}
	mine.planning = false;
}
