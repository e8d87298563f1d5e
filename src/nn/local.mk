# SPDX-License-Identifier: Apache-2.0
# nn: layers and models built of ops.
libyokecore_la_SOURCES += \
	src/nn/bk.c \
	src/nn/gpt.c \
	src/nn/mlp.c \
	src/nn/model.c \
	src/nn/model.h \
	src/nn/moe.c \
	src/nn/moe.h \
	src/nn/params.c \
	src/nn/params.h
