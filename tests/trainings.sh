# SPDX-License-Identifier: Apache-2.0
# Sourced after tests/yoke.sh by tests of training: runs `yoke train $keys`, compares runs, waits
# for them and kills them.

# run NAME KEY=VALUE ..: trains into a new directory of that name; prints the output if it fails
run()
{
	rm -rf "$1"
	go "$@"
}

# go NAME KEY=VALUE ..: the same; the directory may exist
go()
{
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" train $keys out="$name" "$@" >"$name.out" 2>"$name.err" || tail -n 5 "$name.out" "$name.err"
}

# numbers RUN FIELD: prints step and number, one pair per line
numbers()
{
	sed -n 's/.*"step":\([0-9]*\).*"'"$2"'":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

# same A B: compares weights, states, and the numbers named in $fields of each step, bit for bit
same()
{
	for file in model optimizer; do
		cmp "$1"/$file.*.safetensors "$2"/$file.*.safetensors
	done
	for field in ${fields:-}; do
		numbers "$1" "$field" >a
		numbers "$2" "$field" >b
		[ -s a ] || echo "no $field"
		cmp a b || paste a b
	done
}

# refused WORDS KEY=VALUE ..: it ends with one line that contains the words, and leaves no directory
refused()
{
	words=$1
	shift
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" train $keys out=never "$@" >out 2>err && echo "it was taken"
	grep -q "$words" err || cat err
	[ "$(wc -l <err)" -eq 1 ] || cat err
	[ ! -e never ] || echo "it left a folder"
}

# reaches RUN STEP: waits until a training in the background has logged that step
reaches()
{
	await grep -q "\"step\":$2," "$1/metrics.jsonl"
}

# signalled NAME STEP KEY=VALUE ..: sends SIGINT to a training when it reaches the step; prints
# errors
signalled()
{
	name=$1 step=$2
	shift 2
	# shellcheck disable=SC2086 # words
	"$yoke" train $keys out="$name" steps=100000 save_every=0 "$@" >"$name.out" 2>"$name.err" &
	child=$!
	reaches "$name" "$step"
	kill -INT $child
	wait $child
	status=$?
	[ $status -eq 0 ] || echo "exit code $status"
	[ -f "$name/manifest.json" ] || ls "$name"
	grep -q 'finishing the step' "$name.err" || tail -n 5 "$name.err"
}

# saved_step RUN
saved_step()
{
	sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$1/manifest.json" | head -n 1
}

# kill_rank N KEY=VALUE ..: kills rank N of a training whose ranks are processes, during a step;
# prints errors
kill_rank()
{
	rank=$1
	shift
	"$yoke" train out=killed spawn=process steps=1000000 save_every=0 eval_every=0 "$@" >killed.out 2>killed.err &
	parent=$!
	reaches killed 3
	children=$(tr ' ' '\n' <"/proc/$parent/task/$parent/children" | grep .)
	victim=$(echo "$children" | sed -n "$((rank + 1))p")
	kill -KILL "$victim"
	wait $parent
	status=$?
	[ $status -eq 1 ] || echo "exit code $status"
	grep -q "rank $rank (pid $victim) was ended by signal 9" killed.err || cat killed.err
	for pid in $children; do
		kill -0 "$pid" 2>/dev/null && echo "process $pid is left"
	done
}
