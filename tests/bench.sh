#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# yoke bench: two suites print a line a case and the limits beside them, JSON says the same; what it
# cannot do is an error before anything is measured.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_BACKEND=cpu
count=0

verdict()
{
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		cat bench.out bench.err 2>/dev/null | sed 's/^/# /'
	fi
}

"$yoke" bench attention map --json bench.json >bench.out 2>bench.err
verdict "two suites" $?
grep -q 'multiply-adds, .* in a copy' bench.out
verdict "limits of this machine" $?
[ "$(grep -c '^map  .* ms ' bench.out)" -eq 3 ] && [ "$(grep -c '^attention  .* ms ' bench.out)" -eq 3 ] &&
	! grep -q '^contract' bench.out
verdict "a line for each case of them" $?
# rates are positive and finite, and shares of the limits are there
grep '^attention' bench.out | awk '{ for (i = 1; i < NF; i++) if ($(i + 1) == "GFLOP/s" && $i > 0) n++ } END { exit n != 3 }'
verdict "rates" $?
[ "$(grep -o '"suite": *"map"' bench.json | wc -l)" -eq 3 ]
verdict "the same as JSON" $?

"$yoke" bench atention >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "no suite 'atention'; did you mean 'attention'" bench.err
verdict "a suite that is none" $?
"$yoke" bench --json >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "wants a file" bench.err
verdict "--json without a file" $?
"$yoke" bench map --json no/such/folder.json >bench.out 2>bench.err
[ $? -ne 0 ] && grep -q "no/such/folder.json" bench.err
verdict "JSON that cannot be written" $?
echo 1..$count
