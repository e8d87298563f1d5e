// SPDX-License-Identifier: Apache-2.0
// Checks that the keys of several ranks are compatible.
#include "config.h"

#include "parallel/check.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "comm/process.h"
#include "comm/segment.h"
#include "observe/machine.h"
#include "parallel/compress.h"
#include "parallel/grid.h"
#include "parallel/stages.h"

// Processes allocate shared pages on first use: checks the control group's limit now, because
// exceeding it later kills a process.
static int check_memory(int64_t ranks)
{
	const double limit = yk_host_memory_limit(),
		     shared = (double)yk_segment_min((uint32_t)ranks);
	if (!(shared > limit))
		return 0;
	return yk_fail(YOKE_ENOMEM,
		       "ranks=%lld as processes share %.1f MiB, but their cgroup has %.1f MiB of "
		       "memory; raise its limit, or use fewer ranks or spawn=thread",
		       (long long)ranks, shared / 1048576, limit / 1048576);
}

// Rejects keys that processes do not support, and a number of ranks that differs from the
// launcher's.
static int check_processes(const struct yk_config *c, int64_t ranks)
{
	uint32_t rank, n = 0;
	const int place = yk_process_rank(&rank, &n);
	if (place < 0)
		return place;
	if (place && n != ranks)
		return yk_fail(YOKE_EINVAL, "ranks=%lld, but %u processes were started as ranks",
			       (long long)ranks, n);
	if (yk_config_int(c, YK_KEY_restarts) > 0 && yk_process_launched())
		return yk_fail(YOKE_EINVAL,
			       "restarts=%lld: a launcher started these ranks, and only it can "
			       "restart them",
			       (long long)yk_config_int(c, YK_KEY_restarts));
	if (yk_config_int(c, YK_KEY_min_ranks) > ranks)
		return yk_fail(YOKE_EINVAL, "min_ranks=%lld is more than ranks=%lld",
			       (long long)yk_config_int(c, YK_KEY_min_ranks), (long long)ranks);
	const bool threads = !place && strcmp(yk_config_str(c, YK_KEY_spawn), "process") != 0;
	if (threads && (ranks == 1 || !yk_config_int(c, YK_KEY_restarts)))
		return 0;
	if (!threads && !strcmp(yk_config_str(c, YK_KEY_backend), "fastest"))
		return yk_fail(YOKE_EINVAL, "backend=fastest measures in one process; with ranks "
					    "as processes, name a backend");
	for (const char *at = yk_config_str(c, YK_KEY_data); *at;
	     at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == 1 && *at == '-')
			return yk_fail(YOKE_EINVAL,
				       threads ? "data=- can be read only once; with restarts=, "
						 "name a file" :
						 "data=- can be read by only one process; with "
						 "ranks as processes, name a file");
	return threads ? 0 : check_memory(ranks);
}

// The keys give a valid layout and are compatible with it.
static int check_grid(const struct yk_config *c)
{
	const int64_t stages = yk_config_int(c, YK_KEY_stages),
		      tensor = yk_config_int(c, YK_KEY_tensor),
		      zero = yk_config_int(c, YK_KEY_zero), ranks = yk_config_int(c, YK_KEY_ranks);
	const bool known = ranks != YK_AUTO;
	struct yk_model_shape shape;
	const struct yk_model *model = yk_config_model(c, 1, &shape);
	if (known && ranks % (stages * tensor))
		return yk_fail(YOKE_EINVAL,
			       "ranks=%lld is not a multiple of %lld, the product of stages=%lld "
			       "and tensor=%lld",
			       (long long)ranks, (long long)(stages * tensor), (long long)stages,
			       (long long)tensor);
	if (stages * tensor > 1 && !strcmp(yk_config_str(c, YK_KEY_backend), "fastest"))
		return yk_fail(YOKE_EINVAL,
			       "backend=fastest measures a single rank with the whole model; with "
			       "stages=%lld and tensor=%lld, name a backend",
			       (long long)stages, (long long)tensor);
	if (tensor > 1 && zero > 0 && !strcmp(yk_config_str(c, YK_KEY_optimizer), "lamb"))
		return yk_fail(YOKE_EINVAL,
			       "optimizer=lamb needs norms of complete tensors, but with zero=%lld "
			       "and tensor=%lld each rank has only shards: use zero=0 or tensor=1",
			       (long long)zero, (long long)tensor);
	const int e = yk_stages_check(c, model, &shape);
	return e ? e : yk_model_check_ranks(model, &shape, tensor);
}

int yk_ranks_check(const struct yk_config *c)
{
	// otherwise the starting process determines it
	const bool known = yk_config_int(c, YK_KEY_ranks) != YK_AUTO;
	const int64_t ranks = known ? yk_config_int(c, YK_KEY_ranks) : 1,
		      parts = yk_config_int(c, YK_KEY_micro_batches), unit = yk_grid_unit(c);
	char those[200] = "";
	int e = check_grid(c);
	if (e < 0)
		return e;
	if (parts != YK_AUTO && parts % yk_grid_data(c)) {
		for (int64_t n = 1;
		     n <= parts && n * unit <= 1024 && strlen(those) < sizeof those - 24; n++)
			if (parts % n == 0)
				snprintf(those + strlen(those), sizeof those - strlen(those),
					 " %lld", (long long)(n * unit));
		return yk_fail(YOKE_EINVAL,
			       "ranks=%lld does not divide micro_batches=%lld; these do:%s",
			       (long long)ranks, (long long)parts, those);
	}
	if (ranks > 1 && yk_config_int(c, YK_KEY_batch) == YK_AUTO)
		return yk_fail(YOKE_EINVAL,
			       "batch=auto measures one device; with ranks=%lld, give a number",
			       (long long)ranks);
	if (ranks > 1 && yk_config_int(c, YK_KEY_snapshot_every) > 0)
		return yk_fail(YOKE_EINVAL,
			       "snapshot_every serves failover to another device of one process; "
			       "with ranks=%lld, use save_every",
			       (long long)ranks);
	e = yk_compress_check(c);
	return e ? e : check_processes(c, ranks);
}
