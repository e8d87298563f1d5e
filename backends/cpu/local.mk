# SPDX-License-Identifier: Apache-2.0
# The CPU backend, linked in.  Kernels are compiled once for each instruction set.
libyokecore_la_SOURCES += \
	backends/cpu/backend.c \
	backends/cpu/cgroup.c \
	backends/cpu/cores.c \
	backends/cpu/cpu.h \
	backends/cpu/frame.h \
	backends/cpu/gemm.c \
	backends/cpu/half.h \
	backends/cpu/isa.c \
	backends/cpu/kern_attention_tile.h \
	backends/cpu/kern_contract.h \
	backends/cpu/kern_contract_amx.h \
	backends/cpu/kern_contract_dots.h \
	backends/cpu/kern_contract_join.h \
	backends/cpu/kern_contract_gemm.h \
	backends/cpu/kern_contract_pack.h \
	backends/cpu/kern_contract_pairs.h \
	backends/cpu/kern_contract_tile.h \
	backends/cpu/kern_contract_tiles.h \
	backends/cpu/kern_contract_transpose.h \
	backends/cpu/kern_gather.h \
	backends/cpu/kern_map.h \
	backends/cpu/kern_map_chain.h \
	backends/cpu/kern_map_each.h \
	backends/cpu/kern_map_float.h \
	backends/cpu/kern_map_int.h \
	backends/cpu/kern_reduce.h \
	backends/cpu/kern_reduce_acc.h \
	backends/cpu/operand.h \
	backends/cpu/philox.h \
	backends/cpu/softrow.h \
	backends/cpu/team.c \
	backends/cpu/vec.h \
	backends/cpu/vfun.h \
	backends/cpu/vhalf.h \
	backends/cpu/vmath.h \
	backends/cpu/walk.h
cpu_kernels = \
	backends/cpu/isa_table.c \
	backends/cpu/kern_along.c \
	backends/cpu/kern_attention.c \
	backends/cpu/kern_attention_back.c \
	backends/cpu/kern_attention_row.c \
	backends/cpu/kern_check.c \
	backends/cpu/kern_contract.c \
	backends/cpu/kern_contract_f32.c \
	backends/cpu/kern_contract_f64.c \
	backends/cpu/kern_contract_int.c \
	backends/cpu/kern_contract_map.c \
	backends/cpu/kern_gather.c \
	backends/cpu/kern_gather_add.c \
	backends/cpu/kern_map.c \
	backends/cpu/kern_map_cast.c \
	backends/cpu/kern_map_chain.c \
	backends/cpu/kern_map_check.c \
	backends/cpu/kern_map_f32.c \
	backends/cpu/kern_map_f64.c \
	backends/cpu/kern_map_i32.c \
	backends/cpu/kern_map_i64.c \
	backends/cpu/kern_map_i8.c \
	backends/cpu/kern_map_link.c \
	backends/cpu/kern_map_prog.c \
	backends/cpu/kern_map_run.c \
	backends/cpu/kern_map_u8.c \
	backends/cpu/kern_move.c \
	backends/cpu/kern_norm.c \
	backends/cpu/kern_optim.c \
	backends/cpu/kern_reduce.c \
	backends/cpu/kern_reduce_f32.c \
	backends/cpu/kern_reduce_f64.c \
	backends/cpu/kern_reduce_i64.c \
	backends/cpu/kern_scan.c \
	backends/cpu/kern_slice_at.c \
	backends/cpu/kern_softmax.c \
	backends/cpu/kern_sort.c \
	backends/cpu/kern_xent.c

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

# Levels above an instruction set: all but their products of bf16 are its own.
bf16_kernels = backends/cpu/isa_table.c backends/cpu/kern_contract.c
if AVX512_BF16
libcpu_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/kern_contract_bf16.c
libcpu_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=avx512_bf16
libcpu_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) -mavx512bf16
noinst_LTLIBRARIES += libcpu_bf16.la
libyokecore_la_LIBADD += libcpu_bf16.la
endif
if AMX
libcpu_amx_la_SOURCES = $(bf16_kernels) backends/cpu/kern_contract_amx.c
libcpu_amx_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=amx
libcpu_amx_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) -mamx-tile -mamx-bf16
noinst_LTLIBRARIES += libcpu_amx.la
libyokecore_la_LIBADD += libcpu_amx.la
endif
