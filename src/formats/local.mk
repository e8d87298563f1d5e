# SPDX-License-Identifier: Apache-2.0
# formats: files that are read as hostile: arrays, manifests of models.
libyokecore_la_SOURCES += \
	src/formats/checkpoint.c \
	src/formats/checkpoint.h \
	src/formats/image.c \
	src/formats/image.h \
	src/formats/jpeg.c \
	src/formats/png.c \
	src/formats/safetensors.c \
	src/formats/safetensors.h \
	src/formats/safetensors_header.c \
	src/formats/safetensors_set.c \
	src/formats/safetensors_set.h \
	src/formats/safetensors_write.c
