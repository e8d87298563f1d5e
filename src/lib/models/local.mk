# SPDX-License-Identifier: Apache-2.0
# models: pretrained models in the files that people have.
libyokecore_la_SOURCES += \
	src/lib/models/adapter.c \
	src/lib/models/adapter.h \
	src/lib/models/adapter_config.c \
	src/lib/models/adapter_manifest.c \
	src/lib/models/adapter_write.c \
	src/lib/models/embed.c \
	src/lib/models/embed_config.c \
	src/lib/models/family.c \
	src/lib/models/family.h \
	src/lib/models/family_gguf.c \
	src/lib/models/family_hf.c \
	src/lib/models/finetune.c \
	src/lib/models/finetune_data.c \
	src/lib/models/generate.c \
	src/lib/models/generate.h \
	src/lib/models/held.c \
	src/lib/models/hf_reader.c \
	src/lib/models/hf_reader.h \
	src/lib/models/load.c \
	src/lib/models/model_generate.c \
	src/lib/models/names.c \
	src/lib/models/pretrained.c \
	src/lib/models/pretrained.h \
	src/lib/models/rope_hf.c \
	src/lib/models/run_files.c \
	src/lib/models/run_files.h \
	src/lib/models/run_tokenizer.c \
	src/lib/models/sampling.c \
	src/lib/models/sampling.h \
	src/lib/models/tokenizer_files.c \
	src/lib/models/tokenizer_files.h \
	src/lib/models/weights.c \
	src/lib/models/weights.h
