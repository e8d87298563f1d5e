# SPDX-License-Identifier: Apache-2.0
# Kernel texts: embedded in the library, installed as text too.

cldir = $(pkgdatadir)/cl
dist_cl_DATA = $(cl_files)
cl_files = \
	cl/attention.cl \
	cl/attention_back.cl \
	cl/attention_rows.cl \
	cl/attention_tiles.cl \
	cl/contract_direct.cl \
	cl/contract_op.cl \
	cl/contract_packed.cl \
	cl/contract_rows.cl \
	cl/contract_tiled.cl \
	cl/half.cl \
	cl/map.cl \
	cl/map_int.cl \
	cl/map_real.cl \
	cl/math.cl \
	cl/norm.cl \
	cl/optim.cl \
	cl/philox.cl \
	cl/prologue_cuda.h \
	cl/prologue_opencl.h \
	cl/reduce.cl \
	cl/rope.cl \
	cl/rows.cl \
	cl/softmax.cl \
	cl/xent.cl
