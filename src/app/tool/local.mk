# SPDX-License-Identifier: Apache-2.0
# tool: the command. It uses internal functions, so it links the core statically instead of libyoke.
bin_PROGRAMS += yoke
yoke_SOURCES = \
	src/app/tool/bench.h \
	src/app/tool/bench_ablate.c \
	src/app/tool/bench_device.c \
	src/app/tool/bench_fit.c \
	src/app/tool/bench_launches.c \
	src/app/tool/bench_limits.c \
	src/app/tool/bench_load.c \
	src/app/tool/bench_load.h \
	src/app/tool/bench_memory.c \
	src/app/tool/bench_page.c \
	src/app/tool/bench_ranks.c \
	src/app/tool/bench_serve.c \
	src/app/tool/bench_suites.c \
	src/app/tool/check_device.c \
	src/app/tool/check_model.c \
	src/app/tool/check_model.h \
	src/app/tool/check_model_bk.c \
	src/app/tool/check_precision.c \
	src/app/tool/check_resolvent.c \
	src/app/tool/cmd_bench.c \
	src/app/tool/cmd_cubes.c \
	src/app/tool/cmd_dashboard.c \
	src/app/tool/cmd_data.c \
	src/app/tool/cmd_doctor.c \
	src/app/tool/cmd_embed.c \
	src/app/tool/cmd_eval.c \
	src/app/tool/cmd_export.c \
	src/app/tool/cmd_fit.c \
	src/app/tool/chat.c \
	src/app/tool/chat.h \
	src/app/tool/chat_edit.c \
	src/app/tool/chat_edit.h \
	src/app/tool/chat_input.c \
	src/app/tool/chat_input.h \
	src/app/tool/cmd_chat.c \
	src/app/tool/cmd_generate.c \
	src/app/tool/cmd_help.c \
	src/app/tool/cmd_info.c \
	src/app/tool/cmd_plan.c \
	src/app/tool/cmd_report.c \
	src/app/tool/cmd_serve.c \
	src/app/tool/cmd_setup.c \
	src/app/tool/cmd_train.c \
	src/app/tool/cmd_tune.c \
	src/app/tool/commands.c \
	src/app/tool/dashboard_terminal.c \
	src/app/tool/data_get.c \
	src/app/tool/data_prepare.c \
	src/app/tool/doctor.c \
	src/app/tool/doctor.h \
	src/app/tool/doctor_caches.c \
	src/app/tool/doctor_opencl.c \
	src/app/tool/doctor_run.c \
	src/app/tool/fit_config.c \
	src/app/tool/fit_config.h \
	src/app/tool/fit_maps.c \
	src/app/tool/fit_maps.h \
	src/app/tool/fit_out.c \
	src/app/tool/fit_out.h \
	src/app/tool/info_memory.c \
	src/app/tool/info_model.c \
	src/app/tool/info_models.c \
	src/app/tool/interrupts.c \
	src/app/tool/interrupts.h \
	src/app/tool/launcher.c \
	src/app/tool/launcher.h \
	src/app/tool/main.c \
	src/app/tool/model_open.c \
	src/app/tool/model_open.h \
	src/app/tool/option.c \
	src/app/tool/plan_device.c \
	src/app/tool/plan_scaling.c \
	src/app/tool/plan_scaling.h \
	src/app/tool/plan_scaling_run.c \
	src/app/tool/plan_scaling_stages.c \
	src/app/tool/prompts.c \
	src/app/tool/prompts.h \
	src/app/tool/table.c \
	src/app/tool/table.h \
	src/app/tool/tool.h \
	src/app/tool/tune_model.c \
	src/app/tool/tune_model.h \
	src/app/tool/tune_ranks.c \
	src/app/tool/warmup_show.c
nodist_yoke_SOURCES = src/app/tool/built.c
yoke_LDADD = libyokecore.la

# List of the modules enabled by configure, for yoke doctor.
src/app/tool/built.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) src/tool && { echo '#include "tool/doctor.h"'; \
		echo 'const char *const yk_built_modules[] = {'; \
		for module in $(plugin_LTLIBRARIES); do echo "	\"$$module\","; done; \
		echo '	0'; echo '};'; } >$@.$$$$ && mv $@.$$$$ $@
CLEANFILES += src/app/tool/built.c

# yoke-probe test-loads a plugin in a separate process; every program's plugin loader runs it.
pkglibexec_PROGRAMS += yoke-probe
yoke_probe_SOURCES = src/app/tool/probe.h src/app/tool/probe_icd.c src/app/tool/probe_main.c
yoke_probe_LDADD = libyokecore.la
