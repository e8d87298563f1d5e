#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the progress line of yoke train on a terminal: it is redrawn in place, never wider than
# the terminal, and other lines appear above it.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
shown=typed
script --version 2>/dev/null | grep -q util-linux || { echo "1..0 # SKIP no script of util-linux"; exit 0; }
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_BACKEND=cpu
i=0
while [ $i -lt 60 ]; do
	i=$((i + 1))
	echo "the quick brown fox jumps over the lazy dog $i"
done >text

cr=$(printf '\r') escape=$(printf '\033')
for columns in 100 24; do
	rm -rf out
	script -qefc "stty cols $columns && '$yoke' train data=text out=out layers=1 heads=2 embed=16 \
		context=8 batch=2 steps=40 eval_every=20 log_every=1 threads=1" /dev/null >typed </dev/null
	verdict "$columns columns: trains" $?
	grep -q "${cr}100% 40/40 " typed
	verdict "$columns columns: drawn up to the end" $?
	tr '\r' '\n' <typed | sed -n "s/$escape\[K//; /^ *[0-9]*% /p" |
		awk -v most="$columns" 'length($0) >= most { bad++ } END { exit bad || !NR }'
	verdict "$columns columns: no wider than the terminal" $?
	tr '\r' '\n' <typed | grep -q "^  0% 0/[0-9]* .*[wW]" || [ $columns -lt 40 ]
	verdict "$columns columns: its progress is drawn" $?
	tr -d '\r' <typed | sed "s/.*$escape\[K//" | sed -n '/^where the time went/,/^model in/p' | sed '$d' |
		awk -v most="$columns" 'length($0) > most { bad++; print "# " $0 } END { exit bad || NR < 9 }'
	verdict "$columns columns: the report fits" $?
	grep -q 'step 20/40  val_loss' typed
	verdict "$columns columns: validation has a line of its own" $?
done
# what waits for a person says so
script -qefc "'$yoke' generate out prompt=- tokens=1 threads=1" /dev/null >typed <<'TEXT'
the quick

TEXT
grep -q '^reading the prompt; end it with Ctrl-D' typed
verdict "the command requests a prompt on a terminal" $?
echo 1..$count
