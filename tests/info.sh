#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke info with defective plugins: each costs one row with its reason and does not affect
# the others; YOKE_BACKEND=cpu loads none of them, nor any GPU library.
set -u
bad=$PWD/tests/bad/.libs
. "${srcdir:-.}/tests/yoke.sh"
[ -e "$bad/bad_good.so" ] || { echo "1..0 # SKIP no modules in $bad"; exit 0; }
[ -n "${YOKE_PLUGIN_PROBE:-}" ] || { echo "1..0 # SKIP no helper in YOKE_PLUGIN_PROBE"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
workspace info
umask 022

mkdir plugins
for module in "$bad"/bad_*.so; do
	name=${module##*/bad_}
	cp "$module" "plugins/yoke_$name"
done
echo 'no library' >plugins/yoke_text.so
chmod 755 plugins plugins/*
export YOKE_PLUGIN_PATH="$PWD/plugins"

"$yoke" info >out 2>err
status=$?
verdict "exit 0" "$([ $status -eq 0 ] || { echo "status $status"; cat err; })"

# row NAME REASON: one row of the table of plugins
row()
{
	verdict "$1: $2" "$(grep "/yoke_$1\.so " out >rows
		[ "$(wc -l <rows)" -eq 1 ] && grep -q "$2" rows || { echo "rows:"; cat rows; })"
}
row good loaded
row larger loaded
row nodevices loaded
row absurd loaded
row crowd loaded
row text 'not loaded: '
row nosymbol 'exports no yoke_plugin_init'
row older 'made for plugin ABI 1\.0'
row newer 'made for plugin ABI 3\.0'
row short 'are mandatory'
row refuses 'the driver is too old'
row tableless 'gave no table'
row vandal 'died of SIGSEGV'
row constructor 'ended the process with status 3'
verdict "each says it once" "$(sed -n 's/.*plugin: .*\/yoke_\([a-z]*\)\.so: .*/\1/p' err | sort | uniq -d)"
verdict "devices of the good ones" "$(for id in cpu:0 good:0 larger:0 absurd:7; do
	grep -q "^  $id " out || echo "no $id"; done)"
verdict "a backend without a device says why" "$(grep -q '^  nodevices  *no devices' out || cat out)"
verdict "where threads of the CPU run" "$(sed -n '/^processors$/,/^$/p' out >rows
	grep -q '^  cpu  *[0-9]* threads*[:,]' rows && [ -z "$(grep -v '^processors$\|^  cpu  \|^$' rows)" ] || cat out)"
verdict "the CPU is chosen" "$(grep -q '^  chosen: cpu:0$' out || cat out)"

YOKE_BACKEND=cpu YOKE_LOG=debug "$yoke" info >out 2>err
verdict "YOKE_BACKEND=cpu opens none" "$(grep 'yoke_' out err)"
YOKE_BACKEND=good "$yoke" info >out 2>err
verdict "YOKE_BACKEND=good opens one" "$(grep -q '/yoke_good\.so *loaded' out && [ ! -s err ] &&
	[ "$(grep -c 'not requested' out)" -ge 12 ] || cat out err)"

# what an argument of the command sets, the helper gets as well
cat >helper <<EOF
#!/bin/sh
env | grep '^YOKE_THREADS=' >>"$PWD/seen"
printf '\\0'
EOF
chmod 755 helper
i=0
while [ $i -lt 40 ]; do
	echo "line $i of a text"
	i=$((i + 1))
done >text
rm plugins/* && cp "$bad/bad_good.so" plugins/yoke_good.so
for n in 1 2; do
	YOKE_THREADS=2 YOKE_PLUGIN_PROBE="$PWD/helper" "$yoke" train data=text out=o$n layers=1 heads=1 \
		embed=8 context=8 batch=2 steps=1 threads=1 >log 2>&1 || cat log
done
verdict "a plugin is tried once, with the settings of the run" "$([ "$(cat seen)" = YOKE_THREADS=1 ] || cat seen)"

# opened SETTING [KEY=VALUE]: names of the libraries that training opens, as the dynamic linker tells
opened()
{
	rm -rf one linker.*
	env "$1" LD_DEBUG=files LD_DEBUG_OUTPUT=linker "$yoke" train data=text out=one layers=1 heads=1 \
		context=8 embed=8 batch=2 steps=1 ${2:-} >log 2>&1 || cat log >&2
	sed -n 's,.*calling init:.*[ /],,p' linker.* | sort -u
}
gpu='OpenCL|[Cc][Ll][Bb]last|pocl|libcuda|nvidia|cudart|amdhip|libhsa|rocm|libze_|mesa|libdrm|libX11|libGL'
mkdir hwloc && cp "$bad/bad_good.so" hwloc/hwloc_good.so # whose own are linked with such libraries
export HWLOC_PLUGINS_PATH="$PWD/hwloc"
if opened A= | grep -qx 'yoke_good\.so'; then
	for cpu in YOKE_BACKEND=cpu 'A= backend=cpu'; do
		# shellcheck disable=SC2086 # words
		opened $cpu >libraries
		verdict "${cpu#A= } opens no library of a GPU, and no plugin" "$(
			grep -E "$gpu|^yoke_|^hwloc_" libraries; [ -s libraries ] || echo 'nothing was opened')"
		verdict "nor one of another runtime or of products" "$(
			grep -iE 'dnnl|onednn|blas|mkl|lapack|gomp|libomp|iomp|libtbb|sycl' libraries)"
	done
else
	skip 'libraries that are opened' 'this linker does not tell'
fi

# ---- what NVIDIA's own program says of the GPUs ----

modules=${bad%/tests/bad/.libs}/plugins/cuda/.libs
if ! nvidia-smi --query-gpu=pci.bus_id,memory.total,temperature.gpu --format=csv,noheader,nounits >smi 2>/dev/null ||
	! YOKE_PLUGIN_PATH=$modules "$yoke" info --json >info.json 2>/dev/null || ! grep -q '"cuda:0"' info.json; then
	skip 'telemetry beside nvidia-smi' "no GPU of NVIDIA's, or no nvidia-smi"
elif ! python3 -c '' 2>/dev/null; then
	skip 'telemetry beside nvidia-smi' 'no python3'
else
	verdict "telemetry is nvidia-smi's: $(tr '\n' ';' <smi)" "$(python3 - 2>&1 <<'END'
import json
o = json.load(open('info.json'))
smi = {w[0].lower()[-12:]: w[1:] for w in ([x.strip() for x in l.split(',')] for l in open('smi'))}
found = 0
for d in o['devices']:
    if not d['id'].startswith('cuda:') or d.get('pci', '')[-12:].lower() not in smi:
        continue
    total, degrees = smi[d['pci'][-12:].lower()]
    s = o['telemetry']['devices'].get(d['id'], {})
    found += 1
    if total.isdigit() and abs(s.get('mem_total', 0) / 2**20 - int(total)) > 1:
        print('%s: %s bytes, not %s MiB' % (d['id'], s.get('mem_total'), total))
    if degrees.isdigit() and abs(s.get('temp_c', -99) - int(degrees)) > 5:
        print('%s: %s degrees, not %s' % (d['id'], s.get('temp_c'), degrees))
if not found:
    print('no device of that address')
END
	)"
fi
cd .. && rm -rf info.work
echo "1..$count"
