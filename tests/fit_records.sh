#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that the commands read the records of yoke_fit: report, doctor, the dashboard in the terminal
# and in the browser, of an ended, a live and a killed run of tests/fit_records.t.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
program=$PWD/tests/fit_records.t
workspace fit_records
export YOKE_BACKEND=cpu
python3 -c '' 2>/dev/null || { echo "1..0 # SKIP no python3 to read JSON"; exit 0; }
run='' server=''
finish()
{
	# shellcheck disable=SC2086 # numbers
	[ -z "$run$server" ] || kill -9 $run $server 2>/dev/null
	rm -rf "${TMPDIR:-/tmp}/fit_records.work"
}
trap finish EXIT

# looks FILE EXPRESSION: is it true of the JSON object o in the file?  Prints the object if not.
looks()
{
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
print("" if eval("(" + sys.argv[2] + ")") else o)' "$1" "$2" 2>&1 | grep .
}

"$program" run ended 2>err
verdict 'a run of 40 steps' "$([ $? -eq 0 ] || cat err)"
"$yoke" report ended --json >report.json 2>err
verdict 'report' "$(looks report.json '[(r["state"], r["how"], r["step"], r["steps"], r["config"]["optimizer"]) for r in o["runs"]] ==
	[("ended", "done", 40, 40, "sgd")] and {"loss", "learning_rate", "grad_norm", "samples_per_s"} <= {p["name"] for p in o["plots"]} and
	len(o["runs"][0]["phases"]) > 3' || cat err)"
"$yoke" report ended --html report.html 2>err && "$yoke" report ended >report.txt 2>>err
verdict 'report as a page and as text' "$([ $? -eq 0 ] && grep -q 'Loss' report.html || cat err)"
"$yoke" doctor ended --json >doctor.json 2>err
verdict "doctor: exit status $?" "$(looks doctor.json 'not {"killed", "failed", "hang"} & {c["condition"] for c in o["conditions"]}' || cat err)"
"$yoke" dashboard terminal ended --json >top.json 2>err
verdict 'dashboard terminal' "$(looks top.json 'o["runs"][0]["state"] == "ended" and o["runs"][0]["step"] == 40 and
	o["runs"][0]["numbers"]["train"]["samples_per_s"] > 0 and o["runs"][0]["numbers"]["valid"]["val_loss"] > 0' || cat err)"
"$yoke" dashboard terminal ended --once >top.txt 2>err
verdict 'its lines have the rate' "$(grep -q '^  samples/s  *[0-9]' top.txt && ! grep -q 'tokens/s' top.txt || cat top.txt err)"

"$program" endless living 2>err &
run=$!
await has living/metrics.jsonl 5 '"stage":"train"'
"$yoke" dashboard terminal living --json >top.json 2>err
verdict 'a live run and its process' "$(looks top.json "o['runs'][0]['state'] == 'running' and o['runs'][0]['process']['pid'] == $run and
	o['runs'][0]['steps'] == 1000000000 and o['runs'][0]['to_go_s'] > 0" || cat err)"
"$yoke" dashboard terminal --json >all.json 2>err
verdict 'it is found without its name' "$(looks all.json "any(r['folder'].endswith('/living') for r in o['runs'])" || cat err)"
if ! "$yoke" dashboard nowhere 2>&1 | grep -q 'built without libmicrohttpd'; then
	"$yoke" dashboard living ended >serve.out 2>serve.err &
	server=$!
	await grep -q 'http://' serve.out
	url=$(sed -n 's/^yoke dashboard: //p' serve.out)
	python3 - "$url" >live.json 2>err <<'END'
import sys, urllib.request
url, token = sys.argv[1].split("?", 1)[0].rstrip("/"), sys.argv[1].rsplit("=", 1)[1]
ask = urllib.request.Request(url + "/run.json", headers={"Authorization": "Bearer " + token})
print(urllib.request.urlopen(ask, timeout=600).read().decode())
END
	verdict 'the dashboard' "$(looks live.json '[(r["name"], r["state"]) for r in o["runs"]] == [("living", "running"), ("ended", "ended")] and
		o["runs"][1]["numbers"]["loss"] > 0 and o["runs"][1]["config"]["text"] == "mine"' || cat err serve.err)"
	kill $server
	wait $server
	server=
fi
kill -9 $run
wait $run 2>/dev/null
run=
"$yoke" dashboard terminal living --json >top.json 2>err
verdict 'a killed run is lost' "$(looks top.json 'o["runs"][0]["state"] == "lost" and o["runs"][0]["process"] is None' || cat err)"
"$yoke" report living --json >report.json 2>err
verdict 'report of a killed run' "$(looks report.json 'o["runs"][0]["state"] == "lost" and o["runs"][0]["step"] > 4' || cat err)"
"$yoke" doctor living --json >doctor.json 2>err
verdict 'doctor of a killed run' "$(looks doctor.json '[("resume" in c["change"], "yoke train" in c["change"]) for c in o["conditions"]
	if c["condition"] == "killed"] == [(True, False)]' || cat err)"
echo "1..$count"
