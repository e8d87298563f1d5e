# SPDX-License-Identifier: Apache-2.0
# The launch layer of GPU backends: linked into each GPU plugin, and into its test.
if GPU_MODULES
noinst_LTLIBRARIES += libgpu.la
else
check_LTLIBRARIES += libgpu.la
endif
libgpu_la_SOURCES = $(gpu_sources)

gpu_sources = \
	backends/gpu/attention.c \
	backends/gpu/axes.c \
	backends/gpu/axes.h \
	backends/gpu/backend.c \
	backends/gpu/between.c \
	backends/gpu/contract.c \
	backends/gpu/contract.h \
	backends/gpu/contract_blocks.c \
	backends/gpu/contract_packed.c \
	backends/gpu/contract_rows.c \
	backends/gpu/contract_shape.c \
	backends/gpu/contract_tiled.c \
	backends/gpu/conv.c \
	backends/gpu/resolvent.c \
	backends/gpu/grouped.c \
	backends/gpu/device.c \
	backends/gpu/driver.h \
	backends/gpu/error.c \
	backends/gpu/ext.c \
	backends/gpu/ext.h \
	backends/gpu/f16.c \
	backends/gpu/f64.c \
	backends/gpu/gather.c \
	backends/gpu/gpu.h \
	backends/gpu/graph.c \
	backends/gpu/kernel.c \
	backends/gpu/largest.c \
	backends/gpu/launch.c \
	backends/gpu/launch.h \
	backends/gpu/list.c \
	backends/gpu/map.c \
	backends/gpu/memory.c \
	backends/gpu/moments.c \
	backends/gpu/move.c \
	backends/gpu/norm.c \
	backends/gpu/program.c \
	backends/gpu/queue.c \
	backends/gpu/reduce.c \
	backends/gpu/report.c \
	backends/gpu/report.h \
	backends/gpu/rope.c \
	backends/gpu/rows.c \
	backends/gpu/rows.h \
	backends/gpu/scan.c \
	backends/gpu/scan_map.c \
	backends/gpu/scatter.c \
	backends/gpu/softmax.c \
	backends/gpu/sort.c \
	backends/gpu/source.c \
	backends/gpu/try.c \
	backends/gpu/tile.c \
	backends/gpu/tile.h \
	backends/gpu/units.c \
	backends/gpu/xent.c
