// SPDX-License-Identifier: Apache-2.0
// Collects telemetry of devices and checks that it is plausible.
//
// Each query runs on a separate thread, and callers wait at most one second for it.  A thread that
// does not return is abandoned with its arguments, and its backend is not queried again.
#include "config.h"

#include "observe/telemetry.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "graph/context.h"
#include "yoke-observe.h"

enum { PATIENCE = 1 }; // seconds

struct yk_telemetry { // state of a device
	pthread_mutex_t lock;
	bool off, seen;
	struct yoke_sample before; // previous sample of its backend
	struct yoke_sample last;   // of all sources
	uint64_t ns;
};

// ---- queries with a timeout ----

struct question { // shared by the caller and the query thread; the last to release it frees it
	pthread_mutex_t lock;
	pthread_cond_t done;
	const struct yoke_telemetry *ext;
	uint32_t device;
	struct yoke_sample sample;
	int code, users;
	bool answered;
};

static void leave(struct question *q)
{
	const bool last = --q->users == 0;
	pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	pthread_cond_destroy(&q->done);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void *answer(void *arg)
{
	struct question *q = arg;
	struct yoke_sample s = { .size = sizeof s };
	const int code = q->ext->sample(q->device, &s);
	pthread_mutex_lock(&q->lock);
	q->sample = s;
	q->code = code;
	q->answered = true;
	pthread_cond_signal(&q->done);
	leave(q);
	return NULL;
}

enum outcome { KNOWN, UNKNOWN, BLOCKED };

static enum outcome query(const struct yoke_telemetry *ext, uint32_t device, struct yoke_sample *to)
{
	struct question *q = calloc(1, sizeof *q);
	pthread_attr_t detached;
	pthread_t thread;
	if (!q)
		return UNKNOWN;
	*q = (struct question){ .ext = ext, .device = device, .users = 2 };
	pthread_mutex_init(&q->lock, NULL);
	yk_cond_init(&q->done);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	const bool begun = pthread_create(&thread, &detached, answer, q) == 0;
	pthread_attr_destroy(&detached);
	pthread_mutex_lock(&q->lock);
	if (!begun)
		q->users--;
	const struct timespec until = yk_deadline(PATIENCE);
	while (begun && !q->answered && pthread_cond_timedwait(&q->done, &q->lock, &until) == 0)
		;
	const enum outcome how = !begun       ? UNKNOWN :
				 !q->answered ? BLOCKED :
				 q->code < 0  ? UNKNOWN :
						KNOWN;
	if (how == KNOWN)
		*to = q->sample;
	leave(q);
	return how;
}

// ---- plausibility ----

static bool is_share(double x)
{
	return x >= 0 && x <= 1;
}

const char *yk_telemetry_implausible(const struct yoke_sample *s, const struct yoke_sample *before)
{
	const struct {
		uint32_t bit;
		double x;
	} number[] = {
		{ YOKE_SAMPLE_UTIL, s->util },	     { YOKE_SAMPLE_MEM_UTIL, s->mem_util },
		{ YOKE_SAMPLE_TEMP, s->temp_c },     { YOKE_SAMPLE_MEM_TEMP, s->mem_temp_c },
		{ YOKE_SAMPLE_POWER, s->power_w },   { YOKE_SAMPLE_POWER_LIMIT, s->power_limit_w },
		{ YOKE_SAMPLE_ENERGY, s->energy_j }, { YOKE_SAMPLE_FAN, s->fan },
	};
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		if (s->known & number[i].bit && !isfinite(number[i].x))
			return "a value is no number";
	if ((s->known & YOKE_SAMPLE_UTIL && !is_share(s->util)) ||
	    (s->known & YOKE_SAMPLE_MEM_UTIL && !is_share(s->mem_util)) ||
	    (s->known & YOKE_SAMPLE_FAN && !is_share(s->fan)))
		return "a fraction is not in 0..1";
	if (s->known & YOKE_SAMPLE_MEM_USED && s->known & YOKE_SAMPLE_MEM_TOTAL &&
	    s->mem_used > s->mem_total)
		return "more memory is used than there is";
	if ((s->known & YOKE_SAMPLE_POWER && s->power_w < 0) ||
	    (s->known & YOKE_SAMPLE_ENERGY && s->energy_j < 0))
		return "power or energy is below 0";
	if (before && s->known & before->known & YOKE_SAMPLE_ENERGY &&
	    s->energy_j < before->energy_j)
		return "its energy counter decreases";
	return NULL;
}

// ---- a device ----

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct yk_telemetry *state_of(struct yk_device *d)
{
	pthread_mutex_lock(&making);
	struct yk_telemetry *t = d->telemetry;
	if (!t && (t = calloc(1, sizeof *t))) {
		pthread_mutex_init(&t->lock, NULL);
		__atomic_store_n(&d->telemetry, t, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&making);
	return t;
}

// Samples the device through its own backend; false: it has no data, or is excluded.
static bool by_backend(struct yk_device *d, struct yoke_sample *to)
{
	const struct yoke_telemetry *ext = d->ops->ext("telemetry");
	struct yk_telemetry *t = ext && ext->size >= sizeof *ext ? state_of(d) : NULL;
	const char *why = NULL;
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	enum outcome how = t->off ? UNKNOWN : query(ext, d->index, to);
	if (how == BLOCKED)
		why = "it did not answer within a second";
	else if (how == KNOWN)
		why = yk_telemetry_implausible(to, t->seen ? &t->before : NULL);
	if (why) {
		t->off = true;
		yk_warn("telemetry", "%s: %s; its backend is no longer queried for "
			"telemetry", d->id, why);
	} else if (how == KNOWN) {
		t->before = *to;
		t->seen = true;
	}
	pthread_mutex_unlock(&t->lock);
	return how == KNOWN && !why && to->known;
}

// Copies values that `more` has and `to` lacks.
static void complete(struct yoke_sample *to, const struct yoke_sample *more)
{
	const uint32_t now = more->known & ~to->known;
#define TAKE(bit, member) \
	if (now & (bit)) \
	to->member = more->member
	TAKE(YOKE_SAMPLE_UTIL, util);
	TAKE(YOKE_SAMPLE_MEM_UTIL, mem_util);
	TAKE(YOKE_SAMPLE_MEM_USED, mem_used);
	TAKE(YOKE_SAMPLE_MEM_TOTAL, mem_total);
	TAKE(YOKE_SAMPLE_TEMP, temp_c);
	TAKE(YOKE_SAMPLE_MEM_TEMP, mem_temp_c);
	TAKE(YOKE_SAMPLE_POWER, power_w);
	TAKE(YOKE_SAMPLE_POWER_LIMIT, power_limit_w);
	TAKE(YOKE_SAMPLE_ENERGY, energy_j);
	TAKE(YOKE_SAMPLE_CLOCK, clock_hz);
	TAKE(YOKE_SAMPLE_CLOCK_MAX, clock_max_hz);
	TAKE(YOKE_SAMPLE_MEM_CLOCK, mem_clock_hz);
	TAKE(YOKE_SAMPLE_PCIE_TX, pcie_tx);
	TAKE(YOKE_SAMPLE_PCIE_RX, pcie_rx);
	TAKE(YOKE_SAMPLE_FAN, fan);
	TAKE(YOKE_SAMPLE_THROTTLE, throttle);
#undef TAKE
	to->known |= now;
}

// Whether it is another backend's alias of the same hardware that can be queried.
static bool is_alias(const struct yk_device *a, const void *arg)
{
	const struct yk_device *b = arg;
	const bool same = (*a->info.pci && !strcmp(a->info.pci, b->info.pci)) ||
			  (*a->info.uuid && !strcmp(a->info.uuid, b->info.uuid));
	return a != b && same && a->ops->ext("telemetry");
}

static bool has_id(const struct yk_device *d, const void *id)
{
	return !strcmp(d->id, id);
}

bool yk_telemetry_sample(struct yk_device *d, struct yoke_sample *to)
{
	struct yoke_sample more = { .size = sizeof more };
	d = yk_device_real(d);
	*to = (struct yoke_sample){ .size = sizeof *to };
	if (by_backend(d, &more))
		complete(to, &more);
	struct yk_device *alias = to->known ? NULL : yk_device_known(is_alias, d);
	if (alias && by_backend(alias, &more))
		complete(to, &more);
	if (yk_telemetry_system(d->info.pci, &more) && !yk_telemetry_implausible(&more, NULL))
		complete(to, &more);
	struct yk_telemetry *t = to->known ? state_of(d) : NULL;
	if (t) {
		pthread_mutex_lock(&t->lock);
		t->last = *to;
		t->ns = yk_nanoseconds();
		pthread_mutex_unlock(&t->lock);
	}
	return to->known;
}

bool yk_telemetry_last(const struct yk_device *d, struct yoke_sample *to, uint64_t *ns)
{
	struct yk_telemetry *t = __atomic_load_n(&d->telemetry, __ATOMIC_ACQUIRE);
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	*to = t->last;
	*ns = t->ns;
	pthread_mutex_unlock(&t->lock);
	return *ns != 0;
}

json_t *yk_telemetry_json(const struct yoke_sample *s)
{
	json_t *o = json_object();
	const struct {
		uint32_t bit;
		const char *key;
		double x;
	} number[] = {
		{ YOKE_SAMPLE_UTIL, "util", s->util },
		{ YOKE_SAMPLE_MEM_UTIL, "mem_util", s->mem_util },
		{ YOKE_SAMPLE_TEMP, "temp_c", s->temp_c },
		{ YOKE_SAMPLE_MEM_TEMP, "mem_temp_c", s->mem_temp_c },
		{ YOKE_SAMPLE_POWER, "power_w", s->power_w },
		{ YOKE_SAMPLE_POWER_LIMIT, "power_limit_w", s->power_limit_w },
		{ YOKE_SAMPLE_ENERGY, "energy_j", s->energy_j },
		{ YOKE_SAMPLE_FAN, "fan", s->fan },
	};
	const struct {
		uint32_t bit;
		const char *key;
		uint64_t n;
	} count[] = {
		{ YOKE_SAMPLE_MEM_USED, "mem_used", s->mem_used },
		{ YOKE_SAMPLE_MEM_TOTAL, "mem_total", s->mem_total },
		{ YOKE_SAMPLE_CLOCK, "clock_hz", s->clock_hz },
		{ YOKE_SAMPLE_CLOCK_MAX, "clock_max_hz", s->clock_max_hz },
		{ YOKE_SAMPLE_MEM_CLOCK, "mem_clock_hz", s->mem_clock_hz },
		{ YOKE_SAMPLE_PCIE_TX, "pcie_tx", s->pcie_tx },
		{ YOKE_SAMPLE_PCIE_RX, "pcie_rx", s->pcie_rx },
		{ YOKE_SAMPLE_THROTTLE, "throttle", s->throttle },
	};
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		json_object_set_new(o, number[i].key,
				    s->known & number[i].bit ? json_real(number[i].x) :
							       json_null());
	for (size_t i = 0; i < sizeof count / sizeof *count; i++)
		json_object_set_new(o, count[i].key,
				    s->known & count[i].bit ? json_integer((json_int_t)count[i].n) :
							      json_null());
	return o;
}

int yoke_telemetry(const char *id, struct yoke_sample *to)
{
	struct yoke_sample s;
	struct yk_device *d = NULL;
	if (!id) {
		struct yoke_context *ctx = yk_current();
		if (!ctx)
			return yk_error_last();
		d = ctx->device;
	}
	if (id && !(d = yk_device_known(has_id, id)))
		return yk_fail(YOKE_ENODEV, "telemetry: this process has found no device %s", id);
	const int size = yk_sized_check(to, sizeof to->size, "telemetry", "yoke_sample");
	if (size < 0)
		return size;
	if (!yk_telemetry_sample(d, &s))
		return yk_fail(YOKE_EUNSUPPORTED, "telemetry: nothing is known of %s", d->id);
	s.size = (size_t)size < sizeof s ? (uint32_t)size : (uint32_t)sizeof s;
	memcpy(to, &s, s.size);
	return 0;
}
