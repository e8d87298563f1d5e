#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests bash completion: it offers the words of `yoke help`.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
folder=$(cd "${srcdir:-.}" && pwd)/doc/completion
bash=$(command -v bash) || { echo "1..0 # SKIP no bash"; exit 0; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
mkdir model && : >text.txt && : >small.env

# offers LINE: what bash would offer at its end, sorted; readline cuts words at '=' and ':'
offers()
{
	"$bash" -c '
		. "$1"
		COMP_LINE=$2 COMP_POINT=${#2}
		read -r -a COMP_WORDS <<<"${2//=/ = }"
		[[ $2 != *[[:blank:]] ]] || COMP_WORDS+=("")
		COMP_WORDS[0]=$3
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_yoke
		printf "%s\n" "${COMPREPLY[@]}"' bash "$folder/yoke" "$1" "$yoke" 2>&1 | LC_ALL=C sort
}

# check LINE WORD ..: offers exactly these
check()
{
	line=$1
	shift
	want=$(printf '%s\n' "$@" | LC_ALL=C sort)
	got=$(offers "$line")
	[ "$got" = "$want" ] && verdict "'$line'" "" || verdict "'$line'" "offers
$got
wanted
$want"
}

# shellcheck disable=SC2046 # words
check 'yoke ' --help --version $("$yoke" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
check 'yoke tr' train
check 'yoke help ge' generate
check 'yoke help train a' all
check 'yoke info models --j' --json
check 'yoke data ch' check
check 'yoke report --h' --help --html
check 'yoke report --html te' text.txt
check 'yoke report m' model
check 'yoke report --html=te' text.txt
check 'yoke report --csv=mo' model
check 'yoke dashboard po' port=
check 'yoke dashboard token_file=te' text.txt
check 'yoke bench --html te' text.txt
check 'yoke bench fi' fit
check 'yoke bench devices=c' cpu
check 'yoke plan te' telemetry= tensor= tensorboard= text.txt
check 'yoke plan small.env data=te' text.txt
check 'yoke plan schedule=cos' cosine
check 'yoke generate model prompts=te' text.txt
check 'yoke train training_log=te' text.txt
check 'yoke train valid=te' text.txt
check 'yoke fit te' text.txt
check 'yoke fit text.txt ou' out=
check 'yoke fit text.txt out=mo' model
check 'yoke fit text.txt data.cubes=a,te' a,text.txt
check 'yoke apply mo' model
check 'yoke apply te' ''
check 'yoke apply model no' nodes=
check 'yoke cubes co' convert
check 'yoke cubes info te' text.txt
check 'yoke cubes convert text.txt inter' interleave=
check 'yoke cubes make model co' count=
check 'yoke plan scaling mo' model
check 'yoke plan scaling al' algorithm= alpha1= alpha2=
check 'yoke info memory te' text.txt
check 'yoke data info te' text.txt
check 'yoke data prepare text.txt out=te' text.txt
for command in $("$yoke" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
	got=$(offers "yoke $command --he")
	verdict "'yoke $command --he'" "$([ "$got" = --help ] || echo "$got")"
	verdict "'yoke $command ' offers something" "$([ -n "$(offers "yoke $command ")" ] || echo nothing)"
done
check 'yoke dashboard m' model
check 'yoke dashboard terminal --o' --once
check 'yoke top --o' --once
check 'yoke top m' model
check 'yoke data ge' get
check 'yoke data get ti' tinyshakespeare
check 'yoke data get digits ou' out=
check 'yoke data info x fo' format=
check 'yoke data prepare x to' tokenizer=
check 'yoke info models m' model
check 'yoke setup s' small.env
check 'yoke info --e' --env
check 'yoke info --env a' all
check 'yoke doctor -' --help --json
check 'yoke bench --j' --json
check 'yoke bench d' devices=
check 'yoke check device --q' --quick
check 'yoke check device c' cpu
check 'yoke tune --b' --budget
check 'yoke tune c' cpu
check 'yoke tune m' model= minutes=
check 'yoke tune r' ranks
check 'yoke tune model=m' model
check 'yoke plan device da' dampening= data= dashboard=
check 'yoke train sch' schedule=
check 'yoke train t' t0= telemetry= tensor= tensorboard= text.txt threads= tied= tokenizer= training_log=
check 'yoke train small.env schedule=c' cosine constant
check 'yoke train small.env schedule=co lr=1 opt' optimizer=
check 'yoke train small.env schedule=cos' cosine
check 'yoke train data=te' text.txt
check 'yoke train data=a,te' a,text.txt
check 'yoke generate m' model
check 'yoke generate model temp' temperature=
check 'yoke generate model layer' ''
check 'yoke train layers=' ''
check 'yoke train backend=c' cpu
check 'yoke check ' device model precision resolvent $("$yoke" help train all | sed -n '/^keys/,$s/^  \([a-z][a-z0-9_]*\) .*/\1=/p') model small.env text.txt
check 'yoke check p' $("$yoke" help train all | sed -n '/^keys/,$s/^  \(p[a-z0-9_]*\) .*/\1=/p') precision
check 'yoke check resolvent ti' tier=
check 'yoke bench ranks sp' spawn=
check 'yoke help check d' device
check 'yoke train precision=bf' bf16-mixed
for command in train generate chat serve eval; do
	# shellcheck disable=SC2046 # words
	check "yoke $command x " $("$yoke" help $command all |
		sed -n '/^keys/,$s/^  \([a-z][a-z0-9_]*\) .*/\1=/p')
done
if zsh=$(command -v zsh); then
	verdict 'the zsh script has no mistake of syntax' "$("$zsh" -n "$folder/_yoke" 2>&1)"
else
	skip 'the zsh script' 'no zsh'
fi
echo "1..$count"
