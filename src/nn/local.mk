# SPDX-License-Identifier: Apache-2.0
# nn: layers and models built of ops.
libyokecore_la_SOURCES += \
	src/nn/gpt.c \
	src/nn/gpt.h \
	src/nn/init.c \
	src/nn/init.h \
	src/nn/mlp.c \
	src/nn/mlp.h \
	src/nn/params.c \
	src/nn/params.h
