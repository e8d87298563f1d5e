# SPDX-License-Identifier: Apache-2.0
# Sourced by bench/gpu.sh: runs parts and their steps within time limits, and records the results.
# The caller sets $out, $deadline (milliseconds since 1970), $quick and $fault. A part is a shell
# function that runs its commands through `step`; each command has its own process group, and one
# that crashes or hangs ends only itself. $out/parts.tsv has a line per part, $out/figures.tsv a
# line per figure; results.json and table.md are made from them.

now()
{
	date +%s%3N
}

# Prints the milliseconds until the current part, or the whole script, must end.
part_left()
{
	echo $((until - $(now)))
}

time_left()
{
	echo $((deadline - $(now)))
}

seconds()
{
	awk -v ms="$1" 'BEGIN { printf "%.1f", ms / 1000 }'
}

# ---- what is recorded ----

# note STATUS WHY: records a problem of the current part: partial (not all of it was measured),
# failed, timeout or crashed; reasons after the third are only counted
note()
{
	reasons=$((reasons + 1))
	if [ $reasons -le 3 ]; then
		why=${why:+$why; }$2
	else
		why="${why% and [0-9]* more} and $((reasons - 3)) more"
	fi
	case $1 in
	partial) [ "$status" != ok ] || status=partial ;;
	*)
		failed=1
		case $status in
		ok | partial) status=$1 ;;
		esac ;;
	esac
}

# figure NAME VALUE UNIT [PEER PEER_VALUE [RATIO]]: the ratio is VALUE / PEER_VALUE unless it is given; a PEER that begins
# with SKIP is the reason why there is none
figure()
{
	shown=${6:-$(awk -v a="$2" -v b="${5:-}" 'BEGIN { if (a > 0 && b > 0) printf "%.3g", a / b }')}
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$1" "$2" "$3" "${4:-}" "${5:-}" "$shown" >>"$out/figures.tsv"
}

# Prints the value at a path, such as "devices.0.id", in a JSON file that flat has converted.
value()
{
	awk -F'\t' -v path="$2" '$1 == path { print $2; exit }' "$1"
}

# records PATH PROGRAM [AWK_OPTION ..] <FLAT: runs an awk program in which f[i, "key"], i < n, are the objects of the list PATH
records()
{
	program="index(\$1, \"$1.\") == 1 && split(\$1, p, \".\") == 3 { f[p[2], p[3]] = \$2; if (p[2] + 1 > n) n = p[2] + 1 }
		$2"
	shift 2
	awk -F'\t' "$@" "$program"
}

# flat <JSON: a line per value, "path.of.keys<tab>value"
flat()
{
	awk '
	function begin(text) {
		if (array[depth])
			key[depth] = n[depth]++
		if (text == "{" || text == "[") {
			depth++
			array[depth] = text == "["
			n[depth] = 0
			return
		}
		path = ""
		for (i = 1; i <= depth; i++)
			path = path (i > 1 ? "." : "") key[i]
		print path "\t" text
	}
	{
		line = $0
		while (match(line, /"([^"\\]|\\.)*"|[][{}:]|[^][{}:," \t]+/)) {
			word = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			text = word
			if (word ~ /^"/)
				text = substr(word, 2, length(word) - 2)
			if (word == "}" || word == "]")
				depth--
			else if (word == ":")
				;
			else if (word ~ /^"/ && !array[depth] && line ~ /^[ \t]*:/)
				key[depth] = text
			else
				begin(text)
		}
	}'
}

# Writes results.json and table.md, after each part, so that an interrupted run leaves them.
record()
{
	awk -F'\t' -v seconds="$(seconds $(($(now) - started)))" -v limit="$total" -v failed="$failed" -v machine="$out/machine.tsv" \
		-v figures="$out/figures.tsv" -v folder="$out" '
	function quoted(s) {
		gsub(/\\/, "\\\\", s)
		gsub(/"/, "\\\"", s)
		gsub(/[\001-\011\013-\037]/, " ", s)
		gsub(/\n/, "\\n", s)
		return "\"" s "\""
	}
	function number(s) { return s ~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ ? s : s == "" ? "null" : quoted(s) }
	function tail(name,  file, line, n, kept, i, text) {
		if (name == "")
			return ""
		file = folder "/" name
		while ((getline line <file) > 0)
			kept[n++ % 8] = line
		close(file)
		for (i = n > 8 ? n - 8 : 0; i < n; i++)
			text = text kept[i % 8] "\n"
		return text
	}
	BEGIN {
		print "{"
		printf "  \"seconds\": %s,\n  \"limit\": %s,\n  \"ok\": %s,\n  \"machine\": {", seconds, limit, failed ? "false" : "true"
		while ((getline line <machine) > 0) {
			split(line, f, "\t")
			printf "%s\n    %s: %s", comma, quoted(f[1]), number(f[2])
			comma = ","
		}
		printf "\n  },\n  \"parts\": ["
		comma = ""
	}
	{
		printf "%s\n    {\n      \"name\": %s, \"title\": %s, \"status\": %s, \"seconds\": %s, \"limit\": %s,\n      \"why\": %s, \"log\": %s",
			comma, quoted($1), quoted($2), quoted($3), number($4), number($5), quoted($6), quoted($7)
		if ($8 != "")
			printf ",\n      \"exit\": %s", number($8)
		if ($9 != "")
			printf ",\n      \"signal\": %s", quoted($9)
		if ($3 ~ /failed|timeout|crashed/)
			printf ",\n      \"log_tail\": %s", quoted(tail($7))
		printf ",\n      \"figures\": ["
		inner = ""
		while ((getline line <figures) > 0) {
			split(line, f, "\t")
			if (f[1] != $1)
				continue
			printf "%s\n        { \"name\": %s, \"value\": %s, \"unit\": %s, \"peer\": %s, \"peer_value\": %s, \"ratio\": %s }",
				inner, quoted(f[2]), number(f[3]), quoted(f[4]), quoted(f[5]), number(f[6]), number(f[7])
			inner = ","
		}
		close(figures)
		printf "%s]\n    }", inner ? "\n      " : ""
		comma = ","
	}
	END { print "\n  ]\n}" }' "$out/parts.tsv" >"$out/results.json.new" && mv "$out/results.json.new" "$out/results.json"
	awk -F'\t' -v machine="$out/machine.tsv" -v figures="$out/figures.tsv" '
	function cell(s) { gsub(/\|/, "/", s); return s == "" ? "-" : s }
	BEGIN {
		while ((getline line <machine) > 0) {
			split(line, f, "\t")
			of[f[1]] = f[2]
		}
		printf "%s, %s, driver %s; %s processors %s; yoke %s, PyTorch %s.\n\n", of["device"], cell(of["card"]), cell(of["driver"]),
			of["processors"], cell(of["processor"]), of["yoke"], cell(of["torch"])
		print "| part | status | s | figure | yoke | peer | ratio |\n|---|---|---|---|---|---|---|"
	}
	{
		n = 0
		while ((getline line <figures) > 0) {
			split(line, f, "\t")
			if (f[1] != $1)
				continue
			printf "| %s | %s | %s | %s | %s | %s | %s |\n", n ? "" : $2, n ? "" : $3, n ? "" : $4, cell(f[2]),
				f[3] " " f[4], cell(f[5] (f[6] == "" ? "" : " " f[6])), cell(f[7])
			n++
		}
		close(figures)
		if (!n || $6 != "")
			printf "| %s | %s | %s | %s | - | - | - |\n", n ? "" : $2, n ? "" : $3, n ? "" : $4, cell($6)
	}' "$out/parts.tsv" >"$out/table.md.new" && mv "$out/table.md.new" "$out/table.md"
}

# ---- processes ----

# launch NAME MS COMMAND ..: runs a command in the background; its output goes to NAME.log, its exit
# status to NAME.exit
launch()
{
	id=$1 limit=$(seconds "$2")
	shift 2
	case ",$fault," in
	*",$part:crash,"*) set -- sh -c 'echo made to crash; kill -SEGV $$' ;;
	*",$part:hang,"*)
		set -- sleep 1000
		limit=${GPU_SH_LIMIT:-$limit} ;;
	*",$part:fail,"*) set -- sh -c 'echo made to fail; exit 3' ;;
	esac
	rm -f "$out/$id.exit"
	(
		timeout -k 1 "$limit" "$@" >"$out/$id.log" 2>&1 </dev/null &
		echo $! >"$out/$id.pid"
		wait $!
		echo $? >"$out/$id.exit.new"
		rm -f "$out/$id.pid"
		mv "$out/$id.exit.new" "$out/$id.exit"
	) 2>/dev/null &
}

# attend NAME MS: waits for its end; returns 124 for a process that does not end although it was
# killed, for example inside a driver
attend()
{
	give_up=$(($(now) + $2 + 3000))
	while [ ! -e "$out/$1.exit" ] && [ "$(now)" -lt $give_up ]; do
		sleep 0.1
	done
	code=124
	[ ! -e "$out/$1.exit" ] || code=$(cat "$out/$1.exit")
}

# On a signal: ends all running commands and records the current part as it is.
interrupted()
{
	trap '' INT TERM HUP
	kill_all
	if [ -n "$part" ]; then
		note failed 'interrupted'
		end_part
		echo
	fi
	echo "bench/gpu.sh: interrupted; $out/results.json has the parts up to $part" >&2
	exit 130
}

# Ends all running commands.
kill_all()
{
	: >"$out/stop"
	for file in "$out"/*.pid; do
		[ -e "$file" ] || continue
		pid=$(cat "$file")
		kill -s KILL -- "-$pid" 2>/dev/null
		rm -f "$file"
	done
}

# judge NAME CODE MS LIMIT: evaluates how a command ended after MS milliseconds; notes any problem
judge()
{
	[ "$2" -ne 0 ] || return 0
	seen=$(seconds "$3")
	if [ "$2" -eq 124 ] || { [ "$2" -eq 137 ] && [ "$3" -ge "$4" ]; }; then
		ended=timeout how="$1 did not end within $seen s"
	elif [ "$2" -gt 128 ]; then
		ended=crashed how="$1 crashed: signal $(($2 - 128)) ($(kill -l $(($2 - 128))))"
	else
		ended=failed how="$1 failed with status $2"
	fi
	if [ -z "$exit_log" ]; then
		exit_log=$1.log exit_code=$2 exit_signal=''
		[ "$ended" != crashed ] || exit_signal=$(kill -l $(($2 - 128)))
	fi
	note $ended "$how"
	return 1
}

# Sets $budget, the time limit of a command that begins now: the rest of the part's time plus the
# part's allotment once more, so that a slow command is not mistaken for a hang.
extend()
{
	budget=$((budget + share))
	[ -z "$quick" ] || [ $budget -ge 15000 ] || budget=15000
	rest=$(time_left)
	[ $budget -le "$rest" ] || budget=$rest
	[ $budget -ge 500 ] || budget=500
}

# run NEED NAME COMMAND ..: sets $code and $took; 2: the part has less than NEED seconds left
run()
{
	need=$(($1 * 1000)) id=$2
	shift 2
	[ -z "$quick" ] || need=500
	budget=$(part_left)
	if [ $((budget + 500)) -lt "$need" ]; then
		[ $unmeasured -gt 0 ] || first_unmeasured=$id
		unmeasured=$((unmeasured + 1))
		return 2
	fi
	extend
	begun=$(now)
	launch "$id" "$budget" "$@"
	attend "$id" "$budget"
	took=$(($(now) - begun))
}

# step NEED NAME COMMAND ..: runs a command; a failure is noted and returns 1; returns 2 if there is
# no time. With $ahead the command is only started, recorded in $begun_ahead, and 2 is returned.
step()
{
	if [ -n "$ahead" ]; then
		shift
		id=ahead-$1
		shift
		launch "$id" "$(part_left)" "$@"
		begun_ahead="$begun_ahead $id"
		return 2
	fi
	run "$@" || return 2
	judge "$2" "$code" "$took" "$budget"
}

# peer NEED NAME COMMAND ..: runs another program for its figures; on failure $missing has the
# reason, and the part does not fail
peer()
{
	missing=''
	if ! run "$@"; then
		missing='SKIP: no time'
	elif [ "$code" -eq 124 ]; then
		missing="SKIP: did not end within $(seconds "$took") s"
	elif [ "$code" -ne 0 ]; then
		missing="SKIP: $(tail -n 1 "$out/$2.log" | cut -c 1-80)"
	fi
	[ -z "$missing" ]
}

# ---- many processes ----

# spread NAME PASSES FUNCTION: runs $workers loops of passes until they are done or the part's time
# is over; `FUNCTION worker pass` launches NAME-worker-pass for $budget. A later call continues
# where this one ended and repeats interrupted passes.
spread()
{
	family=$1 passes=$2 command=$3
	w=0
	while [ $w -lt "$workers" ]; do
		worker "$w" &
		w=$((w + 1))
	done
	budget=$(part_left)
	extend
	limit_at=$(($(now) + budget + 5000)) w=0
	while [ $w -lt "$workers" ]; do
		while [ ! -e "$out/$family-$w.done" ] && [ "$(now)" -lt $limit_at ]; do
			sleep 0.1
		done
		[ -e "$out/$family-$w.done" ] || echo "$family-$w" >>"$out/$family.stuck"
		rm -f "$out/$family-$w.done"
		w=$((w + 1))
	done
	: >>"$out/$family.ended"
	while read -r id code took budget; do
		judge "$id" "$code" "$took" "$budget"
	done <"$out/$family.ended"
	rm "$out/$family.ended"
	[ ! -e "$out/$family.stuck" ] || note timeout "$(tr '\n' ' ' <"$out/$family.stuck")did not end"
	rm -f "$out/$family.stuck"
}

worker()
{
	next=0 bad=0 visited=0
	[ ! -e "$out/$family-$1.next" ] || next=$(cat "$out/$family-$1.next")
	while [ "$next" -lt "$passes" ] && [ $bad -lt 3 ] && [ ! -e "$out/stop" ]; do
		budget=$(part_left) begun=$(now)
		[ "$budget" -ge 500 ] || break
		[ $visited -gt 0 ] || extend
		visited=1
		$command "$1" "$next"
		attend "$family-$1-$next" "$budget"
		took=$(($(now) - begun))
		# interrupted, but not hanging: there was output in the last seconds
		if [ "$code" -eq 124 ] && [ -n "$(find "$out/$family-$1-$next.log" -size +0 -newermt '20 seconds ago' 2>/dev/null)" ]; then
			break
		fi
		if [ "$code" -ne 0 ]; then
			echo "$family-$1-$next $code $took $budget" >>"$out/$family.ended"
			bad=$((bad + 1))
		fi
		next=$((next + 1))
	done
	echo "$next" >"$out/$family-$1.next"
	: >"$out/$family-$1.done"
}

# ---- parts ----

# part NAME WEIGHT NEED MEBIBYTES TITLE: runs the function part_NAME. It gets a fraction, by weight,
# of the time left for it and the parts after it, and at least NEED seconds.
part()
{
	part=$1 weight=$2 need=$3 memory=$4 title=$5
	status=ok why='' exit_log='' exit_code='' exit_signal='' unmeasured=0 reasons=0 first_log=''
	begun_part=$(now)
	case $chosen in
	'' | *",$part,"*) ;;
	*) return ;;
	esac
	share=$((($(time_left) * weight) / weights))
	weights=$((weights - weight))
	[ -z "$quick" ] || need=1 memory=$((memory < 16 ? memory : 16))
	[ $share -ge $((need * 1000)) ] || share=$((need * 1000))
	until=$((begun_part + share))
	if [ "$(time_left)" -lt $((need * 1000)) ]; then
		status=skip why="no time: it needs $need s, $(seconds "$(time_left)") s are left"
	elif [ "$memory" -gt 0 ] && [ -z "$device" ]; then
		status=skip why='no GPU'
	elif [ "$memory" -gt "$free_mib" ]; then
		status=skip why="it needs $memory MiB, $free_mib MiB of the card are free"
	fi
	printf '%-40s' "$title"
	if [ "$status" = ok ]; then
		"part_$part"
		[ $unmeasured -eq 0 ] || note partial "no time for $unmeasured of its commands, from $first_unmeasured on"
	fi
	end_part
	printf '%-8s %7s s  %s\n' "$status" "$spent" "$why"
}

end_part()
{
	spent=$(seconds $(($(now) - begun_part)))
	[ -n "$exit_log" ] || exit_log=$first_log
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$title" "$status" "$spent" "$(seconds $share)" "$why" "$exit_log" \
		"$exit_code" "$exit_signal" >>"$out/parts.tsv"
	record
}
