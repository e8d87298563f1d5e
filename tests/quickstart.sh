#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests quickstart and the other scripts of the tree: syntax, help, usage errors, and when
# quickstart reconfigures.
set -u
cd "${srcdir:-.}" || exit 99
count=0

# result STATUS TEXT
result()
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

for script in quickstart .ci/run autogen.sh build-aux/embed.sh python/*.sh tests/run tests/*.sh; do
	sh -n "$script"
	result $? "$script is POSIX shell"
done
sh ./quickstart help | grep -q 'quickstart check'
result $? "help names the commands"

# Where pkg-config knows nothing and the user is not root, it prints the packages it would install.
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nexit 1\n' >"$work/pkg-config"
printf '#!/bin/sh\necho 1000\n' >"$work/id"
chmod +x "$work/pkg-config" "$work/id"

# installs COMMAND: prints the packages, and checks that it ends with status 1 because of them
installs()
{
	PATH="$work:$PATH" YOKE_BUILD="$work/build" sh ./quickstart "$1" >"$work/out" 2>&1
	[ $? -eq 1 ] && grep '^apt-get install .* libjansson-dev libxxhash-dev' "$work/out"
}
for command in '' build check; do
	list=$(installs "$command")
	[ -n "$list" ] && ! echo "$list" | grep -qE 'blas|dnnl'
	result $? "quickstart $command installs no peer of the benchmarks:$list"
done
list=$(installs bench)
echo "$list" | grep -q 'libopenblas-dev'
result $? "quickstart bench does:$list"

# Whether an existing directory is reconfigured: its peers, missing packages, the command.
eval "$(sed -n '/^lacks()/,/^}/p' quickstart)"
build=$work/folder
mkdir "$build"
anew()
{
	for name in $2; do echo "#define HAVE_$name 1"; done >"$build/config.h"
	missing=$3 command=$4 got=kept
	! lacks || got=anew
	[ $got = "$1" ]
	result $? "quickstart $4 with peers '$2', without '$3': $1, got $got"
}
anew kept 'CBLAS ONEDNN' '' bench
anew anew 'CBLAS' '' bench
anew anew 'ONEDNN' ' gcc libdnnl-dev' bench
anew kept 'CBLAS' ' gcc libdnnl-dev hwloc' bench
anew kept '' '' check
# Optional programs of tests when nothing can be fetched: each is tried, no attempt exceeds its
# limit, none is an error.
eval "$(sed -n '/^say()/,/^}/p; /^fetch()/,/^}/p; /^want()/,/^}/p; /^may_install()/,/^}/p; /^update()/,/^}/p
	/^need_clients()/,/^}/p; /^install_clients()/,/^}/p; /^llama_sources()/,/^}/p' quickstart)"
mkdir -p "$work/bin" "$work/refused" "$work/slow" "$work/top/build-aux"
for program in sh timeout sleep mkdir chmod rm tar; do
	ln -s "$(command -v $program)" "$work/bin/$program"
done
printf '#!/bin/sh\necho 0\n' >"$work/refused/id"
printf '#!/bin/sh\necho "$*" >>asked\nexit 100\n' >"$work/refused/apt-get"
cat >"$work/refused/python3" <<'END'
#!/bin/sh
echo "python3 $*" >>asked
[ "$2" = venv ] || exit 1
for folder; do :; done
mkdir -p "$folder/bin"
printf '#!/bin/sh\necho "pip $*" >>asked\nexit 1\n' >"$folder/bin/pip"
chmod +x "$folder/bin/pip"
END
printf '#!/bin/sh\nsleep 1000\n' >"$work/slow/apt-get"
cp "$work/refused/id" "$work/refused/python3" "$work/slow"
printf '#!/bin/sh\necho s390x-linux-gnu\n' >"$work/top/build-aux/check-cross"
chmod +x "$work"/refused/* "$work"/slow/* "$work/top/build-aux/check-cross"
here=$PWD
# clients FOLDER: prints the messages with these commands
clients()
{
	rm -rf "$build/clients" "$work/asked"
	cd "$work" || exit 99
	(set -e; patience=5; top=$work/top; PATH=$work/$1:$work/bin; install_clients; echo went on) >out 2>&1
	cd "$here" || exit 99
	cat "$work/out"
}
wanted=$(sed -n '/^\tfor package in numpy /,/; do$/p' quickstart | sed 's/for package in//; s/; do$//; s/\\$//; s/--no-deps //g' | wc -w)
for network in refused slow; do
	said=$(clients $network)
	echo "$said" | grep -q 'testing without: .*chromium chromium-driver tmux prometheus gdal-bin abigail-tools oclgrind gcc-s390x-linux-gnu qemu-user$' &&
		[ "$(echo "$said" | grep -c "testing without Python's")" -eq "$wanted" ] && echo "$said" | grep -qx 'went on' &&
		echo "$said" | grep -q 'testing without the vocabularies of llama.cpp' &&
		[ "$(grep -c '^pip install' "$work/asked")" -eq "$wanted" ]
	[ $? -eq 0 ] && [ "$wanted" -ge 7 ]
	result $? "a network that is $network: $(echo "$said" | tr '\n' ' ')"
done
rm -rf "$work/refused/python3"
said=$(clients refused)
echo "$said" | grep -q 'no python3 with venv' && echo "$said" | grep -qx 'went on'
result $? "no Python: $(echo "$said" | tr '\n' ' ')"
[ -f README ] && [ "$(readlink README)" = README.md ] || cmp -s README README.md # a tarball contains no links
result $? "README is README.md"
sh ./quickstart nonsense >/dev/null 2>&1
[ $? -eq 2 ]
result $? "bad use exits 2"
# The launcher: all modules that configure may enable, and none of the tests'.
eval "$(sed -n '/^module_folders()/,/^}/p; /^write_launcher()/,/^}/p' quickstart)"
build="$work/a build" top=$work/top
mkdir -p "$top" "$build/plugins/none/.libs" && printf '#!/bin/sh\necho "$YOKE_PLUGIN_PATH|$*"\n' >"$build/yoke" && chmod +x "$build/yoke"
want=
for module in backends/opencl/.libs/yoke_opencl plugins/cuda/.libs/yoke_cuda plugins/mpi/.libs/yoke_mpi_mpich \
	plugins/rocm/.libs/yoke_rocm plugins/skeleton/.libs/yoke_skeleton; do
	mkdir -p "$build/${module%/*}" && : >"$build/$module.so"
	[ "$module" = plugins/skeleton/.libs/yoke_skeleton ] || want=$want${want:+:}$build/${module%/*}
done
write_launcher
got=$(unset YOKE_PLUGIN_PATH && "$top/yoke" info 'a b')
[ "$got" = "$want|info a b" ]
result $? "./yoke knows all modules: $got"
[ "$(YOKE_PLUGIN_PATH=/mine "$top/yoke" x)" = '/mine|x' ]
result $? "and takes YOKE_PLUGIN_PATH"
echo "1..$count"
