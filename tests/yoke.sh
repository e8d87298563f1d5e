# SPDX-License-Identifier: Apache-2.0
# Common functions of the command's tests: . "${srcdir:-.}/tests/yoke.sh", before the working
# directory changes.
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }

# workspace NAME: changes to a new, empty directory
workspace()
{
	cd "${TMPDIR:-/tmp}" && rm -rf "$1.work" && mkdir "$1.work" && cd "$1.work" || exit 99
}

# easy_text LINES: prints a text that a small model learns quickly
easy_text()
{
	i=0
	while [ $i -lt "$1" ]; do
		echo "line $((i % 7)) of a text that is easy to learn"
		i=$((i + 1))
	done
}

# asks_clients [MODULE]: skips a test of other programs unless it was requested and Python has the
# module
asks_clients()
{
	if [ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" = 00 ]; then
		echo "1..0 # SKIP other programs cost seconds (YOKE_TEST_CLIENTS=1)"
		exit 0
	fi
	python3 -c "${1:+import $1}" 2>/dev/null || { echo "1..0 # SKIP no python3${1:+ with $1}"; exit 0; }
	tests=$(cd "${srcdir:-.}" && pwd)/tests
	workspace "$(basename "$0" .sh)"
}

# unusable_drivers FOLDER NAME ..: makes libraries of these names without functions; earlier in the
# path than real drivers, they hide those
unusable_drivers()
{
	folder=$1
	shift
	for name; do
		"${cxx:-c++}" -shared -x c /dev/null -o "$folder/$name" || exit 99
	done
}

# fake_drivers FOLDER PREFIX ..: copies the fake libraries of tests/fake_gpu with these prefixes, or those of a vendor, cuda or
# rocm, to a new directory
fake_drivers()
{
	folder=$1
	case $2 in
	cuda) set -- libcu libnv ;;
	rocm) set -- libamdhip libhip libroc ;;
	*) shift ;;
	esac
	mkdir "$folder"
	for prefix; do
		cp "$YOKE_TEST_FAKE/$prefix"*.so.* "$folder"
	done
}

# await COMMAND ..: repeats the command until it succeeds.  A hang ends after 10 minutes or more, with a message.
await()
{
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 30000 ] || { echo "# no success within 10 minutes: $*"; return 1; }
		sleep 0.02
	done
}

# paced RUN FIRST NEXT STEPS <FILE: copies FIRST bytes, the data of one step, then NEXT more, those of the next step, after each
# of the first STEPS - 1 steps of the run: each step must be made as soon as its own data have arrived.
paced()
{
	head -c "$2"
	paced_step=1
	while [ $paced_step -lt "$4" ]; do
		await grep -qs "\"step\":$paced_step," "$1/metrics.jsonl" || return
		head -c "$3"
		paced_step=$((paced_step + 1))
	done
}

# written_or_ended FILE PID: does the file exist, or has its writer ended?
written_or_ended()
{
	[ -s "$1" ] || ended "$2"
}

# needs_http: skips a test, in its workspace, if there are no servers or no Python that sends requests.  At the end of the test
# the servers in $pids are killed and the workspace is removed.
needs_http()
{
	if "$yoke" serve . 2>&1 | grep -q 'built without libmicrohttpd'; then
		echo "1..0 # SKIP built without libmicrohttpd"
		exit 0
	fi
	python3 -c '' 2>/dev/null || { echo "1..0 # SKIP no python3 to ask with"; exit 0; }
	unset YOKE_API_KEY
	pids=
	work=$PWD
	trap end_servers EXIT
}

end_servers()
{
	for pid in $pids; do
		! child "$pid" || kill -9 "$pid"
	done
	rm -rf "$work"
}

# child PID: is it a process of this shell?  The number of one that has ended may be that of another test's process.
child()
{
	grep -qs "^PPid:	$$\$" "/proc/$1/status"
}

# start_server NAME ARGUMENT ..: runs yoke serve, with its output in NAME.out and NAME.err; $pid is its process and $url its address
start_server()
{
	name=$1
	shift
	case " $*" in
	*" port="*) ;;
	*) set -- "$@" port=0 ;;
	esac
	"$yoke" serve "$@" threads=1 >"$name.out" 2>"$name.err" &
	pid=$!
	pids="$pids $pid"
	await written_or_ended "$name.out" "$pid"
	url=$(sed -n 's/^yoke serve: //p' "$name.out")
	[ -n "$url" ] || verdict "yoke serve $* starts" "$(cat "$name.err")"
}

# gone PID: does the process not exist?
gone()
{
	! kill -0 "$1" 2>/dev/null
}

# ended PID: has it ended, whether or not its parent has waited for it?
ended()
{
	! grep -q '^State:.[^ZX]' "/proc/$1/status"
}

# signalled_until_ended SIGNAL PID: repeats the signal until the process ends, because signals
# within half a second count as one
signalled_until_ended()
{
	await signalled_once "$@"
}

signalled_once()
{
	! child "$2" || kill -"$1" "$2"
	ended "$2"
}

# has FILE N TEXT: do at least N lines contain the text?
has()
{
	[ "$(grep -cs -e "$3" "$1")" -ge "$2" ]
}
