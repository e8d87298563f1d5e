// SPDX-License-Identifier: Apache-2.0
// The command `yoke`: its sub-commands and what they share.
// Exit status: 0 done, 1 failed, 2 usage.  An error is one line on stderr: what, why,
// what to do.
#ifndef YK_TOOL_H
#define YK_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct yk_device;

enum yk_exit { YK_DONE = 0, YK_FAILED = 1, YK_USAGE = 2 };

struct yk_command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv); // argv[0]: its name; returns the exit status
	unsigned keys;                     // listed in its help: YK_T, YK_G, YK_E (train/conf.h); or 0
	const char *more;                  // further lines for its help, or NULL
};
extern const struct yk_command yk_commands[]; // ends with a NULL name

int yk_cmd_train(int argc, char **argv);
int yk_cmd_generate(int argc, char **argv);
int yk_cmd_eval(int argc, char **argv);
int yk_cmd_plan(int argc, char **argv);
int yk_cmd_models(int argc, char **argv);
int yk_cmd_memory(int argc, char **argv);
int yk_cmd_data(int argc, char **argv);
int yk_cmd_cubes(int argc, char **argv);
int yk_cmd_fit(int argc, char **argv);
int yk_cmd_apply(int argc, char **argv);
int yk_data_prepare(int argc, char **argv); // of yk_cmd_data
int yk_cmd_setup(int argc, char **argv);
int yk_cmd_info(int argc, char **argv);
int yk_cmd_doctor(int argc, char **argv);
int yk_cmd_bench(int argc, char **argv);
int yk_cmd_conform(int argc, char **argv);
int yk_cmd_tune(int argc, char **argv);
int yk_cmd_validate(int argc, char **argv);
int yk_cmd_dashboard(int argc, char **argv);
int yk_cmd_top(int argc, char **argv);
int yk_cmd_ablate(int argc, char **argv);
int yk_cmd_advise(int argc, char **argv);
int yk_cmd_selftest(int argc, char **argv);
int yk_cmd_simulate(int argc, char **argv);
int yk_simulate_stages(int argc, char **argv); // of a pipeline
int yk_tune_ranks(int argc, char **argv); // yoke tune ranks
int yk_cmd_report(int argc, char **argv);
int yk_cmd_help(int argc, char **argv);
int yk_cmd_version(int argc, char **argv);

// "yoke train: .." on stderr, with a line that names the help; returns YK_USAGE.
int yk_usage(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// yoke_error() on stderr; returns YK_FAILED.
int yk_failed(const char *command);
// Did a write to standard output fail since its reader went away, as `head` does? That is no error: a command ends
// without a message where it has nothing else to do.
bool yk_reader_gone(void);
// Flushes stdout and reports a write error, unless its reader went away; returns `status`, or YK_FAILED.
int yk_finish(const char *command, int status);
// The overview, or the help of one command.  all: with all of its keys, instead of those that are
// changed most often.
void yk_help(FILE *, const struct yk_command *, bool all);

// What is shown on stderr of kernels that are compiled and tested (warmup_show.c).
struct yk_screen {
	bool redraws, text;
	bool said;   // the first line
	bool shown;  // something of this plan
	double last; // when a line was written or drawn
};
// They are shown from now on; the screen, zeros at first, has to live on.  text: a text is being written
// to stdout, and stays as it is.
void yk_warmup_show(struct yk_screen *, bool text);

// ---- option.c ----

// The value behind an option, "--seed=7" or the next argument; NULL: argv[*i] is another one.
const char *yk_option(const char *option, int argc, char **argv, int *i);
// Of "key=a key=b" at the second one: the first; NULL: argv[i] is no key's second value.
const char *yk_option_twice(char **argv, int i);
int yk_option_number(const char *text, uint64_t *to); // 0, or -1
// "mychip" is a backend, "mychip:1" a device of it; NULL: what YOKE_BACKEND and YOKE_DEVICE say.
struct yk_device *yk_option_device(const char *name);

#endif
