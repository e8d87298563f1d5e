# SPDX-License-Identifier: Apache-2.0
# nn: modules, layers and models built from ops.
libyokecore_la_SOURCES += \
	src/lib/nn/attention.c \
	src/lib/nn/bk.c \
	src/lib/nn/conv.c \
	src/lib/nn/decoder.c \
	src/lib/nn/decoder.h \
	src/lib/nn/decoder_block.c \
	src/lib/nn/decoder_config.h \
	src/lib/nn/decoder_json.c \
	src/lib/nn/encoder.c \
	src/lib/nn/encoder.h \
	src/lib/nn/fold.c \
	src/lib/nn/gpt.c \
	src/lib/nn/layer.h \
	src/lib/nn/layers.c \
	src/lib/nn/lora.c \
	src/lib/nn/lora.h \
	src/lib/nn/mlp.c \
	src/lib/nn/model.c \
	src/lib/nn/model.h \
	src/lib/nn/moe.c \
	src/lib/nn/moe.h \
	src/lib/nn/module.c \
	src/lib/nn/module.h \
	src/lib/nn/module_file.c \
	src/lib/nn/module_walk.c \
	src/lib/nn/op_check.c \
	src/lib/nn/params.c \
	src/lib/nn/params.h \
	src/lib/nn/recurrent.c \
	src/lib/nn/shard.c \
	src/lib/nn/shard.h \
	src/lib/nn/shard_layers.c \
	src/lib/nn/shard_layers.h \
	src/lib/nn/stage.c \
	src/lib/nn/stage.h \
	src/lib/nn/windows.c \
	src/lib/nn/windows.h
