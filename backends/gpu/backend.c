// SPDX-License-Identifier: Apache-2.0
// The backend table and the assignment of ops to kernels. Ops that are missing here use the core's
// fallback.
#include "config.h"

#include <string.h>

#include "contract.h"
#include "ext.h"

const struct yoke_host *yk_gpu_host;

static bool forked; // set in a forked child, where no driver works

static void in_child(void)
{
	forked = true;
}

int yk_gpu_forked(void)
{
	if (!forked)
		return 0;
	return yk_gpu_error(YOKE_EFORK, "%s drivers do not work in a forked child",
			    yk_gpu_driver.title);
}

bool yk_gpu_profile(void)
{
	const char *value = yk_gpu_host->setting(yk_gpu_driver.profile);

	return value && !strcmp(value, "1");
}

#define X(code, op) extern const struct yk_gpu_op yk_gpu_##op;
#include "backends/gpu/op_list.inc"
#undef X

// Indexed by op code.
static const struct yk_gpu_op *const ops[YOKE_OP_LIMIT] = {
#define X(code, op) [YOKE_OP_##code] = &yk_gpu_##op,
#include "backends/gpu/op_list.inc"
#undef X
};

static const struct yk_gpu_op *op_of(const struct yoke_op *op)
{
	return op->code < YOKE_OP_LIMIT ? ops[op->code] : NULL;
}

const struct yk_gpu_op *yk_gpu_op_of(const struct yoke_op *op)
{
	return op_of(op);
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	const struct yk_gpu_op *o = op_of(op);
	struct yk_gpu_device *d;

	if (!o || yk_gpu_forked() || !(d = yk_gpu_device_at(device)))
		return 0;
	return o->can(d, op);
}

static int unsupported(const struct yoke_op *op, uint32_t impl)
{
	return yk_gpu_error(YOKE_EUNSUPPORTED, "no implementation %u of op %u", impl,
			    op->code);
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **handle, uint64_t *workspace)
{
	const struct yk_gpu_op *o = op_of(op);
	struct yk_gpu_device *d;
	struct yk_gpu_record *r;
	int err = yk_gpu_forked();

	(void)plan;
	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	if (!o || impl >= o->nimpl || !(o->can(d, op) >> impl & 1))
		return unsupported(op, impl);
	if ((err = yk_gpu_device_open(d)))
		return err;
	pthread_mutex_lock(&d->lock);
	err = yk_gpu_record_new(d, o, op, impl, &r);
	pthread_mutex_unlock(&d->lock);
	if (err)
		return err;
	*handle = r;
	*workspace = r->workspace;
	return 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	struct yk_gpu_queue *q = queue;
	int err = yk_gpu_forked();

	if (err)
		return err;
	pthread_mutex_lock(&q->device->lock);
	const uint64_t before = q->launches;
	q->busy = true;
	err = yk_gpu_record_run(q, handle, op);
	pthread_mutex_unlock(&q->device->lock);
	// an in-place op that has partly run must not be retried
	return err == YOKE_ENOMEM && op->alias_mask && q->launches > before ? YOKE_EDEVICE : err;
}

static void release(void *handle)
{
	yk_gpu_record_free(handle);
}

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_gpu_op *o = op_of(op);
	(void)device;
	if (!o || impl >= o->nimpl)
		return NULL;
	return o->name_of ? o->name_of(impl) : o->names[impl];
}

static const void *ext(const char *name)
{
	const void *own = yk_gpu_driver.ext ? yk_gpu_driver.ext(name) : NULL;
	return own ? own : yk_gpu_ext(name);
}

// The driver fills in its name, version and optional functions.
static struct yoke_backend table = {
	.size = sizeof table,
	.abi = YOKE_ABI,
	.probe = yk_gpu_probe,
	.device_info = yk_gpu_device_info,
	.segment_new = yk_gpu_segment_new,
	.segment_free = yk_gpu_segment_free,
	.segment_host = yk_gpu_segment_host,
	.queue_new = yk_gpu_queue_new,
	.queue_free = yk_gpu_queue_free,
	.queue_flush = yk_gpu_queue_flush,
	.put = yk_gpu_put,
	.get = yk_gpu_get,
	.copy = yk_gpu_copy,
	.fill = yk_gpu_fill,
	.event_mark = yk_gpu_event_mark,
	.event_after = yk_gpu_event_after,
	.event_done = yk_gpu_event_done,
	.event_wait = yk_gpu_event_wait,
	.event_elapsed = yk_gpu_event_elapsed,
	.event_free = yk_gpu_event_free,
	.can = can,
	.prepare = prepare,
	.run = run,
	.release = release,
	.impl_name = impl_name,
	.segment_wrap = yk_gpu_segment_wrap,
	.ext = ext,
};

static void add_optional(void)
{
	if (yk_gpu_driver.copy_between)
		table.copy_between = yk_gpu_copy_between;
	if (!yk_gpu_driver.graph_begin)
		return;
	table.graph_begin = yk_gpu_graph_begin;
	table.graph_end = yk_gpu_graph_end;
	table.graph_run = yk_gpu_graph_run;
	table.graph_free = yk_gpu_graph_free;
}

__attribute__((visibility("default")))
int yoke_plugin_init(uint32_t core_abi, const struct yoke_host *host,
		     const struct yoke_backend **backend)
{
	if (core_abi >> 16 != YOKE_ABI_MAJOR || host->size < sizeof *host)
		return YOKE_EABI;
	if (!yk_gpu_host && pthread_atfork(NULL, NULL, in_child))
		return YOKE_ENOMEM;
	yk_gpu_host = host;
	yk_gpu_profile(); // called for its side effect: declares the setting
	if (yk_gpu_driver.dialect == YOKE_DIALECT_CUDA) { // likewise
		yk_gpu_tf32_enabled();
		yk_gpu_wgmma_enabled();
	}
	if (yk_gpu_driver.start)
		yk_gpu_driver.start();
	table.name = yk_gpu_driver.name;
	table.version = yk_gpu_driver.version;
	add_optional();
	*backend = &table;
	return 0;
}
