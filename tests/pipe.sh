#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that a reader that closes its end of a pipe, as head does, is no error: each command that
# prints ends without a message and with status 0.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace pipe
export YOKE_BACKEND=cpu YOKE_LOG=error
easy_text 60 >text
printf 'a,b\n1,2\n3,4\n' >table.csv
small='layers=1 heads=2 embed=16 context=16 batch=2'
# shellcheck disable=SC2086 # words
"$yoke" train data=text out=run $small steps=3 valid=0.1 memory_history=1 >out 2>&1 || cat out
"$yoke" cubes make cubes count=1 lines=8 samples=8 bands=4 >out 2>&1 || cat out
mkfifo gate || exit 99

# piped COMMAND ..: it begins when nobody reads its output any more
piped()
{
	{ read -r _ <gate; "$yoke" "$@" 2>err; echo $? >status; } | { exec 0<&-; echo >gate; }
}

quiet()
{
	piped "$@"
	verdict "yoke $*" "$(cat err; [ "$(cat status)" -eq 0 ] || echo "status $(cat status)")"
}

quiet help
for command in $("$yoke" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
	quiet "$command" --help
done
quiet --version
quiet info
quiet info --env
quiet info --json
quiet doctor
quiet doctor --json
quiet info models .
quiet data info table.csv
quiet data check table.csv
quiet data bench table.csv seconds=0.01
quiet data prepare text out=text.tokens
quiet cubes info cubes/*.hdr
# shellcheck disable=SC2086 # words
quiet plan data=text $small
quiet generate run prompt=line tokens=20
quiet eval run data=text
quiet report run
quiet report run --html -
quiet report run --json
quiet dashboard terminal --once
quiet plan scaling ranks=2..8 alpha1=1e-6 beta1=1e-10 alpha2=1e-5 beta2=1e-9 gamma=1e-10
quiet check device --quick --ops memory,softmax
quiet plan device samples=1000 batch=16 parameters=1e6
quiet check resolvent samples=1 batch=1 n=8
for snapshot in run/memory*; do
	[ ! -f "$snapshot" ] || quiet info memory "$snapshot"
done
# whose progress is on standard error
# shellcheck disable=SC2086 # words
piped train data=text out=again $small steps=3 valid=0
verdict 'a training whose reader went away is saved' "$([ "$(cat status)" -eq 0 ] && [ -s again/manifest.json ] ||
	cat status err)"

piped bench map --quick --json
verdict 'so does a benchmark that prints JSON' "$([ "$(cat status)" -eq 0 ] && ! grep -q '^yoke' err || cat status err)"

# what cannot be written is an error all the same
if [ -c /dev/full ]; then
	"$yoke" help >/dev/full 2>err
	verdict 'a full disk is an error' "$([ $? -eq 1 ] && grep -q 'standard output' err || cat err)"
fi
echo "1..$count"
