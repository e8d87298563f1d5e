# SPDX-License-Identifier: Apache-2.0
# TAP for shell tests that look for offending lines: . "${srcdir:-.}/tests/tap.sh"

count=0 failed=0

# verdict TEXT LINES: no lines is good
verdict()
{
	count=$((count + 1))
	if [ -z "$2" ]; then
		echo "ok $count - $1"
	else
		failed=1
		echo "not ok $count - $1"
		echo "$2" | sed 's/^/# /'
	fi
}
