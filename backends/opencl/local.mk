# SPDX-License-Identifier: Apache-2.0
# The OpenCL backend, a module.
if OPENCL
plugin_LTLIBRARIES += backends/opencl/yoke_opencl.la
endif
backends_opencl_yoke_opencl_la_SOURCES = $(opencl_sources)
backends_opencl_yoke_opencl_la_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
backends_opencl_yoke_opencl_la_LDFLAGS = $(module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'
backends_opencl_yoke_opencl_la_LIBADD = $(OPENCL_LIBS) $(SYSTEM_LIBS)

opencl_sources = \
	backends/opencl/attention.c \
	backends/opencl/axes.c \
	backends/opencl/axes.h \
	backends/opencl/backend.c \
	backends/opencl/contract.c \
	backends/opencl/contract.h \
	backends/opencl/contract_clblast.c \
	backends/opencl/contract_packed.c \
	backends/opencl/contract_rows.c \
	backends/opencl/contract_shape.c \
	backends/opencl/contract_tiled.c \
	backends/opencl/device.c \
	backends/opencl/error.c \
	backends/opencl/f16.c \
	backends/opencl/f64.c \
	backends/opencl/gather.c \
	backends/opencl/identity.c \
	backends/opencl/kernel.c \
	backends/opencl/launch.c \
	backends/opencl/launch.h \
	backends/opencl/list.c \
	backends/opencl/lock.c \
	backends/opencl/map.c \
	backends/opencl/memory.c \
	backends/opencl/move.c \
	backends/opencl/norm.c \
	backends/opencl/opencl.h \
	backends/opencl/program.c \
	backends/opencl/queue.c \
	backends/opencl/reduce.c \
	backends/opencl/report.c \
	backends/opencl/report.h \
	backends/opencl/rope.c \
	backends/opencl/rows.c \
	backends/opencl/rows.h \
	backends/opencl/scan.c \
	backends/opencl/scan_map.c \
	backends/opencl/scatter.c \
	backends/opencl/softmax.c \
	backends/opencl/sort.c \
	backends/opencl/source.c \
	backends/opencl/try.c \
	backends/opencl/xent.c
