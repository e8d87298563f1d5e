#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package's tests, where its extension was built beside this libyoke (python/develop.sh, as ./quickstart
# python does); each of pytest's is a line here.
set -u
source=$(cd "${srcdir:-.}" && pwd)
package=$PWD/python
[ -r "$package/python" ] && python=$(cat "$package/python") || {
	echo "1..0 # SKIP the extension is not built: python/develop.sh builds it (./quickstart python does)"
	exit 0
}
"$python" -c 'import numpy, pytest' 2>/dev/null || {
	echo "1..0 # SKIP $python has no NumPy and pytest"
	exit 0
}
for f in "$package"/yoke/_core.*.so; do
	[ -e "$f" ] || { echo "1..0 # SKIP $package has no extension"; exit 0; }
	[ -z "$(find "$source/python/src" "$source/include" -newer "$f" -print -quit)" ] || {
		echo "1..0 # SKIP the extension is older than its sources: python/develop.sh builds it"
		exit 0
	}
done
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
YOKE_TEST_INCLUDE=$source/include PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 \
	"$python" -m pytest -p no:cacheprovider -rA --tb=short -q "$source/python/tests" >"$out" 2>&1
status=$?
awk '
/^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) / {
	n++
	kind = $1
	sub(/^[A-Z]+ /, "")
	if (kind == "PASSED") print "ok " n " - " $0
	else if (kind == "SKIPPED") print "ok " n " # SKIP " $0
	else print "not ok " n " - " $0
}
END { print "1.." n + 0 }' "$out"
[ $status -eq 0 ] || sed 's/^/# /' "$out"
[ $status -le 1 ] && exit $status
echo "Bail out! pytest ended with $status"
