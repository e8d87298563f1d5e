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

# asks_clients [MODULE]: ends a test of other programs where they are not asked for, or there is no Python with the module
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

# unusable_drivers FOLDER NAME ..: libraries of these names without a function; earlier in the path than real drivers, they hide them
unusable_drivers()
{
	folder=$1
	shift
	for name; do
		"${cxx:-c++}" -shared -x c /dev/null -o "$folder/$name" || exit 99
	done
}

# await COMMAND ..: until it succeeds, half a minute at most
await()
{
	tries=0
	until "$@" 2>/dev/null || [ $tries -ge 1500 ]; do
		tries=$((tries + 1))
		sleep 0.02
	done
}

# written_or_ended FILE PID: is the file there, or does the process that writes it run no more?
written_or_ended()
{
	[ -s "$1" ] || ended "$2"
}

# gone PID: is there no such process?
gone()
{
	! kill -0 "$1" 2>/dev/null
}

# ended PID: does it run no more, whether its parent has waited for it or not?
ended()
{
	! grep -q '^State:.[^ZX]' "/proc/$1/status"
}

# signalled_until_ended SIGNAL PID: repeats the signal until the process ends, since signals within half a second count as one
signalled_until_ended()
{
	await signalled_once "$@"
}

signalled_once()
{
	kill -"$1" "$2"
	ended "$2"
}

# has FILE N TEXT: are there so many lines with the text?
has()
{
	[ "$(grep -cs -e "$3" "$1")" -ge "$2" ]
}
