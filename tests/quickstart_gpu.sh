#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the launcher that quickstart writes for this build, on a machine with the (fake) driver of
# NVIDIA or AMD: without user settings it chooses the GPU, and quickstart's first training runs
# there and reports it.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
. "$source/tests/fake_gpus.sh"
easy_text 300 >tinyshakespeare.txt
unset YOKE_PLUGIN_PATH YOKE_BACKEND YOKE_DEVICE

eval "$(sed -n '/^say()/,/^}/p; /^module_folders()/,/^}/p; /^write_launcher()/,/^}/p; /^train()/,/^}/p' "$source/quickstart")"
build=$here
mkdir written first
top=$PWD/written
write_launcher
# the first training uses the keys of a smaller model, because the fakes are slow
cat >first/yoke <<'END'
#!/bin/sh
for word; do
	shift
	case $word in
	layers=* | heads=* | embed=* | context=* | batch=* | steps=* | warmup=* | *_every=*) ;;
	*) set -- "$@" "$word" ;;
	esac
done
exec "${0%/first/yoke}/written/yoke" "$@" layers=1 heads=2 embed=16 context=16 batch=2 steps=2
END
chmod +x first/yoke
YOKE_TEST_DATA=$PWD

# chosen LIBRARIES DEVICE: the launcher chooses the device if these drivers are found, and trains on
# it
chosen()
{
	top=$PWD/written
	export LD_LIBRARY_PATH="$PWD/$1"
	"$top/yoke" info >info 2>&1
	verdict "$1: ./yoke info chooses $2" "$(grep -qx "  chosen: $2" info || cat info)"
	top=$PWD/first model=$PWD/model.$1
	train >log 2>&1
	verdict "$1: the first model is trained" "$([ $? -eq 0 ] && [ -e "$model.done" ] || cat log)"
	verdict "$1: and says where: $(grep '^on ' log)" "$(grep -q "^on $2: " log || cat log)"
	unset LD_LIBRARY_PATH
}

mkdir none
fake_drivers cuda cuda
fake_drivers rocm rocm
# GPUs of this machine, which the launcher would prefer
unusable_drivers rocm libcuda.so.1
unusable_drivers none libcuda.so.1 libamdhip64.so.7 libamdhip64.so.6 libamdhip64.so.5
for b in $backends; do
	chosen "$b" "$b:0"
done
LD_LIBRARY_PATH=$PWD/none "$PWD/written/yoke" info >info 2>&1
verdict 'without a driver it chooses no device of theirs' "$(grep -q '^  chosen: \(cuda\|rocm\)' info && cat info)"
echo "1..$count"
exit $failed
