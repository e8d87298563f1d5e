#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke plan scaling: the table of an all_reduce, and of the training step of a profiled run;
# errors are one line. tests/simulate.c tests the numbers.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace simulate
export YOKE_BACKEND=cpu YOKE_THREADS=1 YOKE_CACHE=$PWD/cache
unset YOKE_CPU_DEVICES
easy_text 120 >text
keys="data=text layers=2 heads=2 embed=32 context=16 batch=2 eval_every=0 valid=0 telemetry=0"
model="alpha1=1e-6 beta1=1e-10 alpha2=1e-4 beta2=1e-9 gamma=1e-10"

# refused WORDS ARGUMENT ..: in one line with these words
refused()
{
	words=$1
	shift
	"$yoke" plan scaling "$@" >out 2>err && echo "it was taken"
	grep -q "$words" err && [ "$(wc -l <err)" -eq 1 ] || cat err
}

# shellcheck disable=SC2086 # words
verdict "an all_reduce, by what there is for so many ranks" "$(
	"$yoke" plan scaling ranks=6..24 group=2 $model >out 2>&1 || cat out
	[ "$(grep -c '^simulated ' out)" -eq 12 ] || cat out
	grep -q '^simulated  *24  pairwise  *[0-9.]* us ' out || cat out)"
verdict "nothing is known" "$(refused 'give alpha2=' ranks=8)"
# shellcheck disable=SC2086 # words
verdict "a run that is not there" "$(refused 'train with profile=1 first' none $model)"

# shellcheck disable=SC2086 # words
"$yoke" train $keys steps=8 profile=1 out=run >out 2>&1 || cat out
# One line each for 2, 4 and 8 ranks, none faster than the step of one, whose time is in the first line.
# shellcheck disable=SC2086 # words
verdict "a step of more ranks, from the profile of one" "$(
	YOKE_DIST_BUCKET=20K "$yoke" plan scaling run ranks=2..8 group=2 $model >out 2>&1 || cat out
	sed -n 's/^a step of run: \([0-9.]*\) ms, .* in \([0-9]*\) buckets, .*/\1 \2/p' out >step
	read -r alone buckets <step
	[ "${buckets:-0}" -ge 3 ] || cat out
	[ "$(grep -c '^simulated ' out)" -eq 3 ] || cat out
	awk -v alone="${alone:-0}" '/^simulated/ { if ($3 < alone || $3 > alone + 40 || $7 != 1 || $8 > 100) print }' out)"
# shellcheck disable=SC2086 # words
verdict "a profile of several ranks" "$(
	"$yoke" train $keys steps=6 ranks=2 profile=1 out=two >out 2>&1 || cat out
	refused 'ranks=1' two $model)"
# shellcheck disable=SC2086 # words
verdict "a profile of one step" "$(
	"$yoke" train $keys steps=1 profile=1 out=one >out 2>&1 || cat out
	refused 'profile=1' one $model)"
verdict "yoke tune ranks: measured parameters are used by the simulation" "$(
	"$yoke" tune ranks max=1024 >tuned 2>&1 || cat tuned
	for bytes in 256 1024; do
		grep -q "^all_reduce.f32.$bytes [a-z0-9]*=[1-9][0-9]* [a-z0-9]*=[1-9]" tuned || cat tuned
	done
	grep -q '^model.fs alpha=[1-9][0-9]* beta=[0-9]* gamma=[1-9][0-9]*$' tuned || cat tuned
	"$yoke" plan scaling ranks=2 group=2 bytes=1024 >out 2>&1 || cat out
	grep -q '^simulated  *2  [a-z0-9]' out || cat out)"
verdict "as many ranks as there cannot be" "$(
	"$yoke" tune ranks ranks=65 >out 2>err
	[ $? -eq 2 ] && grep -q "'ranks=65': .*ranks=, from 2 to 64" err || cat err)"
echo "1..$count"
exit $failed
