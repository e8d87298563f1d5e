#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that kill -9 at any moment of a save leaves a complete checkpoint, never older than the
# one before. The killed programs are tests/checkpoint.t FOLDER, which saves forever, and a
# training that saves each step and resumes from the last checkpoint.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
writer=$PWD/tests/checkpoint.t
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
export YOKE_BACKEND=cpu
rounds=50
[ "${YOKE_TEST_LONG:-0}" = 0 ] || rounds=300
# Is the checkpoint another file than $1 says?  Sets stamp.
replaced()
{
	stamp=$(ls -i "$folder/manifest.json" 2>/dev/null)
	[ -n "$stamp" ] && [ "$stamp" != "$1" ]
}

model="layers=1 heads=2 embed=16 context=8 batch=2 save_every=1 eval_every=0 threads=1"

begin()
{
	case $1 in
	saving) "$writer" "$folder" 2>"$work/err.txt" & ;;
	training)
		more=
		[ ! -e "$folder/manifest.json" ] || more=resume=1
		"$yoke" train data="$work/text" out="$folder" $model steps=1000000 \
			log_every=1000000 $more >"$work/out.txt" 2>"$work/err.txt" &
		;;
	esac
	pid=$!
}

# Loads all of the checkpoint and prints its step.
judge()
{
	case $1 in
	saving) "$writer" "$folder" 0 2>"$work/err.txt" ;;
	training)
		rm -rf "$work/copy" && cp -r "$folder" "$work/copy" &&
			"$yoke" train data="$work/text" out="$work/copy" $model steps=1 resume=1 \
				>"$work/err.txt" 2>&1 &&
			sed -n 's/^resumed .* at step \([0-9]*\)$/\1/p' "$work/err.txt" | grep .
		;;
	esac
}

# kills WHO N: N times.  Four of five rounds wait for a save and die in or after a later one, at a
# delay that differs each time; the fifth dies wherever it is by then.
kills()
{
	folder=$work/$1 last=0 advanced=0 waited=0 round=0
	while [ $round -lt "$2" ]; do
		round=$((round + 1))
		replaced none
		before=$stamp
		begin "$1"
		if [ $((round % 5)) -ne 0 ]; then
			waited=$((waited + 1))
			await replaced "$before"
		fi
		sleep "$(printf 0.%03d $((round * 37 % 41)))"
		kill -9 $pid
		wait $pid 2>/dev/null
		if [ ! -e "$folder/manifest.json" ] && [ $last -eq 0 ]; then
			echo "# round $round: killed before the first save was done"
			continue
		fi
		step=$(judge "$1") && [ "$step" -ge "$last" ] || {
			sed 's/^/# /' "$work/err.txt"
			ls -l "$folder" | sed 's/^/# /'
			verdict "$1: round $round left step ${step:-none} after step $last" 1
			return
		}
		[ "$step" -eq "$last" ] || advanced=$((advanced + 1))
		last=$step
	done
	verdict "$1: whole after each of $2 kills, $last steps" 0
	[ $advanced -ge $waited ]
	verdict "$1: $advanced rounds saved, $waited were let" $?
	# what a kill leaves behind does not add up: the files of one generation, and those of a save in
	# progress
	files=$(ls "$folder" | grep -cvxE "run.json|(events|telemetry).jsonl")
	[ "$files" -le 8 ]
	verdict "$1: $files files" $?
}

i=0
while [ $i -lt 60 ]; do
	i=$((i + 1))
	echo "the quick brown fox jumps over the lazy dog $i"
done >"$work/text"
kills saving $rounds
kills training $rounds
echo 1..$count
