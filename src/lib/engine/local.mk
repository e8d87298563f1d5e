# SPDX-License-Identifier: Apache-2.0
# engine: continuous batching of requests to a language model.
libyokecore_la_SOURCES += \
	src/lib/engine/adapters.c \
	src/lib/engine/api.c \
	src/lib/engine/compute.c \
	src/lib/engine/engine.h \
	src/lib/engine/events.c \
	src/lib/engine/pages.c \
	src/lib/engine/pages.h \
	src/lib/engine/sample.c \
	src/lib/engine/step.c
