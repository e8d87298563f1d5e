#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke doctor: each state of an OpenCL installation has its own diagnosis, a requested but
# unusable backend is a failure, and the JSON output contains everything.
set -u
. "${srcdir:-.}/tests/yoke.sh"
fake=$PWD/tests/icd/.libs/fake_icd.so
[ -n "${YOKE_PLUGIN_PROBE:-}" ] || { echo "1..0 # SKIP no helper in YOKE_PLUGIN_PROBE"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
# under PREFIX: where configure places libraries and helpers
placed()
{
	sed -n "s,^$1 = \${[a-z_]*prefix}/,,p" Makefile 2>/dev/null
}
libdir=$(placed libdir) libexecdir=$(placed libexecdir) fault=${YOKE_TEST_MODULES##*:}/yoke_fault.so
cd "${TMPDIR:-/tmp}" || exit 99
umask 022
mkdir plugins none
export YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_PLUGIN_PROBE_TIME=60
unset OCL_ICD_VENDORS OPENCL_VENDOR_PATH

# doctor STATUS SETTING ..: runs it; says NAME WORDS: what it said
doctor()
{
	want=$1
	shift
	env "$@" "$yoke" doctor >out 2>err
	status=$?
	verdict "$*: exit $want" "$([ $status -eq "$want" ] || { echo "status $status"; cat out err; })"
}
says()
{
	verdict "  $1" "$(grep -q -- "$1" out || cat out)"
}

# what the loader could look at
doctor 0 OPENCL_VENDOR_PATH="$PWD/nowhere"
says "^  drivers  missing  $PWD/nowhere, from OPENCL_VENDOR_PATH: No such file"
says "^  $PWD/nowhere .*: correct or unset OPENCL_VENDOR_PATH"
doctor 0 OCL_ICD_VENDORS="$PWD/none"
says "^  drivers  empty  $PWD/none, from OCL_ICD_VENDORS: .*\.icd"
says "^  $PWD/none .*: install .*pocl-opencl-icd"
mkdir broken foreign && echo "$PWD/libnone.so" >broken/b.icd && echo libc.so.6 >foreign/f.icd
echo 'no library' >libtext.so && mkdir text && echo "$PWD/libtext.so" >text/t.icd
doctor 0 OCL_ICD_VENDORS="$PWD/broken"
says "^  driver   fails  $PWD/broken/b.icd  $PWD/libnone.so: cannot open shared object file"
says "^  $PWD/broken/b.icd: its library $PWD/libnone.so cannot be used"
doctor 0 OCL_ICD_VENDORS="$PWD/text"
says "^  driver   fails  $PWD/text/t.icd  .*: \(file too short\|invalid ELF header\)"
doctor 0 OCL_ICD_VENDORS="$PWD/foreign/f.icd"
says "^  driver   fails  $PWD/foreign/f.icd  libc.so.6: .*clIcdGetPlatformIDsKHR"
if [ -e "$fake" ]; then
	for flaw in nodevices empty crash hang aliases; do
		cp "$fake" "libfake_$flaw.so" && mkdir $flaw &&
			echo "$PWD/libfake_$flaw.so" >$flaw/fake.icd
	done
	doctor 0 OCL_ICD_VENDORS="$PWD/nodevices"
	says "^  driver   no devices  .*: platform Fake A has no devices$"
	says "^    platform with 0 devices  Fake A; OpenCL 1.2 fake$"
	doctor 0 OCL_ICD_VENDORS="$PWD/empty"
	says "^  driver   no platform  "
	doctor 0 OCL_ICD_VENDORS="$PWD/crash"
	says "^  driver   crashes  .*: died of SIGSEGV$"
	says "^  $PWD/crash/fake.icd: update that driver, or remove"
	doctor 0 OCL_ICD_VENDORS="$PWD/hang" YOKE_PLUGIN_PROBE_TIME=3
	says "^  driver   crashes  .*: gave no answer within 3 s"
	cp crash/fake.icd aliases/crash.icd # each is met by itself
	doctor 0 OCL_ICD_VENDORS="$PWD/aliases"
	says "^  driver   crashes  $PWD/aliases/crash.icd "
	says "^  driver   works  $PWD/aliases/fake.icd "
	says "^    platform with 2 devices  Fake B; OpenCL 1.2 fake$"
	YOKE_BACKEND=cpu OCL_ICD_VENDORS="$PWD/crash" "$yoke" doctor >out 2>&1
	says "^  driver   not tried  $PWD/crash/fake.icd .*YOKE_BACKEND"
else
	skip 'drivers that answer' "no $fake"
fi
# a program cannot be made to miss a library that is there: the helper says what it would
cat >helper <<'EOF'
#!/bin/sh
[ "$1" = --loader ] && printf 'error\tcannot open shared object file\n\0'
EOF
chmod 755 helper
doctor 0 YOKE_PLUGIN_PROBE="$PWD/helper"
says "^  loader   missing: cannot open shared object file$"
says "^  .*OpenCL loader libOpenCL.so.1 .*install ocl-icd-libopencl1"
doctor 0 YOKE_PLUGIN_PROBE=0
says "^  loader   not tried: YOKE_PLUGIN_PROBE=0$"

# modules that were built and are not found
if [ -n "${YOKE_TEST_OPENCL:-}" ]; then
	doctor 0 YOKE_PLUGIN_PATH="$PWD/none"
	says '^  yoke_opencl  *not found'
	says "^  yoke_opencl was built .*: set YOKE_PLUGIN_PATH=${YOKE_TEST_OPENCL%/*},"
	doctor 0 YOKE_PLUGIN_PATH="${YOKE_TEST_OPENCL%/*}"
	says "^  yoke_opencl  *found  *$YOKE_TEST_OPENCL\$"
	verdict '  and no advice about it' "$(grep 'yoke_opencl was built' out)"
fi

# an installation that was moved as a whole, and one that lost its helper
if [ -n "$libdir" ] && [ -n "$libexecdir" ] && [ -e "$fault" ]; then
	mkdir -p moved/bin "moved/$libdir/yoke" "moved/$libexecdir/yoke"
	cp "$yoke" moved/bin/yoke && cp "$YOKE_PLUGIN_PROBE" "moved/$libexecdir/yoke/" && cp "$fault" "moved/$libdir/yoke/"
	built=$yoke helper=$YOKE_PLUGIN_PROBE path=$YOKE_PLUGIN_PATH
	yoke=$PWD/moved/bin/yoke
	unset YOKE_PLUGIN_PROBE YOKE_PLUGIN_PATH
	doctor 0 YOKE_BACKEND=fault,cpu
	says "^  found  $PWD/moved/$libexecdir/yoke/yoke-probe\$"
	says "^  $PWD/moved/$libdir/yoke/yoke_fault.so  *loaded\$"
	verdict "  and no warning" "$(cat err)"
	rm "moved/$libexecdir/yoke/yoke-probe"
	doctor 0 YOKE_BACKEND=fault,cpu
	says "^  missing: helper .*/yoke-probe: No such file"
	says "^  plugins .*yoke-probe.*YOKE_PLUGIN_PROBE"
	"$yoke" info >out 2>&1
	says "warn: plugin: $PWD/moved/$libdir/yoke/yoke_fault.so: tried in this process: helper .*/yoke-probe: No such file"
	yoke=$built
	export YOKE_PLUGIN_PROBE="$helper" YOKE_PLUGIN_PATH="$path"
else
	skip 'a moved installation' 'no Makefile, or no fault backend'
fi

# what was asked for
doctor 1 YOKE_BACKEND=nothing
says "backend 'nothing' cannot be used: there is no such backend"
doctor 1 YOKE_BACKEND=nothing,cpu
says "^  backend 'nothing' cannot be used: there is no such backend"
says '^  chosen     cpu:0$'
doctor 0 YOKE_BACKEND=^nothing
doctor 1 YOKE_DEVICE=pci:0f:00.0
says "device 'pci:0f:00.0' cannot be used"
doctor 1 YOKE_PLUGIN_PATH="$PWD/none:$PWD/missing"
says "^  YOKE_PLUGIN_PATH, folder $PWD/missing: No such file"
says "^  $PWD/none  *searched, holds no plugin$"
doctor 1 YOKE_THREADS=many
says '^  YOKE_THREADS=many .* default 0 '
doctor 1 YOKE_CPU_ISA=sse9
says '^  YOKE_CPU_ISA=sse9: cpu.isa=sse9: '
doctor 1 YOKE_PLUGIN_PROBE="$PWD/missing"
says "^  YOKE_PLUGIN_PROBE=$PWD/missing: No such file"
doctor 1 YOKE_QUIRKS="$PWD/missing"
says "^  YOKE_QUIRKS=$PWD/missing: .*No such file"
if [ -n "${YOKE_TEST_OPENCL:-}" ]; then
	doctor 1 YOKE_PLUGIN_PATH="${YOKE_TEST_OPENCL%/*}" YOKE_OPENCL_PLATFORM=nobody
	says '^  YOKE_OPENCL_PLATFORM=nobody: no devices: '
fi
mkdir shared && chmod 777 shared
doctor 1 YOKE_CACHE="$PWD/shared"
says "^  yoke    not used  $PWD/shared .*others may write there (mode 0777); chmod go-w"
ln -s "$PWD/none" link
doctor 1 YOKE_CACHE="$PWD/link"
says "a link is not followed"
doctor 1 YOKE_CACHE=relative
says "YOKE_CACHE=relative is no absolute path"
doctor 0 YOKE_CACHE=0
says "^  yoke    not used  .*: switched off (YOKE_CACHE=0)"
echo 'no plugin' >plugins/yoke_text.so && chmod 755 plugins/yoke_text.so
doctor 0
says "^  $PWD/plugins/yoke_text.so  *not loaded: "

# what yoke tune found
modules=${YOKE_TEST_MODULES:-}
if [ -e "${modules##*:}/yoke_fault.so" ]; then
	export YOKE_PLUGIN_PATH="${modules##*:}" YOKE_BACKEND=fault,cpu YOKE_FAULT_IMPLS_MAX=8
	doctor 0 YOKE_FAULT_IMPLS=2
	says '^  fault:0   none, 0 classes  .*/tuning-[0-9a-f]*\.txt$'
	says '^  fault:0 .*`yoke tune fault:0` measures'
	kept=$(sed -n 's/^  fault:0   none, 0 classes  //p' out)
	head=$(YOKE_FAULT_IMPLS=2 "$yoke" tune fault >out 2>&1 && sed -n 1p "$kept")
	verdict "  tuned: $head" "$([ -n "$head" ] || cat out)"
	doctor 0 YOKE_FAULT_IMPLS=2
	says "^  fault:0   used, [1-9][0-9]* classes  $kept\$"
	verdict '  and no more advice' "$(grep 'fixed rules' out)"
	doctor 0 YOKE_TUNE=0
	says "^  fault:0   not used, [1-9][0-9]* classes  $kept: YOKE_TUNE=0\$"
	printf '%s\ncontract.f32.nn.8x8x8x1 first\n' "$head" >"$kept"
	doctor 0 YOKE_FAULT_IMPLS=2
	says "^  fault:0   not used, 0 classes  .*$kept:2: it is not NAME="
	says "^  $kept:2: .*: .yoke tune fault:0"
	export YOKE_PLUGIN_PATH="$PWD/plugins"
	unset YOKE_BACKEND YOKE_FAULT_IMPLS_MAX
else
	skip 'tuning' 'no fault backend'
fi
"$yoke" doctor --extra >out 2>&1
verdict "usage" "$([ $? -eq 2 ] || cat out)"

YOKE_BACKEND=nothing "$yoke" doctor --json >out 2>err
status=$?
verdict "--json: exit 1, nothing but JSON" "$([ $status -eq 1 ] && [ "$(sed -n 1p out)" = '{' ] ||
	cat out err)"
for key in versions asked choice devices backends folders plugins helper opencl threads caches tuning problems advice; do
	verdict "  $key" "$(grep -q "^  \"$key\": [{[]" out || cat out)"
done
echo "1..$count"
