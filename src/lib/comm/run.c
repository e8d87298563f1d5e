// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of one process, each with a context on its own device; and selects the
// devices of ranks.
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "comm/native.h"
#include "comm/launch_env.h"
#include "comm/process.h"

YK_PARAM(share_setting, "dist.share", YK_BOOL, "0", "more ranks than devices share them");

struct run {
	int (*fn)(yoke_group *, void *);
	void *arg;
	struct yk_rendezvous *rendezvous;
	char (*device)[sizeof ((struct yk_device *)NULL)->id]; // by rank
	pthread_mutex_t lock;
	int first;  // 1 + the rank that failed first, 0: none
	bool secondary; // its error was caused by another rank, whose own error comes later
	int code;
	char why[1600];
};

struct member {
	struct run *run;
	uint32_t rank;
	bool joined;
	pthread_t thread;
};

// Runs a rank's function; an error that it returns without a text is reported by its code's name.
static int call(int (*fn)(yoke_group *, void *), yoke_group *world, void *arg)
{
	const int err = fn(world, arg);
	if (err < 0 && !yoke_error_code())
		yk_fail(err, "the rank's function returned %s (%d)", yoke_error_name(err), err);
	return err;
}

// Keeps the rank's error if it is the first, or the first that was not caused by another rank.
static void note(struct member *m, const yoke_context *ctx, int err)
{
	struct run *r = m->run;
	const bool secondary = err == YOKE_ERANK || (ctx && ctx->failure.code == YOKE_ERANK);
	pthread_mutex_lock(&r->lock);
	if (!r->first || (r->secondary && !secondary)) {
		r->first = (int)m->rank + 1;
		r->secondary = secondary;
		r->code = err;
		snprintf(r->why, sizeof r->why, "%s", yoke_error());
	}
	pthread_mutex_unlock(&r->lock);
}

static int rank_main(struct member *m)
{
	struct run *r = m->run;
	struct yoke_group *world = NULL;
	yoke_context *ctx = yoke_context_new_on(r->device[m->rank]);
	int err = ctx ? 0 : yk_error_last();
	if (!err)
		err = yk_group_join(ctx, r->rendezvous, m->rank, "world", &world);
	m->joined = !err;
	if (!err) {
		yoke_use(ctx);
		yk_world_set(world);
		err = call(r->fn, world, r->arg);
	}
	if (err < 0) {
		note(m, !world || yk_current() == ctx ? ctx : NULL, err);
		if (!world)
			yk_rendezvous_break(r->rendezvous, YOKE_ERANK, "rank %u was not started: "
				"%s", m->rank, yoke_error());
		else if (yk_current() == ctx) // otherwise fn has freed the context
			yk_ranks_break(world->queue, YOKE_ERANK, yoke_error());
		yoke_error_clear();
	}
	if (!world || yk_current() == ctx)
		yoke_context_free(ctx);
	return err;
}

static void *start(void *arg)
{
	struct member *m = arg;
	rank_main(m);
	if (!m->joined)
		yk_rendezvous_unref(m->run->rendezvous);
	return NULL;
}

// ---- device selection ----

// The first n devices equivalent to the best one, or fewer; returns their number.
static int like_best(int n, char (*to)[sizeof ((struct yk_device *)NULL)->id])
{
	const struct yk_device *best = yk_device_choose(NULL);
	int found = 0;
	if (!best)
		return yk_error_last();
	const struct yk_param *setting = yk_param_find("device");
	const bool named = setting && *yk_param_str((struct yk_param *)(uintptr_t)setting);
	for (struct yk_device *d = yk_devices(NULL); d && found < n; d = d->next)
		if (named ? d == best :
			    d->backend == best->backend && d->info.kind == best->info.kind &&
				    !d->alias)
			snprintf(to[found++], sizeof *to, "%s", d->id);
	return found;
}

static int listed(int n, const char *devices, char (*to)[sizeof ((struct yk_device *)NULL)->id])
{
	int found = 0;
	for (const char *at = devices; *at && found < n; found++) {
		const size_t length = strcspn(at, ",");
		snprintf(to[found], sizeof *to, "%.*s", (int)length, at);
		at += length + (at[length] == ',');
	}
	return found;
}

int yk_ranks_devices(void)
{
	char id[YK_MAX_RANKS][sizeof ((struct yk_device *)NULL)->id];
	return like_best(YK_MAX_RANKS, id);
}

static int find_devices(int n, const char *devices,
			char (*to)[sizeof((struct yk_device *)NULL)->id])
{
	const int found = devices ? listed(n, devices, to) : like_best(n, to);
	if (found < 0)
		return found;
	if (!found || (found < n && !yk_param_bool(&share_setting)))
		return yk_fail(
			YOKE_ENODEV,
			"group_run: %d ranks, but %d device%s%s%s; %sdist.share=1 shares devices",
			n, found, found == 1 ? "" : "s", found ? ", the first " : "",
			found ? to[0] : "",
			!strncmp(to[0], "cpu:", 4) ? "cpu.devices=N divides the CPU, " : "");
	for (int i = found; i < n; i++)
		memcpy(to[i], to[i % found], sizeof *to);
	return 0;
}

int yoke_group_run(int n, const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg)
{
	struct run r = { .fn = fn, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER };
	sigset_t all, old;
	int started = 0, err = 0;
	if (n < 1 || n > YK_MAX_RANKS || !fn)
		return yk_fail(YOKE_EINVAL, "group_run: %d ranks; 1 to %d are possible", n,
			       YK_MAX_RANKS);
	struct member *member = calloc((size_t)n, sizeof *member);
	r.device = calloc((size_t)n, sizeof *r.device);
	if (!member || !r.device)
		err = yk_fail(YOKE_ENOMEM, "group_run: no memory for %d ranks", n);
	else
		err = find_devices(n, devices, r.device);
	if (!err && !(r.rendezvous = yk_rendezvous_new((uint32_t)n)))
		err = yk_fail(YOKE_ENOMEM, "group_run: no memory for %d ranks", n);
	if (!err)
		yk_native_offer(r.rendezvous, n, r.device);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals are handled by the calling thread
	for (; started < n && !err; started++) {
		member[started] = (struct member){ .run = &r, .rank = (uint32_t)started };
		int code = pthread_create(&member[started].thread, NULL, start, &member[started]);
		if (!code)
			continue;
		err = yk_fail(YOKE_ENOMEM, "group_run: no thread for rank %d: %s", started,
			      strerror(code));
		yk_rendezvous_break(r.rendezvous, YOKE_ERANK, "rank %d did not start: %s", started,
				    strerror(code));
		for (int i = started; i < n; i++)
			yk_rendezvous_unref(r.rendezvous);
		break;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (int i = 0; i < started; i++)
		pthread_join(member[i].thread, NULL);
	if (!err && r.first)
		err = yk_fail(r.code, "rank %d: %s", r.first - 1, r.why);
	free(member);
	free(r.device);
	return err;
}

// Device selection under a launcher. If each rank of the machine sees exactly one device, all
// different, it uses that one. Otherwise the local ranks take the devices in turn; on the CPU only
// ranks with the same CPU set count. n: number of devices.
static int place_on(struct yk_started *p, const struct yk_device *first, int n)
{
	uint32_t at, share, other;
	int err = yk_process_cpu(&at, &share);
	if (err < 0)
		return err;
	if (n == 1 && !strncmp(first->id, "cpu:", 4)) {
		p->local = at;
		p->locals = share;
		return 0;
	}
	err = yk_process_unlike(n, *first->info.uuid ? first->info.uuid : first->info.pci, &other);
	if (err > 0) {
		p->local = 0;
		p->locals = 1;
	} else if (!err && n == 1 && other != p->rank && !yk_param_bool(&share_setting)) {
		return yk_fail(
			YOKE_ENODEV,
			"ranks %u and %u of this machine see one device each, the same, %s%s%s; dist.share=1 "
			"shares devices",
			p->rank < other ? p->rank : other, p->rank < other ? other : p->rank,
			first->id, *first->info.uuid ? ", uuid " : "", first->info.uuid);
	}
	return err < 0 ? err : 0;
}

// The device of this process's rank.
static int own_device(const char *devices, char *to, size_t cap)
{
	char device[YK_MAX_RANKS][sizeof ((struct yk_device *)NULL)->id];
	struct yk_started p;
	int err = yk_started_find(&p);
	if (err < 0)
		return err;
	if (p.launcher && !devices) {
		const int n = like_best(YK_MAX_RANKS, device);
		err = n < 0 ? n : place_on(&p, yk_device_choose(NULL), n);
	}
	err = err < 0 ? err : find_devices((int)p.locals, devices, device);
	if (!err)
		snprintf(to, cap, "%s", device[p.local]);
	return err;
}

int yk_process_run(const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg)
{
	char device[sizeof ((struct yk_device *)NULL)->id];
	struct yoke_group *world = NULL;
	yoke_context *ctx = NULL;
	int err = own_device(devices, device, sizeof device);
	if (!err && !(ctx = yoke_context_new_on(device)))
		err = yk_error_last();
	if (!err) {
		yoke_use(ctx);
		world = yoke_group_world();
		err = world ? call(fn, world, arg) : yk_error_last();
	}
	if (err < 0)
		yk_process_failed(); // before the other ranks see that it has gone
	if (ctx && yk_current() == ctx)
		yoke_context_free(ctx);
	return err;
}
