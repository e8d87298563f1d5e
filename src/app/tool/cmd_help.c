// SPDX-License-Identifier: Apache-2.0
// yoke help: the overview of commands, and the keys of a command, generated from the table that
// parses them.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/param.h"
#include "tool/tool.h"
#include "config/optim.h"

static int max_width(int width, const char *text)
{
	int n = (int)strlen(text);

	return n > width ? n : width;
}

// Whether it is a short name of another command's subject, as top is of `dashboard terminal`.
static bool is_short_name(const struct yk_command *of)
{
	for (const struct yk_command *c = yk_commands; c->name; c++)
		for (const struct yk_command *s = c->subjects; c != of && s && s->name; s++)
			if (s->run == of->run)
				return true;
	return false;
}

static void overview(FILE *to)
{
	int width = 0;

	for (const struct yk_command *c = yk_commands; c->name; c++)
		width = max_width(width, c->name);
	fputs("usage: yoke command [arguments]\n\n", to);
	for (const struct yk_command *c = yk_commands; c->name; c++)
		if (!is_short_name(c))
			fprintf(to, "  %-*s  %s\n", width, c->name, c->summary);
	fputs("\n`yoke help command` or `yoke command --help` shows the arguments of a command.\n"
	      "Exit status: 0 done, 1 failed, 2 usage.\n",
	      to);
}

// The default in a printable form, e.g. "\n" as two characters.
static const char *shown(const struct yk_config_row *r)
{
	return !strcmp(r->def, "\n") ? "\\n" : *r->def ? r->def : "-";
}

static bool listed(const struct yk_config_row *r, unsigned commands, bool all)
{
	return r->commands & commands && (all || r->level == YK_BASIC);
}

static void key(FILE *to, const struct yk_config_row *r, int names, int defaults)
{
	fprintf(to, "  %-*s  %-*s  %s", names, r->name, defaults, shown(r), r->help);
	if ((r->type == YK_KEY_CHOICE || r->type == YK_KEY_CHOICE_OR_PATH) &&
	    strchr(r->choices, ' '))
		fprintf(to, " (%s)", r->choices);
	else if (r->type == YK_KEY_INT || r->type == YK_KEY_REAL || r->type == YK_KEY_REAL_OR_PATHS)
		fprintf(to, r->max < 1e9 ? " (%.9g .. %.9g%s%s)" : " (%g .. %g%s%s)", r->min,
			r->max, r->choices ? ", or " : "", r->choices ? r->choices : "");
	else if (r->type == YK_KEY_EVERY)
		fprintf(to, " (%g .. %g, or passes)", r->min, r->max);
	fputc('\n', to);
}

// Prints the keys by group; within a group in the order of the table.
static void keys(FILE *to, const struct yk_command *c, bool all)
{
	const unsigned commands = c->keys;
	int names = 0, defaults = 0, count = 0;

	for (int k = 0; k < YK_KEYS; k++) {
		const struct yk_config_row *r = &yk_config_rows[k];
		count += (r->commands & commands) != 0;
		if (listed(r, commands, all)) {
			names = max_width(names, r->name);
			defaults = max_width(defaults, shown(r));
		}
	}
	if (all)
		fputs("\nkeys (default, help):\n", to);
	else
		fprintf(to,
			"\nkeys that are changed most often (default, help); `yoke help %s all` "
			"lists all %d:\n",
			c->name, count);
	for (int g = 0; g < YK_GROUPS; g++) {
		bool titled = false;
		for (int k = 0; k < YK_KEYS; k++) {
			const struct yk_config_row *r = &yk_config_rows[k];
			if ((int)r->group != g || !listed(r, commands, all))
				continue;
			if (!titled)
				fprintf(to, "%s:\n", yk_config_groups[g]);
			titled = true;
			key(to, r, names, defaults);
		}
	}
}

// Prints the default keys of each optimizer.
static void optimizers(FILE *to)
{
	char text[512];
	int width = 0;

	for (int i = 0; yoke_optim_kind(i); i++)
		width = max_width(width, yoke_optim_kind(i));
	fputs("\noptimizers (their keys, with the values that auto selects; clip is 1):\n", to);
	for (int i = 0; yoke_optim_kind(i); i++) {
		yk_optim_text(yoke_optim_kind(i), text, sizeof text);
		fprintf(to, "  %-*s  %s\n", width, yoke_optim_kind(i), text);
	}
}

void yk_help(FILE *to, const struct yk_command *c, bool all)
{
	if (!c) {
		overview(to);
		return;
	}
	fprintf(to, "usage: yoke %s %s\n\n%c%s.\n", c->name, c->arguments,
		c->summary[0] - 'a' + 'A', c->summary + 1);
	if (c->more)
		fputs(c->more, to);
	for (const struct yk_command *s = c->subjects; s && s->name; s++)
		fprintf(to, "\nyoke %s %s\n%c%s.\n%s", s->name, s->arguments,
			s->summary[0] - 'a' + 'A', s->summary + 1, s->more ? s->more : "");
	all |= !(c->keys & YK_T); // other commands have few keys
	if (c->keys & YK_T && all)
		optimizers(to);
	if (c->keys)
		keys(to, c, all);
}

int yk_cmd_help(int argc, char **argv)
{
	const char *names[32], *nearest;
	int n = 0, next = 2;

	if (argc < 2) {
		yk_help(stdout, NULL, false);
		return YK_DONE;
	}
	const struct yk_command *c = yk_command_find(yk_commands, argv[1]);
	if (!c) {
		for (c = yk_commands; c->name; c++)
			names[n++] = c->name;
		nearest = yk_nearest(argv[1], names, n);
		if (nearest)
			return yk_usage("help", "no command '%s'; did you mean '%s'", argv[1],
					nearest);
		return yk_usage("help", "no command '%s'", argv[1]);
	}
	const struct yk_command *subject = argc > 2 ? yk_command_find(c->subjects, argv[2]) : NULL;
	if (subject) {
		c = subject;
		next++;
	}
	const bool all = argc == next + 1 && !strcmp(argv[next], "all");
	if (argc > next && !all)
		return yk_usage("help",
				"'%s': help takes one command and its subject, or `train all`",
				argv[next]);
	if (all && !c->keys)
		return yk_usage("help", "%s has no list of keys, so it does not take `all`",
				c->name);
	yk_help(stdout, c, all);
	return YK_DONE;
}
