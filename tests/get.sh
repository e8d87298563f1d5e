#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `yoke data get`: a set of an installed package is written once, other sets are a command that
# a shell can run, and nothing uses the network or overwrites a file.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
yoke=${YOKE:-$PWD/yoke}
cd "${TMPDIR:-/tmp}" || exit 99

# expect STATUS COMMAND ..: prints what is wrong with the status; the output is in out and err
expect()
{
	want=$1
	shift
	"$@" >out 2>err
	status=$?
	[ $status -eq "$want" ] || { echo "status $status, not $want:"; cat out err; }
}

# a made-up installation of scikit-learn with a table of the same form
site=$PWD/venv/lib/python3.9/site-packages/sklearn/datasets/data
mkdir -p "$site" home bin
awk 'BEGIN { for (i = 0; i < 1797; i++) { for (k = 0; k < 64; k++) printf "%d,", (i + k) % 17; print i % 10 } }' >table
gzip -c table >"$site/digits.csv.gz"
plain="env -u CONDA_PREFIX HOME=$PWD/home VIRTUAL_ENV=$PWD/venv"
none="env -u CONDA_PREFIX -u VIRTUAL_ENV HOME=$PWD/home PATH=$PWD/bin"
ln -s "$(command -v gzip)" bin/gzip

verdict 'digits are written' "$(expect 0 $plain "$yoke" data get digits)"
verdict 'the file has a line of names and the rows' "$(sed 1d digits.csv | cmp - table; sed -n 1p digits.csv | grep -qx 'p0,.*,p63,digit' || echo names)"
verdict 'yoke reads it' "$(expect 0 "$yoke" data check digits.csv)"
echo mine >digits.csv
verdict 'an existing file is an error' "$(expect 1 $plain "$yoke" data get digits; [ "$(cat digits.csv)" = mine ] || echo overwritten)"
verdict 'the error is one line that names overwrite=1' "$([ "$(wc -l <err)" -eq 1 ] && grep -q 'overwrite=1' err || cat err)"
verdict 'overwrite=1 replaces it' "$(expect 0 $plain "$yoke" get digits overwrite=1; [ "$(wc -l <digits.csv)" -eq 1798 ] || wc digits.csv)"
verdict 'out= names the file' "$(expect 0 $plain "$yoke" get digits out=other.csv; cmp digits.csv other.csv)"
verdict 'an output folder that is not there' "$(expect 1 $plain "$yoke" get digits out=nowhere/x.csv)"
head -100 table | gzip -c >"$site/digits.csv.gz"
verdict 'a damaged package leaves no file' "$(expect 1 $plain "$yoke" get digits out=bad.csv; ls bad.csv 2>/dev/null)"
verdict 'without the package: what to install' "$(expect 1 $none "$yoke" get digits out=none.csv; grep -q 'pip install scikit-learn' err || cat err; ls none.csv 2>/dev/null)"

# downloads: the command runs with a fake curl, and fails on other bytes
cat >bin/curl <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && cat source >"$2"; shift; done
END
chmod +x bin/curl
for set in tinyshakespeare wikitext2 mnist; do
	verdict "$set: a command" "$(expect 0 $plain "$yoke" get $set out="its file"; grep -v '^#' out >command
		[ "$(wc -l <command)" -eq 1 ] || cat command; grep -q '^# next: yoke ' out || cat out; sh -n out 2>&1; ls "its file" 2>/dev/null)"
	sum=$(grep -o '[0-9a-f]\{64\}' command)
	echo other >source
	verdict "$set: other bytes fail" "$(PATH=$PWD/bin:$PATH sh out >log 2>&1 && cat log; rm -f "its file")"
	sed "s/$sum/$(sha256sum <source | cut -d ' ' -f 1)/; s/ && unzip.*//" out >right
	verdict "$set: the right bytes are kept" "$(PATH=$PWD/bin:$PATH sh right >log 2>&1 || cat log; cmp source "its file")"
	verdict "$set: a file that exists" "$(expect 1 $plain "$yoke" get $set out="its file")"
	rm -f "its file"
done
verdict 'an odd file name is quoted' "$(expect 0 "$yoke" get tinyshakespeare out="a'b \$(echo c)"; PATH=$PWD/bin:$PATH sh out >log 2>&1
	ls "a'b \$(echo c)" >/dev/null)"

verdict '--list has each set' "$(expect 0 "$yoke" data get --list; for s in tinyshakespeare wikitext2 mnist digits; do grep -q "^$s  " out || echo $s; done)"
verdict 'an unknown set' "$(expect 2 "$yoke" get mnits; grep -q "'mnist'" err || cat err)"
verdict 'no set' "$(expect 2 "$yoke" data get)"
verdict 'two sets' "$(expect 2 "$yoke" data get mnist digits)"
verdict 'an unknown key' "$(expect 2 "$yoke" data get mnist into=x)"
verdict 'help' "$(expect 0 "$yoke" help data get; cp out help; expect 0 "$yoke" get --help; cmp out help)"
echo "1..$count"
exit $failed
