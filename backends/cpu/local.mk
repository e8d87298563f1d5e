# SPDX-License-Identifier: Apache-2.0
# The CPU backend, part of the library. Kernels are compiled once per instruction set.
libyokecore_la_SOURCES += \
	backends/cpu/algebra/lapack.c \
	backends/cpu/algebra/lapack.h \
	backends/cpu/algebra/matrix.h \
	backends/cpu/attention/kern_attention_tile.h \
	backends/cpu/contract/gemm.c \
	backends/cpu/contract/kern_contract.h \
	backends/cpu/contract/kern_contract_amx.h \
	backends/cpu/contract/kern_contract_dots.h \
	backends/cpu/contract/kern_contract_gemm.h \
	backends/cpu/contract/kern_contract_join.h \
	backends/cpu/contract/kern_contract_pack.h \
	backends/cpu/contract/kern_contract_pairs.h \
	backends/cpu/contract/kern_contract_tile.h \
	backends/cpu/contract/kern_contract_tiles.h \
	backends/cpu/contract/kern_contract_transpose.h \
	backends/cpu/contract/kern_contract_windows.h \
	backends/cpu/cpu.h \
	backends/cpu/host/backend.c \
	backends/cpu/host/cgroup.c \
	backends/cpu/host/cores.c \
	backends/cpu/host/error.c \
	backends/cpu/host/frame.h \
	backends/cpu/host/isa.c \
	backends/cpu/host/memory.c \
	backends/cpu/host/prepared.c \
	backends/cpu/host/setting.c \
	backends/cpu/host/team.c \
	backends/cpu/map/kern_map.h \
	backends/cpu/map/kern_map_chain.h \
	backends/cpu/map/kern_map_each.h \
	backends/cpu/map/kern_map_float.h \
	backends/cpu/map/kern_map_int.h \
	backends/cpu/move/kern_gather.h \
	backends/cpu/move/walk.h \
	backends/cpu/reduce/kern_moments.h \
	backends/cpu/reduce/kern_reduce.h \
	backends/cpu/reduce/kern_reduce_acc.h \
	backends/cpu/resolvent/kern_resolvent.h \
	backends/cpu/resolvent/kern_resolvent_backward.h \
	backends/cpu/resolvent/kern_resolvent_half.h \
	backends/cpu/resolvent/kern_resolvent_lanes.h \
	backends/cpu/rows/operand.h \
	backends/cpu/rows/softrow.h \
	backends/cpu/vector/half.h \
	backends/cpu/vector/philox.h \
	backends/cpu/vector/vec.h \
	backends/cpu/vector/vfun.h \
	backends/cpu/vector/vhalf.h \
	backends/cpu/vector/vmath.h
cpu_kernels = \
	backends/cpu/algebra/kern_cholesky.c \
	backends/cpu/algebra/kern_eigh.c \
	backends/cpu/attention/kern_attention.c \
	backends/cpu/attention/kern_attention_backward.c \
	backends/cpu/attention/kern_attention_row.c \
	backends/cpu/contract/kern_contract.c \
	backends/cpu/contract/kern_contract_f32.c \
	backends/cpu/contract/kern_contract_f64.c \
	backends/cpu/contract/kern_contract_int.c \
	backends/cpu/contract/kern_contract_map.c \
	backends/cpu/contract/kern_conv.c \
	backends/cpu/contract/kern_grouped.c \
	backends/cpu/host/isa_table.c \
	backends/cpu/list/kern_list.c \
	backends/cpu/map/kern_map.c \
	backends/cpu/map/kern_map_cast.c \
	backends/cpu/map/kern_map_chain.c \
	backends/cpu/map/kern_map_check.c \
	backends/cpu/map/kern_map_f32.c \
	backends/cpu/map/kern_map_f64.c \
	backends/cpu/map/kern_map_i32.c \
	backends/cpu/map/kern_map_i64.c \
	backends/cpu/map/kern_map_i8.c \
	backends/cpu/map/kern_map_link.c \
	backends/cpu/map/kern_map_prog.c \
	backends/cpu/map/kern_map_run.c \
	backends/cpu/map/kern_map_u8.c \
	backends/cpu/map/kern_scan_map.c \
	backends/cpu/move/kern_along.c \
	backends/cpu/move/kern_check.c \
	backends/cpu/move/kern_gather.c \
	backends/cpu/move/kern_gather_add.c \
	backends/cpu/move/kern_largest.c \
	backends/cpu/move/kern_move.c \
	backends/cpu/move/kern_slice_at.c \
	backends/cpu/move/kern_sort.c \
	backends/cpu/move/kern_source.c \
	backends/cpu/move/kern_pool.c \
	backends/cpu/move/kern_window_add.c \
	backends/cpu/reduce/kern_moments.c \
	backends/cpu/reduce/kern_reduce.c \
	backends/cpu/reduce/kern_reduce_f32.c \
	backends/cpu/reduce/kern_reduce_f64.c \
	backends/cpu/reduce/kern_reduce_i64.c \
	backends/cpu/reduce/kern_scan.c \
	backends/cpu/resolvent/kern_resolvent.c \
	backends/cpu/resolvent/kern_resolvent_f32.c \
	backends/cpu/resolvent/kern_resolvent_f64.c \
	backends/cpu/rows/kern_norm.c \
	backends/cpu/rows/kern_softmax.c \
	backends/cpu/rows/kern_xent.c

libcpu_base_la_SOURCES = $(cpu_kernels)
libcpu_base_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=base
libcpu_base_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)
noinst_LTLIBRARIES += libcpu_base.la
libyokecore_la_LIBADD += libcpu_base.la

if X86_64
libcpu_avx2_la_SOURCES = $(cpu_kernels)
libcpu_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx2
libcpu_avx2_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX2_CFLAGS)
noinst_LTLIBRARIES += libcpu_avx2.la
libyokecore_la_LIBADD += libcpu_avx2.la
endif
if AVX512
libcpu_avx512_la_SOURCES = $(cpu_kernels)
libcpu_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512
libcpu_avx512_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS)
noinst_LTLIBRARIES += libcpu_avx512.la
libyokecore_la_LIBADD += libcpu_avx512.la
endif

# Levels above an instruction set: they replace only its bf16 contractions.
bf16_kernels = backends/cpu/host/isa_table.c backends/cpu/contract/kern_contract.c
if AVX512_BF16
libcpu_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_bf16.c
libcpu_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=avx512_bf16
libcpu_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) -mavx512bf16
noinst_LTLIBRARIES += libcpu_bf16.la
libyokecore_la_LIBADD += libcpu_bf16.la
endif
if AMX
libcpu_amx_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_amx.c
libcpu_amx_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=amx
libcpu_amx_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) -mamx-tile -mamx-bf16
noinst_LTLIBRARIES += libcpu_amx.la
libyokecore_la_LIBADD += libcpu_amx.la
endif
