# SPDX-License-Identifier: Apache-2.0
# Fuzzing with libFuzzer: configure with CC=clang --enable-fuzz, then make fuzz.  The targets
# run over the same files in make check, in any build.
fuzz_programs = tests/fuzz/config tests/fuzz/envi tests/fuzz/gguf tests/fuzz/image tests/fuzz/manifest tests/fuzz/npy tests/fuzz/npz \
	tests/fuzz/safetensors tests/fuzz/schema tests/fuzz/table tests/fuzz/template tests/fuzz/tokenizer tests/fuzz/tokens
fuzz_sources = tests/fuzz/entry.c tests/fuzz/targets.c tests/fuzz/targets.h
EXTRA_PROGRAMS += $(fuzz_programs)
CLEANFILES += $(fuzz_programs)

tests_fuzz_config_SOURCES = $(fuzz_sources)
tests_fuzz_config_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_config
tests_fuzz_config_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_gguf_SOURCES = $(fuzz_sources)
tests_fuzz_gguf_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_gguf
tests_fuzz_gguf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_image_SOURCES = $(fuzz_sources)
tests_fuzz_image_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_image
tests_fuzz_image_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_envi_SOURCES = $(fuzz_sources)
tests_fuzz_envi_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_envi
tests_fuzz_envi_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_manifest_SOURCES = $(fuzz_sources)
tests_fuzz_manifest_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_manifest
tests_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_npy_SOURCES = $(fuzz_sources)
tests_fuzz_npy_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_npy
tests_fuzz_npy_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_npz_SOURCES = $(fuzz_sources)
tests_fuzz_npz_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_npz
tests_fuzz_npz_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_safetensors_SOURCES = $(fuzz_sources)
tests_fuzz_safetensors_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_safetensors
tests_fuzz_safetensors_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_schema_SOURCES = $(fuzz_sources)
tests_fuzz_schema_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_schema
tests_fuzz_schema_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_table_SOURCES = $(fuzz_sources)
tests_fuzz_table_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_table
tests_fuzz_table_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_template_SOURCES = $(fuzz_sources)
tests_fuzz_template_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_template
tests_fuzz_template_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_tokenizer_SOURCES = $(fuzz_sources)
tests_fuzz_tokenizer_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_tokenizer
tests_fuzz_tokenizer_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_tokens_SOURCES = $(fuzz_sources)
tests_fuzz_tokens_CPPFLAGS = $(fuzz_cppflags) -DYK_FUZZ_TARGET=yk_fuzz_tokens
tests_fuzz_tokens_LDFLAGS = $(fuzz_ldflags)
fuzz_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/tests
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer

if FUZZ
fuzz: $(fuzz_programs) tests/hostile.t tests/hostile_files.t tests/hostile_model.t tests/images.t tests/shards.t tests/sources.t tests/cubes.t \
		tests/schema.t tests/template.t tests/tokenizer.t
	$(MKDIR_P) tests/fuzz/seeds/envi
	for name in hostile hostile_files hostile_model images shards sources cubes schema template tokenizer; do \
		tests/$$name.t "$(abs_builddir)/tests/fuzz/seeds" || exit 1; \
	done
	@echo 'run, for five minutes each:'
	@for name in config envi gguf image manifest npy npz safetensors schema table template tokenizer tokens; do \
		echo "  mkdir -p $$name && tests/fuzz/$$name -max_total_time=300" \
			"-timeout=60 -rss_limit_mb=1000 $$name tests/fuzz/seeds/$$name"; \
	done
else
fuzz:
	@echo 'fuzzing wants a build of its own: configure CC=clang --enable-fuzz' >&2; exit 1
endif
.PHONY: fuzz

clean-local: clean-fuzz
clean-fuzz:
	rm -rf tests/fuzz/seeds
.PHONY: clean-fuzz
