#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke fit and yoke apply: from a file and keys to a run, its records and score maps;
# refused input.
set -u
build=$PWD
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
examples=$(cd "${srcdir:-.}/examples" && pwd) || exit 99
cd "${TMPDIR:-/tmp}" || exit 99

says()
{
	line=$1
	shift
	"$@" >out 2>&1
	grep -q -- "$line" out || cat out
}
small='data.synthetic=count=6_lines=24_samples=20_bands=12'
small=$(echo "$small" | tr _ ' ')

"$yoke" cubes make set count=6 lines=24 samples=20 bands=12 || exit 99
verdict 'fit' "$(says '^statistics .*, 2 passes over 5 cubes' "$yoke" fit "$examples/pca-rx.json" out=run "$small" nodes.pca.k=8 \
	nodes.less.k=4 trainer.max_epochs=2)"
verdict 'files of the run' "$(for f in pipeline.json pipeline.safetensors metrics.jsonl run.json; do [ -s run/$f ] || echo $f; done)"
verdict 'keys are in force' "$(grep -q '"k": 8' run/pipeline.json && grep -q '"max_epochs": 2' run/pipeline.json || cat run/pipeline.json)"
verdict 'records' "$(grep -q '"stage": *"valid".*"roc_auc"\|"roc_auc".*"stage": *"valid"' run/metrics.jsonl || cat run/metrics.jsonl)"
verdict 'the file that was written gives the same bits' "$("$yoke" fit run/pipeline.json out=again >/dev/null
	cmp run/pipeline.safetensors again/pipeline.safetensors && cmp run/pipeline.json again/pipeline.json 2>&1)"
verdict 'cubes in files equal the generated ones' "$(cat >files.json <<END
{"data": {"cubes": "\${WHERE}/cube_*.hdr", "labels": "\${WHERE}/*_label.npy", "batch": 4},
 $(sed -n '/"nodes"/,$p' "$examples/pca-rx.json")
END
	WHERE=set "$yoke" fit files.json out=files nodes.pca.k=8 nodes.less.k=4 trainer.max_epochs=2 >out 2>&1 || cat out
	cmp run/pipeline.safetensors files/pipeline.safetensors 2>&1)"
verdict 'phase 1 alone' "$(says '1 pass over 5 cubes' "$yoke" fit "$examples/rx.json" out=rx "$small" data.batch=2
	grep -q '"roc_auc"' rx/metrics.jsonl || cat out rx/metrics.jsonl)"
verdict 'apply' "$(says '' "$yoke" apply run out=maps data.synthetic='count=2 lines=24 samples=20 bands=12' nodes=rx,logit
	ls maps | sort | tr '\n' ' ' | grep -qx 'synthetic_00000_logit.hdr synthetic_00000_logit.img synthetic_00000_rx.hdr synthetic_00000_rx.img synthetic_00001_logit.hdr synthetic_00001_logit.img synthetic_00001_rx.hdr synthetic_00001_rx.img ' || ls maps)"
verdict 'as .npy, named after the cubes' "$("$yoke" apply run out=npy data.cubes=set/cube_0000[01].hdr format=npy 2>&1
	[ -s npy/cube_00000_logit.npy ] && [ -s npy/cube_00001_logit.npy ] || ls npy)"
"$yoke" cubes make other count=3 lines=10 samples=9 bands=12 && "$yoke" cubes make bands count=1 lines=10 samples=9 bands=11
verdict "applied to other cubes of other sizes, without the run's labels" "$("$yoke" apply files out=others data.cubes='other/*.hdr' nodes=pca 2>&1
	says '^10  *9  *8  *f32' "$yoke" cubes info others/cube_00002_pca.hdr)"
verdict 'cubes with other bands are refused' "$(says 'bands/cube_00000.hdr.* 11 .* 12' "$yoke" apply run out=none data.cubes='bands/*.hdr')"
verdict 'of no node' "$(says "no node 'pcb'; did you mean 'pca'" "$yoke" apply run out=none nodes=pcb data.cubes='other/*.hdr')"
verdict 'the same scores' "$("$yoke" cubes convert npy/cube_00000_logit.npy x.hdr 2>&1; cmp x.img maps/synthetic_00000_logit.img 2>&1)"

# Scenes of different sizes: 31 x 9, and 8 x 40 with map info.
"$yoke" cubes make tall count=2 lines=31 samples=9 bands=12 seed=1 && "$yoke" cubes make wide count=2 lines=8 samples=40 bands=12 seed=2 || exit 99
for i in 0 1; do
	echo "map info = {UTM, 1, 1, 100$i, 4, 30, 30, 11, North}" >>wide/cube_0000$i.hdr
done
scenes="data.synthetic=null data.cubes=[tw][ai][ld][le]/cube_*.hdr data.labels=[tw][ai][ld][le]/*_label.npy data.batch=2 nodes.pca.k=8 nodes.less.k=4
	data.split=[0.5,0.5,0] trainer.max_epochs=2"
# shellcheck disable=SC2086 # words
verdict 'scenes of different sizes are fitted and validated together' "$(says 'roc_auc 0.[0-9]*\|roc_auc 1$' "$yoke" fit "$examples/pca-rx.json" \
	out=scenes $scenes 'monitors=["metrics", "maps"]'
	grep plan: out
	says '^8  *40  *1  *f32' "$yoke" cubes info scenes/maps/wide_cube_00001_logit.npy)"
# shellcheck disable=SC2086 # words
verdict 'cubes kept in memory give the same bits' "$("$yoke" fit "$examples/pca-rx.json" out=scenes_kept $scenes data.cache=all >/dev/null 2>&1
	cmp scenes/pipeline.safetensors scenes_kept/pipeline.safetensors 2>&1)"
verdict 'results have the size and map info of each' "$("$yoke" apply scenes out=scenes_out nodes=rx 2>&1
	says '^31  *9  *1  *f32' "$yoke" cubes info scenes_out/tall_cube_00000_rx.hdr
	says '^8  *40  *1  *f32' "$yoke" cubes info scenes_out/wide_cube_00001_rx.hdr
	grep -q 1001 scenes_out/wide_cube_00001_rx.hdr || cat scenes_out/wide_cube_00001_rx.hdr)"
verdict 'a scene with other bands names both files' "$(says 'tall/cube_00000.hdr.* 12.*bands/cube_00000.hdr.* 11' "$yoke" fit "$examples/rx.json" out=none data.synthetic=null \
	'data.cubes=[tb]*/cube_00000.hdr')"
verdict 'bands that both have' "$(says '1 pass over 2 cubes' "$yoke" fit "$examples/rx.json" out=bands_run data.synthetic=null \
	'data.cubes=[tb]a*/cube_00000.hdr' data.bands=0-10 'metrics=[]' 'data.split=[1,0,0]')"
echo 'wavelength = {400, 450, 500, 550, 600, 650, 700, 750, 800, 850, 900, 950}' >>tall/cube_00000.hdr
echo 'wavelength = {450, 500, 550, 600, 650, 700, 750, 800, 850, 900, 950}' >>bands/cube_00000.hdr
cat >angles.json <<'END'
{"data": {"cubes": "[tb]a*/cube_00000.hdr", "bands": "450nm..600nm", "split": [1, 0, 0]},
 "nodes": [{"name": "sam", "type": "sam", "target": [1, 2, 3, 4]}, {"name": "ace", "type": "ace", "target": [1, 2, 3, 4], "in": "input"},
           {"name": "both", "type": "standard", "in": ["sam", "ace"]}]}
END
verdict 'bands by wavelength, sam and ace' "$(says 'passes over 2 cubes' "$yoke" fit angles.json out=angles
	"$yoke" apply angles out=angles_out nodes=sam,ace 2>&1
	says '^31  *9  *1  *f32' "$yoke" cubes info angles_out/tall_cube_00000_sam.hdr
	says '^10  *9  *1  *f32' "$yoke" cubes info angles_out/bands_cube_00000_ace.hdr)"
verdict 'local_rx, of scenes of different sizes' "$(says 'roc_auc' "$yoke" fit "$examples/local-rx.json" out=local data.synthetic=null \
	'data.cubes=[tw][ai][ld][le]/cube_*.hdr' 'data.labels=[tw][ai][ld][le]/*_label.npy' 'data.split=[0.5,0.5,0]' nodes.pca.k=4 nodes.rx.inner=3 \
	nodes.rx.outer=7
	"$yoke" apply local out=local_out 2>&1 && "$yoke" apply local out=local_one data.cubes=tall/cube_00001.hdr 2>&1
	cmp local_out/tall_cube_00001_rx.img local_one/cube_00001_rx.img 2>&1)"

# A run that is killed after some epoch, and one that is not.
all="$examples/pca-rx.json data.batch=2 nodes.pca.k=8 nodes.less.k=4 trainer.log_every_n_steps=1 trainer.enable_checkpointing=true"
# shellcheck disable=SC2086 # words
verdict 'a killed run resumes' "$("$yoke" fit $all out=whole "$small" trainer.max_epochs=40 >/dev/null 2>&1
	"$yoke" fit $all out=killed "$small" trainer.max_epochs=40 >/dev/null 2>&1 &
	job=$!
	await written_or_ended killed/checkpoint.json $job
	kill -9 $job 2>/dev/null
	wait $job 2>/dev/null
	mkdir -p killed && : >killed/pipeline.safetensors.999999999-0.tmp # left like this by a kill during a save
	"$yoke" fit $all out=killed "$small" trainer.max_epochs=40 resume=1 >out 2>&1 || cat out
	ls killed | grep 'pipeline.*tmp'
	cmp whole/pipeline.safetensors killed/pipeline.safetensors 2>&1
	sed 's/"time":[^,}]*//' whole/metrics.jsonl >one; sed 's/"time":[^,}]*//' killed/metrics.jsonl | diff one - 2>&1)"
verdict 'one checkpoint is left' "$([ "$(ls killed/states.* killed/optimizer.* | wc -l)" -eq 2 ] || ls killed)"

# Killed while it collects statistics, or wherever it is by then.
verdict 'a run killed during statistics resumes' "$(YOKE_FIT_SAVE=0
	export YOKE_FIT_SAVE
	for out in plain cut; do
		set -- "$examples/pca-rx.json" data.synthetic='count=30 lines=48 samples=48 bands=24' nodes.pca.k=8 nodes.less.k=4 \
			trainer.enable_checkpointing=true trainer.max_epochs=1 data.workers=0 out=$out
		[ $out = cut ] || { "$yoke" fit "$@" >/dev/null 2>&1; continue; }
		"$yoke" fit "$@" >/dev/null 2>&1 &
		job=$!
		await written_or_ended cut/collected.json $job
		kill -9 $job 2>/dev/null
		wait $job 2>/dev/null
		"$yoke" fit "$@" resume=1 >out 2>&1 || cat out
	done
	cmp plain/pipeline.safetensors cut/pipeline.safetensors 2>&1
	ls cut | grep 'statistic\|collected')"

# Signals: the batch is finished, both phases are saved, and the resumed run has the bits of an
# unbroken one.
stopped() # SIGNAL FILE: sends the signal once the file exists
{
	signal=$1
	file=$2
	shift 2
	"$yoke" fit "$@" out=stopped >out 2>&1 &
	job=$!
	await [ -s "stopped/$file" ]
	kill -"$signal" $job 2>/dev/null
	wait $job || { echo "status $?"; cat out; }
	[ -e stopped/checkpoint.json ] || [ -e stopped/collected.json ] || [ -e stopped/pipeline.safetensors ] || ls stopped
	"$yoke" fit "$@" out=stopped resume=1 >out 2>&1 || cat out
	cmp whole/pipeline.safetensors stopped/pipeline.safetensors 2>&1
	rm -rf stopped
}
signals="$examples/pca-rx.json data.batch=2 nodes.pca.k=8 nodes.less.k=4 trainer.log_every_n_steps=1 trainer.max_epochs=40"
# shellcheck disable=SC2086 # words
for signal in INT TERM; do
	verdict "SIG$signal in training, and gone on with" "$(stopped $signal metrics.jsonl $signals "$small")"
	verdict "SIG$signal at the beginning, and gone on with" "$(stopped $signal run.json $signals "$small")"
done
verdict 'metrics and losses in the end' "$(says '^valid  *step [0-9]*  orthogonality [.0-9e-]*  .*bce [.0-9e-]*  loss [.0-9e-]*  roc_auc [.0-9]*$' \
	"$yoke" fit "$examples/pca-rx.json" out=said "$small" nodes.pca.k=8 nodes.less.k=4 trainer.max_epochs=1
	grep -q '^train  *step ' out || cat out)"
for split in '[0, 1, 0]' '[0, 0, 1]' '[1, 0, 0]'; do
	verdict "one scene with labels has an AUC: split=$split" "$(says 'roc_auc 0.[0-9]*' "$yoke" fit "$examples/rx.json" \
		out="auc$(echo "$split" | tr -dc 01)" data.synthetic=null data.cubes=set/cube_00000.hdr data.labels=set/cube_00000_label.npy "data.split=$split")"
done
verdict 'nothing to train by' "$(says 'data: split: .*trainer.max_epochs=0' "$yoke" fit "$examples/pca-rx.json" out=none "$small" nodes.pca.k=8 nodes.less.k=4 \
	'data.split=[0, 1, 0]')"
verdict 'k is a whole number' "$(says 'k must be a whole number' "$yoke" fit "$examples/pca-rx.json" out=none "$small" nodes.pca.k=2.5 nodes.less.k=2)"

verdict 'maps are artifacts, the whole configuration is written' "$(says '' "$yoke" fit "$examples/pca-rx.json" out=pictures "$small" nodes.pca.k=8 \
	nodes.less.k=4 'monitors=["metrics", "maps"]' freeze=rx 'data.split=[0.5, 0.3, 0.2]' trainer.max_epochs=1 trainer.accelerator=cpu
	[ "$(ls pictures/maps/*.npy | wc -l)" -eq 2 ] || ls pictures/maps
	grep -q 'maps/synthetic_00003_logit.npy' pictures/run.json || cat pictures/run.json
	grep -q '"stage": *"test"' pictures/metrics.jsonl || cat pictures/metrics.jsonl
	for key in cache nonfinite masks variable precision statistics betas pos_weight threshold monitors unfreeze eps in; do
		grep -q "\"$key\"" pictures/pipeline.json || echo "no $key"
	done)"
verdict 'what is kept in memory has the same bits' "$("$yoke" fit "$examples/pca-rx.json" out=cached "$small" nodes.pca.k=8 nodes.less.k=4 \
	trainer.max_epochs=2 data.cache=1M >/dev/null 2>&1; cmp run/pipeline.safetensors cached/pipeline.safetensors 2>&1)"
verdict 'keys have the names of yoke train, and arguments override the file' "$(sed 's/"max_epochs": *[0-9]*/"epochs": 9/' "$examples/pca-rx.json" >named.json
	"$yoke" fit named.json out=named "$small" nodes.pca.k=8 nodes.less.k=4 epochs=1 trainer.log_every=5 lr=0.25 batch=3 seed=9 >out 2>&1 || cat out
	for want in '"max_epochs": *1\b' '"log_every_n_steps": *5\b' '"lr": *0.25' '"batch": *3\b' '"seed": *9\b'; do
		grep -q "$want" named/pipeline.json || echo "no $want"
	done)"
verdict 'the time is taken apart' "$("$yoke" bench fit workload="$examples/pca-rx.json" "$small" nodes.pca.k=8 nodes.less.k=4 trainer.max_epochs=2 \
	loader_ms=1 --json >bench.json 2>out || cat out
	grep -q '^statistics 2 ' out || cat out
	tr -d '\n' <bench.json | awk '{
		n = split("loader eigen upload forward backward optimizer joint plans validation rest", name, " ")
		for (i = 1; i <= n; i++) {
			match($0, "\"" name[i] "\": [-+.e0-9]*")
			value = substr($0, RSTART + length(name[i]) + 4, RLENGTH - length(name[i]) - 4) + 0
			sum += value
			if (value < 0 && name[i] != "rest") print name[i], value
		}
		match($0, /"statistics": \[[^]]*/)
		n = split(substr($0, RSTART + 15, RLENGTH - 15), pass, ",")
		for (i = 1; i <= n; i++) sum += pass[i]
		match($0, /"wall": [.e0-9]*/)
		wall = substr($0, RSTART + 8, RLENGTH - 8) + 0
		if (n != 2 || !(wall > 0) || (sum - wall) ^ 2 > (0.02 * wall) ^ 2) print n, "passes,", sum, "of", wall
	}')"

verdict 'scales' "$("$yoke" bench fit scale=channels count=2 trainer.max_epochs=1 --json >scale.json 2>out || cat out
	for bands in 10 20 50 100 200; do
		grep -q "bands=$bands  *cpu .* samples/s .* ms .* MiB (planned" out || cat out
	done)"
python=
for p in python3 /usr/bin/python3; do
	! "$p" -c 'import numpy' 2>/dev/null || { python=$p; break; }
done
if [ -n "$python" ]; then
	echo '{"nodes": [{"name": "pca", "type": "pca", "k": 3}, {"name": "rx", "type": "rx", "in": "input"},
		{"name": "both", "type": "standard", "in": ["pca", "rx"]}], "data": {"cubes": "set/*.hdr"}}' >both.json
	verdict 'NumPy finds the same components and scores' "$("$yoke" fit both.json out=both 2>&1 >/dev/null
		"$yoke" apply both out=scores nodes=rx format=npy 2>&1; "$python" -c '
import json, numpy as np
def cube(i): return np.fromfile("set/cube_%05d.img" % i, "<f4").reshape(-1, 12).astype(float)
x = np.concatenate([cube(i) for i in range(5)])
mu, cov = x.mean(0), np.cov(x.T)
values, vectors = np.linalg.eigh(cov)
raw = open("both/pipeline.safetensors", "rb").read()
n = int.from_bytes(raw[:8], "little")
head = json.loads(raw[8:8 + n])
def state(name):
    a, b = head[name]["data_offsets"]
    return np.frombuffer(raw[8 + n + a:8 + n + b], "<f4").reshape(head[name]["shape"]).astype(float)
w, v = state("pca.w"), vectors[:, ::-1][:, :3]
assert abs(np.linalg.svd(w @ v)[1] - 1).max() < 1e-6, "another subspace"
assert abs(state("pca.ratio") - values[::-1][:3] / values.sum()).max() < 1e-6, "other ratios"
d = cube(5) - mu
want = (d @ np.linalg.inv(cov) * d).sum(1)
got = np.load("scores/cube_00005_rx.npy").reshape(-1)
assert abs(got - want).max() < 1e-4 * want.max(), abs(got - want).max()
' 2>&1)"
else
	skip 'NumPy finds the same components and scores' 'NumPy is not installed'
fi

verdict 'a cache' "$(says 'none, all, or ' "$yoke" fit "$examples/rx.json" out=x data.cache=some)"
verdict 'a pattern of nothing' "$(says "a name like 'pcb'" "$yoke" fit "$examples/rx.json" out=x freeze=pcb)"
verdict 'a word of bench' "$(says "'rounds=3'.* workload=" "$yoke" bench fit workload=small rounds=3)"
verdict 'no out' "$(says 'give out=' "$yoke" fit "$examples/rx.json")"
verdict 'no file' "$(says 'nothing.json' "$yoke" fit nothing.json out=x)"
verdict 'an unknown key of data' "$(says "did you mean 'batch'" "$yoke" fit "$examples/rx.json" out=x data.bach=3)"
verdict 'an unknown key of a node' "$(says "no key 'epz'" "$yoke" fit "$examples/rx.json" out=x nodes.rx.epz=3)"
verdict 'a node that is not there' "$(says "there is no 'pca'" "$yoke" fit "$examples/rx.json" out=x nodes.pca.k=3)"
verdict 'a variable that is not set' "$(says 'WHERE} is not set' "$yoke" fit files.json out=x)"
early() # as says, and before any pass
{
	says "$@"
	grep statistics out
}
sed 's/"synthetic"/"cubes": "set\/*.hdr", &/' "$examples/rx.json" >two.json
verdict 'both sources' "$(says 'two.json: data: .*cubes .*synthetic' "$yoke" fit two.json out=x)"
verdict 'no labels' "$(early 'bce wants a field label' "$yoke" fit "$examples/pca-rx.json" out=x data.cubes='set/*.hdr' nodes.pca.k=8 \
	nodes.less.k=4)"
verdict 'a loss of several channels' "$(early 'pca-rx.json: pipeline: bce of less: it has 4 channels' "$yoke" fit "$examples/pca-rx.json" out=x \
	"$small" nodes.pca.k=8 nodes.less.k=4 'losses=[{"type": "bce", "of": "less"}]')"
verdict 'nodes that do not fit are refused' "$(early 'mse of less: it has 4 channels, pca has 8' "$yoke" fit "$examples/pca-rx.json" out=x "$small" nodes.pca.k=8 \
	nodes.less.k=4 'losses=[{"type": "mse", "of": "less", "node": "pca"}]')"
cp bands/cube_00000.hdr other/cube_00009.hdr && cp bands/cube_00000.img other/cube_00009.img
verdict 'a last cube of another shape' "$(early 'cube_00009.hdr has 11.*cube_00000.hdr has 12' "$yoke" fit "$examples/rx.json" out=x \
	metrics=[] data.cubes='other/*.hdr')"
verdict 'missing files' "$(says 'data: cubes: .* no\*\.hdr' "$yoke" fit "$examples/rx.json" out=x data.synthetic=null data.cubes=no*.hdr)"
verdict 'a split' "$(says 'sum to 1' "$yoke" fit "$examples/rx.json" out=x 'data.split=[1, 1, 0]')"
verdict 'a run that was not fitted' "$(says 'nowhere' "$yoke" apply nowhere out=x)"

if [ -x "$build/examples/stream" ]; then
	verdict 'moments of a stream' "$(says '^480 rows' "$build/examples/stream" 12 <set/cube_00000.img)"
else
	skip 'moments of a stream' 'examples/stream is not built'
fi
echo "1..$count"
