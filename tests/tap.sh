# SPDX-License-Identifier: Apache-2.0
# TAP for shell tests that search for offending lines: . "${srcdir:-.}/tests/tap.sh"

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
		[ -z "${YOKE_TEST_FIRST:-}" ] || exit 1 # tests/mutants wants no more
	fi
}

# skip TITLE WHY: a case that cannot run here
skip()
{
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# verdicts <FILE: lines "ok TITLE" and "not ok TITLE" of another program's, with what else it said
verdicts()
{
	while IFS= read -r line; do
		case $line in
		'ok '*) count=$((count + 1)) && echo "ok $count - ${line#ok }" ;;
		'not ok '*) count=$((count + 1)) failed=1 && echo "not ok $count - ${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done
}

# program NAME SUFFIX: tests/NAME.t as one case; of what fails, the first lines
program()
{
	out=$("./tests/$1.t" 2>&1)
	code=$?
	verdict "$1$2, $(echo "$out" | grep -c '^ok') checks" "$([ $code -eq 0 ] ||
		echo "$out" | grep -A3 '^not ok' | head -20
		[ $code -eq 0 ] || echo "exit code $code")"
}
