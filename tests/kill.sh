#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at any moment of saves leaves a whole checkpoint, never an older one than was there before.
# The writer, tests/checkpoint.t FOLDER, saves without end; FOLDER 0 loads all of it and prints the step.
set -u
writer=$PWD/tests/checkpoint.t
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
folder=$work/model
rounds=50
[ "${YOKE_TEST_LONG:-0}" = 0 ] || rounds=300

last=0 advanced=0 round=0
while [ $round -lt $rounds ]; do
	round=$((round + 1))
	"$writer" "$folder" 2>"$work/err.txt" &
	pid=$!
	# from a few saves down to a part of one: other places every round
	sleep "$(printf 0.%02d $((round * 37 % 20 + 2)))"
	kill -9 $pid
	wait $pid 2>/dev/null
	if [ ! -e "$folder/manifest.json" ] && [ $last -eq 0 ]; then
		echo "# round $round: killed before the first save was done"
		continue
	fi
	step=$("$writer" "$folder" 0 2>"$work/err.txt") || {
		sed 's/^/# /' "$work/err.txt"
		ls -l "$folder" | sed 's/^/# /'
		echo "not ok 1 - whole after kill -9 in round $round"
		echo 1..1
		exit 1
	}
	[ "$step" -ge "$last" ] || {
		echo "not ok 1 - round $round: step $step is older than $last"
		echo 1..1
		exit 1
	}
	[ "$step" -eq "$last" ] || advanced=$((advanced + 1))
	last=$step
done
echo "# $rounds rounds, $last saves"
echo "ok 1 - whole after each of $rounds kills"
# how many depends on how busy the machine is
[ $advanced -ge $((rounds / 10)) ] && echo "ok 2 - saving went on in $advanced rounds" ||
	echo "not ok 2 - saving went on in $advanced rounds only"
# what a kill leaves behind does not add up: the files of one generation, and those of a save in progress
files=$(ls "$folder" | wc -l)
[ "$files" -le 6 ] && echo "ok 3 - $files files" || echo "not ok 3 - $files files"
echo 1..3
