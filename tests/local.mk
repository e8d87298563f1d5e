# SPDX-License-Identifier: Apache-2.0
# Tests: X.t is built from X.c, X.sh is a script; all speak TAP.  tests/run gives each a folder of
# its own.  make check TESTS=tests/base.t runs one; YOKE_TEST_LONG=1 runs all there is, YOKE_TEST_SAMPLE=1
# leaves out what takes long (tests/run), as make distcheck does.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = $(SHELL) $(srcdir)/tests/run
TEST_EXTENSIONS =

# Where tests find the modules of this build.
AM_TESTS_ENVIRONMENT = \
	YOKE_TEST_MODULES='$(abs_builddir)/plugins/skeleton/.libs:$(abs_builddir)/tests/fault/.libs'; \
	export YOKE_TEST_MODULES; \
	YOKE_TEST_SAMPLE=$${YOKE_TEST_SAMPLE-$(YOKE_TEST_SAMPLE)}; export YOKE_TEST_SAMPLE;
if OPENCL
AM_TESTS_ENVIRONMENT += \
	YOKE_TEST_OPENCL='$(abs_builddir)/backends/opencl/.libs/yoke_opencl.so'; \
	export YOKE_TEST_OPENCL;
endif

AM_DISTCHECK_CONFIGURE_FLAGS = YOKE_TEST_SAMPLE=1

EXTRA_DIST += tests/models/record_templates.py tests/models/template_cases.h \
	tests/models/random_gguf.py
EXTRA_DIST += tests/models/make_tokenizers.py tests/models/record.py tests/models/record_adapters.py tests/models/record_blocks.py \
	tests/models/record_bpe.py tests/models/record_quants.py tests/models/bert.json tests/models/gpt2.json tests/models/llama2.json \
	tests/models/llama3.json tests/models/suffix.json tests/models/unigram.json tests/models/words.json \
	tests/models/spm_bpe.model tests/models/spm_unigram.model tests/models/tokenizer_cases.h
EXTRA_DIST += tests/native_headers.c tests/readers.py tests/run tests/kernel_cache tests/tap.sh tests/status.sh tests/yoke.sh tests/trainings.sh \
	tests/fake_gpus.sh tests/built.sh \
	tests/browser.py tests/layout.py tests/dashboard_page.py tests/report_page.py tests/onnx.py tests/schema.py tests/clients.py tests/fit_clients.py tests/dashboard.py tests/serve.py tests/serve_clients.py tests/conforms.sh tests/mutants/list tests/mutants/run tests/lsan.supp \
	$(test_scripts) $(test_headers)
TESTS += $(test_programs) $(test_scripts)
check_PROGRAMS += $(test_programs)
LDADD = libyokecore.la

# Describes the ABI of the last tag's library, with which tests/abi.sh compares.
EXTRA_DIST += build-aux/abi.sh tests/abi.supp
.PHONY: abi
abi:
	$(SHELL) $(srcdir)/build-aux/abi.sh --tag $(srcdir) tests/tag.abi
CLEANFILES += tests/tag.abi tests/tag.abi.log

test_programs = \
	tests/algebra.t \
	tests/linalg.t \
	tests/align.t \
	tests/arrange.t \
	tests/map_rows.t \
	tests/short_sums.t \
	tests/amx.t \
	tests/assign.t \
	tests/at.t \
	tests/base.t \
	tests/between.t \
	tests/move.t \
	tests/bitcast.t \
	tests/bk.t \
	tests/byteorder.t \
	tests/checkpoint.t \
	tests/conditions.t \
	tests/config.t \
	tests/conv.t \
	tests/conv_layers.t \
	tests/interpolate.t \
	tests/places.t \
	tests/cores.t \
	tests/numa.t \
	tests/chats.t \
	tests/chats_train.t \
	tests/cycle.t \
	tests/cubes.t \
	tests/data.t \
	tests/debug.t \
	tests/deep.t \
	tests/device.t \
	tests/doctor.t \
	tests/brief.t \
	tests/eager.t \
	tests/engine.t \
	tests/errors.t \
	tests/files.t \
	tests/fit.t \
	tests/fit_net.t \
	tests/fit_ranks.t \
	tests/fit_records.t \
	tests/formula.t \
	tests/grad.t \
	tests/history.t \
	tests/hostile.t \
	tests/hostile_files.t \
	tests/hostile_model.t \
	tests/images.t \
	tests/kerneltext.t \
	tests/large.t \
	tests/epilogues.t \
	tests/gpu_layer.t \
	tests/gpu_texts.t \
	tests/grid.t \
	tests/growth.t \
	tests/handles.t \
	tests/halves.t \
	tests/products.t \
	tests/keys.t \
	tests/killed.t \
	tests/isa.t \
	tests/kinds.t \
	tests/largest.t \
	tests/ranks.t \
	tests/tensor_ranks.t \
	tests/stages.t \
	tests/gather_checkpoint.t \
	tests/schedules.t \
	tests/adapt.t \
	tests/packed_attention.t \
	tests/attention.t \
	tests/simulate.t \
	tests/lists.t \
	tests/feed.t \
	tests/loader.t \
	tests/locale.t \
	tests/loader_fails.t \
	tests/mapsrc.t \
	tests/math.t \
	tests/memory.t \
	tests/merge.t \
	tests/misuse.t \
	tests/mixed.t \
	tests/modes.t \
	tests/moments.t \
	tests/named.t \
	tests/named_dtypes.t \
	tests/native.t \
	tests/module.t \
	tests/nn.t \
	tests/offload.t \
	tests/opencl.t \
	tests/opencl_f16.t \
	tests/opencl_f64.t \
	tests/opencl_fused.t \
	tests/optim.t \
	tests/optim_matrices.t \
	tests/optim_rules.t \
	tests/order.t \
	tests/ordinals.t \
	tests/custom_op.t \
	tests/pack.t \
	tests/cube_sets.t \
	tests/fit_keys.t \
	tests/pipeline.t \
	tests/pipeline_train.t \
	tests/scenes.t \
	tests/place.t \
	tests/plugin.t \
	tests/pool.t \
	tests/prepared.t \
	tests/replay.t \
	tests/printed.t \
	tests/profile.t \
	tests/quirks.t \
	tests/random.t \
	tests/random_grad.t \
	tests/readers.t \
	tests/refusals.t \
	tests/rocm_metadata.t \
	tests/roofline.t \
	tests/report.t \
	tests/rows.t \
	tests/stop.t \
	tests/choose_device.t \
	tests/runs.t \
	tests/rows_along.t \
	tests/onnx.t \
	tests/open_chain.t \
	tests/resolvent.t \
	tests/rows_stat.t \
	tests/recompute.t \
	tests/remat.t \
	tests/retry.t \
	tests/gguf.t \
	tests/quant.t \
	tests/qlinear_ways.t \
	tests/export_tokenizers.t \
	tests/pretrained.t \
	tests/batching.t \
	tests/paged.t \
	tests/fft.t \
	tests/recurrent.t \
	tests/run_models.t \
	tests/chat.t \
	tests/serve_function.t \
	tests/adapters.t \
	tests/adapter_files.t \
	tests/finetune.t \
	tests/held.t \
	tests/safetensors.t \
	tests/sampling.t \
	tests/scan_map.t \
	tests/scaler.t \
	tests/schedule.t \
	tests/site.t \
	tests/skeleton.t \
	tests/prepare.t \
	tests/shards.t \
	tests/sort.t \
	tests/sources.t \
	tests/sparse.t \
	tests/released.t \
	tests/tall.t \
	tests/team.t \
	tests/telemetry.t \
	tests/threads.t \
	tests/schema.t \
	tests/schema_mask.t \
	tests/template.t \
	tests/origin.t \
	tests/tokenizer.t \
	tests/tokenizer_train.t \
	tests/train.t \
	tests/tuning.t \
	tests/vmath.t \
	tests/warmup.t \
	tests/wrap.t

test_scripts = \
	tests/ablate.sh \
	tests/advise.sh \
	tests/arrows.sh \
	tests/bk.sh \
	tests/bench.sh \
	tests/bench_serve.sh \
	tests/bundle.sh \
	tests/align.sh \
	tests/cache.sh \
	tests/clients.sh \
	tests/commands.sh \
	tests/data_run.sh \
	tests/completion.sh \
	tests/get.sh \
	tests/conform.sh \
	tests/conform_opencl.sh \
	tests/drivers.sh \
	tests/cubes.sh \
	tests/dialect.sh \
	tests/dist.sh \
	tests/matrix_layout.sh \
	tests/doctor.sh \
	tests/embed.sh \
	tests/doctor_run.sh \
	tests/fault.sh \
	tests/fit_clients.sh \
	tests/fit_records.sh \
	tests/fake_gpu.sh \
	tests/generate.sh \
	tests/gpu_script.sh \
	tests/units.sh \
	tests/wgmma.sh \
	tests/icd.sh \
	tests/install.sh \
	tests/guides.sh \
	tests/headers.sh \
	tests/info.sh \
	tests/info_model.sh \
	tests/model_memory.sh \
	tests/kernel_cache.sh \
	tests/kill.sh \
	tests/native_headers.sh \
	tests/native_ranks.sh \
	tests/observe.sh \
	tests/opencl_layers.sh \
	tests/opencl_train.sh \
	tests/opencl_two.sh \
	tests/packaging.sh \
	tests/pages.sh \
	tests/pipe.sh \
	tests/pipelines.sh \
	tests/results.sh \
	tests/portable.sh \
	tests/precision.sh \
	tests/python.sh \
	tests/quickstart.sh \
	tests/quickstart_gpu.sh \
	tests/quirks.sh \
	tests/abi.sh \
	tests/manual.sh \
	tests/net.sh \
	tests/nulls.sh \
	tests/custom_op.sh \
	tests/readme.sh \
	tests/selftest.sh \
	tests/no_proc.sh \
	tests/signals.sh \
	tests/terminal.sh \
	tests/tool.sh \
	tests/dashboard.sh \
	tests/serve.sh \
	tests/serve_device.sh \
	tests/serve_clients.sh \
	tests/dashboard_page.sh \
	tests/report.sh \
	tests/top.sh \
	tests/train.sh \
	tests/train_tokenizer.sh \
	tests/train_processes.sh \
	tests/train_launchers.sh \
	tests/train_mpi.sh \
	tests/train_ranks.sh \
	tests/train_tensor.sh \
	tests/simulate.sh \
	tests/train_pipeline.sh \
	tests/train_compress.sh \
	tests/train_best.sh \
	tests/train_lost.sh \
	tests/train_zero.sh \
	tests/tune.sh \
	tests/wheel.sh

test_headers = \
	tests/dialect.h \
	tests/matrix_layout.cc \
	tests/nulls.h \
	tests/nulls.py \
	tests/hip.h \
	tests/amx_emulated.h \
	tests/vnni_emulated.h \
	tests/dtypes.h \
	tests/hostile.h \
	tests/hostile_manifest.h \
	tests/hostile_safetensors.h \
	tests/observed.h \
	tests/opencl_host.h \
	tests/random_interp.h \
	tests/stats.h \
	tests/slope.h \
	tests/random_program.h \
	tests/resolvent.h \
	tests/rows.h \
	tests/tap.h \
	tests/values.h

tests_at_t_SOURCES = tests/at.c
tests_base_t_SOURCES = tests/base.c
tests_between_t_SOURCES = tests/between.c
tests_move_t_SOURCES = tests/move.c
tests_checkpoint_t_SOURCES = tests/checkpoint.c
tests_conditions_t_SOURCES = tests/conditions.c
tests_config_t_SOURCES = tests/config.c
# with the products of AMX, their tiles in C, above the baseline
amx_emulated = $(bf16_kernels) backends/cpu/contract/kern_contract_amx.c \
	backends/cpu/quant/kern_qlinear_amx.c
tests_align_t_SOURCES = tests/align.c
tests_arrange_t_SOURCES = tests/arrange.c tests/slope.h
tests_map_rows_t_SOURCES = tests/map_rows.c
tests_short_sums_t_SOURCES = tests/short_sums.c
tests_amx_t_SOURCES = tests/amx.c $(amx_emulated)
tests_amx_t_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=base -DYK_LEVEL=amx_emulated -DYK_AMX \
	-include $(srcdir)/tests/amx_emulated.h
tests_qlinear_ways_t_SOURCES = tests/qlinear_ways.c backends/cpu/quant/kern_qlinear_amx.c
tests_qlinear_ways_t_CPPFLAGS = $(tests_amx_t_CPPFLAGS)
tests_qlinear_ways_t_LDADD = $(LDADD)
if AVX2
# the AVX2 build's kernel once more, with other names and VPDPBUSD in C
check_LTLIBRARIES += tests/libvnni_emulated.la
tests_libvnni_emulated_la_SOURCES = backends/cpu/quant/kern_qlinear.c
tests_libvnni_emulated_la_CPPFLAGS = $(AM_CPPFLAGS) -DYK_ISA=avx2 \
	-Dyk_qlinear_avx2=yk_qlinear_vnni_emulated -Dyk_qlinear_run_avx2=yk_qlinear_run_vnni_emulated \
	-include $(srcdir)/tests/vnni_emulated.h
tests_libvnni_emulated_la_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) $(AVX2_CFLAGS)
tests_qlinear_ways_t_LDADD += tests/libvnni_emulated.la
endif
tests_amx_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=yk_isa_choose
tests_conv_t_SOURCES = tests/conv.c
tests_conv_layers_t_SOURCES = tests/conv_layers.c
tests_interpolate_t_SOURCES = tests/interpolate.c
tests_places_t_SOURCES = tests/places.c
tests_cores_t_SOURCES = tests/cores.c
tests_cores_t_LDADD = $(LDADD) $(HWLOC_LIBS)
tests_numa_t_SOURCES = tests/numa.c
tests_numa_t_LDADD = $(LDADD) $(HWLOC_LIBS)
tests_data_t_SOURCES = tests/data.c
tests_assign_t_SOURCES = tests/assign.c
tests_deep_t_SOURCES = tests/deep.c
tests_ordinals_t_SOURCES = tests/ordinals.c
tests_handles_t_SOURCES = tests/handles.c
tests_threads_t_SOURCES = tests/threads.c
tests_large_t_SOURCES = tests/large.c
tests_bitcast_t_SOURCES = tests/bitcast.c
tests_scan_map_t_SOURCES = tests/scan_map.c
tests_schema_t_SOURCES = tests/schema.c tests/schema_valid.h tests/fuzz/targets.c tests/fuzz/targets.h
tests_schema_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_schema_mask_t_SOURCES = tests/schema_mask.c tests/schema_valid.h
tests_schema_mask_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_template_t_SOURCES = tests/template.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_template_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_origin_t_SOURCES = tests/origin.c
tests_origin_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_tokenizer_t_SOURCES = tests/tokenizer.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_tokenizer_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_tokenizer_train_t_SOURCES = tests/tokenizer_train.c tests/models/recorded_bpe.h
tests_tokenizer_train_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_images_t_SOURCES = tests/images.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_images_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_cubes_t_SOURCES = tests/cubes.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_cubes_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_isa_t_SOURCES = tests/isa.c
tests_kinds_t_SOURCES = tests/kinds.c
tests_locale_t_SOURCES = tests/locale.c
tests_prepare_t_SOURCES = tests/prepare.c
tests_sort_t_SOURCES = tests/sort.c
tests_sources_t_SOURCES = tests/sources.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_sources_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_shards_t_SOURCES = tests/shards.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_shards_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_released_t_SOURCES = tests/released.c
tests_device_t_SOURCES = tests/device.c
tests_doctor_t_SOURCES = tests/doctor.c src/app/tool/doctor.c src/app/tool/doctor_caches.c \
	src/app/tool/doctor_opencl.c src/app/tool/launcher.c src/app/tool/table.c
nodist_tests_doctor_t_SOURCES = src/app/tool/built.c
tests_brief_t_SOURCES = tests/brief.c
tests_eager_t_SOURCES = tests/eager.c
tests_engine_t_SOURCES = tests/engine.c
tests_debug_t_SOURCES = tests/debug.c tests/fault/fault.h
tests_math_t_SOURCES = tests/math.c tests/slope.h
tests_merge_t_SOURCES = tests/merge.c
tests_memory_t_SOURCES = tests/memory.c tests/fault/fault.h
tests_errors_t_SOURCES = tests/errors.c tests/fault/fault.h
tests_prepared_t_SOURCES = tests/prepared.c tests/fault/fault.h
tests_replay_t_SOURCES = tests/replay.c tests/fault/fault.h
tests_files_t_SOURCES = tests/files.c
tests_fit_t_SOURCES = tests/fit.c
tests_fit_net_t_SOURCES = tests/fit_net.c
tests_fit_ranks_t_SOURCES = tests/fit_ranks.c
tests_fit_records_t_SOURCES = tests/fit_records.c
tests_stop_t_SOURCES = tests/stop.c
tests_formula_t_SOURCES = tests/formula.c
tests_grad_t_SOURCES = tests/grad.c
tests_hostile_t_SOURCES = tests/hostile.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_hostile_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_hostile_files_t_SOURCES = tests/hostile_files.c tests/gguf_write.h tests/models/recorded.h tests/models/recorded_files.h \
	tests/fuzz/targets.c tests/fuzz/targets.h
tests_hostile_files_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_hostile_model_t_SOURCES = tests/hostile_model.c tests/fuzz/targets.c tests/fuzz/targets.h
tests_hostile_model_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_keys_t_SOURCES = tests/keys.c
tests_largest_t_SOURCES = tests/largest.c
tests_ranks_t_SOURCES = tests/ranks.c
tests_tensor_ranks_t_SOURCES = tests/tensor_ranks.c
tests_stages_t_SOURCES = tests/stages.c
tests_gather_checkpoint_t_SOURCES = tests/gather_checkpoint.c
tests_schedules_t_SOURCES = tests/schedules.c
tests_adapt_t_SOURCES = tests/adapt.c
tests_packed_attention_t_SOURCES = tests/packed_attention.c
tests_attention_t_SOURCES = tests/attention.c
tests_epilogues_t_SOURCES = tests/epilogues.c
tests_gpu_layer_t_SOURCES = tests/gpu_layer.c
tests_gpu_layer_t_LDADD = libgpu.la $(LDADD)
tests_gpu_texts_t_SOURCES = tests/gpu_texts.c tests/gpu_compile.c tests/gpu_compile.h
tests_gpu_texts_t_LDADD = libgpu.la $(LDADD)
tests_grid_t_SOURCES = tests/grid.c
tests_growth_t_SOURCES = tests/growth.c tests/updates.h
tests_halves_t_SOURCES = tests/halves.c
tests_products_t_SOURCES = tests/products.c
tests_kerneltext_t_SOURCES = tests/kerneltext.c
tests_lists_t_SOURCES = tests/lists.c
tests_feed_t_SOURCES = tests/feed.c
tests_loader_t_SOURCES = tests/loader.c tests/fed.h
tests_loader_fails_t_SOURCES = tests/loader_fails.c tests/fed.h
tests_mapsrc_t_SOURCES = tests/mapsrc.c
tests_misuse_t_SOURCES = tests/misuse.c
tests_mixed_t_SOURCES = tests/mixed.c
tests_modes_t_SOURCES = tests/modes.c
tests_named_dtypes_t_SOURCES = tests/named_dtypes.c
tests_named_t_SOURCES = tests/named.c
tests_native_t_SOURCES = tests/native.c
tests_module_t_SOURCES = tests/module.c
tests_nn_t_SOURCES = tests/nn.c
tests_opencl_calls_t_SOURCES = tests/opencl_calls.c
tests_opencl_calls_t_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
tests_opencl_calls_t_LDFLAGS = -export-dynamic
tests_opencl_calls_t_LDADD = $(LDADD) $(OPENCL_LIBS)
tests_opencl_f16_t_SOURCES = tests/opencl_f16.c
tests_opencl_f64_t_SOURCES = tests/opencl_f64.c
tests_opencl_fused_t_SOURCES = tests/opencl_fused.c
tests_offload_t_SOURCES = tests/offload.c
tests_opencl_t_SOURCES = tests/opencl.c
tests_optim_t_SOURCES = tests/optim.c
tests_optim_matrices_t_SOURCES = tests/optim_matrices.c
tests_optim_rules_t_SOURCES = tests/optim_rules.c
tests_order_t_SOURCES = tests/order.c
tests_place_t_SOURCES = tests/place.c
tests_plugin_t_SOURCES = tests/plugin.c
tests_printed_t_SOURCES = tests/printed.c
tests_pool_t_SOURCES = tests/pool.c
tests_chats_t_SOURCES = tests/chats.c
tests_chats_train_t_SOURCES = tests/chats_train.c tests/models/recorded.h tests/models/recorded_files.h
tests_cycle_t_SOURCES = tests/cycle.c
tests_cycle_t_CFLAGS = $(AM_CFLAGS) -g # they look for lines of themselves, whatever CFLAGS are
tests_profile_t_SOURCES = tests/profile.c
tests_history_t_SOURCES = tests/history.c
tests_roofline_t_SOURCES = tests/roofline.c
tests_telemetry_t_SOURCES = tests/telemetry.c
tests_quirks_t_SOURCES = tests/quirks.c
tests_rocm_metadata_t_SOURCES = tests/rocm_metadata.c
tests_rocm_metadata_t_CPPFLAGS = -I$(srcdir)/plugins/rocm $(AM_CPPFLAGS)
tests_report_t_SOURCES = tests/report.c
tests_rows_t_SOURCES = tests/rows.c
tests_choose_device_t_SOURCES = tests/choose_device.c
tests_algebra_t_SOURCES = tests/algebra.c
tests_linalg_t_SOURCES = tests/linalg.c
tests_moments_t_SOURCES = tests/moments.c
tests_cube_sets_t_SOURCES = tests/cube_sets.c
tests_fit_keys_t_SOURCES = tests/fit_keys.c
tests_pipeline_t_SOURCES = tests/pipeline.c
tests_pipeline_train_t_SOURCES = tests/pipeline_train.c
tests_scenes_t_SOURCES = tests/scenes.c
tests_runs_t_SOURCES = tests/runs.c
tests_rows_along_t_SOURCES = tests/rows_along.c
tests_bk_t_SOURCES = tests/bk.c
tests_open_chain_t_SOURCES = tests/open_chain.c
tests_resolvent_t_SOURCES = tests/resolvent.c
tests_sparse_t_SOURCES = tests/sparse.c bench/peers/sparse.c
tests_rows_stat_t_SOURCES = tests/rows_stat.c
tests_readers_t_SOURCES = tests/readers.c
tests_refusals_t_SOURCES = tests/refusals.c
tests_recompute_t_SOURCES = tests/recompute.c
tests_remat_t_SOURCES = tests/remat.c
tests_retry_t_SOURCES = tests/retry.c
tests_quant_t_SOURCES = tests/quant.c tests/models/recorded_quants.h
tests_gguf_t_SOURCES = tests/gguf.c tests/gguf_write.h tests/models/recorded_blocks.h
tests_held_t_SOURCES = tests/held.c tests/gguf_write.h
tests_export_tokenizers_t_SOURCES = tests/export_tokenizers.c tests/models/recorded.h tests/models/recorded_files.h
tests_run_models_t_SOURCES = tests/run_models.c tests/models/recorded.h tests/models/recorded_files.h
tests_batching_t_SOURCES = tests/batching.c tests/models/recorded.h tests/models/recorded_files.h tests/fault/fault.h
tests_paged_t_SOURCES = tests/paged.c
tests_fft_t_SOURCES = tests/fft.c
tests_recurrent_t_SOURCES = tests/recurrent.c
tests_pretrained_t_SOURCES = tests/pretrained.c tests/onnx_case.h tests/gguf_write.h tests/models/recorded.h tests/models/recorded_files.h
tests_serve_function_t_SOURCES = tests/serve_function.c
tests_chat_t_SOURCES = tests/chat.c tests/models/recorded.h tests/models/recorded_files.h
tests_chat_t_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_adapters_t_SOURCES = tests/adapters.c tests/models/recorded.h tests/models/recorded_files.h
tests_onnx_t_SOURCES = tests/onnx.c tests/onnx_case.h
tests_finetune_t_SOURCES = tests/finetune.c tests/models/recorded.h tests/models/recorded_files.h
tests_adapter_files_t_SOURCES = tests/adapter_files.c tests/models/recorded.h tests/models/recorded_files.h \
	tests/models/recorded_adapters.h
tests_byteorder_t_SOURCES = tests/byteorder.c
tests_safetensors_t_SOURCES = tests/safetensors.c
tests_sampling_t_SOURCES = tests/sampling.c
tests_scaler_t_SOURCES = tests/scaler.c
tests_schedule_t_SOURCES = tests/schedule.c
tests_site_t_SOURCES = tests/site.c
tests_site_t_CFLAGS = $(AM_CFLAGS) -g
tests_site_t_LDADD = libyoke.la
tests_site_t_LDFLAGS = -export-dynamic
tests_skeleton_t_SOURCES = tests/skeleton.c
tests_tall_t_SOURCES = tests/tall.c
tests_team_t_SOURCES = tests/team.c
tests_train_t_SOURCES = tests/train.c
tests_tuning_t_SOURCES = tests/tuning.c
tests_vmath_t_SOURCES = tests/vmath.c
tests_warmup_t_SOURCES = tests/warmup.c
tests_custom_op_t_SOURCES = tests/custom_op.c
tests_pack_t_SOURCES = tests/pack.c tests/fault/fault.h
tests_wrap_t_SOURCES = tests/wrap.c
tests_random_grad_t_SOURCES = tests/random_grad.c
tests_random_t_SOURCES = tests/random.c tests/onnx_case.h

include tests/fuzz/local.mk
include tests/fake_gpu/local.mk

# A backend that fails on demand; it has a CPU backend of its own.
check_LTLIBRARIES += tests/fault/yoke_fault.la
tests_fault_yoke_fault_la_SOURCES = tests/fault/fault.c tests/fault/fault.h
tests_fault_yoke_fault_la_LIBADD = libyokecore.la
tests_fault_yoke_fault_la_LDFLAGS = $(check_module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'

# Modules whose flaw is their name, for tests/plugin.c.
check_LTLIBRARIES += $(bad_modules)

bad_modules = \
	tests/bad/bad_absurd.la \
	tests/bad/bad_ambush.la \
	tests/bad/bad_constructor.la \
	tests/bad/bad_crowd.la \
	tests/bad/bad_good.la \
	tests/bad/bad_larger.la \
	tests/bad/bad_newer.la \
	tests/bad/bad_nodevices.la \
	tests/bad/bad_nosymbol.la \
	tests/bad/bad_older.la \
	tests/bad/bad_refuses.la \
	tests/bad/bad_short.la \
	tests/bad/bad_tableless.la \
	tests/bad/bad_vandal.la

tests_bad_bad_absurd_la_SOURCES = tests/bad/absurd.c tests/bad/bad.h
tests_bad_bad_ambush_la_SOURCES = tests/bad/ambush.c tests/bad/bad.h
tests_bad_bad_good_la_SOURCES = tests/bad/good.c tests/bad/bad.h
tests_bad_bad_newer_la_SOURCES = tests/bad/newer.c tests/bad/bad.h
tests_bad_bad_nodevices_la_SOURCES = tests/bad/nodevices.c tests/bad/bad.h
tests_bad_bad_nosymbol_la_SOURCES = tests/bad/nosymbol.c tests/bad/bad.h
tests_bad_bad_older_la_SOURCES = tests/bad/older.c tests/bad/bad.h
tests_bad_bad_refuses_la_SOURCES = tests/bad/refuses.c tests/bad/bad.h
tests_bad_bad_short_la_SOURCES = tests/bad/short.c tests/bad/bad.h
tests_bad_bad_constructor_la_SOURCES = tests/bad/constructor.c tests/bad/bad.h
tests_bad_bad_crowd_la_SOURCES = tests/bad/crowd.c tests/bad/bad.h
tests_bad_bad_larger_la_SOURCES = tests/bad/larger.c tests/bad/bad.h
tests_bad_bad_tableless_la_SOURCES = tests/bad/tableless.c
tests_bad_bad_vandal_la_SOURCES = tests/bad/vandal.c tests/bad/bad.h
tests_bad_bad_absurd_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_ambush_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_good_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_newer_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_nodevices_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_nosymbol_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_older_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_refuses_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_short_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_constructor_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_crowd_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_larger_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_tableless_la_LDFLAGS = $(check_module_ldflags)
tests_bad_bad_vandal_la_LDFLAGS = $(check_module_ldflags)

# An OpenCL driver that misbehaves, for tests/icd.sh.
if OPENCL
test_programs += tests/opencl_calls.t
check_LTLIBRARIES += tests/icd/fake_icd.la
endif
tests_icd_fake_icd_la_SOURCES = tests/icd/fake.c
tests_icd_fake_icd_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)
tests_icd_fake_icd_la_LDFLAGS = $(check_module_ldflags)
tests_icd_fake_icd_la_LIBADD = $(SYSTEM_LIBS)

# What is installed, from outside.
EXTRA_DIST += tests/installcheck.sh
installcheck-local:
	srcdir='$(srcdir)' CC='$(CC)' CXX='$(CXX)' PKG_CONFIG='$(PKG_CONFIG)' DESTDIR='$(DESTDIR)' \
		YOKE_LDFLAGS='$(YOKE_LDFLAGS)' $(SHELL) $(srcdir)/tests/installcheck.sh \
		'$(bindir)' '$(libdir)' '$(mandir)' '$(datadir)' '$(docdir)'

clean-local: clean-tests
clean-tests:
	rm -rf tests/tmp

# Which lines the tests run: configure --enable-coverage, then make coverage.
EXTRA_DIST += tests/coverage.sh
if COVERAGE
coverage:
	find . -name '*.gcda' -exec rm -f {} +
	-$(MAKE) check
	GCOV='$(GCOV)' $(SHELL) $(srcdir)/tests/coverage.sh '$(srcdir)'
else
coverage:
	@echo 'coverage wants a build of its own: configure --enable-coverage' >&2; exit 1
endif
.PHONY: coverage clean-tests
