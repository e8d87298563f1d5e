# SPDX-License-Identifier: Apache-2.0
# config: configuration keys, optimizer and precision that they select.
libyokecore_la_SOURCES += \
	src/app/config/advice.c \
	src/app/config/advice.h \
	src/app/config/capable.c \
	src/app/config/capable.h \
	src/app/config/conf.c \
	src/app/config/conf.h \
	src/app/config/conf_file.c \
	src/app/config/conf_model.c \
	src/app/config/optim.c \
	src/app/config/optim.h \
	src/app/config/precision.c \
	src/app/config/precision.h
