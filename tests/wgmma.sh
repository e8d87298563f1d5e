#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the kernels for warp groups (sm_90a) on the fake driver, whose model of the instructions
# decodes descriptors, swizzles and fragments (tests/fake_gpu/wgmma.h). The seed selects a layout, a
# dtype and cases; YOKE_TEST_LONG runs all.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
. "${srcdir:-.}/tests/fake_gpus.sh"
case $backends in
*cuda*) ;;
*) echo '1..0 # SKIP no CUDA plugin in this build'; exit 0 ;;
esac
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE" YOKE_PLUGIN_PATH="$here/plugins/cuda/.libs" YOKE_FAKE_ARCH=sm_90

others=stages,stages-64,stages-128,stages-256,matrix,matrix-64,matrix-128,blocks,blocks-64,blocks-128,tiled,tiled-32,cublaslt

# Sizes at the edges of tiles; 520 x 264 steps are split among groups.
for dtype in $(some 1 bf16 f16); do
	for layout in $(some 2 nn nt tn); do
		for size in 40x264x72x1 136x32x200x2 128x256x64x1 264x136x520x1; do
			verdict "products of $dtype, $layout, $size" "$(tuned contract.$dtype.$layout.$size wgmma- 2 "$others")"
		done
	done
done
# every twelfth case has aligned operands
cases=
for number in $(some 4 4 16 28 40); do
	cases=$cases${cases:+,}contract.f16.$number,contract.bf16.$number
done
verdict "conformance: $cases" "$(wrong 0 env YOKE_FAKE_CHECK=1 "$yoke" check device cuda:0 --ops "$cases")"
for name in wgmma-128 wgmma-256; do
	verdict "$name took part" "$(grep -q "^ok .* $name: .*cases" conform.out || echo "$cases: no line")"
done
verdict 'attention over several blocks of keys' "$(YOKE_BACKEND=cuda YOKE_ATTENTION=wgmma YOKE_LOG=plan "$here/tests/attention.t" values >tune.out 2>&1 &&
	[ "$(grep -c '	attention	wgmma	' tune.out)" -eq 20 ] || cat tune.out)"
verdict 'conformance: attention' "$(wrong 0 env YOKE_FAKE_CHECK=1 "$yoke" check device cuda:0 --ops "$(some 1 attention.bf16 attention.f16 | tr " " ,)" --seed $((turn % 9 + 1)))"
verdict 'wgmma took part in attention' "$(grep -q '^ok .* wgmma: .*cases' conform.out || cat conform.out)"
verdict 'an older NVRTC, and another architecture, lack them' "$(for how in YOKE_FAKE_COMPILER=11.8 YOKE_FAKE_ARCH=sm_100; do
	env $how "$yoke" tune cuda:0 --only contract.bf16.nn.64x64x64x1 >tune.out 2>&1
	! grep '^time wgmma' tune.out && grep -q '^time stages ' tune.out || cat tune.out
done)"
echo "1..$count"
exit $failed
