# SPDX-License-Identifier: Apache-2.0
# train: keys of the command, optimizers, trainer, generation.
libyokecore_la_SOURCES += \
	src/train/advice.c \
	src/train/advice.h \
	src/train/capable.c \
	src/train/capable.h \
	src/train/compare.c \
	src/train/compare.h \
	src/train/conf.c \
	src/train/conf.h \
	src/train/generate.c \
	src/train/generate.h \
	src/train/loop.c \
	src/train/loop.h \
	src/train/trained.c \
	src/train/trained.h \
	src/train/optim.c \
	src/train/optim.h \
	src/train/outname.c \
	src/train/outname.h \
	src/train/plot.c \
	src/train/precision.c \
	src/train/precision.h \
	src/train/progress.c \
	src/train/progress.h \
	src/train/run.h \
	src/train/run_say.c \
	src/train/runlog.c \
	src/train/runlog.h \
	src/train/snapshot.c \
	src/train/snapshot.h \
	src/train/stop.c \
	src/train/stop.h \
	src/train/advise.c \
	src/train/advise.h \
	src/train/batch.c \
	src/train/batch.h \
	src/train/need.c \
	src/train/need.h \
	src/train/sums.c \
	src/train/sums.h \
	src/train/trainer.c \
	src/train/trainer.h \
	src/train/trainer_save.c \
	src/train/validate.c \
	src/train/validate.h
