#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -eu
./configure --prefix="$PREFIX" --libdir="$PREFIX/lib" --with-cblas=no --with-onednn=no --with-mpi=no \
	--with-matio=no --with-dw=no --with-opencl=yes --with-cuda=yes --with-rocm=yes
make -j"${CPU_COUNT:-1}"
make install
find "$PREFIX/lib/yoke" "$PREFIX/lib" -maxdepth 1 -name '*yoke*.la' -exec rm {} +
