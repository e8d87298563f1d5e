# SPDX-License-Identifier: Apache-2.0
# Examples, built by make check against the library as applications see it.
check_PROGRAMS += examples/xor
examples_xor_SOURCES = examples/xor.c
examples_xor_LDADD = libyoke.la
