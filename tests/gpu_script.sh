#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests bench/gpu.sh on the fake drivers: every part has a status and its figures, a part that
# crashes, hangs or fails affects only itself, and errors are one line. Sizes are tiny, so figures
# are not checked.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
. "${srcdir:-.}/tests/fake_gpus.sh"
command -v timeout >/dev/null 2>&1 || { echo '1..0 # SKIP there is no timeout'; exit 0; }
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE"
backend=${backends%%
*}
all='info conform train programs kernels products memory attention gpt124 gpt_small launches serve resolvents opencl ranks whole'

# script STATUS OPTION ..: runs it into out; lines about what is not as it should be
script()
{
	want=$1
	shift
	"$source/bench/gpu.sh" -b "$here" -j "${jobs:-2}" -o out "$@" "$backend" >script.out 2>script.err
	got=$?
	[ $got -eq "$want" ] || { echo "status $got, wanted $want"; tail -n 20 script.out script.err; }
}

# part NAME: its lines of results.json, up to its figures
part()
{
	awk -v name="\"$1\"," '/^    {/ { text = "" } { text = text $0 "\n" } $1 == "\"name\":" && $2 == name { here = 1 }
		here && /"figures"/ { print text; exit }' out/results.json
}

# is NAME STATUS ..: is the part's status one of these?
is()
{
	name=$1
	shift
	for wanted; do
		part "$name" | grep -q "\"status\": \"$wanted\"" && return
	done
	echo "$name is not $*"
	part "$name"
}

# no_group ID: has this process group no process?
no_group()
{
	! kill -s 0 -- "-$1" 2>/dev/null
}

# valid FILE: is it JSON?
valid()
{
	! command -v python3 >/dev/null 2>&1 || python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" 2>&1
}

# one_line TEXT: is that all that was printed on stderr?
one_line()
{
	[ "$(grep -c . script.err)" -eq 1 ] && grep -q -e "$1" script.err || cat script.err
}

# The time is no part of the test: it is more than all parts take.
verdict "$backend: all of it" "$(jobs=4 script 0 -t 1800)"
verdict 'results.json' "$(valid out/results.json; grep -q '"ok": true' out/results.json || echo 'not ok')"
for name in $all; do
	case $name in
	opencl | ranks) verdict "$name" "$(is "$name" ok skip)" ;;
	*) verdict "$name" "$(is "$name" ok)" ;;
	esac
done
verdict 'the machine' "$(for key in device card driver processor yoke torch; do
	grep -q "^    \"$key\": \"..*\"" out/results.json || echo "no $key"; done)"
verdict 'figures beside those of peers' "$(grep -c '"peer": "..*", "peer_value": [0-9].*, "ratio": [0-9]' out/results.json |
	awk '$1 < 8 { print $1 " ratios" }')"
verdict 'losses are those of the CPU' "$(grep -q 'largest difference of 30 losses.*"value": [0-9]' out/results.json || part train)"
verdict 'peers that are missing have a reason' "$(python3 -c 'import torch' 2>/dev/null ||
	[ "$(grep -c '"peer": "SKIP: ..*torch' out/results.json)" -ge 4 ] || grep SKIP out/results.json)"
verdict 'kernels are compiled ahead' "$(grep -q 'run ahead of their measurement", "value": 9, "unit": "of 9"' out/results.json || part kernels)"
verdict 'a row of the table for each part' "$(for name in $all; do
	title=$(part "$name" | sed -n 's/.*"title": "\([^"]*\)".*/\1/p')
	grep -q "^| $title | [a-z]* | " out/table.md || echo "no $name: $title"; done)"

# peers: lines about figures beside a PyTorch that has some of them, which a script in the place of python3 prints
peers()
{
	mkdir -p bin
	cat >bin/python3 <<'END'
#!/bin/sh
case $* in
*find_spec*) ;;
*is_available*) echo 9.9 ;;
*attention) printf 'figure B8T1024H12D64bf16 2\nfigure B4T4096H16D128bf16+grad 4\n' ;;
*mode=compile*) echo 'no compiler there' && exit 1 ;;
*train*) echo 'figure tokens/s 100' ;;
esac
END
	chmod +x bin/python3
	PATH=$PWD/bin:$PATH script 0 -t 1800 -p attention,gpt_small
	grep -q '"torch": 9.9' out/results.json || echo 'no version'
	[ "$(grep -c '"peer": "PyTorch SDPA", "peer_value": [24], "ratio": [0-9]' out/results.json)" -eq 2 ] || grep SDPA out/results.json
	grep '"peer": "PyTorch eager"' out/results.json | sed 's/.*"value": \([0-9.]*\),.*"peer_value": 100, "ratio": \([0-9.]*\) .*/\1 \2/' |
		awk '{ d = $1 / 100 - $2; good = $2 > 0 && d < 0.02 * $2 && d > -0.02 * $2 } END { exit !good }' || grep eager out/results.json
	[ "$(grep -c '"peer": "SKIP: no compiler there"' out/results.json)" -eq 1 ] || grep compile out/results.json
}
verdict 'ratios to what PyTorch gives, and why it gives none' "$(peers)"

# notes the process groups of all commands
cat >bin/timeout <<END
#!/bin/sh
echo \$\$ >>'$PWD/groups'
exec '$(command -v timeout)' "\$@"
END
chmod +x bin/timeout
rm -f groups bin/python3
export GPU_SH_FAULT=train:crash,launches:hang,opencl:fail,programs:crash,resolvents:fail GPU_SH_LIMIT=2
verdict 'parts that crash, hang and fail' "$(PATH=$PWD/bin:$PATH script 1 -t 1800 -p train,programs,products,launches,resolvents,ranks)"
verdict 'results.json' "$(valid out/results.json; grep -q '"ok": false' out/results.json || echo 'ok')"
verdict 'a crash has its signal and the log' "$(is train crashed; part train | grep -q '"signal": "SEGV"' &&
	part train | grep -q '"log_tail": "made to crash' || part train)"
verdict 'one of several processes, too' "$(is programs crashed; part programs | grep -q '"signal": "SEGV"' || part programs)"
verdict 'a hang is ended' "$(is launches timeout)"
verdict 'a failure has its exit status' "$(is resolvents failed; part resolvents | grep -q '"exit": 3' || part resolvents)"
verdict 'the others go on' "$(is info ok; is products ok; is ranks ok skip)"
unset GPU_SH_FAULT GPU_SH_LIMIT
verdict 'none of its commands is left running' "$([ "$(grep -c . groups)" -ge 8 ] || echo 'too few'
	for group in $(cat groups); do
		await no_group "$group"
		no_group "$group" || echo "$group goes on"
	done
	find out -name '*.pid')"

# interrupted: lines about what is not as it should be when SIGTERM comes within a part that hangs
interrupted()
{
	GPU_SH_FAULT=train:hang "$source/bench/gpu.sh" -b "$here" -o out -t 1800 -p train "$backend" >script.out 2>script.err &
	visit=$!
	await written_or_ended out/train-cpu.pid $visit
	hanging=$(cat out/train-cpu.pid)
	kill -TERM $visit
	wait $visit
	got=$?
	[ $got -eq 130 ] || echo "status $got"
	await gone "$hanging"
	gone "$hanging" || echo "$hanging goes on"
	one_line 'interrupted'
	is train failed
	valid out/results.json
}
rm -rf out
verdict 'an interrupted visit ends what runs and leaves its results' "$(interrupted)"

verdict 'a driver that fails' "$(YOKE_FAKE_FAIL=kernel:3+:719 script 1 -t 1800 -p train,products; is info ok; is train failed)"
verdict 'no GPU' "$(YOKE_FAKE_DEVICES=0 script 1 -t 1800 -p train; grep -c 'no GPU was found' script.err | grep -vx 1; is train skip)"
timeout 1800 sleep 1800 & # has a process group of its own
bystander=$!
await kill -s 0 -- -$bystander # its group is made
mkdir -p out && echo $bystander >out/train-cpu.pid && echo train-cpu >out/train.stuck
verdict 'a card that is nearly full' "$(YOKE_FAKE_MEMORY=10000000 script 0 -t 1800 -p train; is train skip)"
verdict 'a .pid file of an earlier run is ignored' "$(! ended $bystander || echo 'a bystander was killed'; ls out/*.pid out/*.stuck 2>/dev/null)"
kill $bystander
verdict 'it is one line' "$(grep 'MiB' script.err | grep -c 'end the processes' | grep -vx 1)"
verdict 'five seconds' "$(script 2 -t 5; one_line '-t 5: .*-t 240')"
verdict 'no number' "$(script 2 -t soon; one_line '-t soon')"
verdict 'no part' "$(script 2 -p prodcts; one_line 'no part prodcts: .* products')"
printf '#!/bin/sh\necho "find: unrecognized: -newermt" >&2\nexit 1\n' >bin/find && chmod +x bin/find
verdict 'another find' "$(PATH=$PWD/bin:$PATH script 2; one_line 'install GNU findutils')"
rm bin/find
verdict 'no build' "$(mkdir empty; "$source/bench/gpu.sh" -b empty >script.out 2>script.err
	[ $? -eq 2 ] || echo 'another status'; one_line 'no built yoke in empty: run make')"
verdict 'CDPATH has no effect' "$(cd "$source" && CDPATH=$source sh bench/gpu.sh -b none 2>"$OLDPWD/script.err"
	cd "$OLDPWD" && one_line 'no built yoke in none')"
echo "1..$count"
exit $failed
