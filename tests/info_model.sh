#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke info MODEL: what it prints of a Hugging Face folder and of a GGUF file is what their
# tensors' shapes imply; files that describe no model are refused.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace info_model
umask 022

vocab=61 width=32 layers=2 heads=4 kv_heads=2 hidden=64 context=48
head_dim=$((width / heads))
kv_rows=$((kv_heads * head_dim))
matrices=$((vocab * width + layers * (2 * width * width + 2 * kv_rows * width + 3 * hidden * width)))
vectors=$(((2 * layers + 1) * width))

# Tensors, one per line: name in a folder, name in GGUF, rows (0: a vector), columns.
awk -v v=$vocab -v w=$width -v n=$layers -v k=$kv_rows -v h=$hidden 'BEGIN {
	print "model.embed_tokens", "token_embd", v, w
	print "model.norm", "output_norm", 0, w
	for (i = 0; i < n; i++) {
		a = "model.layers." i "."; b = "blk." i "."
		print a "input_layernorm", b "attn_norm", 0, w
		print a "post_attention_layernorm", b "ffn_norm", 0, w
		print a "self_attn.q_proj", b "attn_q", w, w
		print a "self_attn.k_proj", b "attn_k", k, w
		print a "self_attn.v_proj", b "attn_v", k, w
		print a "self_attn.o_proj", b "attn_output", w, w
		print a "mlp.gate_proj", b "ffn_gate", h, w
		print a "mlp.up_proj", b "ffn_up", h, w
		print a "mlp.down_proj", b "ffn_down", w, h
	}
}' >tensors

# value OBJECT KEY: a number, word or null of the output, by jq if there is one, else by python3
value()
{
	if command -v jq >/dev/null 2>&1; then
		jq -c ".$2" "$1"
	else
		python3 -c "import json, sys
o = json.load(open(sys.argv[1]))
for k in sys.argv[2].replace('[', '.').replace(']', '').split('.'):
    o = o[int(k) if k.isdigit() else k]
print(json.dumps(o))" "$1" "$2"
	fi
}
if ! command -v jq >/dev/null 2>&1 && ! python3 -c '' 2>/dev/null; then
	echo '1..0 # SKIP neither jq nor python3'
	exit 0
fi

# is WHAT KEY WANTED: one value of out.json
is()
{
	got=$(value out.json "$2")
	verdict "$1: $2 is $3" "$([ "$got" = "$3" ] || echo "got $got")"
}

# describes WHAT MODEL: the command succeeds in both forms, and prints what the configuration says
describes()
{
	"$yoke" info "$2" --json >out.json 2>err && "$yoke" info "$2" >out 2>>err
	status=$?
	verdict "$1: described" "$([ $status -eq 0 ] && [ ! -s err ] || { echo "status $status"; cat err; })"
	is "$1" family '"llama"'
	is "$1" parameters $((matrices + vectors))
	is "$1" layers $layers
	is "$1" width $width
	is "$1" heads $heads
	is "$1" kv_heads $kv_heads
	is "$1" head_dim $head_dim
	is "$1" hidden $hidden
	is "$1" context $context
	is "$1" vocabulary $vocab
	is "$1" memory.weights_f32 $((4 * (matrices + vectors)))
	is "$1" memory.kv_f16 $((2 * 2 * layers * context * kv_rows))
	is "$1" memory.kv_f32 $((4 * 2 * layers * context * kv_rows))
	verdict "$1: the text has the number of parameters" "$(grep -q "^parameters *$((matrices + vectors))\$" out || { echo 'got'; cat out; })"
}

# has WHAT INDEX FORMAT TENSORS ELEMENTS BYTES: one of the formats
has()
{
	is "$1" "formats[$2].format" "\"$3\""
	is "$1" "formats[$2].tensors" "$4"
	is "$1" "formats[$2].elements" "$5"
	is "$1" "formats[$2].bytes" "$6"
	verdict "$1: the text has the row of $3" "$(tr -s ' ' <out | grep -q "^ $3 $4 $5 $6\$" || { echo 'got'; cat out; })"
}

# refuses WHAT STATUS ARGUMENT ..
refuses()
{
	what=$1 want=$2
	shift 2
	"$yoke" info "$@" >out 2>err
	status=$?
	verdict "$what" "$([ $status -eq "$want" ] && [ ! -s out ] && [ -s err ] || { echo "status $status"; cat out err; })"
}

# ---- a folder: matrices in bf16, vectors in f32 ----

# folder NAME LAYERS: the configuration may claim other layers than the files have
folder()
{
	mkdir "$1"
	cat >"$1/config.json" <<-EOF
	{"model_type": "llama", "vocab_size": $vocab, "hidden_size": $width, "num_hidden_layers": $2,
	"num_attention_heads": $heads, "num_key_value_heads": $kv_heads, "intermediate_size": $hidden,
	"max_position_embeddings": $context, "rms_norm_eps": 1e-5, "hidden_act": "silu",
	"rope_theta": 10000.0, "tie_word_embeddings": true}
	EOF
	awk '{
		bytes = $3 ? 2 * $3 * $4 : 4 * $4
		printf "%s\"%s.weight\":{\"dtype\":\"%s\",\"shape\":[%s%d],\"data_offsets\":[%d,%d]}", NR == 1 ? "{" : ",",
			$1, $3 ? "BF16" : "F32", $3 ? $3 "," : "", $4, at, at + bytes
		at += bytes
	} END { printf "}" }' tensors >header
	size=$(wc -c <header)
	# shellcheck disable=SC2059 # octal escapes
	printf "$(awk -v n="$size" 'BEGIN { for (i = 0; i < 8; i++) { printf "\\%03o", n % 256; n = int(n / 256) } }')" >length
	head -c $((2 * matrices + 4 * vectors)) /dev/zero >data
	cat length header data >"$1/model.safetensors"
}

folder folder $layers
describes folder folder
has folder 0 BF16 $((7 * layers + 1)) $matrices $((2 * matrices))
has folder 1 F32 $((2 * layers + 1)) $vectors $((4 * vectors))
is folder memory.weights_stored $((2 * matrices + 4 * vectors))
is folder tokenizer null

cat >folder/tokenizer.json <<'EOF'
{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"},
"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1}}}
EOF
"$yoke" info folder --json >out.json
is 'folder with a tokenizer' tokenizer.kind '"WordLevel"'
is 'folder with a tokenizer' tokenizer.tokens 2
is 'folder with a tokenizer' tokenizer.chat_template false
echo '{' >folder/tokenizer.json
"$yoke" info folder --json >out.json
is 'folder with a damaged tokenizer' parameters $((matrices + vectors))
verdict 'folder with a damaged tokenizer: the reason' "$(value out.json tokenizer.error | grep -q tokenizer.json || { echo 'got'; cat out.json; })"

# ---- GGUF: matrices in Q8_0, 34 bytes for 32 elements ----

awk -v v=$vocab -v w=$width -v n=$layers -v heads=$heads -v kv=$kv_heads -v h=$hidden -v c=$context '
	function le(x, bytes, i) { for (i = 0; i < bytes; i++) { printf "\\%03o", x % 256; x = int(x / 256) } }
	function text(s) { le(length(s), 8); gsub(/%/, "%%", s); printf "%s", s }
	function key(name, type) { text(name); le(type, 4) }
	function number(name, x) { key(name, 4); le(x, 4) }
	function word(name, s) { key(name, 8); text(s) }
	{ name[NR] = $2 ".weight"; rows[NR] = $3; columns[NR] = $4 }
	END {
		printf "GGUF"
		le(3, 4); le(NR, 8); le(13, 8)
		word("general.architecture", "llama")
		number("llama.block_count", n)
		number("llama.embedding_length", w)
		number("llama.context_length", c)
		number("llama.attention.head_count", heads)
		number("llama.attention.head_count_kv", kv)
		number("llama.feed_forward_length", h)
		key("llama.attention.layer_norm_rms_epsilon", 6); printf "\\254\\305\\047\\067" # 1e-5
		word("tokenizer.ggml.model", "gpt2")
		word("tokenizer.ggml.pre", "gpt-2")
		word("tokenizer.chat_template", "{{ messages }}")
		key("tokenizer.ggml.tokens", 9); le(8, 4); le(v, 8)
		for (i = 0; i < v; i++)
			text("t" i)
		key("tokenizer.ggml.merges", 9); le(8, 4); le(0, 8)
		for (i = 1; i <= NR; i++) {
			text(name[i])
			le(rows[i] ? 2 : 1, 4); le(columns[i], 8)
			if (rows[i])
				le(rows[i], 8)
			le(rows[i] ? 8 : 0, 4); le(at, 8)
			bytes = rows[i] ? rows[i] * columns[i] / 32 * 34 : 4 * columns[i]
			at += int((bytes + 31) / 32) * 32
		}
	}' tensors >escapes
# shellcheck disable=SC2059 # octal escapes
printf "$(cat escapes)" >header
head -c $((31 - ($(wc -c <header) + 31) % 32)) /dev/zero >padding
head -c $((matrices / 32 * 34 + 4 * vectors + 32 * 21)) /dev/zero >data
cat header padding data >model.gguf

describes GGUF model.gguf
has GGUF 0 Q8_0 $((7 * layers + 1)) $matrices $((matrices / 32 * 34))
has GGUF 1 F32 $((2 * layers + 1)) $vectors $((4 * vectors))
is GGUF memory.weights_stored $((matrices / 32 * 34 + 4 * vectors))
is GGUF tokenizer.kind '"BPE"'
is GGUF tokenizer.tokens $vocab
is GGUF tokenizer.chat_template true

# ---- what is refused ----

folder claims 4000
mkdir models empty
refuses 'a configuration of far more weights than the files have' 1 claims
refuses 'a folder without a model' 1 empty
refuses 'a file of another kind' 1 tensors
refuses 'a file that does not exist' 1 ./none.gguf
refuses 'a word that is no file' 2 none
refuses 'two models' 2 folder model.gguf
refuses 'a model and --env' 2 --env folder
rmdir models
cp -r folder models
verdict 'a folder with the name of a subject' "$("$yoke" info ./models >out 2>&1 && grep -q '^family *llama' out || { echo 'got'; cat out; })"

cd .. && rm -rf info_model.work
echo "1..$count"
