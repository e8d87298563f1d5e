#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train tokenizer=FILE and tokenizer=bpe: the tokenizer is kept with the run, and resume, generate,
# eval and export use it.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace train_tokenizer
export YOKE_BACKEND=cpu
small="layers=1 heads=2 embed=32 context=16 batch=8 lr=1e-2 warmup=5 valid=0.2 report=0 progress=0 log_every=1"

# refused STATUS WORD KEY=VALUE ..: exit status and one line that contains the word; no model is left
refused()
{
	status=$1 word=$2
	shift 2
	rm -rf no
	"$yoke" train "data=${data:-text}" out=no steps=2 $small "$@" >out 2>err
	got=$?
	[ "$got" -eq "$status" ] && grep -q "$word" err && [ ! -e no/manifest.json ]
	verdict "$*: exit $status, '$word': $(tail -n 1 err)" $?
}

# trained OUT KEY=VALUE ..: trains
trained()
{
	out=$1
	shift
	"$yoke" train data=text out="$out" $small "$@" >out 2>err || { cat err; return 1; }
}

easy_text 200 >text
if ! "$yoke" train data=text out=b tokenizer=bpe vocab=300 steps=4 save_every=2 $small >out 2>err; then
	grep -q libonig err
	verdict "without Oniguruma, tokenizer=bpe names the missing library" $?
	echo "1..$count"
	exit
fi

# ---- bpe ----

[ -s b/tokenizer/tokenizer.json ] && [ -s b/tokenizer/tokenizer_config.json ]
verdict 'tokenizer=bpe leaves tokenizer.json in the folder of the model' $?
"$yoke" generate b prompt=line tokens=8 >out 2>err && grep -q '^line' out
verdict 'generate uses it' $?
"$yoke" eval b data=text >out 2>err && grep -q bits_per_byte out
verdict 'eval uses it, and knows the bytes of its tokens' $?
trained c tokenizer=bpe vocab=300 steps=2 schedule=constant && trained c tokenizer=bpe vocab=300 steps=4 resume=1 schedule=constant &&
	trained d tokenizer=bpe vocab=300 steps=4 schedule=constant && cmp c/model.*.safetensors d/model.*.safetensors &&
	cmp c/tokenizer/tokenizer.json d/tokenizer/tokenizer.json
verdict 'a resumed run has the bits of one that was not interrupted' $?
trained e tokenizer=bpe vocab=300 steps=4 schedule=constant threads=1 && cmp d/tokenizer/tokenizer.json e/tokenizer/tokenizer.json
verdict 'the vocabulary does not depend on the number of threads' $?
"$yoke" train data=text out=c resume=1 steps=6 $small tokenizer=bpe vocab=400 >out 2>err
[ $? -eq 1 ] && grep -q vocab=300 err
verdict "another vocabulary is refused when resuming: $(head -n 1 err)" $?
"$yoke" train data=text out=c resume=1 steps=6 $small tokenizer=byte >out 2>err
[ $? -eq 1 ] && grep -q tokenizer=bpe err
verdict "another tokenizer is refused when resuming: $(head -n 1 err)" $?
trained f tokenizer=bpe vocab=100000 steps=2 && grep -q 'vocab is [0-9]' err
verdict "a text that is too small for vocab gives a note: $(grep 'vocab is' err)" $?

# several files, and records of .jsonl files, are texts of their own
mkdir many && head -n 90 text >many/a.txt && sed 's/.*/{"text": "&"}/' text >many/b.jsonl
"$yoke" train data=many field=text out=m tokenizer=bpe steps=2 $small >out 2>err
verdict 'folders and .jsonl files are read for a vocabulary' $?

# ---- files ----

trained g tokenizer=d/tokenizer/tokenizer.json steps=4 schedule=constant && cmp d/model.*.safetensors g/model.*.safetensors
verdict 'the tokenizer.json of a run gives another run the same bits' $?
trained h tokenizer=d steps=4 schedule=constant && cmp d/model.*.safetensors h/model.*.safetensors
verdict 'so does the folder of the run' $?
mkdir elsewhere
(cd elsewhere && "$yoke" train data=../text out=../g resume=1 steps=6 $small schedule=constant) >out 2>err
verdict 'a run is resumed from another directory' $?
(cd elsewhere && cp ../d/tokenizer/tokenizer.json . && "$yoke" train data=../text out=../i steps=2 tokenizer=tokenizer.json $small &&
	rm tokenizer.json && "$yoke" train data=../text out=../i resume=1 steps=4 $small) >out 2>err && "$yoke" generate i tokens=2 >out 2>err
verdict 'a run does not need the file that it was started with' $?
for file in spm_bpe.model spm_unigram.model llama2.json bert.json; do
	trained "j-$file" "tokenizer=$tests/models/$file" steps=2 && "$yoke" generate "j-$file" prompt=line tokens=2 >out 2>err &&
		"$yoke" eval "j-$file" data=text >out 2>err
	verdict "tokenizer=$file: train, generate, eval" $?
done
"$yoke" export d out=d.gguf format=gguf >out 2>err && trained k tokenizer=d.gguf steps=4 schedule=constant &&
	cmp d/model.*.safetensors k/model.*.safetensors && "$yoke" generate k tokens=2 >out 2>err
verdict 'a GGUF file has a tokenizer for another run' $?
"$yoke" export k out=k-hf format=hf >out 2>err && "$yoke" generate k-hf prompt=line tokens=6 temperature=0 >a 2>err &&
	"$yoke" generate d.gguf prompt=line tokens=6 temperature=0 >b.txt 2>err && "$yoke" generate d prompt=line tokens=6 temperature=0 >c.txt 2>err &&
	cmp a b.txt && cmp a c.txt
verdict 'exports have the tokenizer, and continue a text as the run does' $?

# ---- special tokens ----

# words BOS: a tokenizer of words that puts BOS before each text
words()
{
	echo '{"added_tokens": [{"id": 0, "content": "<s>", "special": true}], "pre_tokenizer": {"type": "WhitespaceSplit"},'
	echo '"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<s>": 0, "<unk>": 1, "line": 2, "easy": 3, "of": 4, "a": 5}}'
	[ "$1" = no ] || echo ', "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
		{"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
		"special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}'
	echo '}'
}
words no >bare.json && words yes >bos.json && trained s tokenizer=bare.json steps=6 && trained t tokenizer=bos.json steps=6 &&
	cmp s/model.*.safetensors t/model.*.safetensors && "$yoke" generate s prompt='line of' tokens=8 >a 2>err &&
	"$yoke" generate t prompt='line of' tokens=8 >b.txt 2>err && cmp a b.txt
verdict 'neither the training text nor a prompt gets special tokens' $?

# ---- errors ----

refused 2 byte tokenizer=bite
refused 1 'x/y' tokenizer=x/y
refused 1 text tokenizer=text
refused 1 vocab tokenizer=d/tokenizer/tokenizer.json vocab=300
refused 1 257 tokenizer=bpe vocab=256
echo '{' >broken.json
refused 1 broken.json tokenizer=broken.json
mkdir empty
refused 1 empty tokenizer=empty
printf 'a text\377 in no encoding, which is long enough for some windows of a small context' >latin.txt
data=latin.txt refused 1 latin.txt tokenizer=bpe
"$yoke" train data=- out=no tokenizer=bpe steps=2 $small <text >out 2>err
[ $? -eq 1 ] && grep -q 'standard input' err
verdict "standard input is not read twice: $(head -n 1 err)" $?
echo >>d/tokenizer/tokenizer.json
"$yoke" generate d tokens=2 >out 2>err
[ $? -eq 1 ] && grep -q 'd/tokenizer' err
verdict "a tokenizer that was changed is refused: $(head -n 1 err)" $?

cd .. && rm -rf train_tokenizer.work
echo "1..$count"
