#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke top and yoke dashboard terminal, which are the same: the machine, an ended run, a live run, a run found without its name, and its display on a
# terminal.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
built=$PWD
workspace top
run=
finish()
{
	[ -z "$run" ] || kill -9 "$run" 2>/dev/null
	rm -rf "${TMPDIR:-/tmp}/top.work"
}
trap finish EXIT

# A run by hand: the numbers of its lines are known.
mkdir ended && printf '{"format":1,"device":"cpu:0\\u001b[31m","steps":40,"ended":{"how":"done"}}\n' >ended/run.json
i=1
while [ $i -le 40 ]; do
	printf '{"step":%d,"loss":%d.5,"lr":0.25,"tokens_per_s":1000,"peak_bytes":1048576,"stage":"train","time":%d}\n' \
		$i $((50 - i)) $((1000 + i))
	i=$((i + 1))
done >ended/metrics.jsonl
printf '{"step":40,"val_loss":3.25,"stage":"valid","time":1041}\n{"step":41,"lo' >>ended/metrics.jsonl
LC_ALL=C "$yoke" dashboard terminal ended --once >out 2>err
verdict "a run that ended" "$([ $? -eq 0 ] && grep -q '^ended  ended  on cpu:0?\[31m$' out &&
	grep -qE '^  step +40 of 40' out && grep -qE '^  loss +10\.5  #+[*]+[+]+.*_$' out && grep -qE '^  val_loss +3\.25' out &&
	grep -qE '^  peak memory +1\.0 MiB' out || cat out err)"
verdict "the output has no control characters" "$(LC_ALL=C tr -d '\n -~' <out)"
if python3 -c '' 2>/dev/null; then
	verdict "--json" "$("$yoke" dashboard terminal ended --json | python3 -c '
import json, sys
r = json.load(sys.stdin)["runs"][0]
n = r["numbers"]
good = r["state"] == "ended" and r["step"] == 40 and n["train"]["loss"] == 10.5 and n["valid"]["val_loss"] == 3.25
print("" if good and r["process"] is None else r)' 2>&1 | grep .)"
fi
"$yoke" dashboard terminal nowhere --once >out 2>&1
verdict "no run: $(cat out)" "$([ $? -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] || cat out)"
"$yoke" dashboard terminal ended </dev/null >out 2>&1
verdict "no terminal: $(cat out)" "$([ $? -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] || cat out)"
"$yoke" dashboard terminal --twice >out 2>&1
verdict "an option" "$([ $? -eq 2 ] || cat out)"

# shows TEXT: is it on the screen?
shows()
{
	tmux -L $server capture-pane -p | grep -q "$1"
}

easy_text 120 >text
"$yoke" train data=text out=living steps=1000000 checkpoints=0 layers=1 heads=2 embed=32 context=32 batch=8 progress=0 \
	threads=1 2>err &
run=$!
await has living/metrics.jsonl 3 loss
kill -STOP $run # it lives all the same, and takes no time of others
"$yoke" dashboard terminal living --once >out 2>err
verdict "a live run is shown with its process" "$(grep -q '^living  running' out && grep -q "^  process $run: cpu n/a, .*threads" out ||
	cat out err)"
"$yoke" dashboard terminal --json >out 2>err
verdict "a live run is found without its name" "$(grep -q '"folder": ".*top.work/living"' out && grep -q "\"pid\": $run" out || cat out err)"
"$yoke" top --once >out 2>err
verdict "yoke top shows the devices and the processes of the machine" "$(grep -qE '^  cpu:0 ' out && grep -qE "^ +$run  " out &&
	grep -q 'living  running' out || cat out err)"
"$yoke" top living --once >out 2>err
verdict "with a run it shows that run only" "$(grep -qE '^  cpu:0 |processors, busy' out && cat out; grep -q '^living  running' out || cat out err)"
# what python3 finds of the host
cat >host.py <<'END'
import json, os, subprocess, sys
o = json.loads(subprocess.run([sys.argv[1], 'top', '--json'], stdout=subprocess.PIPE, check=True).stdout)
info = json.loads(subprocess.run([sys.argv[1], 'info', '--json'], stdout=subprocess.PIPE, check=True).stdout)
wrong = []
total = [int(l.split()[1]) * 1024 for l in open('/proc/meminfo') if l.startswith('MemTotal')][0]
cpu = [d for d in o['devices'] if d['id'] == 'cpu:0']
if len(cpu) != 1 or cpu[0]['mem_total'] != total or not 0 < cpu[0]['mem_used'] < total or not (cpu[0]['util'] is None or 0 <= cpu[0]['util'] <= 1):
    wrong.append('the CPU: %s, memory %d' % (cpu, total))
if o['host']['processors'] != os.cpu_count() or o['host']['memory_total'] != total:
    wrong.append('the host: %s' % o['host'])
if sorted(d['id'] for d in o['devices']) != sorted(d['id'] for d in info['devices']):
    wrong.append('devices: %s' % [d['id'] for d in o['devices']])
mine = [p for p in o['processes'] if p['pid'] == int(sys.argv[2])]
if len(mine) != 1 or mine[0]['devices'] != 'cpu:0' or not mine[0]['rss'] > 1e6:
    wrong.append('processes: %s' % o['processes'])
if [p for p in o['processes'] if p['pid'] == os.getpid()]:
    wrong.append('a program without yoke is listed')
print('\n'.join(wrong))
END
if python3 -c '' 2>/dev/null; then
	verdict "yoke top --json" "$(YOKE_BACKEND= python3 host.py "$yoke" "$run" 2>&1 | grep .)"
fi
fake=$built/tests/fake_gpu/.libs cuda=$built/plugins/cuda/.libs
if [ -e "$cuda/yoke_cuda.so" ] && ls "$fake"/libcuda.so* >/dev/null 2>&1; then
	LD_LIBRARY_PATH=$fake YOKE_PLUGIN_PATH=$cuda YOKE_FAKE_DEVICES=3 "$yoke" top --once >out 2>err
	verdict "GPUs have use, memory, temperature and power" "$([ "$(grep -cE '^  cuda:[012] +50.0 % +1.00 GiB of 4.00 GiB +61 .* 151 W of 400 W ' out)" -eq 3 ] ||
		cat out err)"
else
	skip 'GPUs' 'no CUDA plugin with fake drivers'
fi
if [ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" = 00 ] || ! command -v tmux >/dev/null 2>&1; then
	skip 'a terminal' 'no tmux, or not asked for (YOKE_TEST_CLIENTS=1)'
elif "$yoke" dashboard terminal ended 2>&1 </dev/null | grep -q 'without ncurses'; then
	skip 'a terminal' 'built without ncurses'
else
	server=yoke.$$
	tmux -L $server new-session -d -x 80 -y 24 "LC_ALL=C.UTF-8 '$yoke' dashboard terminal living ended; echo left $?; sleep 1800"
	await shows 'q: quit'
	await shows '▁'
	tmux -L $server capture-pane -p >screen
	verdict "80 x 24" "$(grep -q '^living  running' screen && grep -q '^ended  ended' screen && grep -q '▁' screen &&
		[ "$(wc -l <screen)" -le 24 ] || cat screen)"
	tmux -L $server send-keys q
	await shows 'left 0'
	verdict "q ends yoke dashboard terminal, and restores the terminal" "$(shows 'left 0' ||
		tmux -L $server capture-pane -p)"
	tmux -L $server kill-server
fi
kill -9 $run
wait $run 2>/dev/null
run=
"$yoke" dashboard terminal living --once >out 2>&1
verdict "a killed run is shown as lost" "$(grep -q '^living  lost' out || cat out)"
echo "1..$count"
