// SPDX-License-Identifier: Apache-2.0
// Reads and writes the tuning file of ranks.
#include "config.h"

#include "comm/tuned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static void head_of(const char *transport, uint32_t ranks, uint32_t node, char *to, size_t cap)
{
	snprintf(to, cap, "yoke-tuning 1 %s; ranks; %s; %u; %u", PACKAGE_VERSION, transport, ranks,
		 node);
}

void yk_tuned_open(const char *transport, uint32_t ranks, uint32_t node, struct yk_tuning *t)
{
	char head[200], why[PATH_MAX + 200];
	head_of(transport, ranks, node, head, sizeof head);
	yk_tuning_open(head, t, why, sizeof why);
	if (*why)
		yk_warn("tune", "%s; the file is ignored, `yoke tune ranks` writes it anew", why);
}

int yk_tuned_save(const char *transport, uint32_t ranks, uint32_t node, const struct yk_tuning *t)
{
	char head[200];
	head_of(transport, ranks, node, head, sizeof head);
	return yk_tuning_save(head, t);
}

uint64_t yk_tuned_bytes(int size)
{
	return (uint64_t)256 << 2 * size;
}

int yk_tuned_size(uint64_t bytes)
{
	int size = 0;
	while (size + 1 < YK_TUNED_SIZES && bytes > 2 * yk_tuned_bytes(size))
		size++;
	return size;
}

void yk_tuned_best(uint32_t ranks, uint8_t best[YK_TUNED_SIZES])
{
	struct yk_tuning t;
	memset(best, 0, YK_TUNED_SIZES);
	if (!yk_tuning_applied())
		return;
	yk_tuned_open("processes", ranks, ranks, &t);
	for (int size = 0; size < YK_TUNED_SIZES; size++) {
		char name[YK_TUNING_NAME];
		snprintf(name, sizeof name, "all_reduce.f32.%" PRIu64, yk_tuned_bytes(size));
		const char *line = yk_tuning_find(&t, name);
		line = line ? strchr(line, ' ') + 1 : ""; // the first entry is the fastest
		for (int how = 0; how < YK_BY_SHARED; how++) {
			const size_t n = strlen(yk_algorithm_name[how]);
			if (!strncmp(line, yk_algorithm_name[how], n) && line[n] == '=')
				best[size] = (uint8_t)(how + 1);
		}
	}
	yk_tuning_fini(&t);
}

static bool read_model(const char *transport, uint32_t node, double *alpha, double *beta,
		       double *gamma)
{
	struct yk_tuning t;
	uint64_t fs[3];
	yk_tuned_open(transport, 2, node, &t);
	const char *line = yk_tuning_find(&t, "model.fs");
	const bool found =
		line && sscanf(line, "model.fs alpha=%" SCNu64 " beta=%" SCNu64 " gamma=%" SCNu64,
			       &fs[0], &fs[1], &fs[2]) == 3;
	if (found) {
		*alpha = 1e-15 * (double)fs[0];
		*beta = 1e-15 * (double)fs[1];
		*gamma = 1e-15 * (double)fs[2];
	}
	yk_tuning_fini(&t);
	return found;
}

bool yk_tuned_model(struct yk_wire_model *m)
{
	double gamma;
	const bool within = read_model("processes", 2, &m->alpha1, &m->beta1, &m->gamma),
		   between = read_model("mpi", 1, &m->alpha2, &m->beta2, &gamma);
	return within || between;
}
