// SPDX-License-Identifier: Apache-2.0
// Interface of the command `yoke`: the list of sub-commands and the functions they share.
// Exit status: 0 done, 1 failed, 2 wrong usage. An error is one line on stderr: what failed, why,
// and what to do.
#ifndef YK_TOOL_H
#define YK_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

struct yk_device;

enum yk_exit { YK_DONE = 0, YK_FAILED = 1, YK_USAGE = 2 };

struct yk_command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv); // argv[0] is its name; returns the exit status
	// of its help: 0, or YK_T, YK_G, YK_E, YK_C or YK_S (conf.h)
	unsigned keys;
	const char *more;                  // additional lines for its help, or NULL
	// Named by the first argument, as in `yoke check device`; terminated by a NULL name, or
	// NULL. The name of a subject is "check device".
	const struct yk_command *subjects;
};
extern const struct yk_command yk_commands[]; // terminated by a NULL name
// The command or subject of that name; NULL: there is none.
const struct yk_command *yk_command_find(const struct yk_command *list, const char *word);

int yk_bench_ablate(int argc, char **argv);
int yk_check_device(int argc, char **argv);
int yk_check_model(int argc, char **argv);
int yk_check_precision(int argc, char **argv);
int yk_check_resolvent(int argc, char **argv);
int yk_dashboard_terminal(int argc, char **argv);
int yk_info_model(const char *path, bool json); // called by yk_cmd_info
int yk_info_memory(int argc, char **argv);
int yk_info_models(int argc, char **argv);
int yk_plan_device(int argc, char **argv);
int yk_plan_scaling(int argc, char **argv);
int yk_plan_scaling_stages(int argc, char **argv); // called by yk_plan_scaling for pipelines
int yk_cmd_train(int argc, char **argv);
int yk_cmd_generate(int argc, char **argv);
int yk_cmd_chat(int argc, char **argv);
int yk_cmd_embed(int argc, char **argv);
int yk_cmd_eval(int argc, char **argv);
int yk_cmd_export(int argc, char **argv);
int yk_cmd_plan(int argc, char **argv);
int yk_cmd_data(int argc, char **argv);
int yk_cmd_cubes(int argc, char **argv);
int yk_cmd_fit(int argc, char **argv);
int yk_cmd_apply(int argc, char **argv);
int yk_data_get(int argc, char **argv);
int yk_data_prepare(int argc, char **argv); // called by yk_cmd_data
int yk_data_chats_info(int argc, char **argv); // info and check of prepared conversations
int yk_cmd_serve(int argc, char **argv);
int yk_serve_file(int argc, char **argv); // yoke serve batch
int yk_cmd_setup(int argc, char **argv);
int yk_cmd_info(int argc, char **argv);
int yk_cmd_doctor(int argc, char **argv);
int yk_cmd_bench(int argc, char **argv);
int yk_check_device(int argc, char **argv);
int yk_cmd_tune(int argc, char **argv);
int yk_cmd_dashboard(int argc, char **argv);
int yk_plan_scaling_stages(int argc, char **argv); // for pipeline parallelism
int yk_tune_ranks(int argc, char **argv); // yoke tune ranks
int yk_cmd_report(int argc, char **argv);
int yk_cmd_help(int argc, char **argv);

// Prints "yoke COMMAND: ..." and a reference to the help on stderr; returns YK_USAGE.
int yk_usage(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// Prints yoke_error() on stderr; returns YK_FAILED.
int yk_failed(const char *command);
// Has a write to standard output failed because the reader exited, e.g. `head`? This is not an
// error: a command with no other work ends without a message.
bool yk_reader_exited(void);
// Prints the overview, or the help of one command. all: lists all of its keys, not only the most
// common ones.
void yk_help(FILE *, const struct yk_command *, bool all);

// State of the progress on stderr while kernels are compiled and tested (warmup_show.c).
struct yk_screen {
	bool redraws, text;
	bool started;   // the first line was written
	bool shown;  // something was written for the current plan
	double last; // time of the last output
};
// Starts to display progress. The caller zeroes the screen and keeps it allocated. text: text is
// being written to stdout and must not be disturbed.
void yk_warmup_show(struct yk_screen *, bool text);

// ---- option.c ----

// Prints an object as JSON on stdout.
void yk_print_json(const json_t *);
// With --json, stdout has only the JSON: what the command prints from now on goes to stderr.
// Returns a stream to the former stdout, which the caller closes; NULL with the error set.
FILE *yk_json_only(void);
// Prints an object as JSON to that stream and closes it. Releases the object; NULL: out of memory.
int yk_json_end(FILE *, json_t *);

// The value of an option, from "--seed=7" or the next argument; NULL: argv[*i] is a different
// argument.
const char *yk_option(const char *option, int argc, char **argv, int *i);
// If argv[i] sets a key that an earlier argument has set: that argument; otherwise NULL.
const char *yk_option_twice(char **argv, int i);
int yk_option_number(const char *text, uint64_t *to); // returns 0, or -1
// "mychip" is a backend, "mychip:1" a device of it; NULL: the device that YOKE_BACKEND and
// YOKE_DEVICE select.
struct yk_device *yk_option_device(const char *name);

#endif
