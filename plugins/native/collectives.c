// SPDX-License-Identifier: Apache-2.0
// The extension "collectives", implemented with NCCL or RCCL. Communicators are non-blocking: a
// call that needs other ranks returns ncclInProgress, and ncclCommGetAsyncError later reports its
// result and errors of work on the device.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../backends/gpu/ext.h"
#include "native.h"

struct comm {
	struct yk_gpu_device *device;
	ncclComm_t comm;
	bool failed; // an error was reported
};

// Indexed by code.
static const struct {
	const char *name, *help;
} codes[] = {
	{ "ncclSuccess", NULL },
	{ "ncclUnhandledCudaError",
	  "a driver call failed in the library: set NCCL_DEBUG=WARN to see which" },
	{ "ncclSystemError",
	  "a system call failed in the library: set NCCL_DEBUG=WARN to see which" },
	{ "ncclInternalError", "an internal error of the library, or corrupted memory: report it" },
	{ "ncclInvalidArgument", "report it" },
	{ "ncclInvalidUsage",
	  "each rank needs its own device, and all ranks the same version of the library" },
	{ "ncclRemoteError", "another rank has exited, or the network to it failed" },
	{ "ncclInProgress", NULL },
};

const char *yk_native_collectives_name(int code)
{
	return code >= 0 && code < (int)(sizeof codes / sizeof *codes) ? codes[code].name :
	       "unknown NCCL error";
}

const char *yk_native_collectives_help(int code)
{
	return code >= 0 && code < (int)(sizeof codes / sizeof *codes) ? codes[code].help : NULL;
}

static int failed(const struct yk_gpu_device *d, struct comm *c, const char *call, int code)
{
	const char *error = c && c->comm && yk_native.ncclGetLastError ?
				    yk_native.ncclGetLastError(c->comm) :
				    NULL,
		   *help = yk_native_collectives_help(code);

	if (c)
		c->failed = true;
	return yk_gpu_error(code == ncclUnhandledCudaError ? YOKE_EDEVICE : YOKE_ERANK,
			    "%s: %s (%d) on %s:%u (%s)%s%.200s%s%s", call,
			    yk_native_collectives_name(code), code, V_NAME, d->index, d->info.name,
			    error && *error ? ": " : "", error && *error ? error : "",
			    help ? ": " : "", help ? help : "");
}

static int check(const struct yk_gpu_device *d, struct comm *c, const char *call, int code)
{
	return !code || code == ncclInProgress ? 0 : failed(d, c, call, code);
}

static int id(void *to)
{
	ncclUniqueId id;
	const char *call;
	int code, err = yk_gpu_forked();

	if (err)
		return err;
	yk_native_split(&call, &code, V(ncclGetUniqueId, &id));
	if (code)
		return yk_gpu_error(YOKE_EUNSUPPORTED, "%s: %s (%d)", call,
				    yk_native_collectives_name(code), code);
	memset(to, 0, YOKE_COLLECTIVES_ID);
	memcpy(to, &id, sizeof id);
	return 0;
}

static int join(uint32_t device, const void *id, uint32_t rank, uint32_t ranks, void **to)
{
	ncclConfig_t config = { .size = sizeof config,
				.magic = (unsigned)YK_NCCL_MAGIC,
				.version = YK_NCCL_VERSION };
	struct comm *c = calloc(1, sizeof *c);
	ncclUniqueId from;
	int err = c ? yk_gpu_ext_device(device, &c->device) :
		      yk_gpu_error(YOKE_ENOMEM, "no memory for a communicator");

	memcpy(&from, id, sizeof from);
	err = err ? err : yk_gpu_device_open(c->device);
	err = err ? err : yk_native_use(c->device);
	err = err ? err :
		    check(c->device, c,
			  V(ncclCommInitRankConfig, &c->comm, (int)ranks, from, (int)rank,
			    &config));
	if (err)
		free(c);
	else
		*to = c;
	return err;
}

static int status(void *comm)
{
	struct comm *c = comm;
	ncclResult_t now = ncclSuccess;
	const char *call;
	int code;

	yk_native_split(&call, &code, V(ncclCommGetAsyncError, c->comm, &now));
	if (code && code != ncclInProgress)
		return failed(c->device, c, call, code);
	if (now && now != ncclInProgress)
		return failed(c->device, c, call, now);
	return now != ncclInProgress;
}

static int type_of(int dtype)
{
	switch (dtype) {
	case yoke_f32: return ncclFloat32;
	case yoke_f64: return ncclFloat64;
	case yoke_f16: return ncclFloat16;
	case yoke_bf16: return ncclBfloat16;
	case yoke_i8: return ncclInt8;
	case yoke_i32: return ncclInt32;
	case yoke_i64: return ncclInt64;
	default: return ncclUint8;
	}
}

// The device address of a location in a segment.
static void *place_of(const void *segment, uint64_t offset)
{
	const struct yk_gpu_segment *s = segment;

	return s ? (void *)(uintptr_t)v_address_of(s->buffer, offset) : NULL;
}

static int issue(struct comm *c, const struct yoke_collective *w, v_stream stream)
{
	const void *in = place_of(w->in, w->in_offset);
	void *out = place_of(w->out, w->out_offset);
	const int type = type_of(w->dtype), peer = (int)w->peer,
		  op = w->kind == YOKE_REDUCE_MAX ? ncclMax :
		       w->kind == YOKE_REDUCE_MIN ? ncclMin :
						    ncclSum;

	switch (w->code) {
	case YOKE_COLLECTIVE_SEND:
		return check(c->device, c, V(ncclSend, in, w->count, type, peer, c->comm, stream));
	case YOKE_COLLECTIVE_RECV:
		return check(c->device, c, V(ncclRecv, out, w->count, type, peer, c->comm, stream));
	case YOKE_COLLECTIVE_ALL_GATHER:
		return check(c->device, c,
			     V(ncclAllGather, in, out, w->count, type, c->comm, stream));
	case YOKE_COLLECTIVE_BROADCAST:
		return check(c->device, c,
			     V(ncclBroadcast, in, out, w->count, type, peer, c->comm, stream));
	case YOKE_COLLECTIVE_ALL_REDUCE:
		return check(c->device, c,
			     V(ncclAllReduce, in, out, w->count, type, op, c->comm, stream));
	case YOKE_COLLECTIVE_REDUCE:
		return check(c->device, c,
			     V(ncclReduce, in, out, w->count, type, op, peer, c->comm, stream));
	case YOKE_COLLECTIVE_REDUCE_SCATTER:
		return check(c->device, c,
			     V(ncclReduceScatter, in, out, w->count, type, op, c->comm, stream));
	}
	return yk_gpu_error(YOKE_EUNSUPPORTED, "collective %u is not supported by %s", w->code,
			    yk_native_library(YK_COLLECTIVES));
}

static int run(void *queue, void *comm, uint32_t n, const struct yoke_collective *what)
{
	struct yk_gpu_queue *q = queue;
	struct comm *c = comm;
	int err = yk_gpu_forked(), end;

	err = err ? err : yk_native_use(c->device);
	err = err ? err : check(c->device, c, V(ncclGroupStart));
	if (err)
		return err;
	q->busy = true;
	for (uint32_t i = 0; i < n && !err; i++)
		err = issue(c, &what[i], yk_native_stream(q));
	end = check(c->device, c, V(ncclGroupEnd)); // must be called in any case
	return err ? err : end;
}

// Finalizes the communicator; waits a limited time for the other ranks.
static void finish(struct comm *c)
{
	enum { MAX_MS = 1000 };
	const struct timespec pause = { 0, 1000000 };
	int now = c->failed ? YOKE_ERANK : check(c->device, c, V(ncclCommFinalize, c->comm));

	for (int i = 0; now >= 0 && i < MAX_MS && (now = status(c)) == 0; i++)
		nanosleep(&pause, NULL);
	if (now == 1)
		yk_native_code(V(ncclCommDestroy, c->comm));
	else
		yk_native_code(V(ncclCommAbort, c->comm));
}

static void leave(void *comm, int abort)
{
	struct comm *c = comm;

	if (!yk_gpu_forked() && !yk_native_code(V_USE(yk_native_of(c->device)))) {
		if (abort)
			yk_native_code(V(ncclCommAbort, c->comm));
		else
			finish(c);
	}
	free(c);
}

const struct yoke_collectives_ext yk_native_collectives = {
	sizeof yk_native_collectives, id, join, status, run, leave
};
