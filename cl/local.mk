# SPDX-License-Identifier: Apache-2.0
# Kernel texts: embedded in the library, and installed as files.

cldir = $(pkgdatadir)/cl
dist_cl_DATA = $(cl_files)
cl_files = \
	cl/attention.cl \
	cl/attention_backward.cl \
	cl/attention_blocks.cl \
	cl/attention_lanes.cl \
	cl/attention_matrix.cl \
	cl/attention_matrix_backward.cl \
	cl/attention_rows.cl \
	cl/attention_tiles.cl \
	cl/axes.cl \
	cl/contract_blocks.cl \
	cl/contract_direct.cl \
	cl/contract_join.cl \
	cl/contract_load.cl \
	cl/contract_matrix.cl \
	cl/contract_op.cl \
	cl/contract_packed.cl \
	cl/contract_rows.cl \
	cl/contract_tiled.cl \
	cl/conv.cl \
	cl/f16.cl \
	cl/f64.cl \
	cl/gather.cl \
	cl/grouped.cl \
	cl/half.cl \
	cl/largest.cl \
	cl/limits.cl \
	cl/list.cl \
	cl/list_map.cl \
	cl/list_reduce.cl \
	cl/map.cl \
	cl/map_int.cl \
	cl/map_real.cl \
	cl/math.cl \
	cl/matrix.cl \
	cl/moments.cl \
	cl/move.cl \
	cl/norm.cl \
	cl/number.cl \
	cl/philox.cl \
	cl/prologue_cuda.h \
	cl/prologue_opencl.h \
	cl/reduce.cl \
	cl/reduction.cl \
	cl/report.cl \
	cl/report_length.cl \
	cl/resolvent.cl \
	cl/resolvent_backward.cl \
	cl/resolvent_chain.cl \
	cl/resolvent_link.cl \
	cl/rope.cl \
	cl/rows.cl \
	cl/scan.cl \
	cl/scan_map.cl \
	cl/scatter.cl \
	cl/scatter_add.cl \
	cl/scatter_along.cl \
	cl/scatter_list.cl \
	cl/softmax.cl \
	cl/sort.cl \
	cl/tile.cl \
	cl/units.cl \
	cl/vexp.cl \
	cl/window_add.cl \
	cl/xent.cl
