# SPDX-License-Identifier: Apache-2.0
# train: optimizers, data, checkpoints, the training loop.
libyokecore_la_SOURCES += \
	src/train/advice.c \
	src/train/advice.h \
	src/train/checkpoint.c \
	src/train/checkpoint.h \
	src/train/conf.c \
	src/train/conf.h \
	src/train/data.c \
	src/train/data.h \
	src/train/generate.c \
	src/train/generate.h \
	src/train/loop.c \
	src/train/loop.h \
	src/train/model.c \
	src/train/model.h \
	src/train/optim.c \
	src/train/optim.h \
	src/train/outname.c \
	src/train/outname.h \
	src/train/progress.c \
	src/train/progress.h \
	src/train/run.h \
	src/train/run_say.c \
	src/train/runlog.c \
	src/train/runlog.h \
	src/train/safetensors.c \
	src/train/safetensors.h \
	src/train/safetensors_header.c \
	src/train/safetensors_write.c \
	src/train/schedule.c \
	src/train/schedule.h \
	src/train/snapshot.c \
	src/train/snapshot.h \
	src/train/stop.c \
	src/train/stop.h \
	src/train/tokenizer.c \
	src/train/tokenizer.h \
	src/train/tokens.c \
	src/train/tokens.h \
	src/train/trainer.c \
	src/train/trainer.h \
	src/train/trainer_save.c \
	src/train/validate.c \
	src/train/validate.h \
	src/train/words.c \
	src/train/words.h
