#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke bench ablate: which variants it trains, and that variants that must not change a loss do
# not.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
workspace ablate
trap 'rm -rf "${TMPDIR:-/tmp}/ablate.work"' EXIT
easy_text 60 >text
small="data=text threads=1 layers=1 heads=2 embed=16 context=16 batch=4 steps=4"
# shellcheck disable=SC2086 # words
"$yoke" bench ablate $small toggles=recompute=block,fuse=0,dropout=0.5 rounds=2 >out 2>err
verdict "three toggles" "$([ $? -eq 0 ] && grep -q 'on cpu:0, 4 steps .*, 2 rounds' out || cat out err)"
sed -n 's/  .*//p' out | sed '/^$/d' >names
verdict "all off, each alone, all but each, all on" "$(printf '%s\n' 'all off' recompute=block fuse=0 dropout=0.5 \
	'all but recompute=block' 'all but fuse=0' 'all but dropout=0.5' 'all on' | diff - names)"
# the loss is the last column but one
verdict "variants with the same bits have the same loss in each round; dropout has another" "$(awk '
	/^(all off|recompute|fuse|all but dropout)/ { if (same == "") same = $(NF - 1); if ($(NF - 1) != same) print }
	/^(dropout|all but recompute|all but fuse|all on)/ { if (other == "") other = $(NF - 1); if ($(NF - 1) != other) print }
	$0 ~ /^(all|rec|fuse|drop)/ && $NF != 0 { print "rounds differ: " $0 }
	END { if (same == other) print "the same: " same }' out)"
# shellcheck disable=SC2086
"$yoke" bench ablate $small toggles=accumulate=2 rounds=1 --json >out 2>err
verdict "one toggle has two variants" "$([ $? -eq 0 ] && [ "$(grep -c '"steps_per_s"' out)" -eq 2 ] || cat out err)"
verdict "nothing is saved" "$(find . -name '*.safetensors' -o -name training_log.tsv)"
refuses()
{
	title=$1 want=$2 text=$3
	shift 3
	# shellcheck disable=SC2086
	"$yoke" bench ablate $small "$@" >out 2>&1
	[ $? -eq "$want" ] && [ "$(wc -l <out)" -eq 1 ] && grep -q "$text" out && verdict "$title: $(cat out)" '' ||
		verdict "$title" "$(cat out)"
}
refuses "no toggles" 2 'toggles='
refuses "an unknown key" 1 "did you mean 'recompute'" toggles=recompote=block
refuses "no value" 1 'is not key=value' toggles=fuse
refuses "a key twice" 1 'fuse=0' toggles=fuse=0,fuse=1
refuses "no rounds" 2 'from 1 to 31' toggles=fuse=0 rounds=0
echo "1..$count"
