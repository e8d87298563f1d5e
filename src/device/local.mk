# SPDX-License-Identifier: Apache-2.0
# device: plugins, devices, pool, queues.
libyokecore_la_SOURCES += \
	src/device/cache.c \
	src/device/cache.h \
	src/device/cache_folder.c \
	src/device/cache_sweep.c \
	src/device/child.c \
	src/device/child.h \
	src/device/choose.c \
	src/device/chunk.c \
	src/device/chunk.h \
	src/device/compact.c \
	src/device/device.c \
	src/device/device.h \
	src/device/doctor.c \
	src/device/doctor.h \
	src/device/doctor_caches.c \
	src/device/doctor_opencl.c \
	src/device/facts.c \
	src/device/facts.h \
	src/device/host.c \
	src/device/icd.c \
	src/device/icd.h \
	src/device/kerneltext.h \
	src/device/mapcall.c \
	src/device/mapform.c \
	src/device/mapform.h \
	src/device/mapsrc.c \
	src/device/mapsrc.h \
	src/device/nodes.c \
	src/device/nodes.h \
	src/device/plugin.c \
	src/device/plugin.h \
	src/device/pool.c \
	src/device/pool.h \
	src/device/pool_priv.h \
	src/device/probe.c \
	src/device/probe.h \
	src/device/queue.c \
	src/device/quirks.c \
	src/device/quirks.h \
	src/device/refuse.c \
	src/device/stubs.c \
	src/device/trust.c \
	src/device/trust.h \
	src/device/tuning.c \
	src/device/tuning.h \
	src/device/tuning_class.c \
	src/device/warmup.c \
	src/device/warmup.h

nodist_libyokecore_la_SOURCES += src/device/kerneltext.c
EXTRA_DIST += src/device/kerneltext.h
CLEANFILES += src/device/kerneltext.c

src/device/kerneltext.c: $(cl_files) build-aux/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/device && list='$(cl_files)' && set -- && \
	for f in $$list; do set -- "$$@" "$(srcdir)/$$f"; done && \
	$(SHELL) $(srcdir)/build-aux/embed.sh "$$@" >$@.tmp && mv $@.tmp $@
