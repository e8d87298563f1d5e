# SPDX-License-Identifier: Apache-2.0
# kernel: sources of kernels, embedded and generated, and the cache of what was compiled of them.
libyokecore_la_SOURCES += \
	src/kernel/cache.c \
	src/kernel/cache.h \
	src/kernel/cache_folder.c \
	src/kernel/cache_sweep.c \
	src/kernel/formula.c \
	src/kernel/formula.h \
	src/kernel/formulas.c \
	src/kernel/kerneltext.h \
	src/kernel/mapcall.c \
	src/kernel/mapform.c \
	src/kernel/mapform.h \
	src/kernel/mapsrc.c \
	src/kernel/mapsrc.h \
	src/kernel/mapsrc_priv.h \
	src/kernel/mapvalue.c \
	src/kernel/merge.c \
	src/kernel/merge.h \
	src/kernel/source.c

nodist_libyokecore_la_SOURCES += src/kernel/kerneltext.c
CLEANFILES += src/kernel/kerneltext.c

src/kernel/kerneltext.c: $(cl_files) build-aux/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/kernel && list='$(cl_files)' && set -- && \
	for f in $$list; do set -- "$$@" "$(srcdir)/$$f"; done && \
	$(SHELL) $(srcdir)/build-aux/embed.sh "$$@" >$@.$$$$ && mv $@.$$$$ $@
