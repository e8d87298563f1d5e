#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks yoke on a GPU of this machine and measures it beside the vendor's libraries and PyTorch,
# within a given time.
#
#	bench/gpu.sh [-t SECONDS] [-o FOLDER] [-b BUILD] [-j N] [-p PART,..] [-q] [DEVICE]
#
#	-t	total time, 240 by default, at least 20; parts run in order of importance, each with a fraction of the time
#	-o	directory for results.json, table.md and logs; default: gpu-bench
#	-b	build directory; default: the bundle or build directory that contains this script, or the current directory
#	-j	number of processes that compile and check at once; default: one per processor, at most 8
#	-p	only info and these parts, by the names in the first column of "parts" below
#	-q	tiny sizes, which only show that the script works; tests run it so on the fake drivers of tests/fake_gpu
#
# DEVICE is a backend or one of its devices, such as cuda or cuda:1; default: the first GPU of
# cuda, rocm or opencl. The script compiles nothing and needs a POSIX shell, coreutils and awk.
# Exit status 0: all parts that ran are correct; 1: a part failed, see results.json; 2: it cannot
# start; 130: ended by a signal.
# To test the script, GPU_SH_FAULT=memory:crash,random:hang,info:fail replaces the commands of
# these parts, and GPU_SH_LIMIT is the time limit in seconds for commands that it makes hang.
set -u
unset CDPATH # cd would print the directory if it found it in CDPATH
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/bench/built.sh"
. "$top/bench/gpu_steps.sh"

total=240 out=gpu-bench build='' workers='' chosen='' quick='' fault=${GPU_SH_FAULT:-}
while getopts t:o:b:j:p:q option; do
	case $option in
	t) total=$OPTARG ;;
	o) out=$OPTARG ;;
	b) build=$OPTARG ;;
	j) workers=$OPTARG ;;
	p) chosen=,info,$OPTARG, ;;
	q) quick=1 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
asked=${1:-}
case $total in
'' | *[!0-9]* | ??????*) die "-t $total: it is a number of seconds, as 240" ;;
esac
[ "$total" -ge 20 ] || die "-t $total: $total s are too few for any part; -t 60 checks results, -t 240 measures everything"
case $workers in
*[!0-9]* | 0) die "-j $workers: it is a number of processes" ;;
esac
for tool in timeout awk find; do
	command -v $tool >/dev/null 2>&1 || die "there is no $tool, which ends what hangs and reads results: install coreutils, awk and findutils"
done


if [ -z "$build" ] && [ -e "$top/share/yoke/bundle" ]; then
	yoke=$top/bin/yoke programs=$top/bin/yoke-programs resolvents=$top/bin/yoke-resolvent sample=$top/share/yoke/sample.txt
	"$yoke" --version >/dev/null || exit 2 # find_build printed the reason
else
	find_build "$build"
	yoke=$build/yoke programs=$build/tests/random.t resolvents=$build/bench/resolvent sample=''
	for folder in "$build"/backends/*/.libs "$build"/plugins/*/.libs; do
		[ -d "$folder" ] && [ "$folder" != "$build/plugins/skeleton/.libs" ] &&
			YOKE_PLUGIN_PATH=${YOKE_PLUGIN_PATH:+$YOKE_PLUGIN_PATH:}$folder
	done
	export YOKE_PLUGIN_PATH
fi
mkdir -p "$out" && out=$(cd "$out" && pwd) || die "-o $out: the directory cannot be made"
started=$(now)
case $started in
*[!0-9]*) die "date +%s%3N gives no milliseconds: install GNU coreutils" ;;
esac
deadline=$((started + total * 1000 - 1000)) # the last second is for killing and writing
# A .pid file left by a killed run would make kill_all end an unrelated process group.
rm -rf "$out"/*.log "$out"/*.pid "$out"/*.exit "$out"/*.exit.new "$out"/*.next "$out"/*.ended "$out"/*.done "$out"/*.stuck "$out/stop" \
	"$out/train" "$out"/results.json "$out"/table.md
: >"$out/parts.tsv"
: >"$out/figures.tsv"
: >"$out/machine.tsv"
[ -n "$(find "$out/machine.tsv" -newermt '1 day ago' 2>/dev/null)" ] || die "find has no -newermt: install GNU findutils"
if [ -z "$sample" ]; then
	sample=$out/text.txt
	our_text >"$sample"
fi
export YOKE_CACHE="${YOKE_CACHE:-$out/cache}"
export YOKE_SELFTEST=0 # the conformance test is a separate part
[ -n "$workers" ] || workers=$(nproc 2>/dev/null || echo 2)
[ "$workers" -le 8 ] || workers=8
failed=0 part='' ahead='' device='' free_mib=0 torch='' no_torch='SKIP: there is no python3'
trap interrupted INT TERM HUP

# fact NAME VALUE: records a property of the machine
fact()
{
	printf '%s\t%s\n' "$1" "$2" >>"$out/machine.tsv"
}

# ---- info ----

# Prints the id of the device to measure; prints nothing if there is none.
choose()
{
	records devices '
		END {
			want = asked == "" ? "cuda rocm opencl" : asked
			m = split(want, backend, " ")
			for (b = 1; b <= m; b++)
				for (i = 0; i < n; i++) {
					id = f[i, "id"]
					if ((id == backend[b] || index(id, backend[b] ":") == 1) && (asked != "" || f[i, "kind"] ~ /gpu/)) {
						print i
						exit
					}
				}
		}' -v asked="$asked" <"$out/info.flat"
}

# Sets $free_mib: the free memory that the driver reports, at most its size.
memory_free()
{
	free_mib=$(awk -F'\t' -v size="$(value "$out/info.flat" "devices.$index.memory")" -v used="telemetry.devices.$device.mem_used" \
		-v all="telemetry.devices.$device.mem_total" '
		$1 == used { u = $2; seen = 1 }
		$1 == all { a = $2 }
		END {
			left = seen && a > 0 ? a - u : size
			printf "%d", (left < size ? left : size) / 1048576
		}' "$out/info.flat")
}

part_info()
{
	step 3 info "$yoke" info --json || return
	first_log=info.log
	flat <"$out/info.log" >"$out/info.flat"
	index=$(choose)
	if [ -z "$index" ]; then
		note failed "${asked:-no GPU} is not there: $yoke doctor says why"
	else
		device=$(value "$out/info.flat" "devices.$index.id")
		backend=${device%%:*}
		memory_free
	fi
	step 3 doctor "$yoke" doctor
	if ! command -v python3 >/dev/null 2>&1; then
		:
	elif ! python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null; then
		no_torch='SKIP: python3 has no torch'
	elif peer 5 torch python3 -c 'import torch
assert torch.cuda.is_available(), "its PyTorch finds no GPU"
print(torch.__version__)'; then
		torch=$(tail -n 1 "$out/torch.log")
	else
		no_torch=$missing
	fi
	card=$(value "$out/info.flat" "devices.${index:-0}.name")
	cpu=$(awk -F'\t' '$2 == "cpu:0" { sub(/id$/, "name", $1); print $1 }' "$out/info.flat")
	fact device "$device"
	fact card "$card"
	fact driver "$(value "$out/info.flat" "devices.${index:-0}.driver")"
	fact memory_mib "$(awk -v b="$(value "$out/info.flat" "devices.${index:-0}.memory")" 'BEGIN { printf "%d", b / 1048576 }')"
	fact free_mib "$free_mib"
	fact processor "$(value "$out/info.flat" "$cpu")"
	fact processors "$(nproc 2>/dev/null)"
	fact system "$(uname -sr)"
	fact yoke "$(value "$out/info.flat" version)"
	fact torch "${torch:-$no_torch}"
	case $card in
	"Fake driver "*) [ "${YOKE_FAKE_EMPTY:-0}" != 0 ] || quick=1 ;;
	esac
	if [ -n "$device" ] && [ "$free_mib" -lt "$([ "$quick" ] && echo 16 || echo 2048)" ]; then
		echo "bench/gpu.sh: only $free_mib MiB of $device are free: end the processes that hold the rest (nvidia-smi or rocm-smi lists them) and run it again" >&2
	fi
}

# ---- checks ----

# Checks that passed and failed in the logs of a family of processes.
tally()
{
	cat "$out/$1"-*.log 2>/dev/null | awk -v what="$2" '/^ok/ { n["ok"]++ } /^not ok/ { n["not ok"]++ } END { print n[what] + 0 }'
}

conform_pass()
{
	launch "conform-$1-$2" "$budget" "$yoke" check device "$device" --shard "$1/$workers" --pass "$2/24" ${quick:+--ops memory,graph,softmax.f32,map.i32}
}

conforms()
{
	spread conform "$1" conform_pass
	first_log=conform-0-0.log
	wrong=$(tally conform 'not ok')
	[ "$wrong" -eq 0 ] || note failed "$wrong checks are wrong: grep -A3 '^not ok' $out/conform-*.log"
	figure 'conform: checks of ops, dtypes and kernels' "$(tally conform ok)" passed
}

part_conform()
{
	conforms ${quick:+1} ${quick:-6}
}

losses()
{
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

# Trains the same 30 steps on the CPU for comparison; f32, with another order of sums.
part_train()
{
	model='layers=2 heads=4 embed=64 context=64 batch=8'
	[ -z "$quick" ] || model='layers=1 heads=1 embed=8 context=8 batch=1'
	for on in cpu:0 "$device"; do
		# shellcheck disable=SC2086 # keys
		step 8 "train-${on%%:*}" env "YOKE_BACKEND=${on%%:*}" "YOKE_DEVICE=$on" "$yoke" train "data=$sample" \
			"out=$out/train/check-${on%%:*}" steps=30 lr=1e-3 warmup=10 valid=0 eval_every=0 log_every=1 report=0 $model || return
	done
	losses "$out/train/check-cpu" >"$out/train/cpu.losses"
	first_log=train-$backend.log
	apart=$(losses "$out/train/check-$backend" | awk -v peer="$out/train/cpu.losses" '
		BEGIN { while ((getline line <peer) > 0) { split(line, f, " "); want[f[1]] = f[2] } }
		{ d = $2 - want[$1]; if (d < 0) d = -d; if (!(d <= worst)) worst = d; n++ }
		END { if (n == 30) printf "%.3g", worst; else print n + 0 " losses" }')
	figure 'largest difference of 30 losses from those of the CPU' "$apart" '' bound 1e-4
	awk -v d="$apart" 'BEGIN { exit !(d ~ /^[0-9.e+-]+$/ && d + 0 <= 1e-4) }' || note failed "losses differ from the CPU's by $apart, more than 1e-4"
}

programs_pass()
{
	launch "programs-$1-$2" "$budget" env "YOKE_BACKEND=$backend" "YOKE_DEVICE=$device" "$programs" $((5 * ($2 * workers + $1))) ${quick:-5} plain
}

programs()
{
	if [ ! -x "$programs" ]; then
		note partial "SKIP: $programs is not built: make check TESTS= builds it"
		return
	fi
	spread programs "$1" programs_pass
	first_log=programs-0-0.log
	figure 'random programs: passes beside an interpreter in f64' "$(tally programs ok)" passed
}

part_programs()
{
	programs $((quick ? 1 : (20 + workers - 1) / workers))
}

# ---- measures ----

# Begins all measurements below at once. The purpose is to compile their kernels into the cache,
# which would take most of the time if done one after another. Failures are reported when the
# measurement itself runs.
part_kernels()
{
	if [ "$workers" -lt 4 ]; then
		status=skip why="$workers processes compile no faster than one"
		return
	fi
	ahead=1 begun_ahead='' good=0
	part_products
	part_memory
	part_attention
	[ "$free_mib" -lt 32768 ] && [ -z "$quick" ] || part_gpt124
	part_gpt_small
	part_launches
	part_resolvents
	ahead=''
	for each in $begun_ahead; do
		attend "$each" "$(part_left)"
		[ "$code" -ne 0 ] || good=$((good + 1))
	done
	figure 'commands run ahead of their measurement' $good "of $(echo "$begun_ahead" | wc -w)"
}

# Measures products of M x N x K, batched or not. yoke tune checks each kernel and the library, then
# times them in turn.
part_products()
{
	sizes='4096x4096x4096x1 256x256x64x96 8x4096x4096x1 4096x64x4096x1 8192x8192x8192x1 2048x2048x2048x1 512x512x512x1'
	dtypes='bf16 f32 tf32 f16'
	[ -z "$quick" ] || sizes=64x64x64x1 dtypes=f32
	[ -z "$ahead" ] || sizes=${sizes%% *}
	for n in $sizes; do
		for dtype in $dtypes; do
			of=$dtype matmul=f32
			[ "$dtype" != tf32 ] || of=f32 matmul=tf32
			[ "$dtype" != tf32 ] || [ "$backend" = cuda ] || continue
			log=products-$dtype-$n
			step 6 "$log" env YOKE_MATMUL=$matmul "$yoke" tune "$device" --only "contract.$of.nn.$n" || continue
			first_log=$log.log
			! grep -q '^wrong' "$out/$log.log" || note failed "$(sed -n 's/^wrong \([^ ]*\).*/\1/p' "$out/$log.log" | head -n 1) is wrong: $log.log"
			rates=$(awk -v n="$n" '$1 == "time" { split(n, e, "x"); f = 2 * e[1] * e[2] * e[3] * e[4] / $3 / 1000
				if ($2 ~ /blas/) { if (f > lib) { lib = f; name = $2 } } else if (f > own) { own = f; kernel = $2 } }
				END { if (own) printf "%.4g %s %.4g %s", own, kernel, lib, name }' "$out/$log.log")
			# shellcheck disable=SC2086 # four words
			set -- $rates
			[ $# -ge 3 ] || continue # the device does not support the dtype
			if [ $# -eq 4 ]; then
				figure "product $dtype $n, $2" "$1" TFLOP/s "$4" "$3"
			else
				figure "product $dtype $n, $2" "$1" TFLOP/s 'SKIP: no cuBLASLt or hipBLASLt'
			fi
		done
	done
}

# The script of `sh -c "$into" sh FILE COMMAND ..`: runs the command with its standard output in FILE.
into='file=$1; shift; exec "$@" >"$file"'

# bench NEED NAME SUITE ..: writes the figures of yoke bench as lines "suite, case, seconds, bytes,
# flops" to NAME.cases; sets $copy to the device's copy rate in the same run, bytes per second
bench()
{
	need_bench=$1 name=$2
	shift 2
	step "$need_bench" "$name" env ${setting:+"$setting"} sh -c "$into" sh "$out/$name.json" "$yoke" bench "$@" "devices=$device" --json ${quick:+--quick} || return
	first_log=$name.log
	flat <"$out/$name.json" >"$out/$name.flat"
	copy=$(value "$out/$name.flat" devices.0.copy_bytes_per_s)
	records results '
		END { for (i = 0; i < n; i++) print f[i, "suite"] "\t" f[i, "case"] "\t" f[i, "median_s"] "\t" f[i, "bytes"] "\t" f[i, "flops"] "\t" f[i, "launches"] }' \
		<"$out/$name.flat" >"$out/$name.cases"
}

# scaled NUMBER FACTOR
scaled()
{
	awk -v x="$1" -v f="$2" 'BEGIN { printf "%.4g", x * f }'
}

# faster TIME PEER_TIME: the speed-up over the peer, PEER_TIME / TIME
faster()
{
	awk -v ours="$1" -v theirs="$2" 'BEGIN { if (ours > 0) printf "%.3g", theirs / ours }'
}

part_memory()
{
	setting='' # of yoke bench
	for suite in rows map memory; do
		bench 4 "memory-$suite" $suite || continue
		[ $suite != rows ] || figure 'copy on the device' "$(scaled "$copy" 1e-9)" GB/s
		while IFS="$tab" read -r suite case s bytes _; do
			rate=$(awk -v s="$s" -v b="$bytes" 'BEGIN { printf "%.4g", b / s / 1e9 }')
			case $case in
			"to the "*) figure "$case" "$rate" GB/s ;;
			*) figure "$case" "$rate" GB/s copy "$(scaled "$copy" 1e-9)" ;;
			esac
		done <"$out/memory-$suite.cases"
	done
}

# torch_figures NEED NAME WORD ..: runs bench/peers/gpu_torch.py and keeps its lines "name value";
# on failure sets $missing
torch_figures()
{
	: >"$out/$2.figures"
	if [ -z "$torch" ]; then
		missing=$no_torch
		return
	fi
	need_torch=$1 log=$2
	shift 2
	peer "$need_torch" "$log" python3 "$top/bench/peers/gpu_torch.py" "$@" && sed -n 's/^figure //p' "$out/$log.log" >"$out/$log.figures"
}

# beside NAME VALUE UNIT PEER LOG WORD: records a figure beside the peer's figure of that word
beside()
{
	theirs=$(awk -v word="$6" '$1 == word { print $2; exit }' "$out/$5.figures")
	if [ -n "$theirs" ]; then
		figure "$1" "$2" "$3" "$4" "$theirs"
	else
		figure "$1" "$2" "$3" "${missing:-SKIP: no figure of $4}"
	fi
}

# Attention, forward and with the gradients of all three operands, causal, in bf16; forward also by
# warp groups, which no rule selects.
part_attention()
{
	setting=''
	bench 4 attention attention || return
	generation=$(value "$out/info.flat" "devices.$index.hardware.generation")
	if [ "$generation" = sm_90 ] && setting=YOKE_ATTENTION=wgmma && bench 4 attention-wgmma attention; then
		while IFS="$tab" read -r suite case s _ flops _; do
			case $case in
			*bf16*grad*) ;;
			*bf16*) figure "attention $case, wgmma" "$(awk -v s="$s" -v f="$flops" 'BEGIN { printf "%.4g", f / s / 1e12 }')" TFLOP/s ;;
			esac
		done <"$out/attention-wgmma.cases"
	fi
	setting=''
	torch_figures 6 torch-attention attention
	while IFS="$tab" read -r suite case s _ flops _; do
		rate=$(awk -v s="$s" -v f="$flops" 'BEGIN { printf "%.4g", f / s / 1e12 }')
		case $case in
		*bf16*) beside "attention $case" "$rate" TFLOP/s 'PyTorch SDPA' torch-attention "$(echo "$case" | tr -d ' ,')" ;;
		*) figure "attention $case" "$rate" TFLOP/s ;;
		esac
	done <"$out/attention.cases"
}

# trains NAME NEED KEY=VALUE ..: sets $speed, the median tokens/s over log lines of the second half
trains()
{
	name=$1 need_train=$2 speed=''
	shift 2
	rm -rf "$out/train/$name"
	step "$need_train" "train-$name" env "YOKE_BACKEND=$backend" "YOKE_DEVICE=$device" "$yoke" train "out=$out/train/$name" valid=0 eval_every=0 \
		log_every=1 report=0 save_every=0 "$@" || return
	first_log=train-$name.log
	speed=$(awk -F'[:,]' '{ for (i = 1; i < NF; i++) if ($i ~ /tokens_per_s/) v[++n] = $(i + 1) }
		END { m = int(n / 2); for (i = m + 1; i <= n; i++) w[++k] = v[i]
			for (i = 2; i <= k; i++) for (j = i; j > 1 && w[j] < w[j - 1]; j--) { t = w[j]; w[j] = w[j - 1]; w[j - 1] = t }
			printf "%.0f", w[int((k + 1) / 2)] }' "$out/train/$name/metrics.jsonl")
	rm -rf "$out/train/$name" # its checkpoint may be gigabytes
}

# gpt NAME NEED PRECISION STEPS SHAPE ..: trains a GPT, beside PyTorch eager and compiled
gpt()
{
	name=$1 need_gpt=$2 precision=$3 steps=$4
	shift 4
	[ -z "$ahead" ] || steps=2
	trains "$name" "$need_gpt" "precision=$precision" "steps=$steps" "$@" || return
	shape=
	for word; do
		case $word in
		layers=* | heads=* | embed=* | context=* | batch=* | vocab=*) shape="$shape $word" ;;
		esac
	done
	for mode in eager compile; do
		# shellcheck disable=SC2086 # words
		torch_figures 10 "torch-$name-$mode" train "precision=$precision" "mode=$mode" $shape
		beside "train GPT $name, $precision" "$speed" tokens/s "PyTorch $mode" "torch-$name-$mode" tokens/s
	done
}

# 12 layers of 768, a vocabulary of 50257: 124 million parameters
part_gpt124()
{
	batch=8
	[ "$free_mib" -ge 32768 ] || batch=4
	[ "$free_mib" -ge 16384 ] || batch=2
	ids=$out/ids.txt model='layers=12 heads=12 embed=768 context=1024' vocab=50257 n=400000 steps=20
	[ -z "$quick" ] || model='layers=1 heads=1 embed=8 context=8' vocab=300 batch=2 n=2000 steps=4
	awk -v n=$n -v vocab=$vocab 'BEGIN { srand(1); for (i = 0; i < n; i++) printf "%d%s", int(rand() * vocab), i % 20 == 19 ? "\n" : " " }' >"$ids"
	# shellcheck disable=SC2086 # keys
	gpt 124M 10 bf16-mixed $steps "data=$ids" tokenizer=ids vocab=$vocab $model batch=$batch
}

part_gpt_small()
{
	model='layers=2 heads=4 embed=128 context=64 batch=16' steps=200
	[ -z "$quick" ] || model='layers=1 heads=1 embed=8 context=8 batch=2' steps=4
	# shellcheck disable=SC2086 # keys
	gpt small 4 fp32 $steps "data=$sample" $model
}

# A step of 80 small launches: recorded, planned and launched, with and without the driver's graphs.
part_launches()
{
	for replay in 0 1; do
		setting=YOKE_REPLAY=$replay
		bench 2 launches-$replay launches || return
	done
	while IFS="$tab" read -r suite case s _ _ launches; do
		replayed=$(awk -F'\t' -v case="$case" '$2 == case { printf "%.4g", 1e6 * $3 / $6 }' "$out/launches-1.cases")
		planned=$(awk -v s="$s" -v n="$launches" 'BEGIN { printf "%.4g", 1e6 * s / n }')
		figure "$case: a launch, replayed" "$replayed" us 'not replayed' "$planned" "$(faster "$replayed" "$planned")"
	done <"$out/launches-0.cases"
}

# The operations of a paged cache, and tokens per second of a server of a GPT of 86 M parameters with 1, 8 and 32 clients.
part_serve()
{
	step 6 serve-conform "$yoke" check device "$device" ${quick:+--quick} --ops paged_attention,scatter_set || return
	first_log=serve-conform.log
	figure 'paged attention and scatter_set: checks' "$(tally serve ok)" passed
	if "$yoke" serve . 2>&1 | grep -q 'built without libmicrohttpd'; then
		note partial 'SKIP: this yoke is built without libmicrohttpd'
		return
	fi
	model='layers=12 heads=12 embed=768 context=1024' length=128 served=$out/train/serve
	[ -z "$quick" ] || model='layers=1 heads=1 embed=8 context=32' length=4
	rm -rf "$served"
	# shellcheck disable=SC2086 # keys
	step 6 serve-model env "YOKE_BACKEND=$backend" "YOKE_DEVICE=$device" "$yoke" train "data=$sample" "out=$served" steps=1 batch=1 valid=0 \
		eval_every=0 report=0 $model || return
	for clients in 1 8 32; do
		step 5 serve-$clients env "YOKE_BACKEND=$backend" "YOKE_DEVICE=$device" sh -c "$into" sh "$out/serve-$clients.json" "$yoke" bench serve \
			"$served" clients=$clients requests=$((2 * clients)) prompt=$length tokens=$length slots=32 --json || break
		first_log=serve-$clients.log
		figure "serve, $clients clients" "$(flat <"$out/serve-$clients.json" | awk -F'\t' '$1 ~ /generated_per_s$/ { printf "%.4g", $2 }')" tokens/s
	done
	rm -rf "$served" # its checkpoint has hundreds of megabytes
}

# Times of the precision tiers beside the vendor's tridiagonal solvers, which bench/resolvent calls.
part_resolvents()
{
	if [ ! -x "$resolvents" ]; then
		note partial "SKIP: $resolvents is not built: make bench builds it"
		return
	fi
	sizes='rounds=5 warm=2 max=65536'
	[ -z "$quick" ] || sizes='--quick rounds=1 warm=0 max=128'
	# shellcheck disable=SC2086 # words
	step 6 resolvents env "YOKE_BACKEND=$backend" "YOKE_DEVICE=$device" sh -c "$into" sh "$out/resolvents.json" "$resolvents" --json $sizes || return
	first_log=resolvents.log
	flat <"$out/resolvents.json" | records results '
		END {
			for (i = 0; i < n; i++) {
				c = f[i, "case"]
				if (f[i, "device"] == "f32") { ours[c] = f[i, "median_s"]; order[++m] = c }
				if (f[i, "device"] ~ /^(strided|interleave)$/ && (!(c in best) || f[i, "median_s"] < best[c])) best[c] = f[i, "median_s"]
			}
			for (i = 1; i <= m; i++) printf "%s\t%.4g\t%s\n", order[i], ours[order[i]] * 1e6, order[i] in best ? sprintf("%.4g", best[order[i]] * 1e6) : ""
		}' >"$out/resolvents.cases"
	vendor=$(sed -n 's/^\(.*SPARSE[^:]*\): n\/a, \(.*\)/SKIP: no \1: \2/p' "$out/resolvents.log" | head -n 1)
	while IFS="$tab" read -r case ours theirs; do
		if [ -n "$theirs" ]; then
			figure "resolvent $case, f32" "$ours" us "$([ "$backend" = cuda ] && echo cuSPARSE || echo hipSPARSE)" "$theirs" "$(faster "$ours" "$theirs")"
		else
			figure "resolvent $case, f32" "$ours" us "${vendor:-SKIP: no cuSPARSE}"
		fi
	done <"$out/resolvents.cases"
}

# The OpenCL device of the same card: a sample of the conformance test, and timings beside the
# native backend.
part_opencl()
{
	other=$(records devices '
		END { for (i = 0; i < n; i++) if (f[i, "id"] ~ /^opencl:/ && f[i, "same_as"] == same) { print f[i, "id"]; exit } }' \
		-v same="$device" <"$out/info.flat")
	if [ "$backend" = opencl ]; then
		status=skip why='it is the device of all other parts'
		return
	elif [ -z "$other" ]; then
		status=skip why="no OpenCL device is $device: the driver's OpenCL library or its .icd file is missing, or the module is not built"
		return
	fi
	step 4 opencl-conform "$yoke" check device "$other" --quick --pass 0/24 ${quick:+--ops memory,softmax.f32}
	first_log=opencl-conform.log
	figure "conform on $other" "$(grep -c '^ok' "$out/opencl-conform.log")" passed
	for suite in contract map rows attention; do
		step 4 "opencl-$suite" sh -c "$into" sh "$out/opencl-$suite.json" "$yoke" bench $suite "devices=$device,$other" --json ${quick:+--quick} || continue
		flat <"$out/opencl-$suite.json" | records results '
			END { for (i = 0; i < n; i++) if (f[i, "device"] != other) native[f[i, "case"]] = f[i, "median_s"]
				for (i = 0; i < n; i++) if (f[i, "device"] == other)
					printf "%s\t%.4g\t%.4g\n", f[i, "case"], 1 / f[i, "median_s"], 1 / native[f[i, "case"]] }' \
			-v other="$other" >"$out/opencl-$suite.cases"
		while IFS="$tab" read -r case ours native; do
			figure "$suite $case" "$ours" 1/s "$device" "$native"
		done <"$out/opencl-$suite.cases"
	done
}

# Two devices of the backend: collectives by the vendor's library with both orders of sums and
# through host memory, beside one device.
part_ranks()
{
	devices=$(awk -F'\t' -v of="$backend:" '$1 ~ /^devices\.[0-9]+\.id$/ && index($2, of) == 1 { n++ } END { print n + 0 }' "$out/info.flat")
	if [ "$devices" -lt 2 ]; then
		status=skip why="$backend has one device"
		return
	fi
	model='layers=12 heads=12 embed=768 context=1024 batch=4 precision=bf16-mixed steps=20'
	[ -z "$quick" ] || model='layers=1 heads=1 embed=8 context=8 batch=2 steps=4'
	all=$device device='' one='' # each rank has its own device
	for way in one library fast host; do
		native=1 order=fixed n=2
		[ $way != one ] || n=1
		[ $way != fast ] || order=fast
		[ $way != host ] || native=0
		export YOKE_DIST_NATIVE=$native YOKE_DIST_ORDER=$order
		# shellcheck disable=SC2086 # keys
		trains "ranks-$way" 8 "data=$sample" $model ranks=$n micro_batches=2
		unset YOKE_DIST_NATIVE YOKE_DIST_ORDER
		[ $way != one ] || one=$speed
		[ -z "$speed" ] || figure "train on $n, $way" "$speed" tokens/s 'one device' "$one"
	done
	device=$all
}

# The conformance test of all cases, and random programs until the time is over, both at once.
part_whole()
{
	end=$until
	until=$(($(now) + $(part_left) / 2))
	conforms ${quick:+2} ${quick:-24}
	until=$end
	programs ${quick:+2} ${quick:-100000}
}

# ---- all of them ----

# name, weight, minimum seconds, mebibytes (0: needs no device), title
parts='info 12 8 0 info and doctor
conform 40 5 256 a sample of conform
train 14 8 256 30 steps against the CPU
programs 24 5 256 random programs
kernels 30 5 4096 kernels of what follows
products 45 6 1024 products against cuBLASLt or hipBLASLt
memory 20 4 2048 bandwidth and memory-bound operations
attention 16 4 1024 attention against PyTorch
gpt124 70 10 12288 GPT of 124 M parameters
gpt_small 16 4 512 small GPT
launches 6 2 256 launch overhead
serve 20 6 2048 a server with 1, 8 and 32 clients
resolvents 16 6 512 resolvents against cuSPARSE
opencl 16 4 1024 OpenCL on the same card
ranks 10 8 12288 two devices
whole 20 1 256 the rest of conform and random programs'
tab=$(printf '\t')
for name in $(echo "$chosen" | tr , ' '); do
	echo "$parts" | grep -q "^$name " || die "-p: there is no part $name: it is one of $(echo "$parts" | cut -d ' ' -f 1 | tr '\n' ' ')"
done
weights=$(echo "$parts" | awk -v chosen="$chosen" 'chosen == "" || index(chosen, "," $1 ",") { sum += $2 } END { print sum }')
echo "bench/gpu.sh: at most $total s, results in $out"
while read -r name weight need mib title; do
	part "$name" "$weight" "$need" "$mib" "$title" <&3
done 3</dev/null <<END
$parts
END
kill_all
echo "$out/results.json and table.md have the figures"
[ -n "$device" ] || echo "bench/gpu.sh: no GPU was found: $yoke doctor reports why" >&2
exit $failed
