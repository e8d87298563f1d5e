# SPDX-License-Identifier: Apache-2.0
# Examples, built by make check against the library as applications see it; tests/readme.sh compares
# xor.c with README.md and runs them.
check_PROGRAMS += examples/chat examples/net examples/custom_op examples/xor examples/optim examples/stream examples/density examples/digits examples/transmission
examples_chat_SOURCES = examples/chat.c
examples_chat_LDADD = libyoke.la
examples_density_SOURCES = examples/density.c
examples_density_LDADD = libyoke.la -lm
examples_digits_SOURCES = examples/digits.c
examples_digits_LDADD = libyoke.la
examples_net_SOURCES = examples/net.c
examples_net_LDADD = libyoke.la
examples_custom_op_SOURCES = examples/custom_op.c
examples_custom_op_LDADD = libyoke.la -lm
examples_xor_SOURCES = examples/xor.c
examples_xor_LDADD = libyoke.la
examples_optim_SOURCES = examples/optim.c
examples_optim_LDADD = libyoke.la
examples_stream_SOURCES = examples/stream.c
examples_stream_LDADD = libyoke.la
examples_transmission_SOURCES = examples/transmission.c
examples_transmission_LDADD = libyoke.la -lm
TESTS += tests/readme.sh
EXTRA_DIST += tests/readme.sh
exampledir = $(docdir)/examples
dist_example_DATA = \
	examples/chat.c \
	examples/density.c \
	examples/digits.c \
	examples/net.c \
	examples/optim.c \
	examples/custom_op.c \
	examples/local-rx.json \
	examples/pca-rx.json \
	examples/resnet-bk.env \
	examples/rx.json \
	examples/stream.c \
	examples/transmission.c \
	examples/xor.c \
	plugins/skeleton/skeleton.c
