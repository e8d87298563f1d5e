#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Products, moves and reductions cut as for a GPU, see presets.sh.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/presets.sh"
presets opencl_along opencl_contract opencl_move opencl_reduce
