#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests conformance of the CPU backend: each instruction set implements the ops' definitions, with
# the same bits for any number of threads and with streaming or regular stores; a defective
# backend is found, and a case is the same in every run. conform_opencl.sh tests OpenCL.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}"

seed=${YOKE_TEST_SEED:-20261}
best=$("$yoke" check device cpu --ops memory | sed -n 's/^# cpu:0: [^;]*; \([a-z0-9_]*\),.*/\1/p')
for isa in base avx2 avx512 avx512_bf16 amx; do
	YOKE_CPU_ISA=$isa "$yoke" check device cpu --ops memory >/dev/null 2>&1 || continue # not of this processor
	less=--quick
	[ "$isa" != "$best" ] && [ -z "${YOKE_TEST_LONG:-}" ] || less=
	verdict "$isa" "$(wrong 0 env YOKE_CPU_ISA=$isa "$yoke" check device cpu $less)"
	verdict "$isa: $(taken) ops and dtypes" "$([ "$(taken)" -ge 90 ] || cat conform.out)"
	verdict "$isa: rows and attention of half precision are not taken apart" "$(
		for op in softmax layer_norm rms_norm cross_entropy attention; do
			for dtype in f16 bf16; do
				grep -q "^ok .* $op $dtype [a-z]*: .* cases" conform.out || echo "$op $dtype"
				grep -q "^ok .* ${op}_backward $dtype [a-z]*: .* cases" conform.out ||
					echo "${op}_backward $dtype"
			done
		done)"
done
verdict "$best, the day's cases" "$(wrong 0 "$yoke" check device cpu --quick --bits --seed "$seed")"
sed '/^#/d' conform.out >usual
for way in YOKE_THREADS=1 YOKE_CPU_STREAM=8192; do
	verdict "$way" "$(wrong 0 env $way "$yoke" check device cpu --quick --bits --seed "$seed")"
	verdict "$way: the same bits" "$(sed '/^#/d' conform.out | diff usual -)"
done
# with this seed a NaN met a dropped element in the unused lanes of a tile
verdict "$best, attention with dropout and NaN" "$(wrong 0 "$yoke" check device cpu --ops attention,attention_backward --seed 7)"
if [ -n "${YOKE_TEST_LONG:-}" ]; then
	for i in 1 2 3 4 5 6 7 8 9; do
		verdict "$best, more cases" "$(wrong 0 "$yoke" check device cpu --seed "$seed$i")"
		verdict "base, more cases" "$(wrong 0 env YOKE_CPU_ISA=base "$yoke" check device cpu --seed "$seed$i")"
	done
fi
for library in cblas onednn; do
	if YOKE_CPU_GEMM=$library "$yoke" check device cpu --ops memory >/dev/null 2>&1; then
		verdict "products by $library" "$(wrong 0 env YOKE_CPU_GEMM=$library "$yoke" check device cpu --ops contract
			grep -q "^ok .*contract f32 $library: [1-9]" conform.out || cat conform.out)"
	else
		skip "products by $library" 'no such library here'
	fi
done
if YOKE_CPU_LAPACK=1 "$yoke" check device cpu --ops memory >/dev/null 2>&1; then
	verdict 'linear algebra by LAPACK' "$(wrong 0 env YOKE_CPU_LAPACK=1 "$yoke" check device cpu --ops eigh,cholesky,svd)"
else
	verdict 'without LAPACK an error names the package to install' "$(YOKE_CPU_LAPACK=1 "$yoke" check device cpu 2>&1 |
		grep -q 'install liblapack3' || echo 'it does not')"
fi
verdict 'an unknown library: the error lists the known ones' "$(YOKE_CPU_GEMM=fastest "$yoke" check device cpu 2>&1 |
	grep -q 'own, cblas or onednn' || echo 'it does not')"
verdict 'skeleton' "$(wrong 0 "$yoke" check device skeleton --quick)"
verdict 'skeleton: supported cases run' "$([ "$(taken)" -eq 2 ] || cat conform.out)"
verdict 'skeleton: unsupported cases are counted' "$(grep '# SKIP' conform.out
	grep -q '^# skeleton:0: 3 passed, 0 failed, [1-9][0-9]* skipped' conform.out || cat conform.out)"
skipped=$(sed -n 's/^# skeleton:0: .* failed, \([0-9]*\) skipped.*/\1/p' conform.out)
verdict 'skeleton: unsupported cases are listed on request' "$(wrong 0 "$yoke" check device skeleton --quick --skipped
	[ "$(grep -c '^ok .* # SKIP' conform.out)" -eq "$skipped" ] && grep -qx "1\.\.$((skipped + 3))" conform.out &&
		grep -q "^# skeleton:0: 3 passed, 0 failed, $skipped skipped" conform.out || cat conform.out)"
verdict 'memory without addresses, late events' \
	"$(wrong 0 env YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=2 "$yoke" check device fault --quick)"

verdict 'graphs are checked on a backend that has them' "$(grep -q '^ok .* graph: .* replayed' conform.out || cat conform.out)"
verdict 'a backend without fill, copy and graphs passes' "$(wrong 0 env YOKE_FAULT_LACKS=table_fill,table_copy "$yoke" \
	check device fault --ops memory,graph,softmax.f32)"

ops=$("$yoke" check device cpu --quick | sed -n 's/^ok .* - \([a-z_]*\) f32 .*cases.*/\1/p' | uniq)

# A kernel whose first element has the wrong sign, in each op.
for op in $ops; do
	verdict "a wrong $op is found" "$(wrong 1 env YOKE_FAULT_WRONG="$op" "$yoke" check device fault --quick \
		--ops "$op")"
	verdict "a wrong kernel is shown with its case" "$(grep -q "^# $op\.f32\.[0-9]*: result" conform.out ||
		cat conform.out)"
done
verdict 'a launch that fails is found' "$(wrong 1 env YOKE_FAULT_RUN=30 "$yoke" check device fault --quick \
	--ops softmax,sort,move)"
verdict 'and only that' "$([ "$(grep -c '^not ok' conform.out)" -eq 1 ] &&
	grep -q '^# fault:0: [1-9][0-9]* passed, 1 failed, ' conform.out || cat conform.out)"
verdict 'late as well' "$(wrong 1 env YOKE_FAULT_LATE=30 "$yoke" check device fault --quick --ops softmax,sort,move)"

"$yoke" check device cpu --ops softmax.f32,sort --seed 5 >first
"$yoke" check device cpu --ops softmax.f32,sort --seed 5 >second
"$yoke" check device cpu --ops softmax.f32,sort --seed 6 >other
verdict 'a seed gives the same cases' "$(diff first second)"
verdict 'another seed gives other cases' "$(cmp -s first other && echo the same)"
# Cases of each op, dtype and implementation, of one run or of several.
cases()
{
	sed -n 's/^ok [0-9]* - \(.*\): \([0-9]*\) of [0-9]* cases.*/\1\t\2/p' "$@" | awk -F'\t' '{ n[$1] += $2 } END { for (k in n) print k ": " n[k] }' | sort
}
rm -f pass-*
for pass in 0 1 2; do
	for shard in 0 1; do
		"$yoke" check device cpu --ops memory,sort,rope,softmax --shard $shard/2 --pass $pass/3 >pass-$pass-$shard || echo "$pass $shard: status $?"
	done
done >bad
"$yoke" check device cpu --ops memory,sort,rope,softmax >whole
verdict 'shards and passes are all cases, once' "$(cat bad; cases whole >a; cases pass-* >b; [ -s a ] && diff a b)"
verdict 'a pass without a supported case does not skip the op in later passes' "$(for pass in 0 1; do
	"$yoke" check device skeleton --ops map.f32 --pass $pass/2 | grep ' skipped' | grep -v ', 0 skipped'; done)"
verdict 'a shard is some of the dtypes' "$(cases pass-0-0 | sed 's/:.*//' >a; cases pass-0-1 | sed 's/:.*//' >b
	[ -s a ] && [ -s b ] && [ -z "$(comm -12 a b)" ] || cat a b)"
verdict 'memory is checked once' "$(cat pass-* | grep -c '^ok .* memory' | grep -vx 1)"
for option in --shard=4/4 --shard=1 --pass=a/2 --pass=1/ --pass=1/0; do
	"$yoke" check device cpu $option >out 2>err
	verdict "$option is refused" "$([ $? -eq 2 ] && [ ! -s out ] && [ "$(grep -c . err)" -eq 1 ] || cat out err)"
done
verdict 'a single case can be selected by name' "$(wrong 0 "$yoke" check device cpu --ops contract.f32.17
	grep -q 'contract f32 .*: 1 of 1 cases' conform.out || cat conform.out)"
echo "1..$count"
