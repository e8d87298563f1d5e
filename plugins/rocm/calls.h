// SPDX-License-Identifier: Apache-2.0
// The libraries and symbols that the ROCm driver opens at run time, by their exact names. Types are
// AMD's, from types.h.
#ifndef YK_ROCM_CALLS_H
#define YK_ROCM_CALLS_H

#include "../native/nccl.h"

// Wraps declarations that are new in ROCm 7.
#ifndef YK_ROCM_SINCE_7
#define YK_ROCM_SINCE_7(x)
#endif

// X(library, name): the first name that can be opened and is compatible is used. Without DRIVER or
// COMPILER there is no device. A compiler is compatible with a driver of the same major version;
// the driver of ROCm 5 contains a compiler.
#define YK_ROCM_LIBRARIES(X) \
	X(DRIVER, "libamdhip64.so.7") X(DRIVER, "libamdhip64.so.6") X(DRIVER, "libamdhip64.so.5") \
	X(COMPILER, "libhiprtc.so.7") X(COMPILER, "libhiprtc.so.6") X(COMPILER, "libhiprtc.so.5") \
	X(COMPILER, "libamdhip64.so.5") \
	X(PRODUCTS, "libhipblaslt.so.1") X(PRODUCTS, "libhipblaslt.so.0") \
	X(TELEMETRY, "librocm_smi64.so.1") X(TELEMETRY, "librocm_smi64.so.7") \
	X(TELEMETRY, "librocm_smi64.so.6") X(TELEMETRY, "librocm_smi64.so.5") \
	X(RANGES, "librocprofiler-sdk-roctx.so.1") X(RANGES, "libroctx64.so.4") \
	X(BLAS, "librocblas.so.5") X(BLAS, "librocblas.so.4") X(BLAS, "librocblas.so.0") \
	X(COLLECTIVES, "librccl.so.1")

// X(library, need, result, symbol, parameters). NEED: the library is unusable without the symbol;
// MAY: it is optional.
#define YK_ROCM_CALLS(X) \
	X(DRIVER, NEED, hipError_t, hipInit, (unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipRuntimeGetVersion, (int *version)) \
	X(DRIVER, NEED, const char *, hipGetErrorName, (hipError_t code)) \
	X(DRIVER, NEED, const char *, hipGetErrorString, (hipError_t code)) \
	X(DRIVER, NEED, hipError_t, hipGetDeviceCount, (int *count)) \
	X(DRIVER, NEED, hipError_t, hipDeviceGetName, (char *name, int bytes, hipDevice_t device)) \
	X(DRIVER, NEED, hipError_t, hipDeviceGetPCIBusId, (char *id, int bytes, int device)) \
	X(DRIVER, NEED, hipError_t, hipDeviceGetAttribute, \
	  (int *value, hipDeviceAttribute_t what, int device)) \
	X(DRIVER, NEED, hipError_t, hipDeviceTotalMem, (size_t *bytes, hipDevice_t device)) \
	X(DRIVER, MAY, hipError_t, hipGetDevicePropertiesR0600, \
	  (yk_hip_properties_6 *to, int device)) \
	X(DRIVER, NEED, hipError_t, hipGetDeviceProperties, (yk_hip_properties_5 *to, int device)) \
	X(DRIVER, NEED, hipError_t, hipSetDevice, (int device)) \
	X(DRIVER, MAY, hipError_t, hipDeviceCanAccessPeer, (int *can, int device, int peer)) \
	X(DRIVER, MAY, hipError_t, hipDeviceEnablePeerAccess, (int peer, unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipMemGetInfo, (size_t *free, size_t *total)) \
	X(DRIVER, NEED, hipError_t, hipMalloc, (void **at, size_t bytes)) \
	X(DRIVER, NEED, hipError_t, hipFree, (void *at)) \
	X(DRIVER, NEED, hipError_t, hipHostMalloc, (void **at, size_t bytes, unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipHostFree, (void *at)) \
	X(DRIVER, NEED, hipError_t, hipHostGetDevicePointer, \
	  (void **to, void *at, unsigned int flags)) \
	X(DRIVER, MAY, hipError_t, hipHostRegister, (void *at, size_t bytes, unsigned int flags)) \
	X(DRIVER, MAY, hipError_t, hipHostUnregister, (void *at)) \
	X(DRIVER, NEED, hipError_t, hipMemcpyHtoDAsync, \
	  (hipDeviceptr_t to, YK_ROCM_SINCE_7(const) void *from, size_t bytes, \
	   hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipMemcpyDtoHAsync, \
	  (void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipMemcpyDtoDAsync, \
	  (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)) \
	X(DRIVER, MAY, hipError_t, hipMemcpyPeerAsync, \
	  (void *to, int to_device, const void *from, int from_device, size_t bytes, \
	   hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipMemsetD8Async, \
	  (hipDeviceptr_t at, unsigned char value, size_t count, hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipMemsetD16Async, \
	  (hipDeviceptr_t at, unsigned short value, size_t count, hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipMemsetD32Async, \
	  (hipDeviceptr_t at, int value, size_t count, hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipModuleLoadData, (hipModule_t *module, const void *image)) \
	X(DRIVER, NEED, hipError_t, hipModuleUnload, (hipModule_t module)) \
	X(DRIVER, NEED, hipError_t, hipModuleGetFunction, \
	  (hipFunction_t *function, hipModule_t module, const char *name)) \
	X(DRIVER, NEED, hipError_t, hipFuncGetAttribute, \
	  (int *value, hipFunction_attribute what, hipFunction_t function)) \
	X(DRIVER, MAY, hipError_t, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, \
	  (int *groups, hipFunction_t function, int items, size_t local_bytes)) \
	X(DRIVER, NEED, hipError_t, hipModuleLaunchKernel, \
	  (hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z, \
	   unsigned int local_bytes, hipStream_t stream, void **params, void **extra)) \
	X(DRIVER, NEED, hipError_t, hipStreamCreateWithFlags, \
	  (hipStream_t *stream, unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipStreamDestroy, (hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipStreamSynchronize, (hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipStreamWaitEvent, \
	  (hipStream_t stream, hipEvent_t event, unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipEventCreateWithFlags, \
	  (hipEvent_t *event, unsigned int flags)) \
	X(DRIVER, NEED, hipError_t, hipEventDestroy, (hipEvent_t event)) \
	X(DRIVER, NEED, hipError_t, hipEventRecord, (hipEvent_t event, hipStream_t stream)) \
	X(DRIVER, NEED, hipError_t, hipEventQuery, (hipEvent_t event)) \
	X(DRIVER, NEED, hipError_t, hipEventSynchronize, (hipEvent_t event)) \
	X(DRIVER, NEED, hipError_t, hipEventElapsedTime, \
	  (float *milliseconds, hipEvent_t from, hipEvent_t to)) \
	X(DRIVER, MAY, hipError_t, hipStreamBeginCapture, \
	  (hipStream_t stream, hipStreamCaptureMode mode)) \
	X(DRIVER, MAY, hipError_t, hipStreamEndCapture, (hipStream_t stream, hipGraph_t *graph)) \
	X(DRIVER, MAY, hipError_t, hipGraphInstantiateWithFlags, \
	  (hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags)) \
	X(DRIVER, MAY, hipError_t, hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream)) \
	X(DRIVER, MAY, hipError_t, hipGraphExecDestroy, (hipGraphExec_t exec)) \
	X(DRIVER, MAY, hipError_t, hipGraphDestroy, (hipGraph_t graph)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcVersion, (int *major, int *minor)) \
	X(COMPILER, NEED, const char *, hiprtcGetErrorString, (hiprtcResult code)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcCreateProgram, \
	  (hiprtcProgram *program, const char *text, const char *name, int headers, \
	   const char *YK_ROCM_SINCE_7(const) *header, \
	   const char *YK_ROCM_SINCE_7(const) *header_name)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcDestroyProgram, (hiprtcProgram *program)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcCompileProgram, \
	  (hiprtcProgram program, int options, const char *YK_ROCM_SINCE_7(const) *option)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcGetProgramLogSize, \
	  (hiprtcProgram program, size_t *bytes)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcGetProgramLog, (hiprtcProgram program, char *log)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcGetCodeSize, (hiprtcProgram program, size_t *bytes)) \
	X(COMPILER, NEED, hiprtcResult, hiprtcGetCode, (hiprtcProgram program, char *to)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtCreate, (hipblasLtHandle_t *handle)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtDestroy, (const hipblasLtHandle_t handle)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtGetVersion, \
	  (hipblasLtHandle_t handle, int *version)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulDescCreate, \
	  (hipblasLtMatmulDesc_t *desc, hipblasComputeType_t compute, hipDataType scale)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulDescDestroy, \
	  (const hipblasLtMatmulDesc_t desc)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulDescSetAttribute, \
	  (hipblasLtMatmulDesc_t desc, hipblasLtMatmulDescAttributes_t what, const void *value, \
	   size_t bytes)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatrixLayoutCreate, \
	  (hipblasLtMatrixLayout_t *layout, hipDataType type, uint64_t rows, uint64_t cols, \
	   int64_t ld)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatrixLayoutDestroy, \
	  (const hipblasLtMatrixLayout_t layout)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatrixLayoutSetAttribute, \
	  (hipblasLtMatrixLayout_t layout, hipblasLtMatrixLayoutAttribute_t what, \
	   const void *value, size_t bytes)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulPreferenceCreate, \
	  (hipblasLtMatmulPreference_t *pref)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulPreferenceDestroy, \
	  (const hipblasLtMatmulPreference_t pref)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulPreferenceSetAttribute, \
	  (hipblasLtMatmulPreference_t pref, hipblasLtMatmulPreferenceAttributes_t what, \
	   const void *value, size_t bytes)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmulAlgoGetHeuristic, \
	  (hipblasLtHandle_t handle, hipblasLtMatmulDesc_t desc, hipblasLtMatrixLayout_t a, \
	   hipblasLtMatrixLayout_t b, hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d, \
	   hipblasLtMatmulPreference_t pref, int wanted, hipblasLtMatmulHeuristicResult_t to[], \
	   int *found)) \
	X(PRODUCTS, NEED, hipblasStatus_t, hipblasLtMatmul, \
	  (hipblasLtHandle_t handle, hipblasLtMatmulDesc_t desc, const void *alpha, const void *a, \
	   hipblasLtMatrixLayout_t a_layout, const void *b, hipblasLtMatrixLayout_t b_layout, \
	   const void *beta, const void *c, hipblasLtMatrixLayout_t c_layout, void *d, \
	   hipblasLtMatrixLayout_t d_layout, const hipblasLtMatmulAlgo_t *algo, void *work, \
	   size_t work_bytes, hipStream_t stream)) \
	X(TELEMETRY, NEED, rsmi_status_t, rsmi_init, (uint64_t flags)) \
	X(TELEMETRY, NEED, rsmi_status_t, rsmi_status_string, \
	  (rsmi_status_t code, const char **text)) \
	X(TELEMETRY, NEED, rsmi_status_t, rsmi_num_monitor_devices, (uint32_t *count)) \
	X(TELEMETRY, NEED, rsmi_status_t, rsmi_dev_pci_id_get, (uint32_t device, uint64_t *id)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_busy_percent_get, \
	  (uint32_t device, uint32_t *percent)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_memory_busy_percent_get, \
	  (uint32_t device, uint32_t *percent)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_memory_total_get, \
	  (uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_memory_usage_get, \
	  (uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_temp_metric_get, \
	  (uint32_t device, uint32_t sensor, rsmi_temperature_metric_t metric, \
	   int64_t *millidegrees)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_power_ave_get, \
	  (uint32_t device, uint32_t sensor, uint64_t *microwatts)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_current_socket_power_get, \
	  (uint32_t device, uint64_t *microwatts)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_power_cap_get, \
	  (uint32_t device, uint32_t sensor, uint64_t *microwatts)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_energy_count_get, \
	  (uint32_t device, uint64_t *count, float *microjoules_each, uint64_t *time)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_fan_speed_get, \
	  (uint32_t device, uint32_t sensor, int64_t *speed)) \
	X(TELEMETRY, MAY, rsmi_status_t, rsmi_dev_fan_speed_max_get, \
	  (uint32_t device, uint32_t sensor, uint64_t *speed)) \
	X(RANGES, NEED, int, roctxRangePushA, (const char *name)) \
	X(RANGES, NEED, int, roctxRangePop, (void)) \
	X(BLAS, NEED, rocblas_status, rocblas_create_handle, (rocblas_handle *handle)) \
	X(BLAS, NEED, rocblas_status, rocblas_destroy_handle, (rocblas_handle handle)) \
	X(BLAS, NEED, rocblas_status, rocblas_set_stream, \
	  (rocblas_handle handle, hipStream_t stream)) \
	X(BLAS, NEED, rocblas_status, rocblas_set_atomics_mode, \
	  (rocblas_handle handle, rocblas_atomics_mode mode)) \
	X(BLAS, NEED, const char *, rocblas_status_to_string, (rocblas_status code)) \
	X(BLAS, NEED, rocblas_status, rocblas_gemm_strided_batched_ex, \
	  (rocblas_handle handle, rocblas_operation turn_a, rocblas_operation turn_b, \
	   rocblas_int m, rocblas_int n, rocblas_int k, const void *alpha, const void *a, \
	   rocblas_datatype a_type, rocblas_int a_ld, rocblas_stride a_step, const void *b, \
	   rocblas_datatype b_type, rocblas_int b_ld, rocblas_stride b_step, const void *beta, \
	   const void *c, rocblas_datatype c_type, rocblas_int c_ld, rocblas_stride c_step, \
	   void *d, rocblas_datatype d_type, rocblas_int d_ld, rocblas_stride d_step, \
	   rocblas_int batch, rocblas_datatype compute, rocblas_gemm_algo algo, int32_t solution, \
	   uint32_t flags)) \
	YK_NCCL_CALLS(X, hipStream_t)

#endif
