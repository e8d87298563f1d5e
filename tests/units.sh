#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the kernels for matrix units of sm_80 on the fake driver, whose models execute cp.async, ldmatrix
# and mma.sync (tests/fake_gpu/units.h), and that the models find faults. The seed selects dtypes and layouts;
# YOKE_TEST_LONG runs all.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
. "${srcdir:-.}/tests/fake_gpus.sh"
case $backends in
*cuda*) ;;
*) echo '1..0 # SKIP no CUDA plugin in this build'; exit 0 ;;
esac
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE" YOKE_PLUGIN_PATH="$here/plugins/cuda/.libs" YOKE_FAKE_ARCH=sm_80

# Sizes at the edges of tiles; 520 x 264 steps are split among groups.
others=blocks,blocks-64,blocks-128,tiled,tiled-32,cublaslt
for dtype in $(some 1 bf16 f16); do
	for layout in $(some 2 nn nt tn); do
		for size in 40x264x72x1 136x32x200x2 128x256x64x1 264x136x520x1; do
			verdict "products of $dtype, $layout, $size" "$(tuned contract.$dtype.$layout.$size 'stages\|time matrix' 7 "$others")"
		done
	done
done

# attention OP N PART SETTING ..: this part of tests/attention.t uses the kernels with matrix units N times
attention()
{
	op=$1 n=$2 part=$3
	shift 3
	env "$@" YOKE_BACKEND=cuda YOKE_LOG=plan "$here/tests/attention.t" "$part" >attention.out 2>&1 &&
		[ "$(grep -c "	$op	matrix	" attention.out)" -eq "$n" ] || cat attention.out
}
for check in $(some 4 0 0 1); do
	verdict "attention over several blocks of keys, accesses checked: $check" "$(attention attention 20 values YOKE_FAKE_CHECK=$check)"
	verdict "its gradients, accesses checked: $check" "$(attention attention_backward 14 gradients YOKE_FAKE_CHECK=$check)"
done

# The same text without something that only the models notice.
cat >mutant <<'END'
#!/bin/sh
for file; do case $file in *.cu) sed -i "$YOKE_MUTATION" "$file" ;; esac; done
exec $YOKE_COMPILER "$@"
END
chmod +x mutant
while IFS='	' read -r what edit; do
	mkdir -p built
	attention attention 20 values YOKE_MUTATION="$edit" YOKE_COMPILER="$cxx" YOKE_FAKE_CXX="$PWD/mutant" YOKE_FAKE_CACHE="$PWD/built" \
		YOKE_CACHE="$PWD/built" >found
	verdict "finds $what" "$(grep -q '^not ok\|^fake_gpu\|a test product is wrong' found || echo 'all is well')"
	rm -rf built
done <<'END'
copies that are not waited for	/^\t/s/COPIES_WAIT([^)]*);//
a missing barrier	/^\t.*COPIES_WAIT/{n;s/BARRIER();//;}
fragments that are not transposed	s/, "\.trans");/, "");/
lines of a fragment at odd addresses	s/lane \/ 16 \* 4 \* MATRIX_EACH/lane \/ 16 * 2 * MATRIX_EACH/
END
echo "1..$count"
exit $failed
