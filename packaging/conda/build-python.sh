#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -eu
export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig" LIBRARY_PATH="$PREFIX/lib" LD_LIBRARY_PATH="$PREFIX/lib"
cp "$PREFIX/bin/yoke" yoke.saved # pip would put its own starter of the command there
SKBUILD_CMAKE_DEFINE=YOKE_SYSTEM=ON "${PYTHON:-python3}" -m pip install --no-deps --no-build-isolation --no-index ./python
mv yoke.saved "$PREFIX/bin/yoke"
