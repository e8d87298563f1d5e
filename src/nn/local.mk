# SPDX-License-Identifier: Apache-2.0
# nn: layers and models built of ops.
libyokecore_la_SOURCES += \
	src/nn/attention.c \
	src/nn/bk.c \
	src/nn/conv.c \
	src/nn/fold.c \
	src/nn/gpt.c \
	src/nn/layer.h \
	src/nn/layers.c \
	src/nn/mlp.c \
	src/nn/model.c \
	src/nn/model.h \
	src/nn/moe.c \
	src/nn/moe.h \
	src/nn/module.c \
	src/nn/module.h \
	src/nn/module_file.c \
	src/nn/op_check.c \
	src/nn/params.c \
	src/nn/params.h \
	src/nn/shard.c \
	src/nn/shard.h \
	src/nn/stage.c \
	src/nn/stage.h
