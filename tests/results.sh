#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the output files of yoke fit and yoke apply: their names; inputs are never replaced, and
# existing files only with overwrite=1.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
formats='hdr npy png'
grep -q '^#define HAVE_PNG 1' config.h 2>/dev/null || formats='hdr npy' # libpng is needed to write images
cd "${TMPDIR:-/tmp}" || exit 99
YOKE_BACKEND=cpu
export YOKE_BACKEND

# sums FILE ..: checksums; refused COMMAND: it fails with status 1, and no file of the directories
# in $watched changes
sums()
{
	find "$@" -type f -o -type l | sort | while read -r f; do cksum "$f"; done
}
refused()
{
	# shellcheck disable=SC2086 # words
	sums $watched >before
	"$@" >out 2>&1
	status=$?
	[ $status -eq 1 ] || { echo "status $status"; cat out; }
	# shellcheck disable=SC2086
	sums $watched | diff before - 2>&1
}

"$yoke" cubes make set count=2 lines=8 samples=6 bands=4 && "$yoke" cubes make other count=2 lines=8 samples=6 bands=4 seed=7 || exit 99
cat >p.json <<'END'
{"data": {"cubes": "set/cube_0000?.hdr"}, "trainer": {"max_epochs": 0},
 "nodes": [{"name": "scale", "type": "standard"}, {"name": "rx", "type": "rx"}]}
END
verdict 'fit' "$("$yoke" fit p.json out=run 2>&1 >/dev/null)"

sums set >inputs
verdict 'results beside the cubes carry the name of the node' "$("$yoke" apply run out=set 2>&1
	for i in 0 1; do
		[ -s set/cube_0000${i}_rx.hdr ] && [ -s set/cube_0000${i}_rx.img ] || ls set
	done
	rm -f set/*_rx.*
	sums set | diff inputs - 2>&1)"
verdict 'two nodes' "$("$yoke" apply run out=maps nodes=rx,scale 2>&1; ls maps | tr '\n' ' ' | grep -qx \
	'cube_00000_rx.hdr cube_00000_rx.img cube_00000_scale.hdr cube_00000_scale.img cube_00001_rx.hdr cube_00001_rx.img cube_00001_scale.hdr cube_00001_scale.img ' || ls maps)"
watched='set maps'
verdict 'results that exist are kept' "$(refused "$yoke" apply run out=maps)"
rm maps/cube_00000* maps/cube_00001_rx.hdr
verdict 'also if only one of the files exists' "$(refused "$yoke" apply run out=maps)"
verdict 'existing results are replaced with overwrite=1' "$(echo old >maps/cube_00000_rx.hdr; "$yoke" apply run out=maps overwrite=1 2>&1
	"$yoke" apply run out=fresh 2>&1
	for f in fresh/*; do cmp "$f" "maps/${f#fresh/}" 2>&1; done)"
verdict 'overwrite is 0 or 1' "$(refused "$yoke" apply run out=maps overwrite=yes)"

# One name in two directories.
"$yoke" apply run out=alone data.cubes='other/cube_00000.hdr' || exit 99
verdict 'two cubes of the same name give two results' "$("$yoke" apply run out=both data.cubes='[so]*/cube_0000?.hdr' 2>&1
	ls both | tr '\n' ' ' | grep -qx "$(for f in other set; do for i in 0 1; do printf '%s_cube_0000%s_rx.hdr %s_cube_0000%s_rx.img ' $f $i $f $i; done; done)" ||
		ls both
	cmp both/other_cube_00000_rx.img alone/cube_00000_rx.img
	cmp both/set_cube_00000_rx.img fresh/cube_00000_rx.img)"
mkdir mixed && cp set/cube_00000.hdr mixed/a.hdr && cp set/cube_00000.img mixed/a.img && "$yoke" cubes convert set/cube_00001.hdr mixed/a.npy || exit 99
verdict 'and so do two in one directory' "$("$yoke" apply run out=mixes data.cubes='mixed/a.[hn]*' 2>&1; [ "$(ls mixes/*.hdr | wc -l)" -eq 2 ] || ls mixes)"

# The input file, under another name.
mkdir linked && ln -s ../set/cube_00001.img linked/cube_00000_rx.img
watched='set linked'
verdict "a link to another cube's data is refused" "$(refused "$yoke" apply run out=linked overwrite=1)"
rm linked/* && ln set/cube_00000.hdr linked/cube_00001_rx.hdr
verdict 'a hard link to a header' "$(refused "$yoke" apply run out=linked overwrite=1)"
rm linked/* && ln -s ../run/pipeline.safetensors linked/cube_00001_rx.npy
verdict 'a link to the states' "$(refused "$yoke" apply run out=linked format=npy overwrite=1)"
rm linked/* && ln -s nowhere linked/cube_00000_rx.img
verdict 'a link to nothing exists' "$(refused "$yoke" apply run out=linked; [ -e linked/nowhere ] && ls linked)"
rm linked/* && cp set/cube_00000.hdr linked/c.hdr && cp set/cube_00000.img linked/c.dat && cp set/cube_00001.hdr linked/c_rx.hdr &&
	cp set/cube_00001.img linked/c_rx.dat
verdict 'a header whose data file has another suffix is not replaced' "$(refused "$yoke" apply run out=linked data.cubes='linked/c*.hdr' overwrite=1)"
verdict 'nor is a .npy file beside it' "$(refused "$yoke" apply run out=linked data.cubes='linked/c*.hdr' format=npy overwrite=1)"
rm linked/* && cp set/cube_00000.img linked/cube_00000_rx
verdict "a file that could be mistaken for the result's data is refused" "$(refused "$yoke" apply run out=linked overwrite=1)"
rm linked/* && cp set/cube_00000.hdr linked/a.hdr && cp set/cube_00000.img linked/a.img && cp set/cube_00000.hdr linked/a_rx.hdr &&
	cp set/cube_00000.img linked/a_rx.img
sed 's/"scale", "type"/"rx_rx", "type"/' p.json >rx.json
"$yoke" fit rx.json out=rxrun >/dev/null 2>&1
watched='set linked results'
mkdir results
verdict 'two results with the same name are refused' "$(refused "$yoke" apply rxrun out=results nodes=rx_rx,rx data.cubes='linked/a*.hdr')"
verdict 'the same node twice' "$(refused "$yoke" apply run out=results nodes=rx,rx)"
watched='results'
verdict 'a node that is not there' "$(refused "$yoke" apply run out=results nodes=rx,none)"

# Directories of runs.
watched='run set'
verdict 'a run that exists is kept' "$(refused "$yoke" fit p.json out=run nodes.rx.eps=1)"
verdict 'also with resume=1, if there is no checkpoint' "$(refused "$yoke" fit p.json out=run nodes.rx.eps=1 resume=1)"
verdict 'a configuration inside the run is not overwritten' "$(refused "$yoke" fit run/pipeline.json out=run nodes.rx.eps=1 overwrite=1)"
ln -s ../run/pipeline.json linked/pipeline.json
watched='run set linked'
verdict 'nor through a link to it' "$(refused "$yoke" fit run/pipeline.json out=linked overwrite=1)"
verdict 'the run is replaced with overwrite=1' "$(cp run/pipeline.safetensors old; "$yoke" fit p.json out=run nodes.rx.eps=1 overwrite=1 2>err >/dev/null || cat err
	! cmp -s old run/pipeline.safetensors || echo 'the states are the old ones'
	"$yoke" fit p.json out=anew nodes.rx.eps=1 2>err >/dev/null || cat err
	cmp run/pipeline.safetensors anew/pipeline.safetensors 2>&1)"
mkdir -p inputs.d/maps && "$yoke" cubes convert set/cube_00000.hdr inputs.d/maps/x.npy && "$yoke" cubes convert set/cube_00001.hdr inputs.d/maps/x_rx.npy
watched='inputs.d'
verdict 'maps do not replace cubes' "$(refused "$yoke" fit p.json out=inputs.d data.cubes='inputs.d/maps/*.npy' 'monitors=["maps"]' 'data.split=[1, 0, 0]' \
	overwrite=1)"
verdict 'a fit that cannot train leaves no file' "$("$yoke" fit p.json out=none 'losses=[{"type": "bce", "of": "rx"}]' >/dev/null 2>&1 && echo done
	[ ! -e none ] || ls none)"

# Pixels without a result.
python=
for p in python3 /usr/bin/python3; do
	! "$p" -c 'import numpy' 2>/dev/null || { python=$p; break; }
done
if [ -n "$python" ]; then
	verdict 'ignored, masked and skipped pixels have no result' "$("$python" -c '
import json, os, re, struct, subprocess, sys, zlib
import numpy as np
rng = np.random.default_rng(3)
L, S, B = 9, 7, 4
os.makedirs("holes")
def header(path, ignore, scene="map info = {UTM, 1, 1, 5, 4, 30, 30, 11, North}\n"):
    open(path + ".hdr", "w").write("ENVI\nsamples = %d\nlines = %d\nbands = %d\ndata type = 4\ninterleave = bip\nbyte order = 0\n"
        "wavelength = {450, 550, 650, 750}\nwavelength units = Nanometers\n%s%s" % (S, L, B, "" if ignore is None else
        "data ignore value = %s\n" % ignore, scene))
def field(path, key):
    found = re.search("^" + key + r" *= *(.*)$", open(path + ".hdr").read(), re.M)
    return found and found.group(1)
def run(*words):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
    assert not done.returncode, " ".join(words) + ": " + done.stdout + done.stderr
def picture(path):
    raw, at, data = open(path, "rb").read(), 8, b""
    while at < len(raw):
        n, = struct.unpack(">I", raw[at:at + 4])
        data += raw[at + 8:at + 8 + n] if raw[at + 4:at + 8] == b"IDAT" else b""
        at += 12 + n
    rows, above = np.frombuffer(zlib.decompress(data), "u1").reshape(L, S + 1).astype(int), np.zeros(S + 1, int)
    for row in rows: # PNG, 9.2
        for i in range(1, S + 1):
            a, b, c = row[i - 1] if i > 1 else 0, above[i], above[i - 1] if i > 1 else 0
            paeth = min((a, b, c), key=lambda v: abs(a + b - c - v))
            row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[row[0]]) % 256
        above = row
    return rows[:, 1:]
for name, ignore, value in ("declared", "-65536", -65536), ("none", None, None), ("taken", "0", 0):
    x = rng.normal(1, 1, (L, S, B)).astype("f4")
    hole, masked, skipped = np.zeros((3, L, S), bool)
    hole[2, 1:4] = ignore is not None
    masked[5:7, 3] = skipped[8, 6] = True
    if ignore is not None:
        x[hole] = np.float32(value)
    x[skipped, 2] = np.nan
    path = "holes/" + name
    header(path, ignore)
    x.tofile(path + ".img")
    np.save(path + "_mask.npy", (~masked).astype("u1"))
    out = hole | masked | skipped
    good = x[~out].astype(float)
    mean, cov = good.mean(0), np.cov(good.T)
    want = (((x.reshape(-1, B) - mean) @ np.linalg.inv(cov)) * (x.reshape(-1, B) - mean)).sum(1).reshape(L, S)
    json.dump({"data": {"cubes": path + ".hdr", "masks": path + "_mask.npy", "nonfinite": "skip", "split": [1, 0, 0]},
               "nodes": [{"name": "scale", "type": "standard"}, {"name": "rx", "type": "rx", "eps": 0}, {"name": "far", "type": "decide",
               "t": float(np.median(want[~out]))}], "trainer": {"max_epochs": 0}}, open(path + ".json", "w"))
    fitted = "fitted_" + name
    run("fit", path + ".json", "out=" + fitted)
    for kind in sys.argv[2].split():
        run("apply", fitted, "out=" + fitted + "/" + kind, "nodes=scale,rx,far" if kind != "png" else "nodes=rx", "data.masks=" + path + "_mask.npy",
            "format=" + kind)
    for node in "rx", "far", "scale":
        of = fitted + "/hdr/" + name + "_" + node
        got = np.fromfile(of + ".img", "<f4").reshape(L, S, -1)
        other = np.load(fitted + "/npy/" + name + "_" + node + ".npy")
        fill = np.float32(float(field(of, "data ignore value")))
        assert ((got == fill).any(-1) == out).all() and (got[out] == fill).all(), (name, node, fill)
        declared = value is not None and not (name == "taken" and node == "far")
        assert fill == (np.float32(value) if declared else np.float32(-9999)), (name, node, fill)
        assert (other[~out] == got[~out]).all(), (name, node)
        assert (other[out] == fill).all() if declared else np.isnan(other[out]).all(), (name, node)
        assert field(of, "map info") == "{UTM, 1, 1, 5, 4, 30, 30, 11, North}", of
        waves = field(of, "wavelength")
        assert (waves == "{450, 550, 650, 750}" and field(of, "wavelength units") == "Nanometers") if node == "scale" else not waves, waves
    got = np.fromfile(fitted + "/hdr/" + name + "_rx.img", "<f4").reshape(L, S)
    assert abs(got - want)[~out].max() < 1e-4 * want[~out].max(), name
    if "png" not in sys.argv[2]:
        continue
    grey = picture(fitted + "/png/" + name + "_rx.png")
    low, high = got[~out].min(), got[~out].max()
    assert (abs(grey - (got - low) / (high - low) * 255)[~out] < 0.51).all() and not grey[out].any(), name
' "$yoke" "$formats" 2>&1)"
else
	skip 'pixels that are ignored, masked or skipped have no result' 'NumPy is not installed'
fi

# yoke cubes
watched='set'
verdict 'a cube is not converted into itself' "$(refused "$yoke" cubes convert set/cube_00000.hdr set/cube_00000.hdr type=f64
	ln -s ../set/cube_00000.img linked/same.img
	watched='set linked'
	refused "$yoke" cubes convert set/cube_00000.hdr linked/same.hdr type=f64)"
cp set/cube_00001.hdr linked/there.hdr && cp set/cube_00001.img linked/there.img && cp set/cube_00001.hdr linked/lone.hdr
verdict 'nor into another existing cube, even if only one of its files exists' "$(refused "$yoke" cubes convert set/cube_00000.hdr linked/there.hdr
	refused "$yoke" cubes convert set/cube_00000.hdr linked/lone.hdr
	refused "$yoke" cubes convert set/cube_00000.hdr linked/there.hdr overwrite=0)"
verdict 'but with overwrite=1' "$("$yoke" cubes convert set/cube_00000.hdr linked/there.hdr overwrite=1 2>&1; cmp set/cube_00000.img linked/there.img)"
verdict 'generated cubes do not replace others' "$(refused "$yoke" cubes make set count=2 lines=8 samples=6 bands=4 seed=9)"
verdict 'but with overwrite=1' "$("$yoke" cubes make other count=2 lines=8 samples=6 bands=4 overwrite=1 2>&1; cmp set/cube_00001.img other/cube_00001.img)"
echo "1..$count"
