#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the CUDA and ROCm plugins on the fake drivers of tests/fake_gpu, which execute kernels:
# they conform, train to the losses of the CPU, and report errors. The first compilation of a text
# takes a twentieth of a second, so the seed selects ops and dtypes, and the plugin that runs the
# cases after the conformance test; YOKE_TEST_LONG runs all.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
. "${srcdir:-.}/tests/fake_gpus.sh"
[ "${YOKE_TEST_SAMPLE:-0}" = 0 ] || backends=${backends%%
*}
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE"
today=$(echo $backends | cut -d ' ' -f $((turn % $(echo $backends | wc -w) + 1)))

# pick N: of the input lines, prints every N-th that the seed selects, each followed by a comma
pick()
{
	awk -v n="$1" -v turn="$turn" '(NR + turn) % n == 0 { printf "%s,", $0 }'
}

# run BACKEND WAY OPTION ..: runs the conformance test there
run()
{
	backend=$1 way=$2
	shift 2
	verdict "$backend, $way, $(echo "$*" | cut -c 1-60)" "$(wrong 0 env "$way" "$yoke" check device "$backend" "$@")"
	verdict "some implementations are tested: $(taken)" "$([ "$(taken)" -ge 1 ] || cat conform.out)"
}

"$yoke" check device cpu --quick | sed -n '/map\|reduce\|contract\|resolvent/d; s/^ok .* - \([a-z_]*\) f32 .*cases.*/\1.f32/p' | uniq >named
for d in f64 f16 bf16 i8 u8 i32 i64 bool; do printf 'map.%s\nreduce.%s\n' $d $d; done >others
printf 'contract.%s\n' f16 bf16 i32 f64 i8 >>others
printf 'layer_norm.%s\nsoftmax.%s\nattention.%s\nattention_backward.%s\ngather.%s\n' f16 bf16 bf16 f16 bf16 >>others
printf 'resolvent.%s\nresolvent_backward.%s\n' f32 f64 f16 f32 >>others # each of their cases is a text
awk 'BEGIN { for (i = 0; i < 900; i++) print "line", i % 7, "of a text" }' >text
keys="data=text layers=1 heads=2 embed=16 context=16 batch=2 valid=0 log_every=1"

# problem COMMAND ..: prints its output if it fails
problem()
{
	"$@" >log 2>&1 || cat log
}

# made IMPLEMENTATION N COMMAND ..: checks the number of products of tests/epilogues.t that the
# implementation computes
made()
{
	name=$1 want=$2
	shift 2
	env YOKE_BACKEND=$b YOKE_LOG=plan "$@" >log 2>&1 && [ "$(grep -c "	matmul	$name	" log)" -eq "$want" ] ||
		{ grep '^not ok' log; grep '	matmul	' log; }
}

# Products of the vendor's library, with epilogues that are used once they passed a check; of
# rocBLAS, without a better library; and products whose inner dimension is split.
products()
{
	lt=$([ $b = cuda ] && echo cublaslt || echo hipblaslt)
	dtype=$(echo f32 f16 bf16 | cut -d ' ' -f $((turn % 3 + 1)))
	run $b "YOKE_${big}_PRODUCTS=1" --quick --ops contract.f32
	verdict 'products of the library' "$(grep -q '^ok .*contract f32 [a-z]*blaslt: .*cases' conform.out || cat conform.out)"
	verdict "$b: a row, relu and gelu by tanh behind products of $dtype, by $lt" \
		"$(made $lt 6 "$here/tests/epilogues.t" $dtype)"
	verdict "$b: a library whose gelu is by erf, and whose relu loses NaNs" \
		"$(made $lt 2 YOKE_FAKE_EPILOGUES=other "$here/tests/epilogues.t" $dtype)"
	verdict "$b: maps that are no epilogue, after products of $dtype by $lt" \
		"$(made $lt 8 YOKE_${big}_PRODUCTS=1 "$here/tests/epilogues.t" $dtype)"
	verdict "$b: quantized products of many rows by $lt" "$(made $lt 17 YOKE_SYNC=1 "$here/tests/quant.t" Q4_0)" # 8 layers and their gradients, and one more
	if [ $b = rocm ]; then
		mkdir -p blas && ln -sf "$YOKE_TEST_FAKE"/*.so* blas && rm -f blas/libhipblaslt*
		verdict "$b: products by rocBLAS, without hipBLASLt" "$(made rocblas 1 LD_LIBRARY_PATH="$PWD/blas" \
			"$here/tests/epilogues.t" $dtype plain)"
		verdict "$b: the same, followed by maps" "$(made rocblas 8 LD_LIBRARY_PATH="$PWD/blas" \
			YOKE_ROCM_PRODUCTS=1 "$here/tests/epilogues.t" $dtype)"
	fi
	verdict "$b: products whose steps are split" "$(problem env YOKE_BACKEND=$b YOKE_${big}_PRODUCTS=0 \
		YOKE_TEST_SPLIT=1 "$here/tests/tall.t")"
}

# f32 products and attention by matrix units, which round to tf32 on NVIDIA; the seed selects one of
# them for cuda.
rounded()
{
	ops='contract attention'
	[ -n "${YOKE_TEST_LONG:-}" ] || ops=$(echo $ops | cut -d ' ' -f $((turn / 2 % 2 + 1)))
	for op in $ops; do
		run cuda YOKE_MATMUL=tf32 --quick --ops $op.f32
		verdict "$op of f32 by matrix units" "$(grep -q "^ok .*$op f32 matrix: .*cases" conform.out || cat conform.out)"
	done
}

# Scopes and evaluations as ranges of the vendor's profiler: they nest, and have the expected names.
ranges()
{
	for tool in '' $([ $b = cuda ] && echo "$YOKE_TEST_FAKE/libnvToolsExt.so.1"); do
		rm -rf told ranges
		verdict "$b: ranges${tool:+ by a tool that was injected}" "$(problem env YOKE_BACKEND=$b YOKE_PROFILER_RANGES=1 \
			YOKE_FAKE_RANGES="$PWD/told" NVTX_INJECTION64_PATH=$tool "$yoke" train $keys out=ranges steps=2
			awk '{ depth = match($0, /[^ ]/) - 1 }
				$1 == "push" { if (depth != n) print NR ": not within the one before: " $0; name[n++] = $2 }
				$1 == "pop" { if (depth != --n) print NR ": ends another: " $0 }
				/push evaluation/ { evaluations++ }
				n > 2 && name[1] == "evaluation" { inside++ }
				END { if (n || evaluations < 2 || !inside) print n " left, " evaluations + 0 " evaluations, " inside + 0 " in those" }' told
			grep -c injected told | grep -qx "${tool:+1}" || [ -z "$tool" ] || echo 'the tool was not asked')"
	done
}

# No text compiles: every op has a fallback, in the end the CPU's, which is reported; and results
# are correct.
unbuilt()
{
	for program in "random.t 3021 1 plain" "random.t $turn 20 plain" "resolvent.t values"; do
		rm -rf none.built
		verdict "$b: no text builds: $program" "$(problem env YOKE_BACKEND=$b YOKE_FAKE_CXX=false \
			YOKE_CACHE="$PWD/none.built" "$here/tests/"$program)"
	done
	verdict "$b: said why" "$(grep -q '^yoke: warn: plan: .*/lanes is not used, it does not build: .*ERROR_COMPILATION' log || cat log)"
}

# The vendor's tridiagonal solvers, as bench/resolvent calls them.
solvers()
{
	verdict "$b: tridiagonal systems by the vendor's library" "$(problem env YOKE_BACKEND=$b "$here/tests/sparse.t")"
}

# moved RUN: prints the bytes copied up and down in the run
moved()
{
	sed -n 's/.*"bytes_up":\([0-9]*\),"bytes_down":\([0-9]*\),.*/\1 \2/p' "$1/metrics.jsonl"
}

losses()
{
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

verdict 'the CPU trains' "$(problem env YOKE_BACKEND=cpu "$yoke" train $keys out=on.cpu steps=6)"
for b in $backends; do
	big=$(echo $b | tr a-z A-Z)
	YOKE_PLUGIN_PATH=$here/plugins/$b/.libs
	export YOKE_PLUGIN_PATH
	verdict "$b: one device" "$("$yoke" info >info 2>&1; grep -q "^  $b:0 .* Fake driver" info &&
		! grep -q "^  $b:1 " info && grep -q "chosen: $b:0" info || cat info)"
	if [ -n "${YOKE_TEST_LONG:-}" ]; then
		run $b A=
	else
		run $b A= --ops "$(pick 12 <named)memory"
		run $b A= --quick --ops "map.f32,$(pick 24 <others)memory"
	fi
	verdict "$b: no device" "$(YOKE_FAKE_DEVICES=0 "$yoke" info >info 2>&1
		grep -q "^  chosen: cpu:0" info || cat info)"

	# the rest alternates between backends
	[ -n "${YOKE_TEST_LONG:-}" ] || [ $b = "$today" ] || continue
	products
	format=$(echo Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K F16 BF16 | cut -d ' ' -f $((turn % 10 + 1)))
	verdict "$b: quantized weights, $format" "$(problem env YOKE_BACKEND=$b YOKE_SYNC=1 "$here/tests/quant.t" $format)"
	[ $b != cuda ] || rounded
	export YOKE_FAKE_CHECK=1 YOKE_POOL=0
	run $b 'YOKE_FAKE_DELAY=1' --quick --ops "$(pick 12 <named)reduce.f32"
	unset YOKE_POOL YOKE_FAKE_CHECK
	verdict "$b: more groups than a grid has along its axes" "$(problem env YOKE_BACKEND=$b YOKE_FAKE_GRID=40 \
		"$here/tests/grid.t")"
	# with an interpreter in float64, and one of them also in all modes
	programs=$([ -n "${YOKE_TEST_LONG:-}" ] && echo 5000 || echo 12)
	verdict "$b: $programs random programs" "$(problem env YOKE_BACKEND=$b "$here/tests/random.t" "$turn" $programs plain)"
	verdict "$b: random program $turn" "$(problem env YOKE_BACKEND=$b "$here/tests/random.t" "$turn")"
	verdict "$b trains" "$(problem env YOKE_BACKEND=$b YOKE_FAKE_DELAY=$turn "$yoke" train $keys out=on.$b steps=6 report=1
		grep '0 fallbacks' log >fell || cat log)"
	# sums have another order; the losses are about 5.5
	verdict "to the losses of the CPU" "$(losses on.cpu >a; losses on.$b >b; [ -s a ] || echo none
		paste a b | awk '$1 != $3 || !($4 - $2 < 1e-4 && $2 - $4 < 1e-4)')"
	verdict "$b: a second start compiles nothing" "$(problem env YOKE_BACKEND=$b "$yoke" train $keys out=second.$b steps=6 report=1
		grep -q '^  0 programs compiled, [1-9]' log || cat log)"
	problem env YOKE_BACKEND=$b "$yoke" train $keys out=longer.$b steps=12 report=1 >not
	# a step that is replayed reads its numbers from memory
	verdict "$b: a step takes 2 x 17 ids up, with a few numbers, and one small record down" "$(cat not
		moved second.$b >short; moved longer.$b | paste short - |
			awk '{ up = ($3 - $1) / 6 - 2 * 17 * 4; down = ($4 - $2) / 6; n++ }
				!(up >= 0 && up <= 64 && down > 0 && down <= 64) { print up " more up, " down " down" }
				END { if (n != 1) print n " reports" }')"
	export YOKE_FAKE_DEVICES=2
	for peer in good lie none; do
		export YOKE_FAKE_PEER=$peer
		verdict "$b: copies between two devices, peers: $peer" "$(problem "$here/tests/between.t" $b:0 $b:1)"
	done
	unset YOKE_FAKE_DEVICES YOKE_FAKE_PEER
	solvers
	ranges
	unbuilt

	# failures in a run: it continues on another device, and reports a line with the vendor's
	# names
	[ $b = cuda ] && code=CUDA_ERROR_ILLEGAL_ADDRESS launch=cuLaunchKernel alloc=cuMemAlloc_v2 context=cuDevicePrimaryCtxRetain full=CUDA_ERROR_OUT_OF_MEMORY ||
		code=hipErrorIllegalAddress launch=hipModuleLaunchKernel alloc=hipMalloc context=hipSetDevice full=hipErrorOutOfMemory
	for fault in kernel:60:$code $launch:60:$code; do
		rm -rf failed
		YOKE_FAKE_FAIL=$fault YOKE_BACKEND=$b,cpu "$yoke" train $keys out=failed steps=6 >out 2>err
		verdict "$b: $fault, and the run goes on" "$([ $? -eq 0 ] || cat err)"
		verdict "one line: $(grep -o 'yoke: .*lost' err)" "$(grep -q "yoke: warn: train: $b:0 was lost .*$code" err &&
			[ "$(grep -c '^yoke' err)" -eq 1 ] || cat err)"
		verdict "to the losses of the CPU" "$(losses failed >b
			paste a b | awk '$1 != $3 || !($4 - $2 < 1e-4 && $2 - $4 < 1e-4)')"
	done
	YOKE_FAKE_FAIL=$alloc:1+:$full YOKE_BACKEND=$b "$yoke" train $keys out=none.$b steps=6 >out 2>err
	verdict "$b: no memory at all" "$([ $? -eq 1 ] && [ "$(grep -c '^yoke' err)" -eq 1 ] &&
		grep -q "^yoke train: .*out of memory.*$alloc: $full" err || cat err)"
	# other processes use all but 60 KB of the card, all of it, or so much that no context can
	# be made
	for case in 4294907296: 4294967296: 4294967296:$context:1+:$full; do
		taken=${case%%:*} fault=${case#*:}
		YOKE_FAKE_TAKEN=$taken YOKE_FAKE_FAIL=$fault YOKE_BACKEND=$b "$yoke" train $keys out=none.$b steps=6 >out 2>err
		verdict "$b: $taken bytes are taken, $fault: $(grep '^yoke' err)" "$([ $? -eq 1 ] && [ "$(grep -c '^yoke' err)" -eq 1 ] &&
			grep -q '^yoke train: .*other processes that use' err && ! grep -q 'GiB free' err || cat err)"
	done
done
echo "1..$count"
exit $failed
