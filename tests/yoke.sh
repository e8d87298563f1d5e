# SPDX-License-Identifier: Apache-2.0
# What tests of the command begin with: . "${srcdir:-.}/tests/yoke.sh", before the folder is changed.
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }

# workspace NAME: the test goes on in an empty folder
workspace()
{
	cd "${TMPDIR:-/tmp}" && rm -rf "$1.work" && mkdir "$1.work" && cd "$1.work" || exit 99
}

# easy_text LINES
easy_text()
{
	i=0
	while [ $i -lt "$1" ]; do
		echo "line $((i % 7)) of a text that is easy to learn"
		i=$((i + 1))
	done
}

# reaches RUN STEP: waits until a training in the background has come there, half a minute at most
reaches()
{
	tries=0
	until grep -q "\"step\":$2," "$1/metrics.jsonl" 2>/dev/null || [ $tries -ge 600 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
}

# kill_rank N KEY=VALUE ..: rank N of a training whose ranks are processes is killed amid its steps; prints what is not as it
# should be then
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
