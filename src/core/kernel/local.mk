# SPDX-License-Identifier: Apache-2.0
# kernel: kernel sources, embedded and generated, and the cache of compiled kernels.
libyokecore_la_SOURCES += \
	src/core/kernel/cache.c \
	src/core/kernel/cache.h \
	src/core/kernel/cache_folder.c \
	src/core/kernel/cache_sweep.c \
	src/core/kernel/formula.c \
	src/core/kernel/formula.h \
	src/core/kernel/formulas.c \
	src/core/kernel/kerneltext.h \
	src/core/kernel/mapcall.c \
	src/core/kernel/mapform.c \
	src/core/kernel/mapform.h \
	src/core/kernel/mapsrc.c \
	src/core/kernel/mapsrc.h \
	src/core/kernel/mapsrc_priv.h \
	src/core/kernel/mapvalue.c \
	src/core/kernel/merge.c \
	src/core/kernel/merge.h \
	src/core/kernel/source.c

nodist_libyokecore_la_SOURCES += src/core/kernel/kerneltext.c
CLEANFILES += src/core/kernel/kerneltext.c

src/core/kernel/kerneltext.c: $(cl_files) build-aux/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/core/kernel && list='$(cl_files)' && set -- && \
	for f in $$list; do set -- "$$@" "$(srcdir)/$$f"; done && \
	$(SHELL) $(srcdir)/build-aux/embed.sh "$$@" >$@.$$$$ && mv $@.$$$$ $@
