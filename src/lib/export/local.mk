# SPDX-License-Identifier: Apache-2.0
# export: models in the formats of other programs.
libyokecore_la_SOURCES += \
	src/lib/export/config.c \
	src/lib/export/export.c \
	src/lib/export/export.h \
	src/lib/export/gguf.c \
	src/lib/export/hf.c \
	src/lib/export/onnx.h \
	src/lib/export/onnx_file.c \
	src/lib/export/onnx_graph.c \
	src/lib/export/onnx_lower.c \
	src/lib/export/onnx_map.c \
	src/lib/export/onnx_model.c \
	src/lib/export/onnx_move.c \
	src/lib/export/onnx_names.c \
	src/lib/export/onnx_names.h \
	src/lib/export/onnx_sum.c \
	src/lib/export/peft.c \
	src/lib/export/tokenizer.c \
	src/lib/export/tokenizer.h \
	src/lib/export/tokenizer_hf.c
