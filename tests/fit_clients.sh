#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pipelines and cubes beside scikit-learn, Spectral Python, SciPy, h5py, NumPy and GDAL, as far as they are installed:
# tests/fit_clients.py.  ./quickstart check full installs them.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
if [ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" = 00 ]; then
	echo "1..0 # SKIP other programs cost seconds (YOKE_TEST_CLIENTS=1)"
	exit 0
fi
python3 -c 'import numpy' 2>/dev/null || { echo "1..0 # SKIP no python3 with NumPy"; exit 0; }
workspace clients
trap 'rm -rf "${TMPDIR:-/tmp}/clients.work"' EXIT
python3 "$tests/fit_clients.py" "$yoke" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all of it was asked" "$([ $code -eq 0 ] || { echo "status $code"; tail -5 py.out; })"
echo "1..$count"
