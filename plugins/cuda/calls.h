// SPDX-License-Identifier: Apache-2.0
// The libraries and symbols that the CUDA driver opens at run time, by their exact names. Types are
// NVIDIA's, from types.h.
#ifndef YK_CUDA_CALLS_H
#define YK_CUDA_CALLS_H

#include "../native/nccl.h"

// X(library, name): the first name that can be opened and is compatible is used. DRIVER is the
// library that belongs to the kernel module; without it or COMPILER there is no device. PRODUCTS is
// cuBLASLt, TELEMETRY NVML, COLLECTIVES NCCL.
#define YK_CUDA_LIBRARIES(X) \
	X(DRIVER, "libcuda.so.1") \
	X(COMPILER, "libnvrtc.so.13") X(COMPILER, "libnvrtc.so.12") X(COMPILER, "libnvrtc.so.11.2") \
	X(PRODUCTS, "libcublasLt.so.13") X(PRODUCTS, "libcublasLt.so.12") X(PRODUCTS, "libcublasLt.so.11") \
	X(TELEMETRY, "libnvidia-ml.so.1") \
	X(RANGES, "libnvToolsExt.so.1") \
	X(COLLECTIVES, "libnccl.so.2")

// X(library, need, result, symbol, parameters). NEED: the library is unusable without the symbol;
// MAY: it is optional.
#define YK_CUDA_CALLS(X) \
	X(DRIVER, NEED, CUresult, cuInit, (unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuDriverGetVersion, (int *version)) \
	X(DRIVER, NEED, CUresult, cuGetErrorName, (CUresult code, const char **name)) \
	X(DRIVER, NEED, CUresult, cuGetErrorString, (CUresult code, const char **text)) \
	X(DRIVER, NEED, CUresult, cuDeviceGetCount, (int *count)) \
	X(DRIVER, NEED, CUresult, cuDeviceGet, (CUdevice *device, int ordinal)) \
	X(DRIVER, NEED, CUresult, cuDeviceGetName, (char *name, int bytes, CUdevice device)) \
	X(DRIVER, MAY, CUresult, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuDeviceGetPCIBusId, (char *id, int bytes, CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuDeviceGetAttribute, \
	  (int *value, CUdevice_attribute what, CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
	X(DRIVER, NEED, CUresult, cuCtxSetCurrent, (CUcontext context)) \
	X(DRIVER, MAY, CUresult, cuDeviceCanAccessPeer, \
	  (int *can, CUdevice device, CUdevice peer)) \
	X(DRIVER, MAY, CUresult, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuMemGetInfo_v2, (size_t *free, size_t *total)) \
	X(DRIVER, NEED, CUresult, cuMemAlloc_v2, (CUdeviceptr *at, size_t bytes)) \
	X(DRIVER, NEED, CUresult, cuMemFree_v2, (CUdeviceptr at)) \
	X(DRIVER, NEED, CUresult, cuMemHostAlloc, (void **at, size_t bytes, unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuMemFreeHost, (void *at)) \
	X(DRIVER, NEED, CUresult, cuMemHostGetDevicePointer_v2, \
	  (CUdeviceptr *to, void *at, unsigned int flags)) \
	X(DRIVER, MAY, CUresult, cuMemHostRegister_v2, \
	  (void *at, size_t bytes, unsigned int flags)) \
	X(DRIVER, MAY, CUresult, cuMemHostUnregister, (void *at)) \
	X(DRIVER, NEED, CUresult, cuMemcpyHtoDAsync_v2, \
	  (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuMemcpyDtoHAsync_v2, \
	  (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuMemcpyDtoDAsync_v2, \
	  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(DRIVER, MAY, CUresult, cuMemcpyPeerAsync, \
	  (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, \
	   size_t bytes, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuMemsetD8Async, \
	  (CUdeviceptr at, unsigned char value, size_t count, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuMemsetD16Async, \
	  (CUdeviceptr at, unsigned short value, size_t count, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuMemsetD32Async, \
	  (CUdeviceptr at, unsigned int value, size_t count, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuModuleLoadData, (CUmodule *module, const void *image)) \
	X(DRIVER, NEED, CUresult, cuModuleUnload, (CUmodule module)) \
	X(DRIVER, NEED, CUresult, cuModuleGetFunction, \
	  (CUfunction *function, CUmodule module, const char *name)) \
	X(DRIVER, NEED, CUresult, cuFuncGetAttribute, \
	  (int *value, CUfunction_attribute what, CUfunction)) \
	X(DRIVER, MAY, CUresult, cuFuncSetAttribute, \
	  (CUfunction, CUfunction_attribute what, int value)) \
	X(DRIVER, MAY, CUresult, cuOccupancyMaxActiveBlocksPerMultiprocessor, \
	  (int *groups, CUfunction function, int items, size_t local_bytes)) \
	X(DRIVER, MAY, CUresult, cuFuncGetParamInfo, \
	  (CUfunction function, size_t index, size_t *offset, size_t *bytes)) \
	X(DRIVER, NEED, CUresult, cuLaunchKernel, \
	  (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z, \
	   unsigned int local_bytes, CUstream stream, void **params, void **extra)) \
	X(DRIVER, NEED, CUresult, cuStreamCreate, (CUstream *stream, unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuStreamDestroy_v2, (CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuStreamSynchronize, (CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuStreamWaitEvent, \
	  (CUstream stream, CUevent event, unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuEventCreate, (CUevent *event, unsigned int flags)) \
	X(DRIVER, NEED, CUresult, cuEventDestroy_v2, (CUevent event)) \
	X(DRIVER, NEED, CUresult, cuEventRecord, (CUevent event, CUstream stream)) \
	X(DRIVER, NEED, CUresult, cuEventQuery, (CUevent event)) \
	X(DRIVER, NEED, CUresult, cuEventSynchronize, (CUevent event)) \
	X(DRIVER, NEED, CUresult, cuEventElapsedTime, \
	  (float *milliseconds, CUevent from, CUevent to)) \
	X(DRIVER, MAY, CUresult, cuStreamBeginCapture_v2, \
	  (CUstream stream, CUstreamCaptureMode mode)) \
	X(DRIVER, MAY, CUresult, cuStreamEndCapture, (CUstream stream, CUgraph *graph)) \
	X(DRIVER, MAY, CUresult, cuGraphInstantiateWithFlags, \
	  (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
	X(DRIVER, MAY, CUresult, cuGraphLaunch, (CUgraphExec exec, CUstream stream)) \
	X(DRIVER, MAY, CUresult, cuGraphExecDestroy, (CUgraphExec exec)) \
	X(DRIVER, MAY, CUresult, cuGraphDestroy, (CUgraph graph)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcVersion, (int *major, int *minor)) \
	X(COMPILER, NEED, const char *, nvrtcGetErrorString, (nvrtcResult code)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetNumSupportedArchs, (int *count)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetSupportedArchs, (int *archs)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcCreateProgram, \
	  (nvrtcProgram *program, const char *text, const char *name, int headers, \
	   const char *const *header, const char *const *header_name)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *program)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcCompileProgram, \
	  (nvrtcProgram program, int options, const char *const *option)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetProgramLogSize, \
	  (nvrtcProgram program, size_t *bytes)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *log)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char *to)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t *bytes)) \
	X(COMPILER, NEED, nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char *to)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtCreate, (cublasLtHandle_t *handle)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle)) \
	X(PRODUCTS, NEED, size_t, cublasLtGetVersion, (void)) \
	X(PRODUCTS, NEED, const char *, cublasLtGetStatusName, (cublasStatus_t code)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulDescCreate, \
	  (cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulDescSetAttribute, \
	  (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const void *value, \
	   size_t bytes)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatrixLayoutCreate, \
	  (cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t cols, \
	   int64_t ld)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatrixLayoutDestroy, \
	  (cublasLtMatrixLayout_t layout)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatrixLayoutSetAttribute, \
	  (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, const void *value, \
	   size_t bytes)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulPreferenceCreate, \
	  (cublasLtMatmulPreference_t *pref)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulPreferenceDestroy, \
	  (cublasLtMatmulPreference_t pref)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, \
	  (cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t what, \
	   const void *value, size_t bytes)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, \
	  (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, \
	   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, \
	   cublasLtMatmulPreference_t pref, int wanted, cublasLtMatmulHeuristicResult_t *to, \
	   int *found)) \
	X(PRODUCTS, NEED, cublasStatus_t, cublasLtMatmul, \
	  (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, \
	   cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, \
	   const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d, \
	   cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *work, \
	   size_t work_bytes, cudaStream_t stream)) \
	X(TELEMETRY, NEED, nvmlReturn_t, nvmlInit_v2, (void)) \
	X(TELEMETRY, NEED, const char *, nvmlErrorString, (nvmlReturn_t code)) \
	X(TELEMETRY, NEED, nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2, \
	  (const char *pci, nvmlDevice_t *device)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetMigMode, \
	  (nvmlDevice_t device, unsigned int *now, unsigned int *pending)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetUtilizationRates, \
	  (nvmlDevice_t device, nvmlUtilization_t *)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetMemoryInfo, \
	  (nvmlDevice_t device, nvmlMemory_t *)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetTemperature, \
	  (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetPowerUsage, \
	  (nvmlDevice_t device, unsigned int *milliwatts)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetEnforcedPowerLimit, \
	  (nvmlDevice_t device, unsigned int *milliwatts)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetTotalEnergyConsumption, \
	  (nvmlDevice_t device, unsigned long long *millijoules)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetClockInfo, \
	  (nvmlDevice_t device, nvmlClockType_t clock, unsigned int *megahertz)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetMaxClockInfo, \
	  (nvmlDevice_t device, nvmlClockType_t clock, unsigned int *megahertz)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetFanSpeed, \
	  (nvmlDevice_t device, unsigned int *percent)) \
	X(TELEMETRY, MAY, nvmlReturn_t, nvmlDeviceGetCurrentClocksThrottleReasons, \
	  (nvmlDevice_t device, unsigned long long *reasons)) \
	X(RANGES, NEED, int, nvtxRangePushA, (const char *name)) \
	X(RANGES, NEED, int, nvtxRangePop, (void)) \
	YK_NCCL_CALLS(X, cudaStream_t)

#endif
