#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests an installation: the headers, a C and a C++ program compiled through pkg-config, and the
# skeleton plugin copied into the plugin directory, shown by the installed command and removed
# again. make installcheck runs installcheck.sh BINDIR LIBDIR MANDIR DATADIR DOCDIR, below DESTDIR
# if set.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) || exit 99
root=${DESTDIR:-}
bin=$root$1 lib=$root$2 man=$root$3 data=$root$4 doc=$root$5
plugins=$lib/yoke
work=$(mktemp -d) || exit 99
umask 022
ldflags=${YOKE_LDFLAGS:-} # the build's, no setting
for name in $(env | sed -n 's/^\(YOKE_[A-Za-z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
export HOME="$work" LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"
[ -z "$root" ] || export PKG_CONFIG_SYSROOT_DIR="$root"
dropped='' made=''

remove_plugin()
{
	[ -z "$dropped" ] || rm -f "$dropped"
	[ -z "$made" ] || rmdir "$made"
	dropped='' made=''
}
trap 'remove_plugin; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# says TEXT COMMAND ..: its output when it fails, TEXT when that is empty
says()
{
	text=$1
	shift
	"$@" >"$work/said" 2>&1 || { [ -s "$work/said" ] || echo "$text" >"$work/said"; cat "$work/said"; }
}

# ---- headers and libraries ----

pc=${PKG_CONFIG:-pkg-config}
cflags=$($pc --cflags yoke 2>"$work/err") && libs=$($pc --libs yoke 2>>"$work/err") &&
	version=$($pc --modversion yoke 2>>"$work/err")
verdict "pkg-config knows yoke" "$(cat "$work/err")"
verdict "the command has pkg-config's version" \
	"$("$bin/yoke" --version 2>&1 | grep -vx "yoke ${version:-?}")"
verdict "the headers alone" "$(INCLUDE="$cflags" sh "$source/tests/headers.sh" | grep -A5 '^not ok')"

# shellcheck disable=SC2086 # words
verdict "a C program compiles" "$(${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror \
	$ldflags $cflags "$source/examples/xor.c" $libs -o "$work/xor" 2>&1)"
verdict "and learns" "$(YOKE_BACKEND=cpu "$work/xor" 2>&1 | awk '
	NR == 1 { first = $4 }
	{ last = $4; all = all $0 "\n" }
	END { if (NR < 2 || !(last < first / 10)) print "no loss that falls: " all }')"

cat >"$work/add.cc" <<'END'
#include <yoke.h>
int main()
{
	const float x[] = { 1, 2 };
	const int64_t dims[] = { 2 };
	float y[2] = { 0, 0 };
	yoke_tensor *sum = yoke_add(yoke_from(yoke_f32, 1, dims, x), yoke_const(1));
	return yoke_read(sum, y, sizeof y) < 0 || y[0] != 2 || y[1] != 3;
}
END
if command -v "${CXX:-c++}" >/dev/null 2>&1; then
	# shellcheck disable=SC2086 # words
	verdict "a C++ program compiles" "$(${CXX:-c++} -std=c++11 -pedantic -Wall -Wextra -Werror \
		$ldflags $cflags "$work/add.cc" $libs -o "$work/add" 2>&1)"
	verdict "and adds" "$(YOKE_BACKEND=cpu says 'it returned a failure' "$work/add")"
else
	skip 'a C++ program' "no C++ compiler (${CXX:-c++})"
fi

# ---- a plugin ----

seen()
{
	"$bin/yoke" info 2>&1 | grep -E '^  skeleton:0 |yoke_skeleton\.so'
}

case $($pc --variable=plugindir yoke) in
*"$2/yoke") verdict "pkg-config says where plugins lie" "" ;;
*) verdict "pkg-config says where plugins lie" "$($pc --variable=plugindir yoke), not $2/yoke" ;;
esac
if [ -n "$root" ] || [ -e "$plugins/yoke_skeleton.so" ] ||
	! { [ -w "$plugins" ] || [ ! -e "$plugins" ] && [ -w "$lib" ]; }; then
	plugins=$work/plugins
	echo "# the plugin goes to $plugins: $lib/yoke is not what the command reads, or not ours to change"
	mkdir "$plugins"
	export YOKE_PLUGIN_PATH="$plugins"
elif [ ! -e "$plugins" ]; then
	mkdir "$plugins" && made=$plugins
fi
verdict "no skeleton at first" "$(seen)"
dropped=$plugins/yoke_skeleton.so
# shellcheck disable=SC2086 # words
verdict "the skeleton plugin compiles" "$(${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC \
	-shared -fvisibility=hidden $ldflags $cflags "$source/plugins/skeleton/skeleton.c" \
	-o "$dropped" 2>&1)"
verdict "the command lists the plugin's device" \
	"$(seen | grep -q '^  skeleton:0 ' || "$bin/yoke" info 2>&1)"
verdict "and conforms" "$(says 'no output' "$bin/yoke" check device skeleton --quick)"
verdict "a program runs on it" "$(YOKE_BACKEND=skeleton "$work/xor" 2>&1 | awk '
	{ all = all $0 "\n"; last = $4 } END { if (!(last < 0.1)) print all }')"
remove_plugin
verdict "the device disappears with the plugin" "$(seen)"

# ---- the rest ----

for file in "$man/man1/yoke.1" "$man/man3/yoke.3" "$man/man3/yoke-optim.3" "$man/man7/yoke-plugin.7" \
	"$man/man7/yoke-settings.7" "$data/bash-completion/completions/yoke" \
	"$data/zsh/site-functions/_yoke" "$data/yoke/quirks.conf"; do
	[ -s "$file" ] || echo "$file"
done >"$work/missing"
verdict "manual pages and completions are there" "$(cat "$work/missing")"
for file in COPYING NEWS HACKING README.md doc/plugins.md doc/getting-started.md examples/xor.c examples/custom_op.c examples/pca-rx.json examples/skeleton.c; do
	[ -s "$doc/$file" ] || echo "$doc/$file"
done >"$work/missing"
verdict "so are the licence, the examples and the skeleton" "$(cat "$work/missing")"
"$bin/yoke" doctor --json >"$work/doctor" 2>&1
verdict "the command finds its probe helper and every module of the build" "$(
	grep -A1 '"helper": {' "$work/doctor" | grep -q '"state": "found"' || cat "$work/doctor"
	grep '"state": "not found"' "$work/doctor")"
echo "1..$count"
exit $failed
