// SPDX-License-Identifier: Apache-2.0
// The OpenCL backend's table, and which op goes where; what is not here falls back in the
// core.
#include "config.h"

#include <string.h>

#include "contract.h"
#include "launch.h"

const struct yoke_host *yk_cl_host;

static bool forked; // set in a child, where no driver works

static void in_child(void)
{
	forked = true;
}

int yk_cl_forked(void)
{
	if (!forked)
		return 0;
	return yk_cl_error(YOKE_EFORK, "OpenCL drivers do not work in a forked child");
}

bool yk_cl_profile(void)
{
	static const struct yoke_setting profile = {
		sizeof profile, "opencl.profile", "bool", "0",
		"queues of OpenCL devices keep times",
	};
	const char *value = yk_cl_host->setting(&profile);
	return value && !strcmp(value, "1");
}

// By code.
static const struct yk_cl_op *const ops[YOKE_OP_LIMIT] = {
	[YOKE_OP_MAP] = &yk_cl_map,
	[YOKE_OP_REDUCE] = &yk_cl_reduce,
	[YOKE_OP_CONTRACT] = &yk_cl_contract,
	[YOKE_OP_MOVE] = &yk_cl_move,
	[YOKE_OP_GATHER] = &yk_cl_gather,
	[YOKE_OP_SCATTER_ADD] = &yk_cl_scatter,
	[YOKE_OP_SCAN] = &yk_cl_scan,
	[YOKE_OP_SCAN_MAP] = &yk_cl_scan_map,
	[YOKE_OP_SORT] = &yk_cl_sort,
	[YOKE_OP_CHECK] = &yk_cl_gather,
	[YOKE_OP_SLICE_AT] = &yk_cl_move,
	[YOKE_OP_SLICE_UPDATE_AT] = &yk_cl_move,
	[YOKE_OP_GATHER_ALONG] = &yk_cl_gather,
	[YOKE_OP_SCATTER_ADD_ALONG] = &yk_cl_scatter,
	[YOKE_OP_SOFTMAX] = &yk_cl_softmax,
	[YOKE_OP_SOFTMAX_BACK] = &yk_cl_softmax,
	[YOKE_OP_LAYER_NORM] = &yk_cl_norm,
	[YOKE_OP_LAYER_NORM_BACK] = &yk_cl_norm,
	[YOKE_OP_RMS_NORM] = &yk_cl_norm,
	[YOKE_OP_RMS_NORM_BACK] = &yk_cl_norm,
	[YOKE_OP_CROSS_ENTROPY] = &yk_cl_xent,
	[YOKE_OP_CROSS_ENTROPY_BACK] = &yk_cl_xent,
	[YOKE_OP_LIST_MAP] = &yk_cl_list,
	[YOKE_OP_LIST_REDUCE] = &yk_cl_list,
	[YOKE_OP_ROPE] = &yk_cl_rope,
	[YOKE_OP_ATTENTION] = &yk_cl_attention,
	[YOKE_OP_ATTENTION_BACK] = &yk_cl_attention_back,
	[YOKE_OP_SOURCE] = &yk_cl_source,
};

static const struct yk_cl_op *op_of(const struct yoke_op *op)
{
	return op->code < YOKE_OP_LIMIT ? ops[op->code] : NULL;
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	const struct yk_cl_op *o = op_of(op);
	struct yk_cl_device *d;

	if (!o || yk_cl_forked() || !(d = yk_cl_device_at(device)))
		return 0;
	return o->can(d, op);
}

static int unsupported(const struct yoke_op *op, uint32_t impl)
{
	return yk_cl_error(YOKE_EUNSUPPORTED, "no implementation %u of op %u", impl,
			   op->code);
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **handle, uint64_t *workspace)
{
	const struct yk_cl_op *o = op_of(op);
	struct yk_cl_device *d;
	struct yk_cl_record *r;
	int err = yk_cl_forked();

	(void)plan;
	if (err)
		return err;
	if (!(d = yk_cl_device_at(device)))
		return YOKE_ENODEV;
	if (!o || impl >= o->nimpl || !(o->can(d, op) >> impl & 1))
		return unsupported(op, impl);
	if ((err = yk_cl_device_open(d)))
		return err;
	pthread_mutex_lock(&d->lock);
	err = yk_cl_record_new(d, o, op, impl, &r);
	pthread_mutex_unlock(&d->lock);
	if (err)
		return err;
	*handle = r;
	*workspace = r->workspace;
	return 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	struct yk_cl_queue *q = queue;
	int err = yk_cl_forked();

	if (err)
		return err;
	pthread_mutex_lock(&q->device->lock);
	const uint64_t before = q->launches;
	q->busy = true;
	err = yk_cl_record_run(q, handle, op);
	pthread_mutex_unlock(&q->device->lock);
	// what is half done in place cannot be done again
	return err == YOKE_ENOMEM && op->alias_mask && q->launches > before ? YOKE_EDEVICE : err;
}

static void release(void *handle)
{
	yk_cl_record_free(handle);
}

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_cl_op *o = op_of(op);
	(void)device;
	return o && impl < o->nimpl ? o->names[impl] : NULL;
}

static const struct yoke_backend table = {
	.size = sizeof table,
	.abi = YOKE_ABI,
	.name = "opencl",
	.version = "OpenCL 1.2",
	.probe = yk_cl_probe,
	.device_info = yk_cl_device_info_of,
	.segment_new = yk_cl_segment_new,
	.segment_free = yk_cl_segment_free,
	.segment_host = yk_cl_segment_host,
	.queue_new = yk_cl_queue_new,
	.queue_free = yk_cl_queue_free,
	.queue_flush = yk_cl_queue_flush,
	.put = yk_cl_put,
	.get = yk_cl_get,
	.copy = yk_cl_copy,
	.fill = yk_cl_fill,
	.event_mark = yk_cl_event_mark,
	.event_after = yk_cl_event_after,
	.event_done = yk_cl_event_done,
	.event_wait = yk_cl_event_wait,
	.event_elapsed = yk_cl_event_elapsed,
	.event_free = yk_cl_event_free,
	.can = can,
	.prepare = prepare,
	.run = run,
	.release = release,
	.impl_name = impl_name,
	.segment_wrap = yk_cl_segment_wrap,
};

__attribute__((visibility("default")))
int yoke_plugin_init(uint32_t core_abi, const struct yoke_host *host,
		     const struct yoke_backend **backend)
{
	if (core_abi >> 16 != YOKE_ABI_MAJOR || host->size < sizeof *host)
		return YOKE_EABI;
	if (!yk_cl_host && pthread_atfork(NULL, NULL, in_child))
		return YOKE_ENOMEM;
	yk_cl_host = host;
	yk_cl_profile(); // declares the setting, for who wants times
	yk_cl_clblast_wish(); // and this one
	*backend = &table;
	return 0;
}
