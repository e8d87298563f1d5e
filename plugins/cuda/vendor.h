// SPDX-License-Identifier: Apache-2.0
// Maps the names used by the native driver (v_*, V_*) to NVIDIA's.
#ifndef YK_VENDOR_H
#define YK_VENDOR_H

#include "calls.h"
#include "types.h"

#define V_NAME "cuda"
#define V_TITLE "CUDA"
#define V_VENDOR "NVIDIA"
#define V_LIBRARIES YK_CUDA_LIBRARIES
#define V_CALLS YK_CUDA_CALLS
// Searched below the configured directory, and below the directories of Python packages.
#define V_FOLDERS "lib64", "lib"
#define V_SYSTEM_FOLDERS "/usr/local/cuda/lib64"
#define V_PYTHON_FOLDERS "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cublas/lib", "nvidia/nccl/lib"
#define V_DRIVER_ADVICE "install NVIDIA's driver"
#define V_COLLECTIVES_ADVICE "ranks communicate through host memory; install NCCL, for example with `pip install nvidia-nccl-cu12`"
#define V_PRODUCTS_ADVICE "matrix products use yoke's own kernels"
#define V_COMPILER_ADVICE "install CUDA's libnvrtc, for example with `pip install nvidia-cuda-nvrtc-cu12`"

typedef CUdevice v_device;
typedef CUcontext v_context;
typedef CUstream v_stream;
typedef CUevent v_event;
typedef CUmodule v_module;
typedef CUfunction v_function;
typedef CUgraph v_graph;
typedef CUgraphExec v_exec;
typedef CUdeviceptr v_address;
typedef nvrtcProgram v_program;
typedef cublasLtHandle_t v_lt_handle;
typedef cublasLtMatmulDesc_t v_lt_desc;
typedef cublasLtMatrixLayout_t v_lt_layout;
typedef cublasLtMatmulPreference_t v_lt_preference;
typedef cublasLtMatmulAlgo_t v_lt_algo;
typedef cublasLtMatmulHeuristicResult_t v_lt_result;

enum {
	V_SUCCESS = CUDA_SUCCESS,
	V_INVALID_VALUE = CUDA_ERROR_INVALID_VALUE,
	V_OUT_OF_MEMORY = CUDA_ERROR_OUT_OF_MEMORY,
	V_NO_DEVICE = CUDA_ERROR_NO_DEVICE,
	V_INVALID_DEVICE = CUDA_ERROR_INVALID_DEVICE,
	V_NOT_FOUND = CUDA_ERROR_NOT_FOUND,
	V_NOT_READY = CUDA_ERROR_NOT_READY,
	V_PEER_ALREADY = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
	V_COMPILER_OUT_OF_MEMORY = NVRTC_ERROR_OUT_OF_MEMORY,
	V_PRODUCTS_OUT_OF_MEMORY = CUBLAS_STATUS_ALLOC_FAILED,
	V_PRODUCTS_UNSUPPORTED = CUBLAS_STATUS_NOT_SUPPORTED,
	V_COMPUTE_32F = CUBLAS_COMPUTE_32F,
	V_COMPUTE_TF32 = CUBLAS_COMPUTE_32F_FAST_TF32,
	V_COMPUTE_64F = CUBLAS_COMPUTE_64F,
	V_R_32F = CUDA_R_32F,
	V_R_64F = CUDA_R_64F,
	V_R_16F = CUDA_R_16F,
	V_R_16BF = CUDA_R_16BF,
	V_OP_N = CUBLAS_OP_N,
	V_OP_T = CUBLAS_OP_T,
	V_DESC_TRANSA = CUBLASLT_MATMUL_DESC_TRANSA,
	V_DESC_TRANSB = CUBLASLT_MATMUL_DESC_TRANSB,
	V_DESC_EPILOGUE = CUBLASLT_MATMUL_DESC_EPILOGUE,
	V_DESC_BIAS = CUBLASLT_MATMUL_DESC_BIAS_POINTER,
	V_EPILOGUE_BIAS = CUBLASLT_EPILOGUE_BIAS,
	V_EPILOGUE_RELU = CUBLASLT_EPILOGUE_RELU,
	V_EPILOGUE_GELU = CUBLASLT_EPILOGUE_GELU,
	V_LAYOUT_BATCH = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
	V_LAYOUT_STEP = CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
	V_PREFERENCE_WORKSPACE = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
	V_COMPILER_COMPLAINS = NVRTC_ERROR_COMPILATION,
	V_COMPILER_OPTION = NVRTC_ERROR_INVALID_OPTION,
	V_GROUP_ITEMS = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
	V_GROUP_X = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
	V_GROUP_Y = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
	V_GRID_X = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
	V_GRID_Y = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
	V_GRID_Z = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
	V_LOCAL_BYTES = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
	V_WARP = CU_DEVICE_ATTRIBUTE_WARP_SIZE,
	V_CLOCK = CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
	V_MEMORY_CLOCK = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
	V_MEMORY_BITS = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
	V_UNIT_ITEMS = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
	V_UNITS = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
	V_CACHE = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
	V_INTEGRATED = CU_DEVICE_ATTRIBUTE_INTEGRATED,
	V_MODE = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
	V_MODE_PROHIBITED = CU_COMPUTEMODE_PROHIBITED
};

// Each expands to the call's name and its result code.
#define V_INIT() V(cuInit, 0)
#define V_COUNT(n) V(cuDeviceGetCount, n)
#define V_INIT_CALL "cuInit"
#define V_COUNT_CALL "cuDeviceGetCount"
#define V_DEVICE_CALL "cuDeviceGet"
#define V_DEVICE(to, i) V(cuDeviceGet, to, i)
#define V_DEVICE_NAME(to, cap, id) V(cuDeviceGetName, to, cap, id)
#define V_PCI(to, cap, id) V(cuDeviceGetPCIBusId, to, cap, id)
#define V_ATTRIBUTE(to, what, id) V(cuDeviceGetAttribute, to, what, id)
#define V_MEMORY(to, id) V(cuDeviceTotalMem_v2, to, id)
#define V_FREE_MEMORY(to, all) V(cuMemGetInfo_v2, to, all)
#define V_OPEN(d) V(cuDevicePrimaryCtxRetain, &(d)->context, (d)->id)
#define V_CLOSE(d) V(cuDevicePrimaryCtxRelease_v2, (d)->id)
#define V_USE(d) V(cuCtxSetCurrent, (d)->context)
#define V_CAN_PEER(to, d, peer) V(cuDeviceCanAccessPeer, to, (d)->id, (peer)->id)
#define V_ENABLE_PEER(peer) V(cuCtxEnablePeerAccess, (peer)->context, 0)
#define V_ALLOC(to, bytes) V(cuMemAlloc_v2, to, bytes)
#define V_FREE(at) V(cuMemFree_v2, at)
#define V_HOST_ALLOC(to, bytes) \
	V(cuMemHostAlloc, to, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
#define V_HOST_FREE(at) V(cuMemFreeHost, at)
#define V_HOST_ADDRESS(to, at) V(cuMemHostGetDevicePointer_v2, to, at, 0)
#define V_REGISTER(at, bytes) \
	V(cuMemHostRegister_v2, at, bytes, \
	  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
#define V_UNREGISTER(at) V(cuMemHostUnregister, at)
#define V_PUT(to, from, bytes, stream) V(cuMemcpyHtoDAsync_v2, to, from, bytes, stream)
#define V_GET(to, from, bytes, stream) V(cuMemcpyDtoHAsync_v2, to, from, bytes, stream)
#define V_COPY(to, from, bytes, stream) V(cuMemcpyDtoDAsync_v2, to, from, bytes, stream)
#define V_COPY_PEER(to, t, from, f, bytes, stream) \
	V(cuMemcpyPeerAsync, to, (t)->context, from, (f)->context, bytes, stream)
#define V_SET8(at, value, n, stream) V(cuMemsetD8Async, at, value, n, stream)
#define V_SET16(at, value, n, stream) V(cuMemsetD16Async, at, value, n, stream)
#define V_SET32(at, value, n, stream) V(cuMemsetD32Async, at, value, n, stream)
#define V_LOAD_CALL "cuModuleLoadData"
#define V_LOAD(to, image) V(cuModuleLoadData, to, image)
#define V_UNLOAD(module) V(cuModuleUnload, module)
#define V_FUNCTION_CALL "cuModuleGetFunction"
#define V_FUNCTION(to, module, name) V(cuModuleGetFunction, to, module, name)
#define V_FUNCTION_ITEMS(to, f) \
	V(cuFuncGetAttribute, to, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f)
#define V_FUNCTION_REGISTERS(to, f) V(cuFuncGetAttribute, to, CU_FUNC_ATTRIBUTE_NUM_REGS, f)
#define V_FUNCTION_LOCAL(to, f) V(cuFuncGetAttribute, to, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f)
#define V_HAS_OCCUPANCY (yk_native.cuOccupancyMaxActiveBlocksPerMultiprocessor)
#define V_OCCUPANCY(to, f, items, sized) \
	V(cuOccupancyMaxActiveBlocksPerMultiprocessor, to, f, items, sized)
#define V_SIZED_CALL "cuFuncSetAttribute"
#define V_SIZED(f, bytes) \
	V(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)(bytes))
#define V_MAX_ITEMS INT64_MAX // max work-items of a launch along an axis
#define V_LAUNCH_CALL "cuLaunchKernel"
#define V_LAUNCH(f, g, b, sized, stream, params) \
	V(cuLaunchKernel, f, (g)[0], (g)[1], (g)[2], (b)[0], (b)[1], (b)[2], (unsigned)(sized), \
	  stream, params, NULL)
#define V_STREAM_NEW(to) V(cuStreamCreate, to, CU_STREAM_NON_BLOCKING)
#define V_STREAM_FREE(stream) V(cuStreamDestroy_v2, stream)
#define V_STREAM_WAIT(stream) V(cuStreamSynchronize, stream)
#define V_STREAM_AFTER(stream, event) V(cuStreamWaitEvent, stream, event, 0)
#define V_EVENT_NEW(to, timed) \
	V(cuEventCreate, to, (timed) ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING)
#define V_EVENT_FREE(event) V(cuEventDestroy_v2, event)
#define V_EVENT_MARK(event, stream) V(cuEventRecord, event, stream)
#define V_EVENT_ASK_CALL "cuEventQuery"
#define V_EVENT_ASK(event) V(cuEventQuery, event)
#define V_EVENT_WAIT(event) V(cuEventSynchronize, event)
#define V_EVENT_TIME(to, from, end) V(cuEventElapsedTime, to, from, end)
#define V_HAS_GRAPHS \
	(yk_native.cuStreamBeginCapture_v2 && yk_native.cuStreamEndCapture && \
	 yk_native.cuGraphInstantiateWithFlags && yk_native.cuGraphLaunch && \
	 yk_native.cuGraphExecDestroy && yk_native.cuGraphDestroy)
#define V_HAS_PEERS \
	(yk_native.cuDeviceCanAccessPeer && yk_native.cuCtxEnablePeerAccess && \
	 yk_native.cuMemcpyPeerAsync)
#define V_HAS_REGISTER (yk_native.cuMemHostRegister_v2 && yk_native.cuMemHostUnregister)
#define V_CAPTURE(stream) V(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED)
#define V_CAPTURE_END(stream, to) V(cuStreamEndCapture, stream, to)
#define V_INSTANTIATE(to, graph) V(cuGraphInstantiateWithFlags, to, graph, 0)
#define V_GRAPH_LAUNCH(exec, stream) V(cuGraphLaunch, exec, stream)
#define V_EXEC_FREE(exec) V(cuGraphExecDestroy, exec)
#define V_GRAPH_FREE(graph) V(cuGraphDestroy, graph)
#define V_PROGRAM_NEW_CALL "nvrtcCreateProgram"
#define V_PROGRAM_NEW(to, text) V(nvrtcCreateProgram, to, text, "yoke.cu", 0, NULL, NULL)
#define V_PROGRAM_FREE(program) V(nvrtcDestroyProgram, program)
#define V_COMPILE_CALL "nvrtcCompileProgram"
#define V_COMPILE(program, n, options) V(nvrtcCompileProgram, program, n, options)
#define V_LOG_BYTES(program, to) V(nvrtcGetProgramLogSize, program, to)
#define V_LOG(program, to) V(nvrtcGetProgramLog, program, to)
#define V_CODE_BYTES(d, program, to) \
	"nvrtcGetCUBINSize", (d)->ptx ? yk_native.nvrtcGetPTXSize(program, to) : \
					yk_native.nvrtcGetCUBINSize(program, to)
#define V_CODE(d, program, to) \
	"nvrtcGetCUBIN", (d)->ptx ? yk_native.nvrtcGetPTX(program, to) : yk_native.nvrtcGetCUBIN(program, to)
#define V_RANGE_PUSH(name) yk_native.nvtxRangePushA(name)
#define V_RANGE_POP() yk_native.nvtxRangePop()
#define V_PRODUCTS_NAME "cublaslt"
#define V_MORE_PRODUCTS NULL
#define V_LT_NEW(to) V(cublasLtCreate, to)
#define V_LT_DESC_NEW(to, compute, scale) V(cublasLtMatmulDescCreate, to, compute, scale)
#define V_LT_DESC_FREE(desc) V(cublasLtMatmulDescDestroy, desc)
#define V_LT_DESC_SET(desc, what, from, bytes) \
	V(cublasLtMatmulDescSetAttribute, desc, what, from, bytes)
#define V_LT_LAYOUT_NEW(to, type, rows, cols, ld) \
	V(cublasLtMatrixLayoutCreate, to, type, rows, cols, ld)
#define V_LT_LAYOUT_FREE(layout) V(cublasLtMatrixLayoutDestroy, layout)
#define V_LT_LAYOUT_SET(layout, what, from, bytes) \
	V(cublasLtMatrixLayoutSetAttribute, layout, what, from, bytes)
#define V_LT_PREFERENCE_NEW(to) V(cublasLtMatmulPreferenceCreate, to)
#define V_LT_PREFERENCE_FREE(preference) V(cublasLtMatmulPreferenceDestroy, preference)
#define V_LT_PREFERENCE_SET(preference, what, from, bytes) \
	V(cublasLtMatmulPreferenceSetAttribute, preference, what, from, bytes)
#define V_LT_CHOOSE_CALL "cublasLtMatmulAlgoGetHeuristic"
#define V_LT_CHOOSE(...) V(cublasLtMatmulAlgoGetHeuristic, __VA_ARGS__)
#define V_LT_MULTIPLY(...) V(cublasLtMatmul, __VA_ARGS__)

static inline v_address v_address_of(const void *buffer, uint64_t offset)
{
	return (v_address)(uintptr_t)buffer + offset;
}

static inline void *v_buffer_of(v_address at)
{
	return (void *)(uintptr_t)at;
}

#endif
