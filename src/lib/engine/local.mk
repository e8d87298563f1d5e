# SPDX-License-Identifier: Apache-2.0
# engine: continuous batching of requests to a language model.
libyokecore_la_SOURCES += \
	src/lib/engine/api.c
