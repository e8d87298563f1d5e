#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command line of the documents: lines after a tab in README.md, HACKING and doc/*.md,
# lines between .nf and .fi in the manual page, and commands in `quotes`. Each runs in a directory
# that looks like a checkout in which yoke was built; the lines of a paragraph run one after the
# other. Long commands are shortened in a fixed way ("shortened" below). Lines that cannot run are
# listed in not_run with the reason. A line that is neither run nor listed fails, and so does a
# listed line that no document contains.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/built.sh"
umask 022

# How a line begins, and why it is not run.
not_run='./autogen.sh|makes configure anew, in the source tree
../yoke/tests/mutants/run|builds yoke, and again for each fault
../yoke/bench/gpu.sh|measures a GPU for minutes
../yoke/bench/bundle.sh|installs and strips everything; tests/bundle.sh
bench/bundle.sh|the same
scp -r|copies to and from another machine
ssh gpu|runs on another machine
../yoke/bench/advice.py|trains for half an hour
../yoke/bench/ranks.py|trains for twenty minutes
YOKE_PLUGIN_PATH=$PWD/plugins/mpi/.libs mpirun|needs an MPI library; tests/train_mpi.sh
../yoke/bench/watch.py|writes a million lines, trains and looks for minutes
YOKE_BACKEND=cuda YOKE_FAKE_EMPTY=1 bench/native_launches|needs the fake drivers of a build
yoke chat SmolLM2-135M-Instruct|needs a pretrained model; tests/chat.t
./yoke chat SmolLM2-135M-Instruct|the same
yoke serve|serves until it is ended; tests/serve.sh
yoke batch model|needs a file of requests; tests/serve.sh
curl http://127.0.0.1:8080|needs a server; tests/serve.sh
yoke bench serve http|needs a server; tests/bench_serve.sh
yoke train init=SmolLM2-135M-Instruct|needs a pretrained model; tests/adapters.t
./yoke train init=SmolLM2-135M-Instruct|the same
yoke data prepare chats.jsonl|needs a pretrained model; tests/chats_train.t
yoke generate tuned|the same
yoke export tuned|the same
./yoke export tuned|the same
pip install ./python|builds the package, which tests/python.sh does'

# ---- the lines ----

# lines FILE: "paragraph number, tab, command".  An explanation stands behind two spaces.
lines()
{
	awk '
		/^```/ { fenced = !fenced; next }
		fenced { next }
		/^\.nf/ { page = 1; block++; next }
		/^\.fi/ { page = 0; next }
		page { gsub(/\\-/, "-") }
		/^\t +/ && !joined { next } # goes on explaining
		!page && !/^\t/ { if (!joined) block++; next }
		{
			sub(/^\t+/, "")
			sub(/  +.*/, "")
			if (sub(/\\$/, "")) {
				joined = joined $0
				next
			}
			print block "\t" joined $0
			joined = ""
		}' "$1"
	awk '/^```/ { fenced = !fenced; next } !fenced && !/^\t/ { printf "%s ", $0 }' "$1" |
		awk 'BEGIN { RS = "`" }
		NR % 2 == 0 && /^(\.\/|)(yoke|quickstart|make|man|configure|cc) / && !/ [A-Z]+( |$)|…|=$|=DIR/ {
			gsub(/[ \t]+/, " ")
			print "quoted\t" $0
		}'
}

# ---- where they run ----

mkdir "$work/bin" "$work/yoke" && cd "$work/yoke" || exit 99
ln -s "$build/backends" "$build/bench" "$build/doc" "$build/tests" "$source/examples" . && cp -r "$source/plugins" . &&
	chmod -R u+w,go-w plugins && ln -s "$source/examples/xor.c" xor.c && ln -s xor.c program.c && mkdir notes || exit 99
printf 'a,b\n1,2\n3,4\n' >book.csv
awk 'BEGIN { for (i = 0; i < 2000; i++) printf "%c%c", 1 + i % 50, 1 }' >ids.bin # u16 below 50257
easy_text 120 >book.txt
cp ids.bin val.bin && cp book.txt notes/more.txt && cp book.txt other.txt
printf 'data=book.txt\nout=env\nsteps=1000\n' >book.env
printf 'line 1\nlin\n' >lines.txt

# shortened NAME: a command of that name, the script comes from the standard input
shortened()
{
	{ echo '#!/bin/sh'; cat; } >"$work/bin/$1" && chmod +x "$work/bin/$1"
}

# Of a training a thousandth of the steps, of a text a hundredth, a small model; of what measures half a second.
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout 0.5'
shortened yoke <<END
command=\${1-} small='layers=1 heads=1 embed=16 context=16 batch=2'
for word; do
	shift
	case \$word in
	steps=*000) word=\${word%000} ;;
	tokens=*00) word=\${word%00} ;;
	resume=*) small= ;;
	*-bk.env) small='layers=1 embed=16 context=16 batch=2' ;;
	..) word=data=book.txt && rm -rf model ;;
	esac
	set -- "\$@" "\$word"
done
case \$command in
train) exec '$build/yoke' "\$@" \$small ;;
check)
	case " \$* " in
	*' device '*' --quick '* | *' --ops '*) ;;
	*' device '*) set -- "\$@" --quick ;;
	*' precision '*) set -- "\$@" \$small steps=3 ;;
	esac
	exec '$build/yoke' "\$@" ;;
cubes) [ "\$2" != make ] || set -- "\$@" lines=16 samples=16 ;;
fit) set -- "\$@" trainer.max_epochs=1 ;;
doctor)
	'$build/yoke' "\$@"
	status=\$?
	[ \$status -ne 1 ] || [ \$# -lt 2 ] || exit 0 # it found something in a run
	exit \$status ;;
tune | bench | dashboard | plan)
	$limit '$build/yoke' "\$@"
	status=\$?
	[ \$status -ne 124 ] || exit 0
	exit \$status ;;
esac
exec '$build/yoke' "\$@"
END
ln -s "$work/bin/yoke" yoke

# make: its goals are targets, its tests are there.
shortened make <<END
for word; do
	case \$word in
	-*) ;;
	TESTS=*)
		for test in \${word#TESTS=}; do
			grep -q "[[:space:]]\$test\\b" '$source/tests/local.mk' || { echo "no test \$test"; exit 1; }
		done ;;
	*=*) ;;
	*) grep -qE "^([a-z-]+ )*\$word([$][(]EXEEXT[)])?( [a-z-]+)*:" '$build/Makefile' || { echo "no target \$word"; exit 1; } ;;
	esac
done
END
# configure: its options are.
sh "$source/configure" --help >"$work/options" 2>&1
shortened configure <<END
for word; do
	case \$word in
	--*) grep -qE -- "^ +\${word%%=*}([[]|=| |\$)" '$work/options' || { echo "no option \$word"; exit 1; } ;;
	*=*) ;;
	*) exit 1 ;;
	esac
done
END
ln -s "$work/bin/configure" configure
# quickstart: it has that command.
shortened quickstart <<END
[ \$# -eq 0 ] || sh '$source/quickstart' help | grep -q "^./quickstart \$1 "
END
ln -s "$work/bin/quickstart" quickstart
# A debugger has its program, a pager its page.
shortened gdb <<END
[ -x "\$1" ]
END
shortened man <<END
page=yoke.1
case \$# in
1) [ "\$1" = yoke ] || page=\$1.7 ;;
2) page=\$2.\$1 ;;
esac
[ -e '$build/doc/'"\$page" ] || [ -e '$source/doc/'"\$page" ]
END
# As if it was installed.
shortened pkg-config <<END
echo "-I$source/include -L$build/.libs -lyoke"
END
shortened cc <<END
exec $(made CC) $(made YOKE_LDFLAGS) "\$@"
END

PATH=$work/bin:$PATH
YOKE_TEST_SAMPLE=1 LD_LIBRARY_PATH=$build/.libs
unset YOKE_SELFTEST # as users have it
export PATH YOKE_PLUGIN_PATH YOKE_TEST_SAMPLE LD_LIBRARY_PATH

# ---- running ----

# A measurement of bench/ is stopped after half a second; its arrays are small, its instruction set is any.
# A setting stands before a training of one step, which replaces the model of the one before.  A
# configuration is written over none: the one that is there for `yoke train book.env` stands aside.
substituted() # LINE BLOCK
{
	case $1 in
	*' '*) ;;
	[A-Z]*=*) echo "rm -rf setting; $1 ./yoke train data=book.txt out=setting steps=1"; return ;;
	esac
	case $1 in
	bench/* | *' bench/'*)
		echo "$1" | sed "s|bench/|$limit bench/|; s| MODULE| '${YOKE_TEST_OPENCL:-}'|; s| 524288| 64|; s|avx512|base|; s| 100 adamw| 1 adamw|; s|=TEXT|=book.txt|"
		return ;;
	yoke\ [a-z]*)
		# in a sentence: the command's name, of which the help is there
		if [ "$2" = quoted ] && ! echo "$1" | grep -q '[=./-]'; then
			echo "$1" | sed 's/^yoke \([a-z]*\).*/yoke help \1/'
			return
		fi ;;
	esac
	case $1 in
	'yoke setup book.env' | './yoke setup book.env')
		echo "mv book.env aside && $1 && mv aside book.env" ;;
	*) echo "$1" ;;
	esac
}

# why LINE: it is not run, or nothing
why()
{
	echo "$not_run" | while IFS='|' read -r begin reason; do
		case $1 in
		"$begin"*) echo "$reason"; break ;;
		esac
	done
}

# known LINE: does it begin with a command, behind settings?
known()
{
	first=$(echo "$1" | sed 's/^\([A-Z_]*=[^ ]* \)*//; s/[ ;].*//')
	case $first in
	[A-Z]*=*) return 0 ;;
	*) command -v "$first" >/dev/null 2>&1 ;;
	esac
}

# one FILE BLOCK LINE
one()
{
	[ "$2" = "$block" ] || cd "$work/yoke" || exit 99
	block=$2
	reason=$(why "$3")
	if [ -n "$reason" ]; then
		echo "$3" >>"$work/listed"
		return
	fi
	count=$((count + 1))
	case $3 in
	*opencl* | *MODULE*)
		if [ -z "${YOKE_TEST_OPENCL:-}" ]; then
			echo "ok $count - $1: $3 # SKIP no OpenCL backend in this build"
			return
		fi ;;
	esac
	count=$((count - 1))
	if ! known "$3"; then
		verdict "$1: $3" "neither a command nor in not_run"
		return
	fi
	line=$(substituted "$3" "$2")
	# what doc/plugins.md makes
	[ ! -d "$work/yoke/mychip" ] || YOKE_PLUGIN_PATH=$work/yoke/mychip
	sh -c "$line
		status=\$?
		pwd >'$work/at'
		exit \$status" >"$work/out" 2>&1 </dev/null
	status=$?
	case $line in
	*timeout*) [ $status -ne 124 ] || status=0 ;;
	esac
	verdict "$1: $3" "$([ $status -eq 0 ] || { echo "$line: exit code $status"; tail -n 5 "$work/out"; })"
	cd "$(cat "$work/at")" || exit 99
}

# all FILE NAME
all()
{
	block=
	rm -rf "$work"/yoke/book "$work"/yoke/env
	lines "$1" >"$work/lines"
	while IFS='	' read -r number line <&3; do
		name=$2
		[ "$number" != quoted ] || name= line=${line#./} # of several documents once
		! grep -qxF -- "$name $number $line" "$work/ran" || continue
		echo "$name $number $line" >>"$work/ran"
		one "$2" "$number" "$line"
	done 3<"$work/lines"
}

: >"$work/ran"
for path in README.md HACKING doc/getting-started.md doc/plugins.md doc/architecture.md doc/c.md doc/data.md doc/devices.md \
	doc/gpu.md doc/hyperspectral.md doc/performance.md doc/python.md doc/ranks.md doc/resolvents.md doc/serve.md doc/yoke.1; do
	[ -e "$source/$path" ] && all "$source/$path" "$path" || all "$build/$path" "$path"
done
verdict "every guide is read" "$(cd "$source" && for path in doc/*.md; do
	grep -qE "[[:space:]]$path( |;|\$)" tests/commands.sh || echo "$path"
done)"
verdict "every line that is not run is in a document" "$(echo "$not_run" | while IFS='|' read -r begin reason; do
	awk -v begin="$begin" 'index($0, begin) == 1 { found = 1 } END { exit !found }' "$work/listed" ||
		echo "$begin ($reason)"
done)"

# What this test is for: a line that is new, and one that no longer works.
printf 'Text\n\n\tfrobnicate all     does it\n\n\t./yoke info --frobnicate\n' >"$work/new"
found=$(count=0 failed=0; all "$work/new" new)
verdict "a new line that is no command is found" "$(
	echo "$found" | grep -q '^not ok 1 - new: frobnicate all$' || echo "$found")"
verdict "a command that fails is found" "$(
	echo "$found" | grep -q '^not ok 2 - new: ./yoke info --frobnicate$' || echo "$found")"
echo "1..$count"
exit $failed
