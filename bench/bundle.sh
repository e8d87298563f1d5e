#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a directory with a relocatable yoke, which runs without installation or compilation on
# another Linux of this processor architecture with an equal or newer glibc: FOLDER/bench/gpu.sh
# and FOLDER/bin/yoke.
#
#	bench/bundle.sh [-b BUILD] FOLDER
#
# It contains the stripped command, all modules except MPI's, every shared library that they link
# to except glibc's, kernel texts, a sample of text, and bench/gpu.sh with the scripts of its
# peers; at most 60 MiB.
set -u
unset CDPATH # cd would print the directory that it finds there
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/bench/built.sh"
given=''
while getopts b: option; do
	case $option in
	b) given=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] && [ -n "$1" ] || die 'wants the directory to write, as bench/bundle.sh /tmp/yoke'
to=$1
while [ "${to%/}" != "$to" ] && [ "$to" != / ]; do
	to=${to%/}
done
if [ -e "$to" ] && [ ! -e "$to/share/yoke/bundle" ] && [ -n "$(ls -A "$to")" ]; then
	die "$to is there and is no bundle: name a new directory"
fi
[ ! -d "$to" ] || to=$(cd "$to" && pwd -P) || die "$to cannot be entered" # . and links, too
find_build "$given"
for tool in strip readelf ldd; do
	command -v $tool >/dev/null 2>&1 || die "there is no $tool: install binutils and libc-bin"
done
limit=60 # MiB
folder=$to.new.$$
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || die "$to cannot be made"
trap 'rm -rf "$folder"' EXIT

# ---- what is installed ----

{ ${MAKE:-make} -C "$build" all tests/random.t bench/resolvent && ${MAKE:-make} -C "$build" install "DESTDIR=$folder/stage"; } >"$folder/make.log" 2>&1 ||
	{ tail -n 20 "$folder/make.log" >&2; die "make install failed in $build"; }
variable()
{
	sed -n "s,^$1 = \(\${[a-z_]*prefix}\)*,,p" "$build/Makefile" | head -n 1
}
prefix=$folder/stage$(variable prefix)
lib=$(variable libdir) libexec=$(variable libexecdir) share=$(variable datarootdir)
[ -d "$prefix$lib/yoke" ] && [ -d "$prefix$share/yoke" ] && [ -x "$prefix$libexec/yoke/yoke-probe" ] ||
	die "libraries are not below the prefix: configure without --libdir, --libexecdir and --datarootdir"
mkdir -p "$folder/bin" "$folder/bench/peers" "$folder$lib/yoke" "$folder$libexec/yoke" "$folder$share/yoke"
cp -RL "$prefix$share/yoke/." "$folder$share/yoke/"
cp "$prefix$lib/yoke"/yoke_*.so "$folder$lib/yoke/" && rm -f "$folder$lib/yoke"/yoke_mpi_*.so
cp "$prefix$libexec/yoke/yoke-probe" "$prefix/bin/yoke" "$folder$libexec/yoke/"
cp "$build/tests/random.t" "$folder$libexec/yoke/yoke-programs"
cp "$build/bench/resolvent" "$folder$libexec/yoke/yoke-resolvent"
rm -rf "$folder/stage" "$folder/make.log"
strip "$folder$lib/yoke"/*.so "$folder$libexec/yoke"/* || die 'strip failed'

# ---- libraries ----

# The libraries of glibc, which go with the kernel and the loader of the machine.
glibc='ld-linux*|libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*|librt.so.*|libresolv.so.*|libutil.so.*|libmvec.so.*|libanl.so.*'
for file in "$folder$lib/yoke"/*.so "$folder$libexec/yoke"/*; do
	ldd "$file"
done | awk '/=>/ { print $1, $3 }' | sort -u | while read -r name path; do
	eval "case \$name in $glibc | linux-vdso*) continue ;; esac"
	[ "$path" != not ] || die "the library $name is not found on this machine"
	case $name in
	# a driver may need a newer one: this is for machines without any
	libgcc_s.so.* | libstdc++.so.*)
		mkdir -p "$folder$lib/fallback/$name" && cp -L "$path" "$folder$lib/fallback/$name/$name" ;;
	*) cp -L "$path" "$folder$lib/$name" ;;
	esac
done || exit
chmod -R u+w "$folder"

needed=$(find "$folder$lib" "$folder$libexec" -type f -exec readelf --version-info --wide {} + 2>/dev/null |
	grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -u -t . -k 1,1n -k 2,2n -k 3,3n | tail -n 1)
machine=$(uname -m)

# ---- scripts and texts ----

cp "$top/COPYING" "$folder/"
cp "$top/bench/gpu.sh" "$top/bench/gpu_steps.sh" "$top/bench/built.sh" "$folder/bench/"
cp "$top"/bench/peers/*.py "$folder/bench/peers/"
our_text >"$folder$share/yoke/sample.txt"
cat >"$folder/bin/yoke" <<END
#!/bin/sh
# Runs the program of this name with the libraries of this bundle (made by bench/bundle.sh).
here=\$(dirname "\$(readlink -f "\$0")")/..
if [ "\$(uname -m)" != $machine ]; then
	echo "yoke: this bundle is for $machine and this machine is \$(uname -m): make one there with bench/bundle.sh" >&2
	exit 2
fi
has=\$(getconf GNU_LIBC_VERSION 2>/dev/null) || has='no glibc'
oldest=\$(printf '%s\n' "\${has#glibc }" $needed | sort -t . -k 1,1n -k 2,2n -k 3,3n | head -n 1)
if [ "\$oldest" != $needed ]; then
	echo "yoke: this bundle needs glibc $needed or newer and this machine has \$has: make one on it, or on an older system, with bench/bundle.sh" >&2
	exit 2
fi
# of_system LIBRARY: does the system have it? ldconfig lists 32-bit libraries of x86 as (libc6) alone.
of_system()
{
	PATH=\$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -qF "\$1 (libc6," && return
	for folder in /lib64 /usr/lib64 /lib/$machine-* /usr/lib/$machine-*; do
		[ ! -e "\$folder/\$1" ] || return 0
	done
	return 1
}
path=\$here$lib
for fallback in "\$here$lib/fallback"/*; do
	[ ! -d "\$fallback" ] || of_system "\${fallback##*/}" || path=\$path:\$fallback
done
LD_LIBRARY_PATH=\$path\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$here$libexec/yoke/\$(basename "\$0")" "\$@"
END
cp "$folder/bin/yoke" "$folder/bin/yoke-programs" && cp "$folder/bin/yoke" "$folder/bin/yoke-resolvent"
chmod 755 "$folder/bin"/* "$folder/bench/gpu.sh"
chmod -R go-w "$folder"
version=$("$folder/bin/yoke" --version | head -n 1) || die 'what was bundled does not run'
printf 'version %s\nmachine %s\nglibc %s\n' "$version" "$machine" "$needed" >"$folder$share/yoke/bundle"
cat >"$folder/README" <<END
$version for $machine with glibc $needed or newer.

	bench/gpu.sh            checks and measures yoke on this machine's GPU, in four minutes; compiles nothing
	bin/yoke info           the devices that it finds
	bin/yoke help           what else it does

Then send back gpu-bench/results.json and gpu-bench/table.md, and of parts that are not ok their logs beside them.
END

# ---- the end ----

bytes=$(find "$folder" -type f -exec cat {} + | wc -c)
mib=$(((bytes + 1048575) / 1048576))
if [ $mib -gt $limit ]; then
	find "$folder" -type f -size +1024k -exec ls -s {} + | sort -rn | head -n 5 >&2
	die "the bundle has $mib MiB, more than $limit: configure without the libraries that are large"
fi
old=$to.old.$$
[ ! -e "$to" ] || mv "$to" "$old" || die "$to cannot be replaced"
if ! mv "$folder" "$to"; then
	[ ! -e "$old" ] || mv "$old" "$to"
	die "$to cannot be written"
fi
trap - EXIT
rm -rf "$old"
echo "$to: $mib MiB, $machine, needs glibc $needed or newer; run $to/bench/gpu.sh there"
