// SPDX-License-Identifier: Apache-2.0
// The examination behind `yoke doctor`: what was looked for, where, what became of it, and advice.
#ifndef YK_DOCTOR_H
#define YK_DOCTOR_H

#include <stdbool.h>

#include "base/json.h"

// The whole report, an object; the caller gives it to json_decref.  Its list "problems" names what
// was asked for and cannot be used.  NULL: no memory.
json_t *yk_doctor(void);

// Of one run or two (doctor_run.c): prints what is wrong with them; the exit status, 1 where something is.
int yk_doctor_runs(int n, const char *const *folder, bool json);

// Paths in the build folder of the modules that were built with this command, as "plugins/cuda/yoke_cuda.la", up to a
// NULL (built.c, which make writes).
extern const char *const yk_built_modules[];

// ---- its parts ----

// Appends a line to a list of texts, unless it is there already.
void yk_doctor_say(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// OpenCL's loader, drivers and device nodes.  Drivers are met in a child process, and only when
// `meet`; has_gpu: some backend offers a GPU.
json_t *yk_doctor_opencl(bool meet, bool has_gpu, json_t *advice);
// Device nodes below `dev`.
json_t *yk_doctor_nodes(const char *dev, bool has_gpu, json_t *advice);
// What `yoke tune` found, of each device.
json_t *yk_doctor_tuning(json_t *advice);
// Our cache of kernels, and those of drivers.
json_t *yk_doctor_caches(json_t *problems, json_t *advice);

#endif
