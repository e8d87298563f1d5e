// SPDX-License-Identifier: Apache-2.0
// The part of NCCL's interface that is used, which RCCL shares; included by calls.h, facts.h and
// types.h of both plugins. It has not changed since NCCL 2.14, the first version with non-blocking
// communicators.
#ifndef YK_NCCL_H
#define YK_NCCL_H

// X(library, need, result, symbol, parameters), as in calls.h; STREAM: the vendor's stream type.
#define YK_NCCL_CALLS(X, STREAM) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclGetVersion, (int *version)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclGetUniqueId, (ncclUniqueId *id)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclCommInitRankConfig, \
	  (ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclCommGetAsyncError, \
	  (ncclComm_t comm, ncclResult_t *code)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclCommFinalize, (ncclComm_t comm)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclCommAbort, (ncclComm_t comm)) \
	X(COLLECTIVES, MAY, const char *, ncclGetLastError, (ncclComm_t comm)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclGroupStart, (void)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclGroupEnd, (void)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclSend, \
	  (const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, \
	   STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclRecv, \
	  (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclAllGather, \
	  (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, \
	   STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclBroadcast, \
	  (const void *from, void *to, size_t count, ncclDataType_t type, int root, \
	   ncclComm_t comm, STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclAllReduce, \
	  (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, \
	   ncclComm_t comm, STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclReduce, \
	  (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, \
	   int root, ncclComm_t comm, STREAM stream)) \
	X(COLLECTIVES, NEED, ncclResult_t, ncclReduceScatter, \
	  (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, \
	   ncclComm_t comm, STREAM stream))

#define YK_NCCL_CONSTANTS(X) \
	X(ncclSuccess, 0) \
	X(ncclUnhandledCudaError, 1) \
	X(ncclSystemError, 2) \
	X(ncclInternalError, 3) \
	X(ncclInvalidArgument, 4) \
	X(ncclInvalidUsage, 5) \
	X(ncclRemoteError, 6) \
	X(ncclInProgress, 7) \
	X(ncclInt8, 0) \
	X(ncclUint8, 1) \
	X(ncclInt32, 2) \
	X(ncclInt64, 4) \
	X(ncclFloat16, 6) \
	X(ncclFloat32, 7) \
	X(ncclFloat64, 8) \
	X(ncclBfloat16, 9) \
	X(ncclSum, 0) \
	X(ncclMax, 2) \
	X(ncclMin, 3)

#define YK_NCCL_TYPES(X) \
	X(ncclResult_t) X(ncclComm_t) X(ncclUniqueId) X(ncclDataType_t) X(ncclRedOp_t)

// ncclConfig_t grows with versions; these are the members that are used
#define YK_NCCL_FIELDS(X) \
	X(ncclUniqueId, internal) \
	X(ncclConfig_t, size) \
	X(ncclConfig_t, magic) \
	X(ncclConfig_t, version) \
	X(ncclConfig_t, blocking)

#define YK_NCCL_DECLARATIONS \
	typedef int ncclResult_t; \
	typedef int ncclDataType_t; \
	typedef int ncclRedOp_t; \
	typedef struct ncclComm *ncclComm_t; \
	typedef struct { \
		char internal[128]; \
	} ncclUniqueId; \
	typedef struct { /* as NCCL 2.14 has it; later ones take it by its size and version */ \
		size_t size; \
		unsigned int magic, version; \
		int blocking; \
	} ncclConfig_t; \
	enum { YK_NCCL_MAGIC = (int)0xcafebeefu, YK_NCCL_VERSION = 21400 }

#endif
