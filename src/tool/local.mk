# SPDX-License-Identifier: Apache-2.0
# tool: the command.  It uses internals, so it links the core and not libyoke.
bin_PROGRAMS += yoke
yoke_SOURCES = \
	src/tool/bench.h \
	src/tool/bench_device.c \
	src/tool/bench_fit.c \
	src/tool/bench_limits.c \
	src/tool/bench_memory.c \
	src/tool/bench_mpi.c \
	src/tool/bench_page.c \
	src/tool/bench_ranks.c \
	src/tool/bench_resolvent.c \
	src/tool/bench_sparse.c \
	src/tool/bench_sparse.h \
	src/tool/bench_suites.c \
	src/tool/cmd_ablate.c \
	src/tool/cmd_advise.c \
	src/tool/cmd_bench.c \
	src/tool/cmd_conform.c \
	src/tool/cmd_cubes.c \
	src/tool/cmd_dashboard.c \
	src/tool/cmd_fit.c \
	src/tool/fit_config.c \
	src/tool/fit_config.h \
	src/tool/fit_maps.c \
	src/tool/fit_maps.h \
	src/tool/fit_out.c \
	src/tool/fit_out.h \
	src/tool/cmd_data.c \
	src/tool/cmd_doctor.c \
	src/tool/cmd_eval.c \
	src/tool/cmd_generate.c \
	src/tool/cmd_help.c \
	src/tool/cmd_info.c \
	src/tool/cmd_memory.c \
	src/tool/cmd_models.c \
	src/tool/cmd_plan.c \
	src/tool/cmd_report.c \
	src/tool/cmd_selftest.c \
	src/tool/cmd_setup.c \
	src/tool/cmd_simulate.c \
	src/tool/cmd_top.c \
	src/tool/cmd_train.c \
	src/tool/cmd_tune.c \
	src/tool/cmd_validate.c \
	src/tool/data_prepare.c \
	src/tool/doctor.c \
	src/tool/doctor.h \
	src/tool/doctor_caches.c \
	src/tool/doctor_opencl.c \
	src/tool/doctor_run.c \
	src/tool/launcher.c \
	src/tool/launcher.h \
	src/tool/main.c \
	src/tool/model_open.c \
	src/tool/model_open.h \
	src/tool/option.c \
	src/tool/selftest.h \
	src/tool/selftest_bk.c \
	src/tool/simulate.h \
	src/tool/simulate_run.c \
	src/tool/table.c \
	src/tool/table.h \
	src/tool/simulate_stages.c \
	src/tool/tool.h \
	src/tool/tune_model.c \
	src/tool/tune_model.h \
	src/tool/tune_ranks.c \
	src/tool/validate_resolvent.c \
	src/tool/validate_resolvent.h \
	src/tool/warmup_show.c
nodist_yoke_SOURCES = src/tool/built.c
yoke_LDADD = libyokecore.la

# The modules that configure has the build make, for yoke doctor.
src/tool/built.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) src/tool && { echo '#include "tool/doctor.h"'; \
		echo 'const char *const yk_built_modules[] = {'; \
		for module in $(plugin_LTLIBRARIES); do echo "	\"$$module\","; done; \
		echo '	0'; echo '};'; } >$@.$$$$ && mv $@.$$$$ $@
CLEANFILES += src/tool/built.c

# Tries a plugin in a process of its own; the loader of every program runs it.
pkglibexec_PROGRAMS += yoke-probe
yoke_probe_SOURCES = src/tool/probe.h src/tool/probe_icd.c src/tool/probe_main.c
yoke_probe_LDADD = libyokecore.la
