# SPDX-License-Identifier: Apache-2.0
# The driver shared by the CUDA and ROCm plugins: compiled once for each, with the plugin's vendor.h.
native_sources = \
	plugins/native/collectives.c \
	plugins/native/device.c \
	plugins/native/driver.c \
	plugins/native/error.c \
	plugins/native/ext.c \
	plugins/native/library.c \
	plugins/native/memory.c \
	plugins/native/native.h \
	plugins/native/nccl.h \
	plugins/native/products.c \
	plugins/native/products.h \
	plugins/native/products_map.c \
	plugins/native/products_problem.c \
	plugins/native/products_try.c \
	plugins/native/program.c \
	plugins/native/queue.c
