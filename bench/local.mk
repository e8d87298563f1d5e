# SPDX-License-Identifier: Apache-2.0
# Programs that measure; make bench builds them, and make check, for tests/commands.sh.
check_PROGRAMS += $(bench_programs)

EXTRA_DIST += bench/advice.py bench/built.sh bench/bundle.sh bench/gpu.sh bench/gpu_steps.sh bench/peers/llama.sh bench/ranks.py bench/slices.py bench/step_table.py bench/watch.py

# The scripts that run other programs beside yoke are installed; a wheel has them, too.
peersdir = $(pkgdatadir)/bench/peers
dist_peers_DATA = bench/peers/data_pandas.py \
	bench/peers/data_torch.py bench/peers/fit_torch.py bench/peers/generate_torch.py bench/peers/gpt_torch.py bench/peers/gpu_torch.py bench/peers/lora_torch.py \
	bench/peers/matrices_torch.py bench/peers/ops_torch.py bench/peers/optim_torch.py bench/peers/profile_torch.py bench/peers/programs_torch.py bench/peers/resnet_torch.py bench/peers/resolvent_torch.py \
	bench/peers/statistics_numpy.py

bench: $(bench_programs)
.PHONY: bench

bench_programs = \
	bench/attention \
	bench/contract \
	bench/conv \
	bench/contract_opencl \
	bench/data \
	bench/epilogue \
	bench/experts \
	bench/generate \
	bench/growth \
	bench/history \
	bench/largest \
	bench/map \
	bench/mpi \
	bench/native_launches \
	bench/optim \
	bench/overhead \
	bench/resolvent \
	bench/statistics \
	bench/watching

bench_attention_SOURCES = bench/attention.c bench/peak.c
bench_conv_SOURCES = bench/conv.c bench/operand.h bench/rounds.h
bench_contract_SOURCES = bench/contract.c bench/operand.h bench/peak.c bench/rounds.h bench/peers/blas.c \
	bench/peers/onednn.c bench/peers/peers.h
bench_contract_CFLAGS = $(AM_CFLAGS) $(CBLAS_CFLAGS)
bench_contract_LDADD = libyokecore.la $(CBLAS_LIBS) -lm
if ONEDNN
bench_contract_LDADD += -ldnnl
endif
bench_contract_opencl_SOURCES = bench/contract_opencl.c bench/peers/blas.c \
	bench/peers/peers.h
bench_contract_opencl_CFLAGS = $(AM_CFLAGS) $(CBLAS_CFLAGS)
bench_contract_opencl_LDADD = libyokecore.la $(CBLAS_LIBS) -lm
bench_data_SOURCES = bench/data.c bench/rounds.h
bench_epilogue_SOURCES = bench/epilogue.c bench/operand.h bench/rounds.h
bench_experts_SOURCES = bench/experts.c bench/rounds.h
bench_generate_SOURCES = bench/generate.c
bench_growth_SOURCES = bench/growth.c
bench_growth_LDADD = libyokecore.la -lm
bench_history_SOURCES = bench/history.c bench/rounds.h tests/updates.h
bench_largest_SOURCES = bench/largest.c bench/rounds.h
if OPENCL
bench_programs += bench/launches
endif
bench_launches_SOURCES = bench/launches.c bench/layers.h bench/rounds.h
bench_launches_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
bench_launches_LDFLAGS = -export-dynamic
bench_launches_LDADD = libyokecore.la $(OPENCL_LIBS)
# with the timing, limits and page of yoke bench
bench_resolvent_SOURCES = bench/resolvent.c bench/peers/sparse.c bench/peers/sparse.h src/app/tool/bench_device.c \
	src/app/tool/bench_limits.c src/app/tool/bench_page.c src/app/tool/option.c
bench_map_SOURCES = bench/map.c bench/map.h bench/map_device.c bench/map_limits.c \
	bench/map_ops.c
bench_mpi_SOURCES = bench/mpi.c bench/rounds.h
bench_native_launches_SOURCES = bench/native_launches.c bench/layers.h bench/rounds.h
bench_native_launches_LDADD = libyokecore.la $(SYSTEM_LIBS)
bench_optim_SOURCES = bench/optim.c
bench_overhead_SOURCES = bench/overhead.c bench/rounds.h
bench_statistics_SOURCES = bench/statistics.c bench/rounds.h
bench_watching_SOURCES = bench/watching.c bench/rounds.h
