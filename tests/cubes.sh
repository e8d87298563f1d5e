#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke cubes, and reads its files with NumPy, Spectral Python and GDAL where they are
# installed.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99

python=
for p in python3 /usr/bin/python3; do
	! "$p" -c 'import numpy' 2>/dev/null || { python=$p; break; }
done
# says LINE COMMAND: its output, both streams, has that line
says()
{
	line=$1
	shift
	"$@" >out 2>&1
	grep -q "$line" out || cat out
}
without()
{
	skip "$1" "$2 is not installed"
}

verdict 'make' "$("$yoke" cubes make set count=2 lines=16 samples=12 bands=5 2>&1; ls set | wc -l | grep -qx 6 || ls set)"
verdict 'the same once more' "$("$yoke" cubes make again count=2 lines=16 samples=12 bands=5 2>&1; diff -r set again)"
verdict 'info' "$(says '^16  *12  *5  *f32  *bip  *little' "$yoke" cubes info set/cube_00001.hdr)"
verdict 'check' "$(says ' 0 of 192 pixels ignored, 0 numbers not finite' "$yoke" cubes check set/cube_00000.hdr)"
verdict 'convert' "$("$yoke" cubes convert set/cube_00000.hdr big.hdr type=i16 interleave=bsq order=big bands=1-3 2>&1
	says '^16  *12  *3  *i16  *bsq  *big' "$yoke" cubes info big.hdr)"
verdict 'and to .npy' "$("$yoke" cubes convert set/cube_00000.hdr x.npy 2>&1; says '^16  *12  *5  *f32' "$yoke" cubes info x.npy)"
verdict 'bands of info' "$(says '^16  *12  *2  *f32' "$yoke" cubes info set/cube_00000.hdr bands=0,3)"
verdict 'bands in any order' "$(for i in bip bil bsq; do
		"$yoke" cubes convert set/cube_00000.hdr all.hdr interleave=$i overwrite=1
		"$yoke" cubes convert all.hdr some.hdr interleave=bsq bands=0,3,3,2,4 overwrite=1
		"$yoke" cubes convert some.hdr one.hdr interleave=bsq bands=2 overwrite=1
		"$yoke" cubes convert set/cube_00000.hdr want.hdr interleave=bsq bands=3 overwrite=1
		cmp one.img want.img
	done 2>&1)"
verdict 'a cube of several' "$("$yoke" cubes convert x.npy one.npy stack=1 item=3 bands=0 2>&1
	says '^12  *5  *1  *f32' "$yoke" cubes info one.npy)"
verdict 'numbers that do not fit' "$(says 'which u8 does not hold' "$yoke" cubes convert set/cube_00000.hdr no.hdr type=u8)"
dd if=set/cube_00000.img of=big.img bs=100 count=1 2>/dev/null
verdict 'data that are short' "$(says 'the file has 100' "$yoke" cubes check big.hdr
	"$yoke" cubes check big.hdr >/dev/null 2>&1 && echo 'it exits well')"
verdict 'another word' "$(says 'convert .*FROM' "$yoke" cubes convert set/cube_00000.hdr y.npy order=middle)"
verdict 'another verb' "$(says 'info CUBE' "$yoke" cubes look set/cube_00000.hdr)"

if [ -n "$python" ]; then
	"$yoke" cubes convert set/cube_00000.hdr bil.hdr type=u16 interleave=bil order=big bands=2-3
	verdict 'NumPy reads the same numbers' "$("$python" -c '
import numpy as np
x = np.fromfile("set/cube_00000.img", "<f4").reshape(16, 12, 5)
assert (np.load("x.npy") == x).all()
assert np.load("set/cube_00000_label.npy").shape == (16, 12, 1)
bil = np.fromfile("bil.img", ">u2").reshape(16, 2, 12).transpose(0, 2, 1)
assert (bil == np.rint(x[:, :, 2:4])).all()
np.save("theirs.npy", x.astype(">f8"))
' 2>&1)"
	"$yoke" cubes convert theirs.npy ours.hdr type=f32 order=little
	verdict 'and ours are those of a file it saved' "$(cmp ours.img set/cube_00000.img 2>&1)"
else
	without 'NumPy reads the same numbers' NumPy
fi
if [ -n "$python" ] && "$python" -c 'import spectral' 2>/dev/null; then
	verdict 'Spectral Python reads the same numbers' "$("$python" -c '
import numpy as np, spectral
for name in "set/cube_00000", "bil":
    ours = np.asarray(spectral.envi.open(name + ".hdr").load())
    x = np.load("x.npy")
    assert (ours == (x if name != "bil" else np.rint(x[:, :, 2:4]))).all(), name
' 2>&1)"
else
	without 'Spectral Python reads the same numbers' 'Spectral Python'
fi
if command -v gdalinfo >/dev/null 2>&1; then
	verdict 'GDAL opens them' "$(says 'Size is 12, 16' gdalinfo set/cube_00000.img)"
else
	without 'GDAL opens them' gdalinfo
fi
echo "1..$count"
