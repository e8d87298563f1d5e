#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What yoke does on the GPUs of this machine: builds, checks, trains, measures, and prints one table.
#
#	bench/gpu.sh [-b BUILD] [-o FOLDER] [-q] [BACKEND ..]
#
# -b	a build folder to use; default: FOLDER/build, which is configured and made
# -o	where logs, figures and the table go; default: gpu-bench
# -q	small sizes, to see that the script works
#
# Without backends: those of cuda, rocm and opencl that have a GPU.  Beside ours stand a copy's bandwidth, the vendor's
# library of products, and PyTorch where python3 has one that sees the GPU; each ratio is of one run.  Status 1:
# something failed; it is in the table, and the rest goes on.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build='' out=gpu-bench quick=''
while getopts b:o:q option; do
	case $option in
	b) build=$OPTARG ;;
	o) out=$OPTARG ;;
	q) quick=1 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
table=$out/table.txt
failed=0
: >"$table"

# row WHAT FIGURE BESIDE RATIO
row()
{
	printf '%-44s %18s  %-28s %8s\n' "$@" | tee -a "$table"
}

# step SECONDS NAME COMMAND ..: its output is in NAME.log; what fails is a row
step()
{
	limit=$1 name=$2
	shift 2
	timeout "$limit" "$@" >"$out/$name.log" 2>&1
	status=$?
	[ $status -eq 0 ] && return
	failed=1
	[ $status -eq 124 ] && status="$limit s were not enough"
	row "$name" FAILED "$status; $name.log" ''
	return 1
}

# ---- the build ----

if [ -z "$build" ]; then
	build=$out/build
	mkdir -p "$build"
	[ -x "$top/configure" ] || (cd "$top" && ./autogen.sh) >"$out/autogen.log" 2>&1
	# shellcheck disable=SC2016 # that shell's
	step 1800 build sh -c 'cd "$1" && { [ -f Makefile ] || "$2/configure"; } && make -j"$(nproc)"' sh "$build" "$top" || exit 1
fi
build=$(cd "$build" && pwd)
yoke=$build/yoke
for folder in "$build"/backends/*/.libs "$build"/plugins/*/.libs; do
	[ -d "$folder" ] && YOKE_PLUGIN_PATH=${YOKE_PLUGIN_PATH:+$YOKE_PLUGIN_PATH:}$folder
done
export YOKE_PLUGIN_PATH

# The first GPU of a backend, "cuda:0"; nothing: it has none.
gpu_of()
{
	YOKE_BACKEND=$1 "$yoke" info --json 2>>"$out/info.log" |
		awk -v backend="$1" -F'"' '/"id":/ { id = $4 } /"kind":/ && $4 ~ /gpu/ && index(id, backend ":") == 1 { print id; exit }'
}

# ---- parts ----

# awk's number, or - where there is none
ratio()
{
	awk -v a="${1:-}" -v b="${2:-}" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", a / b; else print "-" }'
}

# Our best kernel and the library's for products of M x N x K, some matrices, timed in turn by yoke tune, which checks
# them.  tf32 is f32 whose factors are rounded, which devices of cuda alone offer.
products()
{
	sizes='512x512x512x1 2048x2048x2048x1 8192x8192x8192x1 8x4096x4096x1 4096x64x4096x1 256x256x64x96'
	[ "$quick" ] && sizes='64x64x64x1 5x40x30x2'
	for dtype in f32 $([ "$backend" != cuda ] || echo tf32) f16 bf16; do
		of=$dtype matmul=f32
		[ $dtype != tf32 ] || of=f32 matmul=tf32
		for n in $sizes; do
			name=$backend-contract-$dtype-$n
			step 300 "$name" env YOKE_MATMUL=$matmul "$yoke" tune "$device" --only "contract.$of.nn.$n" || continue
			grep -q '^wrong' "$out/$name.log" && row "$name" WRONG "$name.log" '' && failed=1
			# shellcheck disable=SC2046 # three words
			set -- $(awk -v n="$n" '$1 == "time" { split(n, e, "x"); t = $3 * 1e-9; f = 2 * e[1] * e[2] * e[3] * e[4] / t * 1e-12
				if ($2 ~ /blas/) { if (f > lib) lib = f } else if (f > own) own = f }
				END { printf "%.4g %.4g", own, lib }' "$out/$name.log")
			[ "$1 $2" = '0 0' ] || # all were wrong
				row "$backend product $dtype $n" "$1 TFLOP/s" "library $2 TFLOP/s" "$(ratio "$1" "$2")"
		done
	done
}

# The suite of products, left to our kernels and to the library.
both()
{
	big=$(echo "$backend" | tr '[:lower:]' '[:upper:]')
	for way in 0 1; do
		step 900 "$backend-products-$way" env "YOKE_${big}_PRODUCTS=$way" "$yoke" bench contract "devices=$device" ||
			return
	done
	awk '/^contract/ && match($0, /[0-9.]+ [GT]FLOP/) { f = substr($0, RSTART, RLENGTH) + 0
		if ($0 ~ / TFLOP/) f *= 1000
		name = substr($0, 12, 26); gsub(/ /, "", name)
		if (FNR == NR) own[name] = f; else if (own[name]) print name, own[name], f }' \
		"$out/$backend-products-0.log" "$out/$backend-products-1.log" >"$out/$backend-products.txt"
	while read -r name own library; do
		row "$backend product f32 $name" "$own GFLOP/s" "library $library GFLOP/s" "$(ratio "$own" "$library")"
	done <"$out/$backend-products.txt"
}

# Figures of yoke bench beside the peak and the copy of the same run.
suites()
{
	for suite in map rows attention contract; do
		step 900 "$backend-bench-$suite" "$yoke" bench "$suite" "devices=$device" &&
			grep "^$suite" "$out/$backend-bench-$suite.log" >>"$out/$backend-bench.txt"
	done
	[ ! -f "$out/$backend-bench.txt" ] || sed "s/^/$backend /" "$out/$backend-bench.txt" | tee -a "$table"
}

# trains NAME KEY=VALUE ..: tokens/s, the median over log lines of the later half
trains()
{
	name=$backend-train-$1
	shift
	rm -rf "$out/$name"
	step 900 "$name" env YOKE_BACKEND="$backend" YOKE_DEVICE="$device" "$yoke" train data="$text" out="$out/$name" \
		eval_every=0 log_every=1 report=0 "$@" || return
	speed=$(awk -F'[:,]' '{ for (i = 1; i < NF; i++) if ($i ~ /tokens_per_s/) v[++n] = $(i + 1) }
		END { m = int(n / 2); k = 0; for (i = m + 1; i <= n; i++) w[++k] = v[i]
			for (i = 2; i <= k; i++) for (j = i; j > 1 && w[j] < w[j - 1]; j--) { t = w[j]; w[j] = w[j - 1]; w[j - 1] = t }
			printf "%.0f", w[int((k + 1) / 2)] }' "$out/$name/metrics.jsonl")
}

# peer NAME WORDS: PyTorch's figure of that name, on the same GPU
peer()
{
	[ "$torch" ] || return
	step 900 "torch-$1" "$python" "$top/bench/peers/gpu_torch.py" "$@" || return
	sed -n 's/^figure //p' "$out/torch-$1.log"
}

training()
{
	small='layers=2 heads=4 embed=128 context=64 batch=16' steps=200
	large='layers=12 heads=12 embed=768 context=1024 batch=8' large_steps=30
	[ "$quick" ] && small='layers=1 heads=1 embed=16 context=16 batch=2' large=$small steps=6 large_steps=6
	# shellcheck disable=SC2086 # keys
	for case in "small fp32 $steps $small" "large bf16-mixed $large_steps $large"; do
		set -- $case
		size=$1 precision=$2 n=$3
		shift 3
		for mode in eager compile; do
			theirs=$(peer "train-$size-$mode" "precision=$precision" "mode=$mode" "$@")
			speed=''
			trains "$size" "precision=$precision" "steps=$n" "$@" || break
			row "$backend train $size, $precision" "$speed tokens/s" "torch $mode ${theirs:--}" \
				"$(ratio "$speed" "$theirs")"
			[ "$torch" ] || break
		done
	done
}

# Two devices of the backend, by the vendor's library in the two orders of sums, and through the host's memory; beside one.
ranks()
{
	[ "$(YOKE_BACKEND=$backend "$yoke" info --json 2>>"$out/info.log" | grep -c "\"id\": *\"$backend:")" -ge 2 ] || return
	model='layers=12 heads=12 embed=768 context=1024 batch=8 precision=bf16-mixed steps=30'
	[ "$quick" ] && model='layers=1 heads=1 embed=16 context=16 batch=2 steps=6'
	one='' all=$device device='' # each rank has its own
	for way in one library fast host; do
		speed='' native=1 order=fixed n=2
		[ $way = one ] && n=1
		[ $way = fast ] && order=fast
		[ $way = host ] && native=0
		export YOKE_DIST_NATIVE=$native YOKE_DIST_ORDER=$order
		# shellcheck disable=SC2086 # keys
		trains "ranks-$way" $model ranks=$n micro_batches=2
		unset YOKE_DIST_NATIVE YOKE_DIST_ORDER
		[ $way = one ] && one=$speed
		row "$backend train on $n, $way" "${speed:--} tokens/s" "one device ${one:--}" "$(ratio "$speed" "$one")"
	done
	device=$all
}

# ---- all of it ----

text=${YOKE_TEST_DATA:+$YOKE_TEST_DATA/tinyshakespeare.txt}
if [ ! -f "${text:-/nowhere}" ]; then
	text=$out/text.txt
	awk 'BEGIN { srand(1); for (i = 0; i < 200000; i++) printf "%s%s", substr("etaoin shrdlu cmfwyp", 1 + int(rand() * 20), 1 + int(rand() * 4)), i % 9 ? " " : "\n" }' >"$text"
fi
python=$(command -v python3) || python=''
torch=''
[ -z "$python" ] || "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null && torch=1
[ $# -gt 0 ] || set -- cuda rocm opencl
any=''
for backend; do
	device=$(gpu_of "$backend")
	if [ -z "$device" ]; then
		row "$backend" 'no GPU' '' ''
		continue
	fi
	any=1
	rm -f "$out/$backend-bench.txt"
	YOKE_BACKEND=$backend "$yoke" info 2>&1 | grep -A40 "^ *$device" >"$out/$backend-info.log"
	row "$device" '' "$(head -n 1 "$out/$backend-info.log" | cut -c 1-60)" ''
	# shellcheck disable=SC2086 # words
	if step 3000 "$backend-conform" "$yoke" conform "$device" ${quick:+--quick --ops softmax,contract.f32}; then
		row "$backend conform" passed "$(grep -c '^ok' "$out/$backend-conform.log") kinds of kernels" ''
	fi
	products
	if [ -z "$quick" ]; then # whose sizes are for devices that are quick
		[ "$backend" = opencl ] || both
		suites
	fi
	training
	ranks
done
[ "$any" ] || { echo "bench/gpu.sh: no GPU was found; $yoke info says why" >&2; exit 1; }
echo "the table is $table"
exit $failed
