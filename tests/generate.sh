#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests samples= and stop= of yoke generate: a sample is the text of its seed, in whatever batch it is drawn; a stop text and
# its beginning are never written, in whatever tokens it arrives.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace generate
export YOKE_BACKEND=cpu YOKE_THREADS=1
easy_text 120 >text
keys="data=text layers=1 heads=2 embed=32 context=32 batch=8 lr=1e-2 warmup=5 steps=40 report=0"
verdict "a model of bytes" "$(run bytes)"
verdict "a model of pieces of words" "$(run pieces tokenizer=bpe vocab=300)"
verdict "a model of words" "$(run words tokenizer=word)"

# refused STATUS WORD ARGUMENT ..
refused()
{
	status=$1 word=$2
	shift 2
	"$yoke" "$@" >out 2>err
	got=$?
	verdict "exit $status, '$word': $(head -n 1 err)" "$([ $got -eq "$status" ] && [ "$(grep -c "^yoke.*$word" err)" -eq 1 ] &&
		[ "$(wc -l <err)" -le 2 ] || echo "exit $got"; cat out)"
}

# ---- samples ----

common="tokens=40 temperature=1.5 top_p=1 by_row=1"
# singly FIRST LAST PROMPT: the texts of these seeds, each with its title
singly()
{
	seed=$1
	while [ "$seed" -le "$2" ]; do
		[ "$seed" -eq "$1" ] || echo
		echo "==> sample $((seed - $1 + 1)), seed $seed <=="
		"$yoke" generate bytes $common seed="$seed" prompt="$3" 2>&1
		seed=$((seed + 1))
	done
}
singly 5 9 'line 3' >want
"$yoke" generate bytes $common seed=5 prompt='line 3' samples=5 >got 2>&1
verdict "five samples are the texts of five seeds" "$(diff want got)"
verdict "and differ" "$([ "$(tr -cd '[:print:]\n' <got | grep -v '^==>' | sort -u | wc -l)" -ge 5 ] || cat got)"
"$yoke" generate bytes $common seed=5 prompt='line 3' samples=5 batch=2 >got 2>&1
verdict "two at a time" "$(diff want got)"
singly 5 6 '' >want
"$yoke" generate bytes $common seed=5 prompt= samples=2 >got 2>&1
verdict "of an empty prompt" "$(diff want got)"
printf 'line 1\nlin\n' >lines
for batch in 16 3; do
	"$yoke" generate bytes $common seed=5 prompts=lines samples=2 batch=$batch >got 2>&1
	{
		for n in 1 2; do
			for k in 1 2; do
				[ $n$k = 11 ] || echo
				echo "==> $n, sample $k, seed $((4 + k)) <=="
				"$yoke" generate bytes $common seed=$((4 + k)) prompt="$(sed -n ${n}p lines)" 2>&1
			done
		done
	} >want
	verdict "two samples of two prompts, batch=$batch" "$(diff want got)"
done
"$yoke" generate bytes tokens=3 seed=1 samples=70 2>&1 | grep -c '^==> sample' >got
verdict "more samples than go at once" "$([ "$(cat got)" = 70 ] || cat got)"
refused 2 samples generate bytes samples=0
refused 2 samples generate bytes samples=x

# ---- stop texts ----

# Cuts what follows the prompt before the stop text that is complete first, the longest of several
cat >cut.py <<'END'
import sys
prompt, text, stops = sys.argv[1].encode(), open(sys.argv[2], 'rb').read(), [s.encode() for s in sys.argv[3:]]
assert text.startswith(prompt) and text.endswith(b'\n')
text = text[len(prompt):-1]
ends = [(text.find(s) + len(s), -len(s)) for s in stops if s in text]
if ends:
    end, n = min(ends)
    text = text[:end + n]
sys.stdout.buffer.write(prompt + text + b'\n')
END
# cuts MODEL LIST TEXT ..: stop=LIST gives what a program cuts at these texts
cuts()
{
	model=$1 list=$2
	shift 2
	"$yoke" generate "$model" tokens=120 temperature=0.8 prompt='line 3' >plain 2>err
	python3 cut.py 'line 3' plain "$@" >want
	"$yoke" generate "$model" tokens=120 temperature=0.8 prompt='line 3' stop="$list" >got 2>err
	cmp want got || { cat err; cat want got; }
}
if command -v python3 >/dev/null; then
	for model in bytes pieces words; do
		verdict "$model: one" "$(cuts $model 'easy' 'easy')"
		verdict "$model: the text ends within one" "$(cuts $model 'learn
line 4 of a tree' 'learn
line 4 of a tree')"
		verdict "$model: one that never comes" "$(cuts $model 'zebra' 'zebra')"
		verdict "$model: the first of several, one within the other" "$(cuts $model 'text that,xt,that' 'text that' 'xt' 'that')"
		verdict "$model: one begins as another, which does not come" "$(cuts $model 'tex,text thax,thus' 'tex' 'text thax' 'thus')"
	done
	verdict "a line end as an escape" "$(cuts bytes '\n' '
')"
	verdict "one letter" "$(cuts bytes 'e' 'e')"
	verdict "a comma is a comma after a backslash" "$("$yoke" generate bytes tokens=5 stop='a\,b,c' 2>&1 >out)"
	# of several texts each ends by itself
	"$yoke" generate bytes tokens=60 seed=3 prompt='line' samples=4 by_row=1 stop='easy,that' >got 2>&1
	for seed in 3 4 5 6; do
		[ $seed = 3 ] || echo
		echo "==> sample $((seed - 2)), seed $seed <=="
		"$yoke" generate bytes tokens=60 seed=$seed prompt='line' by_row=1 >plain 2>&1
		python3 cut.py 'line' plain easy that
	done >want
	verdict "each of several samples has its own end" "$(diff want got)"
fi
refused 1 'stop=' generate bytes stop='a,,b'
refused 1 'stop=' generate bytes stop=,
refused 1 'stop=' generate bytes stop='a\x'
refused 1 'stop=' generate bytes stop='a\'

# ---- token ids ----

awk 'BEGIN { for (i = 0; i < 600; i++) printf "%d ", i * 7 % 12 }' >ids
verdict "a model of ids" "$(rm -rf ids.out; keys=$(echo "$keys" | sed 's/data=text/data=ids/'); run ids.model tokenizer=ids vocab=12)"
refused 1 prompt=0 generate ids.model tokens=3
verdict "the command that the run suggests" "$(cat ids.model.out ids.model.err | sed -n 's/^next: yoke \(generate [^,]*\), yoke \(eval .*\)/\1 tokens=3\n\2/p' >next
	[ "$(wc -l <next)" -eq 2 ] || cat ids.model.err; while read -r line; do "$yoke" $line 2>&1 >out; done <next)"
verdict "a stop text of ids" "$("$yoke" generate ids.model prompt='0 7' tokens=8 temperature=0 >plain 2>&1
	third=$(cut -d' ' -f5 plain)
	"$yoke" generate ids.model prompt='0 7' tokens=8 temperature=0 stop=" $third" >got 2>&1
	[ "$(cut -d' ' -f1-4 plain)" = "$(cat got)" ] || cat plain got)"

echo "1..$count"
[ $failed -eq 0 ]
