#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the manual page of the settings out of the table that the command prints:
# settings.sh YOKE PLUGIN_FOLDER >yoke-settings.7
# A command that does not run here (cross compiling) leaves a page that names `yoke info --env`.
set -u
yoke=$1 plugins=$2

cat <<'END'
.\" SPDX-License-Identifier: Apache-2.0
.\" Made by doc/settings.sh from `yoke info --env all --json`.
.TH YOKE\-SETTINGS 7 "" "yoke" "Miscellaneous"
.SH NAME
yoke\-settings \- settings of the yoke library and command
.SH DESCRIPTION
A setting
.I a.b
is
.B YOKE_A_B
in the environment; an empty variable counts as not set.
Booleans are 0 or 1; bytes take a suffix, as in 512M or 2GiB.
An argument of a command or
.BR yoke_setting_set ()
wins over the environment.
.B yoke info \-\-env
lists the present values and where each came from, with the settings of plugins;
.B yoke info \-\-env all
includes those for debugging.
.PP
Settings of a graph
.RB ( eager ", " trace.ops ", " graph.* ", " profiler_ranges )
and a backend's
.B profile
are read when a context is made, the others at each use.
Some are read once:
.B plugin.path
when plugins are searched for;
.B quirks
when the first device is listed;
.BR memory ", " pool ", " memory.history ", " threads ", " qmatmul ,
.BR selftest ,
those of the CPU backend
.RB ( cpu.* ),
and, of the others, library paths and
.BR opencl.platform ", " split ", " preset ", " stream " and " binaries
when the backend's devices are listed, which is at the latest for the first context;
.B tune
when the results for a device are first used.
Afterwards
.BR yoke_setting_set ()
refuses another value of these.
.SH SETTINGS
END

env -i HOME=/nonexistent YOKE_PLUGIN_PATH="$plugins" "$yoke" info --env all --json 2>/dev/null | awk '
# One member a line, as the command indents it: "key": "value",
function member(line) {
	sub(/^ *"[a-z]*": "/, "", line)
	sub(/",?$/, "", line)
	gsub(/\\"/, "\"", line)
	gsub(/\\\\/, "\\e", line)
	gsub(/-/, "\\-", line)
	return line
}
/^ *"variable": / { variable = member($0) }
/^ *"type": /     { type = member($0) }
/^ *"default": /  { def = member($0) }
/^ *"help": / {
	text = sprintf(".TP\n.B %s\n\\&%s.\n%s; default: %s.\n", variable, member($0),
		toupper(substr(type, 1, 1)) substr(type, 2), def == "" ? "none" : def)
}
/^ *"debug": false/ { printf "%s", text; n++ }
/^ *"debug": true/  { debug = debug text }
END {
	if (debug != "")
		printf "%s%s", ".SH SETTINGS FOR DEBUGGING\n" \
			"These disable or disturb a part of the library, to test it or to find a fault in it.\n", debug
	if (!n)
		print "Ask the command: it could not be run when this page was made."
}'

cat <<'END'
.SH SEE ALSO
.BR yoke (1)
END
