# SPDX-License-Identifier: Apache-2.0
# data: datasets, loaders, text as windows of tokens.
libyokecore_la_SOURCES += \
	src/data/blocks.c \
	src/data/combine.c \
	src/data/csv.c \
	src/data/cube.c \
	src/data/cubes.c \
	src/data/cursor.c \
	src/data/cursor.h \
	src/data/envi.c \
	src/data/envi.h \
	src/data/fill.c \
	src/data/give.c \
	src/data/images.c \
	src/data/images.h \
	src/data/jsonl.c \
	src/data/lines.c \
	src/data/lines.h \
	src/data/loader.c \
	src/data/loader.h \
	src/data/npy.c \
	src/data/npz.c \
	src/data/npz.h \
	src/data/open.c \
	src/data/part.c \
	src/data/part.h \
	src/data/permute.c \
	src/data/permute.h \
	src/data/prepare.c \
	src/data/prepare.h \
	src/data/resize.c \
	src/data/resize.h \
	src/data/send.c \
	src/data/set.c \
	src/data/set.h \
	src/data/source.c \
	src/data/source.h \
	src/data/stream.c \
	src/data/stream.h \
	src/data/text.c \
	src/data/text.h \
	src/data/tokenfile.c \
	src/data/tokenfile.h \
	src/data/tokensets.c \
	src/data/walk.c \
	src/data/walk.h
