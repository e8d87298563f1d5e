// SPDX-License-Identifier: Apache-2.0
// Checks that ranks are consistent: the same version, configuration and data at the start, equal
// parameters after steps.
#include "config.h"

#include "parallel/consistency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "comm/ranks.h"
#include "graph/context.h"
#include "parallel/stages.h"

// ---- at the start ----

#define DRIFT \
	"parameters that each rank updates itself would drift apart: zero=1 gives each parameter " \
	"one owner, except parameters that tensor= and " \
	"the ends of stages= (tied=1) replicate"

// Whether another rank has a replica of one of this rank's parameters and updates it independently.
static bool has_copies(const struct yk_replica *t)
{
	return t->grid.tensor > 1 ||
	       (t->grid.stages > 1 && yk_config_int(t->config, YK_KEY_tied)) ||
	       (t->stage == 0 && t->grid.data > 1);
}

// Describes the device, as far as it determines the kernels and so the bits.
static void device_text(const struct yk_replica *t, char *to, size_t cap)
{
	const struct yk_device *d = yk_current()->device;
	// kernels are chosen by the device's properties
	const bool chooses = d->info.kind != YOKE_DEVICE_CPU;
	if (!has_copies(t))
		*to = '\0';
	else if (chooses)
		snprintf(to, cap, "%s of kind %u, %s, %u units, driver %s", d->backend->table.name,
			 d->info.kind, d->info.name, d->info.units, d->info.driver);
	else
		snprintf(to, cap, "%s of %s", d->backend->table.name, d->info.driver);
}

static uint64_t kernels_hash(const struct yk_replica *t)
{
	return has_copies(t) ? yk_device_left_out(yk_current()->device) : 0;
}

enum { FACT_CONFIG, FACT_DATA, FACT_STEP, FACT_DEVICE, FACT_KERNELS, FACTS };
enum { FACT_TEXT = 16384 };

// One fact about this rank as text, which must be equal on all ranks.
static int fact_text(const struct yk_replica *t, const struct yk_data *data, int fact, char *to,
		     size_t cap)
{
	json_t *o = fact == FACT_CONFIG ? yk_config_json(t->config) : NULL;
	// one key per line
	char *text = o ? yk_json_text(o, JSON_SORT_KEYS | JSON_INDENT(1)) : NULL;
	const bool good = fact != FACT_CONFIG || text;
	*to = '\0';
	if (text)
		snprintf(to, cap, "%s", text);
	else if (fact == FACT_DATA && data)
		snprintf(to, cap, "%lld windows to train and %lld to validate, of hash %016llx",
			 (long long)yk_data_train_windows(data),
			 (long long)yk_data_valid_windows(data),
			 (unsigned long long)yk_data_fingerprint_all(data));
	else if (fact == FACT_STEP)
		snprintf(to, cap, "%lld", (long long)t->step);
	else if (fact == FACT_DEVICE)
		device_text(t, to, cap);
	else if (fact == FACT_KERNELS)
		snprintf(to, cap, "%016llx", (unsigned long long)kernels_hash(t));
	free(text);
	json_decref(o);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
}

// The first line in which two texts differ; a JSON line `"steps": 10,` becomes steps=10.
static void other_line(const char *a, const char *b, char la[120], char lb[120])
{
	while (*a && *b && strcspn(a, "\n") == strcspn(b, "\n") &&
	       !strncmp(a, b, strcspn(a, "\n"))) {
		a += strcspn(a, "\n");
		b += strcspn(b, "\n");
		a += *a == '\n';
		b += *b == '\n';
	}
	const char *const from[] = { a, b };
	char *const to[] = { la, lb };
	for (int i = 0; i < 2; i++) {
		const bool key = from[i][0] == ' ';
		size_t n = 0;
		for (const char *p = from[i] + key; *p && *p != '\n' && n < 119; p++)
			if (key && p[0] == ':' && p[1] == ' ')
				to[i][n++] = '=', p++;
			else if (!key || (*p != '"' && !(*p == ',' && p[1] == '\n')))
				to[i][n++] = *p;
		to[i][n] = '\0';
	}
}

// All ranks: reports that rank `other` differs from rank 0.
static int differ(const struct yk_replica *t, int fact, int other, const char *mine)
{
	static const char *const words[FACTS] = {
		"configuration",
		"data",
		"step of the checkpoint",
		"device (its kind, model, driver or instruction set)",
		("kernels, because self-tests excluded some on only one of them (`yoke doctor` lists "
		 "them there)"),
	};
	char *two = calloc(2, FACT_TEXT), line[2][120];
	int e = two ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	const int from[] = { 0, other };
	for (int i = 0; i < 2 && e == 0; i++) {
		snprintf(two + i * FACT_TEXT, FACT_TEXT, "%s", mine);
		e = yk_group_broadcast(t->grid.all, (uint32_t)from[i], two + i * FACT_TEXT,
				       FACT_TEXT);
	}
	if (e == 0) {
		other_line(two, two + FACT_TEXT, line[0], line[1]);
		e = yk_fail(YOKE_EINVAL,
			    "ranks 0 and %d differ in their %s: rank 0 has %s, rank %d %s%s", other,
			    words[fact], *line[0] ? line[0] : "none", other,
			    *line[1] ? line[1] : "none",
			    fact == FACT_DEVICE || fact == FACT_KERNELS ? "; " DRIFT : "");
	}
	free(two);
	return e;
}

int yk_ranks_check_setup(const struct yk_replica *t, const struct yk_data *data)
{
	const int n = yoke_group_size(t->grid.all);
	uint64_t mine[FACTS], *all = calloc((size_t)n, sizeof mine);
	char *text = calloc(FACTS, FACT_TEXT);
	int e = text && all ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory"), other = -1;
	for (int f = 0; f < FACTS && e == 0; f++) {
		e = fact_text(t, data, f, text + f * FACT_TEXT, FACT_TEXT);
		mine[f] = yk_hash(text + f * FACT_TEXT, strlen(text + f * FACT_TEXT), 0);
	}
	if (e == 0 && !yk_current()->mode.dry) // in a dry context there are no other ranks
		e = yoke_group_exchange(t->grid.all, mine, sizeof mine, all);
	for (int i = FACTS; i < n * FACTS && e == 0 && other < 0 && !yk_current()->mode.dry; i++)
		if (all[i] != all[i % FACTS])
			other = i;
	if (other >= 0)
		e = differ(t, other % FACTS, other / FACTS, text + other % FACTS * FACT_TEXT);
	free(all);
	free(text);
	return e;
}

// ---- after a step ----

// Hash of the current values of replicated parameters, among those from i on for which `has` is
// true.
static int hash_of(const struct yk_replica *t, bool (*has)(const struct yk_replica *, int i),
		   uint64_t *to)
{
	const struct yk_parameters *ps = t->params;
	size_t max = 0;
	for (int i = 0; i < ps->count; i++)
		max = has(t, i) && yoke_bytes(ps->var[i]) > max ? yoke_bytes(ps->var[i]) : max;
	char *data = malloc(max + 1);
	int e = data ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	for (int i = 0; i < ps->count && e == 0; i++) {
		if (!has(t, i))
			continue;
		e = yoke_read(ps->var[i], data, yoke_bytes(ps->var[i]));
		*to = yk_hash(data, yoke_bytes(ps->var[i]), *to);
	}
	free(data);
	return e;
}

static bool is_any(const struct yk_replica *t, int i)
{
	(void)t;
	(void)i;
	return true;
}

static bool is_whole(const struct yk_replica *t, int i)
{
	return !t->params->row[i].shard.blocks;
}

static bool is_copied(const struct yk_replica *t, int i)
{
	return yk_stages_copy(t) == i;
}

int yk_ranks_check_replicas(const struct yk_replica *t, bool parameters)
{
	struct same {
		uint64_t kernels, data, tensor, ends;
	} mine = { .kernels = kernels_hash(t) };
	const struct yk_grid *g = &t->grid;
	const int n = yoke_group_size(g->all);
	int e = 0;
	if (yk_current()->mode.dry) // no other ranks
		return 0;
	if (parameters && t->stage < 3 && g->data > 1)
		e = hash_of(t, is_any, &mine.data);
	if (parameters && t->stage < 3 && g->tensor > 1 && e == 0)
		e = hash_of(t, is_whole, &mine.tensor);
	if (parameters && t->stages && e == 0)
		e = hash_of(t, is_copied, &mine.ends);
	struct same *all = calloc((size_t)n, sizeof *all);
	if (e == 0)
		e = all ? yoke_group_exchange(g->all, &mine, sizeof mine, all) :
			  yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	for (int r = 0; r < n && e == 0; r++) {
		const int p = (int)(r % g->tensor), s = (int)(r / g->tensor % g->stages),
			  unit = (int)(g->stages * g->tensor);
		const int first[] = { r % unit, r - p,
				      r - (s == g->stages - 1 ? s : 0) * (int)g->tensor };
		const bool good[] = { all[r].data == all[first[0]].data,
				      all[r].tensor == all[first[1]].tensor,
				      all[r].ends == all[first[2]].ends };
		if (all[r].kernels != all[0].kernels)
			e = yk_fail(YOKE_EINVAL,
				    "ranks 0 and %d differ in their kernels, because self-tests "
				    "excluded some on only one of them (`yoke doctor` lists them "
				    "there), and " DRIFT,
				    r);
		for (int i = 0; i < 3 && e == 0; i++)
			if (!good[i])
				e = yk_fail(YOKE_EMISMATCH,
					    "ranks %d and %d have different parameters at step "
					    "%lld, which should be bit-identical: a device "
					    "computes wrong results, or its memory fails; they "
					    "were identical at the previous save",
					    first[i], r, (long long)t->step);
	}
	free(all);
	return e;
}
