#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests packaging/ without building packages: versions, soname, lists of files against the files that
# `make install` names, and the readers of rpm and YAML as far as they are installed.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) || exit 99
[ -e Makefile ] || { echo "1..0 # SKIP no Makefile"; exit 0; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
packaging=$source/packaging
version=$(sed -n 's/^AC_INIT(\[yoke\], \[\(.*\)\])$/\1/p' "$source/configure.ac")

# ---- versions ----

verdict "the changelog of Debian has version $version" "$(
	head -n 1 "$packaging/debian/changelog" | grep -v "^yoke ($version-[0-9]*) ")"
verdict "so has the RPM spec" "$(grep '^Version:' "$packaging/rpm/yoke.spec" | grep -v " $version\$")"
verdict "so has the recipe of conda" "$(sed '/^recipe:/,$d' "$packaging/conda/recipe.yaml" | grep '^  version:' | grep -v ": $version\$")"
soname=$(sed -n 's/.*-version-info \([0-9]*\):[0-9]*:\([0-9]*\).*/\1 \2/p' "$source/Makefile.am" | awk '{ print $1 - $2 }')
verdict "the packages of the library have the number of its soname, $soname" "$(
	[ -e "$packaging/debian/libyoke$soname.install" ] || echo "no libyoke$soname.install"
	grep -q "^Package: libyoke$soname\$" "$packaging/debian/control" || echo "no libyoke$soname in control"
	grep -q "^%{_libdir}/libyoke.so.$soname\*\$" "$packaging/rpm/yoke.spec" || echo "no libyoke.so.$soname in yoke.spec")"
node=$(sed -n 's/^\(YOKE_[0-9.]*\) {$/\1/p' "$source/src/libyoke.map" | tail -n 1)
verdict "Debian's symbols file names the last version node of src/libyoke.map, $node" "$(
	grep -qxF " (symver)$node ${node#YOKE_}.0" "$packaging/debian/libyoke$soname.symbols" || cat "$packaging/debian/libyoke$soname.symbols")"
verdict "each list of files belongs to a package" "$(for file in "$packaging"/debian/*.install; do
	name=$(basename "$file" .install)
	grep -q "^Package: $name\$" "$packaging/debian/control" || echo "$name"
done)"

# ---- files: make names what it would install; nothing is built or copied ----

unset MAKEFLAGS MAKELEVEL MFLAGS
# a page with the names of all files, where each variable of directories has its name in Debian
cat >"$work/list.mk" <<'END'
include Makefile
packaging-list:
	@for f in $(bin_PROGRAMS); do echo usr/bin/$$f; done
	@for f in $(pkglibexec_PROGRAMS); do echo usr/libexec/yoke/$$f; done
	@for f in $(include_HEADERS); do echo usr/include/`basename $$f`; done
	@for f in $(plugin_LTLIBRARIES); do echo usr/lib/x/yoke/`basename $$f .la`.so; done
	@for f in $(man_MANS) $(dist_man_MANS); do echo usr/share/man/man$${f##*.}/`basename $$f`; done
	@for f in $(dist_doc_DATA) $(nobase_dist_doc_DATA) $(dist_example_DATA); do echo usr/share/doc/yoke/$$f; done
	@for f in $(dist_pkgdata_DATA); do echo usr/share/yoke/`basename $$f`; done
	@for f in $(dist_cl_DATA); do echo usr/share/yoke/cl/`basename $$f`; done
	@for f in $(dist_peers_DATA); do echo usr/share/yoke/bench/peers/`basename $$f`; done
	@for f in $(dist_bashcompletion_DATA); do echo usr/share/bash-completion/completions/`basename $$f`; done
	@for f in $(dist_zshcompletion_DATA); do echo usr/share/zsh/site-functions/`basename $$f`; done
	@for f in $(pkgconfig_DATA); do echo usr/lib/x/pkgconfig/$$f; done
END
{
	${MAKE:-make} -s --no-print-directory -f "$work/list.mk" packaging-list
	printf 'usr/lib/x/libyoke.so\nusr/lib/x/libyoke.so.%s\nusr/lib/x/libyoke.so.%s.0.0\n' "$soname" "$soname"
} >"$work/installed" 2>"$work/err"
verdict "make lists what it installs" "$([ "$(wc -l <"$work/installed")" -gt 50 ] || cat "$work/err" "$work/installed")"
# debian/rules moves programs of the library to a directory of the architecture
sed 's/ .*//; s,^usr/lib/\*/yoke/yoke-probe$,usr/libexec/yoke/yoke-probe,' \
	"$packaging"/debian/*.install "$packaging/debian/not-installed" >"$work/debian"
sed -n '/^%files/,/^%changelog/{
	s/^%doc //
	s,%{_bindir},usr/bin,; s,%{_libexecdir},usr/libexec,; s,%{_libdir},usr/lib/*,; s,%{_includedir},usr/include,
	s,%{_mandir},usr/share/man,; s,%{_datadir},usr/share,; s,%{_docdir}/%{name},usr/share/doc/yoke,
	/^usr/p
}' "$packaging/rpm/yoke.spec" >"$work/rpm"

# covered LIST: the installed files that no pattern of the list takes, and those that two take
covered()
{
	while IFS= read -r file; do
		takers=0
		while IFS= read -r pattern; do
			# shellcheck disable=SC2254 # patterns
			case $file in
			$pattern | $pattern/*) takers=$((takers + 1)) ;;
			esac
		done <"$1"
		case $takers:$file in
		1:* | [01]:*/doc/yoke/COPYING | *:*/doc/yoke/*) ;;
		*) echo "$file is in $takers lists" ;;
		esac
	done <"$work/installed"
}
verdict "each installed file is in one package of Debian" "$(covered "$work/debian")"
verdict "each is in one package of the spec" "$(covered "$work/rpm")"

# packages are built in directories of any name
# shellcheck disable=SC2016 # make expands it
verdict "rules of make quote the name of the build directory, which may have spaces" "$(
	find "$source" -name tmp -prune -o \( -name Makefile.am -o -name '*.mk' \) -exec grep -Hn '^	.*[ >]$(abs_[a-z_]*)' {} +)"

# ---- readers ----

if command -v rpmspec >/dev/null 2>&1; then
	verdict "rpm reads the spec" "$(rpmspec -P "$packaging/rpm/yoke.spec" 2>&1 >"$work/spec")"
else
	skip "rpm reads the spec" "no rpmspec"
fi
if command -v rpmlint >/dev/null 2>&1; then
	verdict "rpmlint reports no error or warning" "$(rpmlint -r "$packaging/rpm/yoke.rpmlintrc" "$packaging/rpm/yoke.spec" 2>&1 |
		grep -E ': [EW]: ')"
else
	skip "rpmlint reports no error or warning" "no rpmlint"
fi
if python3 -c 'import yaml' 2>/dev/null; then
	verdict "the recipe of conda is YAML, with two outputs" "$(python3 - "$packaging/conda/recipe.yaml" 2>&1 <<'END'
import os, sys, yaml
recipe = yaml.safe_load(open(sys.argv[1]))
names = [o["package"]["name"] for o in recipe["outputs"]]
if names != ["yoke", "yoke-python"]:
    print(names)
for o in recipe["outputs"]:
    if not os.path.exists(os.path.join(os.path.dirname(sys.argv[1]), o["build"]["script"])):
        print("no", o["build"]["script"])
END
)"
else
	skip "the recipe of conda is YAML, with two outputs" "no Python module yaml"
fi
verdict "the scripts are those of a POSIX shell" "$(for file in "$packaging"/conda/*.sh; do sh -n "$file" 2>&1; done)"
echo "1..$count"
exit $failed
