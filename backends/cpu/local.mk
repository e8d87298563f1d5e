# SPDX-License-Identifier: Apache-2.0
# The CPU backend, part of the library. Kernels are compiled once per instruction set.
# build-aux/sources finds the files.
libyokecore_la_SOURCES += $(cpu_sources)

# Which kernel runs which op: the YK_KERNEL lines of the files.
BUILT_SOURCES += backends/cpu/kernel_list.inc
CLEANFILES += backends/cpu/kernel_list.inc
backends/cpu/kernel_list.inc: $(cpu_kernels) build-aux/op_list
	$(AM_V_GEN)$(MKDIR_P) backends/cpu && cd $(srcdir) && \
		$(SHELL) build-aux/op_list YK_KERNEL $(cpu_kernels) >"$(abs_builddir)/$@"
backends/cpu/host/libcpu_base_la-isa_table.lo backends/cpu/host/libcpu_avx2_la-isa_table.lo \
backends/cpu/host/libcpu_avx512_la-isa_table.lo backends/cpu/host/libcpu_bf16_la-isa_table.lo \
backends/cpu/host/libcpu_amx_la-isa_table.lo backends/cpu/host/libcpu_rvv_la-isa_table.lo \
backends/cpu/host/libcpu_rvv256_la-isa_table.lo \
backends/cpu/host/libcpu_neon_bf16_la-isa_table.lo backends/cpu/host/libcpu_sve256_la-isa_table.lo \
backends/cpu/host/libcpu_sve512_la-isa_table.lo backends/cpu/host/libcpu_sve256_bf16_la-isa_table.lo \
backends/cpu/host/libcpu_sve512_bf16_la-isa_table.lo: backends/cpu/kernel_list.inc

libcpu_base_la_SOURCES = $(cpu_kernels)
libcpu_base_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=base
libcpu_base_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)
noinst_LTLIBRARIES += libcpu_base.la
libyokecore_la_LIBADD += libcpu_base.la

if AVX2
libcpu_avx2_la_SOURCES = $(cpu_kernels)
libcpu_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx2
libcpu_avx2_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX2_CFLAGS)
noinst_LTLIBRARIES += libcpu_avx2.la
libyokecore_la_LIBADD += libcpu_avx2.la
else
if X86_64
AM_CPPFLAGS += -DYK_NO_AVX2
endif
endif
if AVX512
libcpu_avx512_la_SOURCES = $(cpu_kernels)
libcpu_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512
libcpu_avx512_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS)
noinst_LTLIBRARIES += libcpu_avx512.la
libyokecore_la_LIBADD += libcpu_avx512.la
endif

if RVV
libcpu_rvv_la_SOURCES = $(cpu_kernels)
libcpu_rvv_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=rvv
libcpu_rvv_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(RVV_CFLAGS)
libcpu_rvv256_la_SOURCES = $(cpu_kernels)
libcpu_rvv256_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=rvv256
libcpu_rvv256_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(RVV_CFLAGS)_zvl256b
noinst_LTLIBRARIES += libcpu_rvv.la libcpu_rvv256.la
libyokecore_la_LIBADD += libcpu_rvv.la libcpu_rvv256.la
AM_CPPFLAGS += -DYK_RVV
endif

# Levels above an instruction set: they replace its contractions and attention of bf16 and, with AMX,
# the products with quantized weights.
bf16_kernels = backends/cpu/host/isa_table.c backends/cpu/contract/kern_contract.c \
	backends/cpu/attention/kern_attention_bf16.c \
	backends/cpu/attention/kern_attention_bf16_backward.c
if AVX512_BF16
libcpu_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_bf16.c
libcpu_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=avx512_bf16
libcpu_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) -mavx512bf16
noinst_LTLIBRARIES += libcpu_bf16.la
libyokecore_la_LIBADD += libcpu_bf16.la
endif
if AMX
libcpu_amx_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_amx.c \
	backends/cpu/quant/kern_qlinear_amx.c
libcpu_amx_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx512 -DYK_LEVEL=amx -DYK_AMX
libcpu_amx_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX512_CFLAGS) $(AMX_CFLAGS)
noinst_LTLIBRARIES += libcpu_amx.la
libyokecore_la_LIBADD += libcpu_amx.la
endif

if ARM_DOT
libcpu_dot_la_SOURCES = backends/cpu/quant/kern_qlinear.c
libcpu_dot_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=base -DYK_DOT
libcpu_dot_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(ARM_DOT_CFLAGS)
noinst_LTLIBRARIES += libcpu_dot.la
libyokecore_la_LIBADD += libcpu_dot.la
endif
if ARM_BF16
libcpu_neon_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_mmla.c
libcpu_neon_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=base -DYK_LEVEL=neon_bf16
libcpu_neon_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -march=armv8.2-a$(ARM_BF16)
noinst_LTLIBRARIES += libcpu_neon_bf16.la
libyokecore_la_LIBADD += libcpu_neon_bf16.la
endif

if SVE
libcpu_sve256_la_SOURCES = $(cpu_kernels)
libcpu_sve256_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=sve256
libcpu_sve256_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(SVE_CFLAGS) -msve-vector-bits=256
libcpu_sve512_la_SOURCES = $(cpu_kernels)
libcpu_sve512_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=sve512
libcpu_sve512_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(SVE_CFLAGS) -msve-vector-bits=512
noinst_LTLIBRARIES += libcpu_sve256.la libcpu_sve512.la
libyokecore_la_LIBADD += libcpu_sve256.la libcpu_sve512.la
endif
if SVE_BF16
libcpu_sve256_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_mmla.c
libcpu_sve256_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=sve256 -DYK_LEVEL=sve256_bf16
libcpu_sve256_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(SVE_CFLAGS)$(ARM_BF16) -msve-vector-bits=256
libcpu_sve512_bf16_la_SOURCES = $(bf16_kernels) backends/cpu/contract/kern_contract_mmla.c
libcpu_sve512_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=sve512 -DYK_LEVEL=sve512_bf16
libcpu_sve512_bf16_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(SVE_CFLAGS)$(ARM_BF16) -msve-vector-bits=512
noinst_LTLIBRARIES += libcpu_sve256_bf16.la libcpu_sve512_bf16.la
libyokecore_la_LIBADD += libcpu_sve256_bf16.la libcpu_sve512_bf16.la
endif
