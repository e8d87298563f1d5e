#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke where /proc and /sys are empty, as in some containers and on systems other than Linux: it reports what it can,
# trains the same model, and prints no error.
set -u
. "${srcdir:-.}/tests/yoke.sh"
unshare -m true 2>/dev/null || { echo '1..0 # SKIP unshare -m needs root'; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
workspace no_proc
mkdir empty
seq 1 2000 >text.txt
export YOKE_BACKEND=cpu

# bare COMMAND ..: without /proc and /sys
bare()
{
	unshare -m sh -c 'mount --bind empty /sys && mount --bind empty /proc && exec "$@"' bare "$@"
}

# shellcheck disable=SC2016 # for the inner shell
bare sh -c '[ -z "$(ls /proc /sys | grep -v :)" ]' || { echo '1..0 # SKIP mount is not allowed'; exit 0; }
bare "$yoke" info >out 2>err
status=$?
verdict "info" "$([ $status -eq 0 ] && [ ! -s err ] || { echo "status $status"; cat err; })"
verdict "it lists the processors" "$(grep -q '^  cpu  *[0-9]* threads*[:,]' out || cat out)"
verdict "the memory of the process is not known" "$(grep -q '^  host  *this process n/a' out || grep host out)"
keys='data=text.txt steps=3 layers=1 heads=2 embed=16 context=16 batch=2'
for ranks in 1 2; do
	# shellcheck disable=SC2086 # keys
	bare "$yoke" train $keys ranks=$ranks out=bare$ranks >out 2>err
	status=$?
	verdict "a training of $ranks ranks" "$([ $status -eq 0 ] || { echo "status $status"; cat err; })"
	verdict "its resident memory is not known" "$(grep -q 'resident n/a' err && grep -q '"rss": *null' bare$ranks/metrics.jsonl ||
		{ cat err; grep rss bare$ranks/metrics.jsonl; })"
	# shellcheck disable=SC2086
	"$yoke" train $keys ranks=$ranks out=full$ranks >out 2>err
	verdict "the same bits as with /proc" "$(cmp bare$ranks/model.1.safetensors full$ranks/model.1.safetensors 2>&1 ||
		ls bare$ranks)"
done
cd .. && rm -rf no_proc.work
echo "1..$count"
