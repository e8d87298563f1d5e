#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the command: its output, its exit status, and the one-line errors on stderr for bad input.
set -u
. "${srcdir:-.}/tests/yoke.sh"
work=$(mktemp -d) || exit 99
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 99
count=0

result() # STATUS NAME
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		sed 's/^/# out: /' out.txt | head -n 5
		sed 's/^/# err: /' err.txt | head -n 5
	fi
}

# skipped NAME WHY
skipped()
{
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

run() # COMMAND ..: its output and status
{
	"$@" >out.txt 2>err.txt </dev/null
	status=$?
}

# prints NAME PATTERN COMMAND ..: status 0, empty stderr, a line that matches
prints()
{
	name=$1 pattern=$2
	shift 2
	run "$@"
	[ $status -eq 0 ] && [ ! -s err.txt ] && grep -q -e "$pattern" out.txt
	result $? "$name"
}

# refuses NAME STATUS PATTERN COMMAND ..: that status, empty stdout, one line on stderr
refuses()
{
	name=$1 want=$2 pattern=$3
	shift 3
	run "$@"
	[ $status -eq "$want" ] && [ ! -s out.txt ] && [ "$(wc -l <err.txt)" -eq 1 ] &&
		grep -q -e '^yoke' err.txt && grep -q -e "$pattern" err.txt
	result $? "$name"
}

# ---- help, version, usage ----

prints 'version' '^yoke [0-9][0-9]*\.[0-9]' "$yoke" --version
prints 'help' '^  train ' "$yoke" help
prints '--help' '^  train ' "$yoke" --help
for command in $("$yoke" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
	prints "help $command" "^usage: yoke $command" "$yoke" help $command
	"$yoke" help $command >help.txt
	for asked in --help -h; do
		prints "$command $asked" "^usage: yoke $command" "$yoke" $command $asked
		cmp -s help.txt out.txt
		result $? "$command $asked: the same"
	done
	prints "$command --version" '^yoke [0-9]' "$yoke" $command --version
done
prints '-h' '^  train ' "$yoke" -h
slip='[?!,;:]\.( |$)|[a-z]\.\.$| [,;:]|(^|[^0-9.])1 [a-z]+[^s]s( |$)|(^| )(the the|of of|to to|is is|a a)( |$)'
for command in '' $("$yoke" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
	"$yoke" help $command | grep -nE "$slip" >slips.txt
	[ "$command" != train ] || "$yoke" help train all | grep -nE "$slip" >>slips.txt
	[ ! -s slips.txt ] || sed 's/^/# /' slips.txt
	[ ! -s slips.txt ]
	result $? "the help of '$command' has no slips of punctuation and number"
done
prints '--version' '^yoke [0-9][0-9]*\.[0-9]' "$yoke" --version
prints 'help among other arguments' '^usage: yoke train' "$yoke" train data=none --help lr=x
for subject in 'check device' 'plan scaling' 'bench ranks'; do
	prints "help $subject" "^usage: yoke $subject" "$yoke" help $subject
	cp out.txt help.txt
	prints "$subject --help" "^usage: yoke $subject" "$yoke" $subject --help
	cmp -s help.txt out.txt
	result $? "$subject --help: the same as its help"
done
[ "$("$yoke" help | grep -c '^  [a-z]')" -le 20 ]
result $? 'there are at most 20 commands'
refuses 'an unknown subject' 2 "did you mean 'precision'" "$yoke" check precison
probe=$(dirname "$yoke")/yoke-probe
if [ -x "$probe" ]; then
	prints 'yoke-probe --help' '^usage: yoke-probe' "$probe" --help
	prints 'yoke-probe --version' '^yoke-probe [0-9]' "$probe" --version
else
	skipped 'yoke-probe --help' 'it is not beside yoke'
fi
# train_keys [all]: the names of the keys that the help of train lists, sorted
train_keys()
{
	"$yoke" help train "$@" | awk '/^keys/ { on = 1; next } on && /^  / { print $1 }' | LC_ALL=C sort
}
for level in '' all; do
	"$yoke" help train $level | sed -n '/^keys/,$s/^\([a-z]*\):$/\1/p' | tr '\n' ' ' >groups.txt
	[ "$(cat groups.txt)" = 'model data optimizer schedule precision memory ranks logging run ' ]
	result $? "help train $level lists keys in groups: $(cat groups.txt)"
done
train_keys >basic.txt
train_keys all >all.txt
[ "$(wc -l <basic.txt)" -eq 20 ] && [ -z "$(LC_ALL=C comm -23 basic.txt all.txt)" ]
result $? "help train lists the 20 keys that are changed most often: $(tr '\n' ' ' <basic.txt)"
"$yoke" setup all.env >out.txt 2>&1
sed -n '/^# ---- train/,/^# ---- generate/s/^#*\([A-Z][A-Z0-9_]*\)=.*/\1/p' all.env | tr '[:upper:]' '[:lower:]' | LC_ALL=C sort >set.txt
[ "$(wc -l <all.txt)" -gt 100 ] && diff set.txt all.txt
result $? 'help train all lists each key of the file that setup writes, once'
for command in plan 'plan device' 'check precision' 'bench ablate' check 'check model'; do
	prints "help $command refers to that of train" 'yoke help train' "$yoke" help $command # words
	! grep -qE '^keys|^  (layers|lr) ' out.txt
	result $? 'and does not list its keys again'
	refuses "help $command all" 2 'no list of keys' "$yoke" help $command all
done
prints 'help train all has keys with defaults' '^  weight_decay *auto ' "$yoke" help train all
[ "$(awk '/^keys/ { on = 1; next } on && /^  / { match($0, /^  [a-z_0-9]* +[^ ]+ +/); print RLENGTH }' out.txt |
	sort -u | wc -l)" -eq 1 ]
result $? 'its columns are straight'
prints 'help is no wider than a terminal' '^  tune  *find' "$yoke" help
awk 'length > 80 { bad = 1; print "# " $0 } END { exit bad }' out.txt
result $? 'all of it'
run "$yoke"
[ $status -eq 2 ] && [ ! -s out.txt ] && grep -q '^usage: yoke' err.txt
result $? 'no command: the overview on stderr, status 2'
refuses 'unknown command' 2 "'trian'; did you mean 'train'" "$yoke" trian
refuses 'nothing like it' 2 "unknown command 'qqqqqqqq'" "$yoke" qqqqqqqq
refuses 'help for an unknown command' 2 "did you mean 'bench'" "$yoke" help bnech
refuses 'help for two' 2 'one command' "$yoke" help train eval
refuses 'unknown argument of info' 2 "'--jsno'" "$yoke" info --jsno
refuses 'unknown suite' 2 "did you mean 'contract'; there are contract, map, rows, attention, resolvent, train, memory, launches, scaling, batch" "$yoke" bench contrct
refuses 'a suite like none' 2 "no suite 'qqqqqqqq'; there are contract, map" "$yoke" bench qqqqqqqq
refuses 'a suite for conform' 2 "'qqqqqqqq' is no op of conform; there are map, reduce.*, memory" "$yoke" check device --ops qqqqqqqq
refuses 'conform of an unknown op' 2 "did you mean 'softmax'" "$yoke" check device --ops map,sotfmax
refuses 'conform of an unknown dtype' 2 "'map.f33': map has no cases of that dtype; did you mean 'f32'; there are f32, " \
	"$yoke" check device --ops map.f33
refuses 'conform of an unknown device' 1 'no such backend' "$yoke" check device nochip
refuses 'conform --seed without a number' 2 "got 'x'" "$yoke" check device --seed x
refuses 'bench --html without a file' 2 '--html .*file' "$yoke" bench --html

# A file that is not a configuration was intended as something else.
printf 'some text\nof a book\n' >'a book.txt'
mkdir -p notes && printf 'lrr=3\n' >typo.env && printf '\n# nothing\n' >empty.env
refuses 'train with a text' 2 "did you mean data='a book.txt'" "$yoke" train 'a book.txt'
refuses 'train with a folder' 2 'did you mean data=notes' "$yoke" train notes
refuses 'plan with a text' 2 "did you mean data='a book.txt'" "$yoke" plan 'a book.txt'
refuses 'ablate with a text' 2 "did you mean data='a book.txt'" "$yoke" bench ablate 'a book.txt' toggles=amsgrad=1
refuses 'advise with a text' 2 "did you mean data='a book.txt'" "$yoke" plan device 'a book.txt'
refuses 'eval with a text' 2 "did you mean data='a book.txt'" "$yoke" eval model 'a book.txt'
refuses 'generate with a text' 2 "did you mean prompts='a book.txt'" "$yoke" generate model 'a book.txt'
refuses 'a key with a slip is one' 2 "typo.env:1: .*'lrr'" "$yoke" train typo.env
refuses 'no file' 2 "'nothing': neither key=value nor " "$yoke" train nothing

# ---- info ----

prints 'info: the CPU' '^  cpu:0 .* units .* MiB' "$yoke" info
units=$("$yoke" info | sed -n 's/^  cpu:0 .* \([0-9]*\) units .*/\1/p')
if [ "$units" -gt 1 ]; then
	prints 'info: threads, by the setting' ' 1 units .*threads bound by setting$' \
		env YOKE_THREADS=1 "$yoke" info
else
	skipped 'info: threads, by the setting' 'there is one processor'
fi
if [ "$units" -gt 1 ] && command -v taskset >/dev/null 2>&1; then
	first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
	prints 'info: threads, by affinity' ' 1 units .*threads bound by affinity$' \
		taskset -c "$first" "$yoke" info
else
	skipped 'info: threads, by affinity' 'one processor, or no taskset'
fi
prints 'info --env: a setting with type, default, value, origin, help' \
	'^YOKE_REPLAY  *bool  *1  *1  *default  *[a-z]' "$yoke" info --env
prints 'info --env: from the environment' '^YOKE_REPLAY  *bool  *1  *0  *environment ' \
	env YOKE_REPLAY=0 "$yoke" info --env
"$yoke" info --env | awk 'NR > 1 { print $1 }' >plain.txt
"$yoke" info --env all | awk 'NR > 1 { print $1 }' >all.txt
[ -z "$(LC_ALL=C comm -23 plain.txt all.txt)" ] && [ "$(LC_ALL=C comm -13 plain.txt all.txt | tr '\n' ' ')" = \
	'YOKE_ARENA YOKE_DIST_LINK YOKE_DIST_PRETEND YOKE_DONATE YOKE_FIT_CHUNK YOKE_FUSE YOKE_PLAN_CLONES YOKE_PLAN_CSE YOKE_PLAN_HASH YOKE_PLAN_NAMED YOKE_POOL YOKE_TELEMETRY_ROOT ' ]
result $? "info --env all adds the settings for debugging: $(LC_ALL=C comm -13 plain.txt all.txt | tr '\n' ' ')"
refuses 'info all without --env' 2 "'all'" "$yoke" info all
prints 'info --env: threads' '^YOKE_THREADS  *int ' "$yoke" info --env
prints 'info --json' '"id": "cpu:0"' "$yoke" info --json
if python3 -c '' 2>/dev/null; then
	for form in '' --env '--env all'; do
		"$yoke" info --json $form 2>err.txt | python3 -c 'import json, sys; json.load(sys.stdin)'
		result $? "info --json $form is JSON"
	done
else
	skipped 'info --json is JSON' 'no python3 to read it with'
fi
if [ -w /dev/full ]; then
	for arguments in help 'train --help' info 'info --env' 'info --json' '--version'; do
		"$yoke" $arguments >/dev/full 2>err.txt
		[ $? -eq 1 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'standard output' err.txt
		result $? "$arguments: stdout that is full"
	done
else
	skipped 'stdout that is full' 'no /dev/full'
fi

# ---- what train refuses ----

i=0
while [ $i -lt 60 ]; do
	echo "line $i: the quick brown fox jumps over the lazy dog"
	i=$((i + 1))
done >text.txt
printf 'abc' >short.txt
: >empty.txt
printf 'a\0b' >binary.bin
printf '  \n\t\n' >blank.txt
printf 'caf\351 au lait' >latin.txt
mkdir folder
small='layers=1 heads=1 embed=8 context=8 batch=2 steps=2 warmup=1 log_every=1'

# shellcheck disable=SC2086 # words
printf '%s\n' $small data=text.txt out=none >base.env

# bad NAME STATUS PATTERN key=value ..
bad()
{
	name=$1 want=$2 pattern=$3
	shift 3
	refuses "$name" "$want" "$pattern" "$yoke" train base.env "$@"
}

bad 'unknown key' 2 "'layer'; did you mean 'layers'" layer=3
bad 'key of another command' 2 "'temperature'" temperature=1
bad 'bad number' 2 'layers=x: must be a whole number from 1' layers=x
bad 'number out of range' 2 'dropout=2: must be a number from 0 to 0.99' dropout=2
bad 'bad word' 2 'schedule=cos: must be one of: cosine constant' schedule=cos
bad 'bad precision' 2 'fp32' precision=fp8
bad 'heads that do not divide embed' 1 'heads=3 does not divide embed=8' heads=3
bad 'no data' 1 'data=FILE' data=
bad 'missing data' 1 'nowhere.txt' data=nowhere.txt
bad 'empty data' 1 'empty.txt' data=empty.txt
bad 'binary data' 1 'binary.bin.*NUL' data=binary.bin
bad 'a folder without text' 1 'folder' data=folder
bad 'text shorter than a window' 1 'short.txt: 3 tokens.*18' data=short.txt
bad 'missing config file' 2 'nowhere.env' nowhere.env
bad 'unknown backend' 1 "nonesuch" backend=nonesuch
bad 'nothing to resume' 1 'none' resume=1
if [ "$(id -u)" -ne 0 ]; then
	cp text.txt secret.txt
	chmod 0 secret.txt
	bad 'unreadable data' 1 'secret.txt' data=secret.txt
else
	skipped 'unreadable data' 'root reads everything'
fi
bad 'an out that is a file' 1 'text.txt' out=text.txt
bad 'an out inside a file' 1 'text.txt' out=text.txt/model
printf 'LAYERS=2\nHEDAS=2\n' >bad.env
bad 'unknown key in a file' 2 "bad.env:2: unknown key 'HEDAS'; did you mean 'heads'" bad.env
printf 'LAYERS=${NOWHERE}\n' >bad.env
bad 'unknown variable in a file' 2 'bad.env:1: ${NOWHERE}' bad.env
bad 'more memory than there is: a model' 1 'parameters .* at least.* smaller' layers=1000 embed=65536
bad 'more memory than there is: a batch' 1 'at least.* has [^;]*; .*fits' batch=1048576 embed=4096
bad 'a window longer than the text' 1 'too few.*smaller context' context=1048576
bad 'a key given twice' 2 "'layers=x' .*'layers=2'" layers=2 layers=x
bad 'an empty list of data' 1 'empty name' data=,
bad 'data that has no end' 1 'neither a file nor a folder' data=/dev/zero
bad 'a config file that is a folder' 2 'Is a directory' folder
bad 'a config file that is binary' 2 'NUL byte' binary.bin
bad 'a config file that is a program' 2 'more than 1048576' "$yoke"
bad 'no word at all' 1 'too few' tokenizer=word data=blank.txt
bad 'words that are not UTF-8' 1 'latin.txt.*not UTF-8.*tokenizer=byte' tokenizer=word data=latin.txt
bad 'a folder that cannot be made' 1 'cannot make folder' out=/proc/none
bad 'a bad word for profile' 1 'profile=2: .* 0, 1, or five numbers' profile=2
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed && chmod 500 closed
	bad 'an out that cannot be written' 1 'closed' out=closed
	chmod 700 closed
else
	skipped 'an out that cannot be written' 'root writes everywhere'
fi
[ ! -e none ]
result $? 'nothing of it left a folder behind'
refuses 'unknown backend by the environment' 1 'nonesuch' \
	env YOKE_BACKEND=nonesuch "$yoke" train $small data=text.txt out=none
[ ! -e none ]
result $? 'and none then'

# ---- a model, and what is refused of a damaged one ----

printf '# small\nLAYERS=1\nHEADS=1\nEMBED=8\nCONTEXT=8\nBATCH=2\nOUT="${WHERE}/model"\n' >small.env
run env WHERE="$work" "$yoke" train small.env steps=2 warmup=1 data=text.txt
[ $status -eq 0 ] && [ -s model/manifest.json ] && [ -s model/metrics.jsonl ]
result $? 'train with a file and ${VAR}'
prints 'generate' '^line' "$yoke" generate model prompt=line tokens=8 seed=3
prints 'eval' '^loss  *[0-9]' "$yoke" eval model data=text.txt
refuses 'a model that is there already' 1 'resume=1' \
	env WHERE=x "$yoke" train small.env data=text.txt out=model
refuses 'a model that is a file' 1 'text.txt' "$yoke" generate text.txt
refuses 'a model without a name' 2 'no model' "$yoke" generate ''
prints 'a prompt that is empty' '.' "$yoke" generate model prompt= tokens=20
refuses 'tokens below 0' 2 'tokens=-1' "$yoke" generate model tokens=-1
refuses 'a temperature that is no number' 2 'temperature=nan' "$yoke" generate model temperature=nan
refuses 'eval of a program' 1 'is not text' "$yoke" eval model data="$yoke"
refuses 'eval of a folder without text' 1 'folder' "$yoke" eval model data=folder
refuses 'eval of nothing' 1 'nowhere' "$yoke" eval model data=nowhere
prints 'no tokens' '^line$' "$yoke" generate model prompt=line tokens=0
if [ -w /dev/full ]; then
	"$yoke" generate model tokens=3 >/dev/full 2>err.txt
	[ $? -eq 1 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'standard output' err.txt
	result $? 'generate: stdout that is full'
	"$yoke" eval model data=text.txt >/dev/full 2>err.txt
	[ $? -eq 1 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'standard output' err.txt
	result $? 'eval: stdout that is full'
fi
refuses 'a model that is not there' 1 'nomodel' "$yoke" generate nomodel
refuses 'generate without a model' 2 'no model' "$yoke" generate prompt=x
refuses 'a key of train for generate' 2 'unknown key' "$yoke" generate model layers=2
refuses 'eval of short text' 1 'short.txt' "$yoke" eval model data=short.txt
prints 'eval without data' '^data .*text.txt, ' "$yoke" eval model
refuses 'resume with another shape' 1 'model with .*embed=8.*another out' \
	"$yoke" train data=text.txt out=model resume=1 embed=16 steps=4

# ---- data ----

printf 'a,b\n1,2\n3,x\n5,6\n' >table.csv
prints 'data info: samples' '^samples  *3$' "$yoke" data info table.csv
prints 'data info: fields' '^b  *f32  *\[\]$' "$yoke" data info table.csv
prints 'data info: text that varies' '^b  *u8  *\[up to [0-9]* by 16\]$' "$yoke" data info table.csv columns=b:text
printf 'sepal length;b\n1;2\n3;4\n' >names.csv
prints 'data info: a name with a blank' '^sepal length  *f64 ' "$yoke" data info names.csv 'delimiter=;' columns='"sepal length":f64,b'
prints 'data info: the same without the quotes that a shell removes' '^sepal length  *f32 ' \
	"$yoke" data info names.csv 'delimiter=;' columns="sepal length":f32
"$yoke" data info names.csv >out.txt 2>err.txt
[ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'delimiter=;' err.txt && grep -q '^b  *f32' out.txt
result $? "one line says which delimiter was taken: $(cat err.txt)"
prints 'data info: without a header' '^column2  *u8 ' "$yoke" data info table.csv header=0 columns=column2:text
awk 'BEGIN { print "a,b"; for (i = 0; i < 40; i++) print i ",1" }' >numbers.csv
run env YOKE_BACKEND=cpu "$yoke" train $small data=numbers.csv out=of.table
[ $status -eq 0 ] && [ "$(grep -c 'numbers.csv.*text.*yoke data info numbers.csv' err.txt)" -eq 1 ]
result $? "a training on a table says that it reads text, and what to do instead: $(grep numbers.csv err.txt)"
prints 'data check: what is broken' '^1 of 3 samples cannot be read$' sh -c "'$yoke' data check table.csv || :"
prints 'data check: which, and why' "sample 1: .*record 3: column b: 'x' " sh -c "'$yoke' data check table.csv || :"
easy_text 60 >book.txt
n=$(wc -c <book.txt)
"$yoke" data prepare book.txt out=book.tokens >prepared.txt 2>err.txt
grep -qx "text         $n bytes in 1 file" prepared.txt
result $? "data prepare: $(cat prepared.txt err.txt)"
prints 'data info: of what data prepare wrote' "^tokens  *$n of [0-9]* different, [0-9]* to train, [0-9]* to validate$" \
	"$yoke" data info book.tokens
prints 'data info: its samples' '^ids  *i32  *\[129\]$' "$yoke" data info book.tokens
prints 'data info: others that are asked for' '^ids  *i32  *\[5\]$' "$yoke" data info book.tokens context=4
prints 'data check: of what data prepare wrote' '^0 of [1-9][0-9]* samples' "$yoke" data check book.tokens
prints 'data check: all good' '^0 of 3 samples' "$yoke" data check table.csv columns=a
mkdir words
printf '{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"type":"WordLevel",' >words/tokenizer.json
printf '"unk_token":"w0","vocab":{"w0":0,"w1":1,"w2":2,"w3":3}}}' >>words/tokenizer.json
printf '{%% for m in messages %%}{{ m.content }} w3 {%% endfor %%}' >words/chat_template.jinja
printf '{"messages":[{"role":"user","content":"w1"},{"role":"assistant","content":"w2 w1"}]}\n{"text":"w1 w2 w3"}\n' >chats.jsonl
"$yoke" data prepare chats.jsonl model=words out=chats.tokens >prepared.txt 2>err.txt
result $? 'data prepare of conversations'
"$yoke" data info chats.tokens >info.txt 2>err.txt
result $? 'data info of conversations'
head -n 2 prepared.txt | cmp -s - info.txt
result $? 'data info: the counts that data prepare printed'
prints 'data info: conversations' '^samples  *2 of 2 conv' "$yoke" data info chats.tokens
prints 'data check: conversations' '^0 of 2 samples' "$yoke" data check chats.tokens
refuses 'data bench of conversations' 1 'chats.tokens: ' "$yoke" data bench chats.tokens
refuses 'data info of conversations with a setting' 2 "'context=4'" "$yoke" data info chats.tokens context=4
printf '\001' | dd of=chats.tokens bs=1 seek=$(($(wc -c <chats.tokens) - 1)) conv=notrunc 2>/dev/null
refuses 'data check of altered conversations' 1 'chats.tokens: ' "$yoke" data check chats.tokens
cp chats.jsonl same.jsonl
refuses 'conversations as their output' 1 'chats.jsonl: ' "$yoke" data prepare chats.jsonl model=words out=chats.jsonl
cmp -s chats.jsonl same.jsonl
result $? 'which are unchanged'
refuses 'conversations of standard input' 1 'standard input' "$yoke" data prepare - model=words out=piped.tokens <same.jsonl
prints 'data bench: by workers' '^1  *[0-9]' "$yoke" data bench table.csv columns=a seconds=0.01
run "$yoke" data check table.csv
[ $status -eq 1 ] && [ ! -s err.txt ]
result $? 'data check: its status'
refuses 'data of nothing' 1 'nowhere.npy' "$yoke" data info nowhere.npy
refuses 'data without a verb' 2 'info, check, bench or prepare' "$yoke" data table.csv
refuses 'data: a word' 2 'is not key=value' "$yoke" data info table.csv columns

# ---- models, setup ----

mkdir -p shelf/empty && cp -r model shelf/one && cp -r model shelf/two && cp -r model shelf/torn
printf '{"step": 2, "lo' >>shelf/one/metrics.jsonl
printf '{"step":9,"loss":9}\n' >>shelf/two/metrics.jsonl # of a run that was killed
head -c 20 model/manifest.json >shelf/torn/manifest.json
run "$yoke" info models shelf
loss=$(sed -n 's/.*"step":2,"loss":\([0-9.]*\).*/\1/p' model/metrics.jsonl)
val=$(sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' model/metrics.jsonl)
for name in one two; do
	grep "^shelf/$name " out.txt | awk -v loss="$loss" -v val="$val" -v bytes="$(cat shelf/$name/*.safetensors |
		wc -c)" '{ exit !($2 > 1000 && $3 - bytes / 1024 < .06 && bytes / 1024 - $3 < .06 && $4 == "KiB" &&
		$5 == "2/2" && $6 - loss < 6e-5 && loss - $6 < 6e-5 && $7 - val < 6e-5 && val - $7 < 6e-5 &&
		$8 ~ /^[0-9]+$/ && $9 == "s") }'
	result $? "models: $(grep "^shelf/$name " out.txt | tr -s ' ')"
done
[ $status -eq 0 ] && [ "$(wc -l <out.txt)" -eq 3 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'shelf/torn' err.txt
result $? 'models: one that cannot be read is said'
run "$yoke" info models --json shelf
[ $status -eq 0 ] && [ "$(grep -c '"folder": "shelf/' out.txt)" -eq 3 ] && grep -q '"error": ".*shelf/torn' out.txt &&
	[ "$(grep -c '"loss": ' out.txt)" -eq 2 ]
result $? 'models: as JSON'
prints 'models: a folder that is one' '^model ' "$yoke" info models model
prints 'models: this folder' '^model ' "$yoke" info models
prints 'models: none' '^no model in folder$' "$yoke" info models folder
refuses 'models of nothing' 1 'nowhere: No such' "$yoke" info models nowhere
refuses 'models of two' 2 "unknown argument 'shelf'" "$yoke" info models model shelf

prints 'setup' 'yoke train new.env' "$yoke" setup new.env
refuses 'setup does not write over' 1 'new.env: .*name another' "$yoke" setup new.env
refuses 'setup where nothing can be written' 1 '/proc/none/x' "$yoke" setup /proc/none/x
grep -v '^#' new.env | grep -q . && odd=1 || odd=0
[ $odd -eq 0 ]
result $? 'all it says is a comment'
sed -n 's/^#\([A-Z][A-Z0-9_]*\)=.*/\1/p' new.env | tr '[:upper:]' '[:lower:]' | sort >keys.txt
for command in train generate chat serve eval; do
	"$yoke" help $command all | sed -n '/^keys/,$s/^  \([a-z][a-z0-9_]*\) .*/\1/p'
done | sort -u | diff - keys.txt >out.txt
result $? "each key is in it once: $(wc -l <keys.txt)"
# with the defaults set it is the same run
sed 's/^#\([A-Z]\)/\1/' new.env >all.env
"$yoke" train new.env $small data=text.txt out=by.comments >out.txt 2>err.txt &&
	"$yoke" train all.env $small data=text.txt out=by.keys >>out.txt 2>err.txt
result $? 'it is a configuration, with and without its #'
sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' by.comments/metrics.jsonl >a.txt
sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' by.keys/metrics.jsonl | diff - a.txt >out.txt && [ -s a.txt ]
result $? 'and its values are the defaults'

# ---- names ----

mkdir -p 'in here' && cp text.txt 'in here/a book.v2.txt'
run env YOKE_BACKEND=cpu "$yoke" train $small data="in here/a book.v2.txt,text.txt" \
	'out=runs/{data}-l{layers}-h{heads}-e{embed}-{device}{x'
[ $status -eq 0 ] && [ -f 'runs/a book.v2+text-l1-h1-e8-cpu-0{x/manifest.json' ]
result $? "out= with words: $(ls runs)"
run env YOKE_BACKEND=cpu "$yoke" train $small data=text.txt valid='in here/a book.v2.txt' seed=7 \
	'out=keys/{lr}-{batch}-{seed}-{beta2}-{optimizer}-{steps}-{valid}-{tokenizer}-{precision}'
[ $status -eq 0 ] && [ -f "keys/0.001-2-7-0.99-adamw-2-a book.v2-byte-fp32/manifest.json" ]
result $? "out= with keys, also those of the optimizer that are auto: $(ls keys)"
run env YOKE_BACKEND=cpu "$yoke" train $small data=text.txt optimizer=sgd 'out=keys/{lr}-{momentum}-{valid}'
[ $status -eq 0 ] && grep -q '"lr"' keys/*-0.9-0.1/manifest.json
result $? "and of another optimizer: $(ls keys)"
refuses 'a key without a value' 1 '{field} .*field=' "$yoke" train $small data=text.txt 'out=l{field}'
refuses 'a name that contains itself' 1 '{out}' "$yoke" train $small data=text.txt 'out=l{out}'
refuses 'a word that out= has not' 1 '{layer}, did you mean {layers}?' \
	"$yoke" train $small data=text.txt 'out=l{layer}'
refuses '{data} without data' 1 '{data} .*data=,' "$yoke" train $small 'out={data}'

cp model/manifest.json before
# the limit must not affect its output through the pipe, nor the counters of a coverage run
{
	(ulimit -f 1; GCOV_PREFIX=$work/counters; export GCOV_PREFIX
		exec "$yoke" train data=text.txt out=model resume=1 steps=4) 2>&1
	echo "status $?"
} | cat >err.txt
: >out.txt
grep -qx 'status 1' err.txt && grep -q '^yoke train: .*File too large' err.txt
result $? 'a disk that is full while saving: an error'
cmp -s before model/manifest.json
result $? 'nothing was written over'
prints 'and the model before is whole' '^loss' "$yoke" eval model data=text.txt

damage() # NAME PATTERN FILE COMMAND ..: the command changes FILE
{
	name=$1 pattern=$2 file=$3
	shift 3
	cp "$file" saved
	"$@"
	refuses "$name" 1 "$pattern" "$yoke" generate model
	refuses "$name: resume" 1 "$pattern" "$yoke" train out=model resume=1 steps=4
	cp saved "$file"
}
weights=$(ls model/model.*.safetensors)
damage 'truncated weights' 'truncated' "$weights" truncate -s 100 "$weights"
damage 'altered weights' 'altered' "$weights" \
	sh -c "printf x | dd of=$weights bs=1 seek=700 conv=notrunc 2>/dev/null"
damage 'empty weights' 'truncated' "$weights" truncate -s 0 "$weights"
damage 'missing weights' 'model' "$weights" rm "$weights"
damage 'truncated manifest' 'manifest.json' model/manifest.json truncate -s 100 model/manifest.json
damage 'altered manifest' 'altered' model/manifest.json \
	sed -i 's/"heads": "*1"*/"heads": 2/' model/manifest.json
prints 'all restored' '^line' "$yoke" generate model prompt=line tokens=1
echo "1..$count"
