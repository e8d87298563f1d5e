# SPDX-License-Identifier: Apache-2.0
# TAP for shell tests that check exit statuses: . "${srcdir:-.}/tests/status.sh"

count=0

# verdict TEXT STATUS: 0 is good; of others, what the command wrote into the files of $shown
shown=err
verdict()
{
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		cat $shown 2>/dev/null | tr '\r' '\n' | sed 's/^/# /' | tail -20
		[ -z "${YOKE_TEST_FIRST:-}" ] || exit 1 # tests/mutants wants no more
	fi
}

# skip TITLE WHY: a case that cannot run here
skip()
{
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}
