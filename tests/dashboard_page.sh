#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what yoke dashboard shows of runs below a folder: list, headline, curves, and its layout in Chromium.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace dashboard_page
mkdir empty
if "$yoke" dashboard empty 2>&1 | grep -q 'built without libmicrohttpd'; then
	echo "1..0 # SKIP built without libmicrohttpd"
	exit 0
fi
python3 -c '' 2>/dev/null || { echo "1..0 # SKIP no python3 to write runs"; exit 0; }
"$yoke" dashboard empty >out 2>&1
code=$?
verdict "a folder without runs is an error: $(cat out)" "$([ $code -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] || cat out)"
python3 "$tests/dashboard_page.py" "$yoke" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all pages were read" "$([ $code -eq 0 ] || echo "status $code")"
cd .. && rm -rf dashboard_page.work
echo "1..$count"
