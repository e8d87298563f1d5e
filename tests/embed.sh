#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke embed on an encoder whose layers add nothing, so that its vectors follow from its embeddings: formats,
# pooling, prompts of sentence-transformers' files, bad input.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
workspace embed
export YOKE_BACKEND=cpu

# ---- the model: width 4, 7 words of which w1 and w2 surround a text, 8 positions ----

# bf16 NUMBER ..: bytes in little endian; whole numbers from -1 to 3
bf16()
{
	for number; do
		case $number in
		-1) printf '\200\277' ;;
		0) printf '\000\000' ;;
		1) printf '\200\077' ;;
		2) printf '\000\100' ;;
		3) printf '\100\100' ;;
		esac
	done
}
zeros()
{
	head -c $((2 * $1)) /dev/zero
}

mkdir model
cat >model/config.json <<'END'
{"model_type": "bert", "vocab_size": 7, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
 "max_position_embeddings": 8, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
END
cat >model/tokenizer.json <<'END'
{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
 "post_processor": {"type": "BertProcessing", "cls": ["w1", 1], "sep": ["w2", 2]},
 "model": {"type": "WordLevel", "unk_token": "w0", "vocab": {"w0": 0, "w1": 1, "w2": 2, "w3": 3, "w4": 4, "w5": 5, "w6": 6}}}
END
awk 'BEGIN {
	a = "encoder.layer.0."
	print "embeddings.word_embeddings.weight 7 4\nembeddings.position_embeddings.weight 8 4\nembeddings.token_type_embeddings.weight 2 4"
	n = split("attention.self.query attention.self.key attention.self.value attention.output.dense intermediate.dense output.dense", t, " ")
	for (i = 1; i <= n; i++)
		print a t[i] ".weight 4 4\n" a t[i] ".bias 0 4"
	n = split("embeddings.LayerNorm " a "attention.output.LayerNorm " a "output.LayerNorm", t, " ")
	for (i = 1; i <= n; i++)
		print t[i] ".weight 0 4\n" t[i] ".bias 0 4"
}' >tensors
awk '{
	bytes = 2 * ($2 ? $2 : 1) * $3
	printf "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s%d],\"data_offsets\":[%d,%d]}", NR == 1 ? "{" : ",", $1, $2 ? $2 "," : "", $3, at, at + bytes
	at += bytes
} END { printf "}" }' tensors >header
size=$(wc -c <header)
{
	# shellcheck disable=SC2059 # octal escapes
	printf "$(awk -v n="$size" 'BEGIN { for (i = 0; i < 8; i++) { printf "\\%03o", n % 256; n = int(n / 256) } }')"
	cat header
	# shellcheck disable=SC2046 # words
	bf16 $(awk 'BEGIN { for (i = 0; i < 7; i++) for (j = 0; j < 4; j++) print (i * i + 3 * j) % 5 - 1 }')
	# shellcheck disable=SC2046 # words
	bf16 $(awk 'BEGIN { for (t = 0; t < 8; t++) for (j = 0; j < 4; j++) print (t + j * j) % 3 }')
	zeros 8
	zeros 120
	for norm in 1 2 3; do
		bf16 1 1 1 1
		zeros 4
	done
} >model/model.safetensors

# wanted POOLING NORMALIZE: the vectors of texts on standard input, ids of up to 6 words each, in float64
wanted()
{
	awk -v pooling="$1" -v normalize="$2" '
	function norm(x,    j, m, v) {
		m = (x[0] + x[1] + x[2] + x[3]) / 4
		for (j = 0; j < 4; j++)
			v += (x[j] - m) ^ 2 / 4
		for (j = 0; j < 4; j++)
			x[j] = (x[j] - m) / sqrt(v + 1e-12)
	}
	{
		n = split("1 " $0 " 2", id, " ")
		for (j = 0; j < 4; j++)
			y[j] = pooling == "max" ? -1e9 : 0
		for (t = 1; t <= n; t++) {
			for (j = 0; j < 4; j++)
				x[j] = (id[t] * id[t] + 3 * j) % 5 - 1 + (t - 1 + j * j) % 3
			norm(x); norm(x); norm(x)
			for (j = 0; j < 4; j++)
				if (pooling == "mean")
					y[j] += x[j] / n
				else if ((pooling == "cls" && t == 1) || (pooling == "last" && t == n) || (pooling == "max" && x[j] > y[j]))
					y[j] = x[j]
		}
		length_ = normalize ? sqrt(y[0] ^ 2 + y[1] ^ 2 + y[2] ^ 2 + y[3] ^ 2) : 1
		printf "%.9g %.9g %.9g %.9g\n", y[0] / length_, y[1] / length_, y[2] / length_, y[3] / length_
	}'
}

# near A B: files with equal numbers, to 1e-5
near()
{
	[ "$(wc -w <"$1")" -eq "$(wc -w <"$2")" ] && [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] && [ -s "$1" ] &&
		paste -d ' ' "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) if (!(($i - $(i + NF / 2)) ^ 2 < 1e-10)) bad = 1 } END { exit bad }' ||
		{ { echo got; cat "$1"; echo wanted; cat "$2"; } >>err; return 1; }
}

# embeds TITLE POOLING NORMALIZE IDS ARGUMENT ..: the vectors of texts, whose ids are lines separated by commas
embeds()
{
	title=$1 pooling=$2 normalize=$3 ids=$4
	shift 4
	"$yoke" embed "$@" >out 2>err && echo "$ids" | tr , '\n' | wanted "$pooling" "$normalize" >want && near out want
	verdict "$title" $?
}

# ---- texts ----

embeds 'texts are arguments' mean 0 '3 4,5' model 'w3 w4' w5
embeds 'an argument with "=" that is no key is a text' mean 0 '3 0' model 'w3 ='
printf 'w3 w4\r\n\nw6 w5 w4 unknown\n' >lines
embeds 'lines of a file, one of which is empty' mean 0 '3 4,,6 5 4 0' model prompts=lines
embeds 'arguments, prompt=, prompts=, in this order' mean 0 '5,6 6,3 4,,6 5 4 0' model prompts=lines w5 prompt='w6 w6'
"$yoke" embed model <lines >out 2>err && printf '3 4\n\n6 5 4 0\n' | wanted mean 0 >want && near out want
verdict 'without a text, standard input' $?
embeds 'the end of a text that is too long is left out' mean 0 '3 4 5 6 3 4' model 'w3 w4 w5 w6 w3 w4 w5 w6 w3'
embeds 'context= is the maximum' mean 0 '3 4' model 'w3 w4 w5 w6 w3 w4 w5 w6 w3' context=4
awk 'BEGIN { for (i = 0; i < 600; i++) print "w" 3 + i % 4, "w" 3 + i % 3 }' >many
"$yoke" embed model prompts=many >out 2>err && sed 's/w//g' many | wanted mean 0 >want && near out want
verdict 'six hundred lines' $?

# ---- pooling and normalization ----

for pooling in mean cls max last; do
	embeds "pooling=$pooling" $pooling 0 '3 4,5' model 'w3 w4' w5 pooling=$pooling
done
embeds 'normalize=1' mean 1 '3 4,5' model 'w3 w4' w5 normalize=1

# files JSON_OF_POOLING: a model with modules.json
files()
{
	rm -rf st && cp -r model st && mkdir st/1_Pooling && echo "$1" >st/1_Pooling/config.json
	echo '[{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Pooling",
		"path": "1_Pooling"}, {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}]' >st/modules.json
}
files '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": true}'
embeds 'flags of older files' max 1 '3 4,5' st 'w3 w4' w5
embeds 'arguments replace what files say' cls 0 '3 4,5' st 'w3 w4' w5 pooling=cls normalize=0
files '{"pooling_mode": "lasttoken", "pooling_mode_mean_tokens": true}'
embeds 'pooling_mode of newer files' last 1 '3 4,5' st 'w3 w4' w5
files '{"pooling_mode": ["cls"]}'
embeds 'pooling_mode as a list' cls 1 '3 4,5' st 'w3 w4' w5
for bad in '"pooling_mode": "weightedmean"' '"pooling_mode": ["cls", "mean"]' '"pooling_mode": 3' '"pooling_mode_weightedmean_tokens": true' \
	'"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true' '"pooling_mode_mean_tokens": false'; do
	files "{$bad}"
	"$yoke" embed st w3 >out 2>err
	[ $? -eq 1 ] && [ ! -s out ] && grep -q 'st/1_Pooling/config.json' err
	verdict "refused: $bad" $?
done

# ---- prompts ----

files '{"pooling_mode_mean_tokens": true}'
echo '{"prompts": {"query": "w6 ", "passage": "", "other": 3}, "default_prompt_name": null}' >st/config_sentence_transformers.json
embeds 'no prompt is named' mean 1 '3 4' st 'w3 w4'
embeds 'prompt_name=' mean 1 '6 3 4,6 5' st 'w3 w4' w5 prompt_name=query
embeds 'an empty prompt' mean 1 '3 4' st 'w3 w4' prompt_name=passage
echo '{"prompts": {"query": "w6 "}, "default_prompt_name": "query"}' >st/config_sentence_transformers.json
embeds 'default_prompt_name' mean 1 '6 3 4,6 5' st 'w3 w4' w5
embeds 'an empty prompt_name= leaves it out' mean 1 '3 4' st 'w3 w4' prompt_name=
for name in passage 'no such'; do
	"$yoke" embed st w3 "prompt_name=$name" >out 2>err
	[ $? -eq 1 ] && [ ! -s out ] && grep -q "$name" err
	verdict "prompt_name=$name is refused: $(head -n 1 err)" $?
done
echo '{"pooling_mode_mean_tokens": true, "include_prompt": false}' >st/1_Pooling/config.json
"$yoke" embed st w3 >out 2>err
[ $? -eq 1 ] && [ ! -s out ] && grep -q include_prompt err
verdict 'pooling without the prompt is refused' $?
embeds '.. but not where no prompt is used' mean 1 '3 4' st 'w3 w4' prompt_name=

# ---- formats ----

"$yoke" embed model prompts=lines >text 2>err && "$yoke" embed model prompts=lines format=csv >csv 2>err &&
	[ "$(head -n 1 csv)" = v0,v1,v2,v3 ] && tail -n +2 csv | tr , ' ' | cmp - text
verdict 'csv: a header, and the numbers of the text' $?
"$yoke" embed model prompts=lines format=json >json 2>err && sed 's/.*\[//; s/\].*//; s/,//g' json | cmp - text &&
	[ "$(sed -n 3p json | sed 's/, "vector".*//')" = '{"text": "w6 w5 w4 unknown"' ]
verdict 'json: an object in each line' $?
"$yoke" embed model prompts=lines format=npy out=v.npy >out 2>err && [ ! -s out ] && [ "$(wc -c <v.npy)" -eq $((128 + 3 * 4 * 4)) ] &&
	head -c 128 v.npy | tail -c 118 | grep -q "'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), " &&
	tail -c 48 v.npy | od -A n -t f4 -w16 -v | tr -s ' ' | sed 's/^ //' >out && near out text
verdict 'npy: an array of NumPy' $?
"$yoke" data info v.npy >out 2>err
verdict 'which yoke reads' $?
"$yoke" embed model 'w3 w4' w5 w6 similarity=1 >out 2>err && "$yoke" embed model 'w3 w4' w5 w6 normalize=1 >text 2>err &&
	awk '{ for (j = 1; j <= 4; j++) v[NR, j] = $j } END {
		for (i = 1; i <= NR; i++) {
			for (k = 1; k <= NR; k++)
				printf "%.9g%s", v[i, 1] * v[k, 1] + v[i, 2] * v[k, 2] + v[i, 3] * v[k, 3] + v[i, 4] * v[k, 4], k < NR ? " " : "\n"
		}
	}' text >want && near out want
verdict 'similarity=1: cosines of all pairs' $?

# ---- bad input ----

# refused STATUS WORD ARGUMENT ..: nothing on standard output, and an error that contains the word
refused()
{
	status=$1 word=$2
	shift 2
	"$yoke" embed "$@" >out 2>err </dev/null
	got=$?
	[ "$got" -eq "$status" ] && [ ! -s out ] && grep -q "$word" err
	verdict "$*: exit $status: $(head -n 1 err)" $?
}
printf 'w3\nw4\nw\377 w5\n' >latin
refused 1 'latin:3' model prompts=latin
printf 'w3\nw\000 w5\n' >zero
refused 1 zero model prompts=zero
refused 1 UTF-8 model "$(printf 'w\377')"
refused 1 empty model prompts=/dev/null
refused 1 'standard input' model
refused 1 nosuch nosuch w3
refused 1 lines2 model prompts=lines2
refused 2 poling model w3 poling=cls
refused 2 pooling model w3 pooling=sum
refused 2 format model w3 format=xml
refused 2 out model w3 format=npy
refused 2 normalize model w3 normalize=2
refused 2 twice model w3 pooling=cls pooling=mean
refused 2 model prompt=w3
refused 1 context model w3 context=none
refused 1 dtype model w3 dtype=f31
refused 1 v.npy model w3 format=npy out=v.npy
refused 1 nowhere model w3 out=nowhere/v
cp v.npy kept
refused 1 latin:3 model prompts=latin format=npy out=v.npy overwrite=1
cmp v.npy kept
verdict 'and what was there is untouched' $?
"$yoke" embed model w3 format=npy out=v.npy overwrite=1 2>err && ! cmp -s v.npy kept
verdict 'overwrite=1 replaces it' $?

cd .. && rm -rf embed.work
echo "1..$count"
