// SPDX-License-Identifier: Apache-2.0
// The host table: services that the core offers backends.  All strings come from vendors and are
// validated.
#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/log.h"
#include "base/param.h"
#include "kernel/cache.h"
#include "kernel/kerneltext.h"
#include "kernel/mapsrc.h"
#include "device/plugin.h"
#include "device/warmup.h"

// Settings declared by backends; a name is declared once, whichever backend declares it.
struct lent {
	struct yk_param param;
	struct lent *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lent *settings;

static void host_log(int level, const char *topic, const char *text)
{
	yk_log(level, topic ? topic : "backend", "%s", text ? text : "");
}

static void host_error(int code, const char *text)
{
	char line[900];

	if (code >= 0)
		return;
	snprintf(line, sizeof line, "%s", text ? text : yk_error_text(code));
	for (char *c = line; *c; c++) // compilers print several lines
		if (iscntrl((unsigned char)*c))
			*c = ' ';
	yk_fail(code, "%s", line);
}

// Parses a type, "int" or "int 0..9"; false: not a type.
static bool setting_type(const char *name, struct yk_param *p)
{
	static const char *const names[] = {
		[YK_BOOL] = "bool", [YK_INT] = "int", [YK_BYTES] = "bytes", [YK_STRING] = "string",
	};
	long long min, max;
	char end;

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i])) {
			p->type = (enum yk_param_type)i;
			return true;
		}
	if (sscanf(name, "int %lld..%lld%c", &min, &max, &end) != 2 || min > max)
		return false;
	p->type = YK_INT;
	p->min = min;
	p->max = max;
	return true;
}

static bool setting_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._");
	return n && n < 64 && !name[n];
}

// Is this thread in a backend's probe?
static _Thread_local bool probing;

void yk_host_probing(bool on)
{
	probing = on;
}

static const char *host_setting(const struct yoke_setting *s)
{
	struct yk_param p = { 0 };

	if (!s || s->size < sizeof *s || !s->name || !s->type || !setting_name(s->name) ||
	    !setting_type(s->type, &p))
		return NULL;
	pthread_mutex_lock(&lock);
	struct lent *l = settings;
	while (l && strcmp(l->param.name, s->name))
		l = l->next;
	if (!l && (l = calloc(1, sizeof *l))) {
		l->param = p;
		l->param.name = s->name;
		l->param.def = s->def ? s->def : "";
		l->param.help = s->help ? s->help : "";
		yk_param_declare(&l->param);
		l->next = settings;
		settings = l;
	}
	pthread_mutex_unlock(&lock);
	if (l && probing)
		yk_param_fix(l->param.name, YK_WHEN_LISTED);
	return l ? yk_param_str(&l->param) : NULL;
}

static atomic_uint_fast64_t compiled, found;

static void host_programs(uint32_t more_compiled, uint32_t more_found)
{
	atomic_fetch_add_explicit(&compiled, more_compiled, memory_order_relaxed);
	atomic_fetch_add_explicit(&found, more_found, memory_order_relaxed);
	yk_warmup_compiled(more_compiled);
}

static atomic_uint_fast64_t promoted;

static void host_promoted(uint64_t rows)
{
	atomic_fetch_add_explicit(&promoted, rows, memory_order_relaxed);
}

uint64_t yk_host_promoted(void)
{
	return atomic_load_explicit(&promoted, memory_order_relaxed);
}

void yk_host_programs(uint64_t *all_compiled, uint64_t *all_found)
{
	*all_compiled = atomic_load_explicit(&compiled, memory_order_relaxed);
	*all_found = atomic_load_explicit(&found, memory_order_relaxed);
}

const struct yoke_host *yk_host(void)
{
	static const struct yoke_host host = {
		.size = sizeof host,
		.abi = YOKE_ABI,
		.log = host_log,
		.error = host_error,
		.setting = host_setting,
		.kernel_source = yk_kernel_source,
		.map_call = yk_map_call,
		.cache_get = yk_cache_get,
		.cache_put = yk_cache_put,
		.programs = host_programs,
		.promoted = host_promoted,
	};
	return &host;
}
