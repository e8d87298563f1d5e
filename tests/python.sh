#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the Python package's tests on an extension built against this libyoke (python/develop.sh);
# each pytest test is one line here. PYTHON is the interpreter whose headers and nanobind are
# used; default: that of an earlier build, else python3.
set -u
source=$(cd "${srcdir:-.}" && pwd)
package=$PWD/python
python=${PYTHON:-$(cat "$package/python" 2>/dev/null || echo python3)}

skip()
{
	echo "1..0 # SKIP $*"
	exit 0
}

"$python" -c '' 2>/dev/null || skip "there is no $python"
"$python" -c 'import os, sys, sysconfig
sys.exit(sys.version_info < (3, 10) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
	skip "$python is older than 3.10, or has no headers"
for m in nanobind numpy pytest; do
	"$python" -c "import $m" 2>/dev/null || skip "$python has no $m (pip install $m)"
done
c++ --version >/dev/null 2>&1 || skip "there is no C++ compiler"
log=$(mktemp) || exit 99
"$source/python/develop.sh" "$PWD" "$python" >"$log" 2>&1 || {
	sed 's/^/# /' "$log"
	rm -f "$log"
	echo "Bail out! python/develop.sh does not build the extension"
	exit 1
}
rm -f "$log"
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
YOKE_TEST_INCLUDE=$source/include YOKE_TEST_BUILD=$PWD PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 \
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
