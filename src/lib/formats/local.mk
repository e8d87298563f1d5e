# SPDX-License-Identifier: Apache-2.0
# formats: readers of untrusted files (arrays, images) and checkpoints.
libyokecore_la_SOURCES += \
	src/lib/formats/checkpoint.c \
	src/lib/formats/checkpoint.h \
	src/lib/formats/gguf.c \
	src/lib/formats/gguf.h \
	src/lib/formats/gguf_blocks.c \
	src/lib/formats/gguf_blocks.h \
	src/lib/formats/gguf_write.c \
	src/lib/formats/gguf_write.h \
	src/lib/formats/image.c \
	src/lib/formats/image.h \
	src/lib/formats/jpeg.c \
	src/lib/formats/png.c \
	src/lib/formats/quantize.c \
	src/lib/formats/safetensors.c \
	src/lib/formats/safetensors.h \
	src/lib/formats/safetensors_header.c \
	src/lib/formats/safetensors_set.c \
	src/lib/formats/safetensors_set.h \
	src/lib/formats/safetensors_write.c
