#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Named ops cut as for a GPU, see presets.sh.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/presets.sh"
presets opencl_attention opencl_norm opencl_optim opencl_softmax opencl_xent
