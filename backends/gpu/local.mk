# SPDX-License-Identifier: Apache-2.0
# The launch layer of GPU backends: linked into each GPU plugin, and into its test.
if GPU_MODULES
noinst_LTLIBRARIES += libgpu.la
else
check_LTLIBRARIES += libgpu.la
endif
libgpu_la_SOURCES = $(gpu_sources)

# Which kernels run which op: the YK_GPU_OP lines of the files.
BUILT_SOURCES += backends/gpu/op_list.inc
CLEANFILES += backends/gpu/op_list.inc
backends/gpu/op_list.inc: $(gpu_sources) build-aux/op_list
	$(AM_V_GEN)$(MKDIR_P) backends/gpu && cd $(srcdir) && \
		$(SHELL) build-aux/op_list YK_GPU_OP $(gpu_sources) >"$(abs_builddir)/$@"
backends/gpu/backend.lo: backends/gpu/op_list.inc
