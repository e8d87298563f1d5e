#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares pipelines and cubes with scikit-learn, Spectral Python, SciPy, h5py, NumPy and GDAL
# where they are installed (tests/fit_clients.py). ./quickstart check full installs them.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
asks_clients numpy
trap 'rm -rf "${TMPDIR:-/tmp}/fit_clients.work"' EXIT
python3 "$tests/fit_clients.py" "$yoke" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all comparisons ran" "$([ $code -eq 0 ] || { echo "status $code"; tail -5 py.out; })"
echo "1..$count"
