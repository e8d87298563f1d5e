// SPDX-License-Identifier: Apache-2.0
// The command `yoke`: dispatches to the sub-command; messages that all sub-commands share.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/param.h"
#include "device/guard.h"
#include "device/warmup.h"
#include "tool/tool.h"
#include "train/conf.h"

#define TRAIN_MORE \
	"A file of lines KEY=value gives the same keys; arguments win over it.  SIGINT " \
	"and\n" \
	"SIGTERM finish the step, save the model and end with status 0; a second one ends " \
	"at once.\n"
#define PLAN_MORE \
	"With the arguments of `yoke train`; data is needed where a vocabulary is made of it.  " \
	"Nothing is\n" \
	"computed and no memory is taken, so any size of model may be asked for.\n"
#define TRAIN_KEYS \
	"The keys of a configuration are those of `yoke train`; `yoke help train` lists them.\n"
#define MODEL_MORE "MODEL is the folder that `yoke train` wrote.\n"
#define EVAL_MORE "Without data it is the validation part of the text that the model was trained on.\n"
#define MODELS_MORE \
	"FOLDER itself and the folders in it; . by default.\n" \
	"  --json   the same for programs\n"
#define DATA_MORE \
	"FILE: a token file, .npy, .npz, .safetensors, .csv, .tsv, .jsonl, raw elements, or a folder of images; or\n" \
	"several of a kind, comma-separated; text to prepare.\n" \
	"  info    samples, fields, fingerprint\n" \
	"  check   reads each sample, names those that cannot be read; fails where there are some\n" \
	"  bench   samples and bytes a second by number of threads; seconds=1 for each\n" \
	"  prepare writes the tokens of text to a token file, which yoke train reads in place: out=FILE,\n" \
	"          tokenizer=byte|word, valid=0.1, context=128, field=NAME (of .jsonl), workers=N\n" \
	"Other keys are settings of the source, as in yoke_dataset_open (yoke-data(3)): format=u16:1024,\n" \
	"context=128, fields=a,b, columns=a,b:category, field=text, dims=3x4, vocab=50257, and of\n" \
	"images size=224, crop=random, zoom=0.875, flip=1, mean=0.5, std=0.25\n"
#define MEMORY_MORE \
	"SNAPSHOT is a file of `yoke train .. memory_history=1`, or of yoke_memory_snapshot: what was alive at the\n" \
	"peak and at the end, by op, range and site, and live bytes over time.\n"
#define CUBES_MORE \
	"Hyperspectral cubes in ENVI files (.hdr) and .npy files.\n" \
	"  info CUBE ..      lines, samples, bands, how it lies in its file\n" \
	"  check CUBE ..     reads each; fails where one cannot be read or a number is not finite\n" \
	"  convert FROM TO   with type=u8..f64, interleave=bsq|bil|bip, order=little|big, bands=good or bands=0-9,20,\n" \
	"                    overwrite=0\n" \
	"  make FOLDER       drawn cubes with anomalies and their labels: count=200 lines=128 samples=128 bands=50\n" \
	"                    seed=42 overwrite=0\n"
#define FIT_MORE \
	"FILE is JSON: data (cubes or synthetic, labels, masks, bands, variable, batch, workers, split, nonfinite,\n" \
	"cache), and a pipeline as in yoke-pipeline(3).  Cubes may differ in lines and samples, not in bands.\n" \
	"Keys are places in it: trainer.max_epochs=5, nodes.pca.k=8; ${VAR} in its texts is the\n" \
	"environment's.  out gets pipeline.json, what is in force, pipeline.safetensors, and records of the run.\n" \
	"A folder with a run is refused, unless resume=1, which goes on with a run with\n" \
	"trainer.enable_checkpointing=true or one that SIGINT or SIGTERM ended, or overwrite=1, which replaces it.\n"
#define APPLY_MORE \
	"RUN is the folder of yoke fit.  Results of nodes=NAME,.. (the last one) go to out as .hdr and .img, or with\n" \
	"format=npy or png as those, named CUBE_NODE.  Files that exist are kept, unless overwrite=1; those that are read\n" \
	"are never replaced.  Other keys are as in yoke fit: data.cubes='set/*.hdr'\n"
#define SETUP_MORE \
	"FILE is config.env by default; one that is there is never written over.\n"
#define INFO_MORE \
	"  --env     settings: type, default, value, origin, help; --env all: with those for debugging\n" \
	"  --dtypes  tests what the chosen device computes in each dtype, also where\n" \
	"            that takes a compiler, and in JSON\n" \
	"  --json    the same for programs\n"
#define DOCTOR_MORE \
	"Folders and plugins, OpenCL's loader and drivers, each met in a process of its " \
	"own, device\n" \
	"nodes, threads, caches.  Fails when something asked for, as in YOKE_BACKEND, " \
	"cannot be used.\n" \
	"RUN is the folder of a run: says what is wrong with it by its records, with evidence, what would\n" \
	"change it and by how much; of two runs also whether they should be alike and are not.  Fails when\n" \
	"something is wrong.\n" \
	"  --json   the same for programs\n"
#define BENCH_MORE \
	"Suites, all of them by default: contract, map, rows, attention, resolvent, train, memory, launches, scaling, batch.\n" \
	"Figures are medians\n" \
	"with the spread (half of the distance between quartiles), beside limits " \
	"measured in\n" \
	"the same run: the peak, fp32 multiply-adds, and a copy in memory.\n" \
	"  devices=LIST  on these, as cpu,opencl, side by side\n" \
	"  --quick       tiny sizes, to see that a suite runs\n" \
	"  --json FILE   the figures as JSON, too\n" \
	"  --html FILE   as a page, with plots over sizes\n" \
	"ranks: an all_reduce among threads, 8 bytes to 256 MiB, by algorithm, beside a loop written by hand\n" \
	"and MPI's own among processes, where there is one; keys ranks, spawn, most or bytes=LIST, and --json.\n" \
	"fit: a pipeline fitted and trained, and where the time goes: workload=small, large or a file, devices=,\n" \
	"loader_ms=, scale=batch, channels or side, count= (cubes of a scale), --json, and keys of yoke fit.\n"

#define CONFORM_MORE \
	"DEVICE is a backend or one of its devices, as opencl:0; without it the one that work " \
	"goes\n" \
	"to.  Prints TAP: a line for each op, dtype and implementation, and the totals.\n" \
	"  --ops LIST   only these: op, op.dtype or op.dtype.case, as map,contract.f32\n" \
	"  --seed N     other numbers and shapes; 1 by default\n" \
	"  --quick      a sample of the cases\n" \
	"  --shard K/N  every N-th op and dtype from number K on, for N processes\n" \
	"  --pass K/N   every N-th case of each from number K on\n" \
	"  --skipped    lines for what the device does not take, too\n" \
	"  --bits       lines end with a number that stands for the bits of all results\n"

#define TUNE_MORE \
	"Measures the device's implementations of products, class by class of extents, each in " \
	"a process\n" \
	"of its own and after a check of what it computes, and keeps the result for this device " \
	"and driver.\n" \
	"What was measured before is kept.  Says how long it will take, first and while it measures.\n" \
	"DEVICE as in `yoke conform`.\n" \
	"  model=DIR         only what training and generating with that model use\n" \
	"  minutes=N         ends after that time, without the class in hand\n" \
	"  --budget SECONDS  the same in seconds\n" \
	"  --only CLASS      measures one class here and prints it; keeps nothing\n" \
	"  --without LIST    implementations to leave out then\n" \
	"ranks: measures sums over ranks that are processes, 2 or ranks=N, by size and algorithm, which ranks\n" \
	"take from then on, and the model of `yoke simulate`; under mpirun over several machines what is between them.\n"

#define SIMULATE_MORE \
	"Runs the schedules of an all_reduce in a model of messages, alpha seconds each and beta a byte, 1 within a\n" \
	"machine, 2 between machines, and gamma a byte that is added, by default what `yoke tune ranks` measured;\n" \
	"beside the closed form, and the share of it that no schedule can spare.\n" \
	"  ranks=N, N..N    by doubling, up to 4096\n" \
	"  group=N          ranks of a machine; 1 by default\n" \
	"  bytes=N          1 MiB by default\n" \
	"  algorithm=NAME   only that one\n" \
	"  alpha1= beta1= alpha2= beta2= gamma=  seconds\n" \
	"  stages=N micro_batches=N forward=S back=S bytes=N   a pipeline's step instead, and what of it stages are idle for\n"

#define VALIDATE_MORE \
	"Trains what the keys say twice, 50 steps unless they say how many, and saves nothing: losses, the\n" \
	"first gradients by layer, memory, speed, overflows.  Fails where mixed precision is not as good.\n" \
	"Without precision= it is bf16-mixed.\n" \
	"resolvent: a tier of it against f64 on random matrices; keys samples batch n eta tier sweeps\n" \
	"tolerance seed.  Fails where an error is above 1e-4.\n" \
	"  --json   the same for programs\n"

#define REPORT_MORE \
	"RUN is the folder of a run: out= of `yoke train`, or what a program gave to yoke_run_open.  Of\n" \
	"several runs curves are laid over each other, and what differs stands side by side.\n" \
	"  --html=FILE  one page with plots, without outer references\n" \
	"  --md=FILE    Markdown, to standard output by default\n" \
	"  --csv=FILE   run, section, row, name, value\n" \
	"  --json=FILE  the same for programs; without =FILE each goes to standard output\n"

#define DASHBOARD_MORE \
	"Serves a page of the runs to browsers of this machine, and prints its address, in which the token is.\n" \
	"The page follows runs that live.  /metrics is for Prometheus, with the token as Bearer.\n" \
	"  port=N           0 by default: any that is free\n" \
	"  bind=ADDRESS     127.0.0.1 by default; others only with token_file=, and nothing is encrypted\n" \
	"  token_file=FILE  the token, in a file that nobody else may read\n" \
	"  --until-eof      ends when standard input does\n"

#define TOP_MORE \
	"Without RUN all runs of the user that live.  q ends it.\n" \
	"  --once   prints the table once\n" \
	"  --json   the same for programs\n"

#define ABLATE_MORE \
	"A toggle is key=value of the configuration, or a setting; off is what the configuration has without it.\n" \
	"All off, each alone, all but each, and all on are trained for as many steps (steps=, 20 by default), in\n" \
	"turns, and nothing is saved.\n" \
	"  toggles=LIST  up to 8, as recompute=block,precision=bf16-mixed\n" \
	"  rounds=N      of all of them; 3 by default\n" \
	"  --json        the same for programs\n"

#define ADVISE_MORE \
	"Which device a training suits: by rules; where they do not say, by timing it on each device in turn.\n" \
	"With a configuration of `yoke train`, which has data=; or of something else, by the numbers alone:\n" \
	"samples=, batch=, channels=, height=, width=, parameters=, epochs=, loader= (the share of the time\n" \
	"that waits for data), trains=0, device=0.\n" \
	"  --measure   times it whatever the rules say\n" \
	"  --json      the same for programs\n"
#define SELFTEST_MORE \
	"Two small steps of a model on the CPU, its gradients beside differences of the loss, the same on the\n" \
	"device, plans that are found again, a profile, a timing: a line for each, and more where one is wrong.\n" \
	"With a configuration its model, else a small one.\n"

#define HELP_MORE \
	"`yoke help train` lists the keys that are changed most often, `yoke help train all`\n" \
	"lists all of them.\n"

const struct yk_command yk_commands[] = {
	{ "train", "[config.env] [key=value ..]", "train a model on text", yk_cmd_train,
	  YK_T, TRAIN_MORE },
	{ "plan", "[config.env] [key=value ..]", "memory a training run would take, without running it",
	  yk_cmd_plan, 0, PLAN_MORE TRAIN_KEYS },
	{ "generate", "MODEL [key=value ..]", "write text with a trained model",
	  yk_cmd_generate, YK_G, MODEL_MORE },
	{ "eval", "MODEL [key=value ..]", "loss of a trained model on text",
	  yk_cmd_eval, YK_E, MODEL_MORE EVAL_MORE },
	{ "models", "[FOLDER] [--json]", "models in a folder: size, loss, age", yk_cmd_models, 0,
	  MODELS_MORE },
	{ "memory", "SNAPSHOT", "what a device's memory held, and when", yk_cmd_memory, 0, MEMORY_MORE },
	{ "data", "info|check|bench|prepare FILE [key=value ..]", "what a file holds for training", yk_cmd_data, 0, DATA_MORE },
	{ "cubes", "info|check|convert|make FILE ..", "hyperspectral cubes: look at, convert, draw", yk_cmd_cubes, 0, CUBES_MORE },
	{ "fit", "FILE out=FOLDER [key=value ..]", "fit a pipeline to cubes and train it", yk_cmd_fit, 0, FIT_MORE },
	{ "apply", "RUN out=FOLDER [key=value ..]", "a fitted pipeline's results for cubes", yk_cmd_apply, 0, APPLY_MORE },
	{ "setup", "[FILE]", "write a configuration to edit", yk_cmd_setup, 0, SETUP_MORE },
	{ "info", "[--env [all]] [--dtypes] [--json]", "devices, plugins and threads; settings",
	  yk_cmd_info, 0, INFO_MORE },
	{ "doctor", "[RUN [RUN]] [--json]", "what was looked for, what was found, advice", yk_cmd_doctor, 0,
	  DOCTOR_MORE },
	{ "bench", "[suite ..] [devices=LIST] [--quick] [--json FILE] [--html FILE]", "measure this machine", yk_cmd_bench, 0,
	  BENCH_MORE },
	{ "conform", "[DEVICE] [--ops LIST] [--seed N] [--quick] [--shard K/N] [--pass K/N] [--skipped] [--bits]",
	  "check a device's ops against their definitions", yk_cmd_conform, 0,
	  CONFORM_MORE },
	{ "tune", "[DEVICE|ranks] [model=DIR] [minutes=N]", "find the best kernels of a device",
	  yk_cmd_tune, 0, TUNE_MORE },
	{ "simulate", "[RUN] [ranks=N..N] [group=N] [bytes=N] [algorithm=NAME]", "sums and steps of more ranks than are here",
	  yk_cmd_simulate, 0, SIMULATE_MORE },
	{ "validate", "precision|resolvent [config.env] [key=value ..] [--json]",
	  "precision held against one that is known to be right", yk_cmd_validate, 0,
	  VALIDATE_MORE TRAIN_KEYS },
	{ "dashboard", "RUN .. [port=N] [bind=ADDRESS] [token_file=FILE]", "a page that shows runs while they go on",
	  yk_cmd_dashboard, 0, DASHBOARD_MORE },
	{ "top", "[RUN ..] [--once] [--json]", "runs and their processes, in a terminal", yk_cmd_top, 0, TOP_MORE },
	{ "report", "RUN .. [--html=FILE] [--md] [--csv] [--json]", "what runs did, with curves and tables",
	  yk_cmd_report, 0, REPORT_MORE },
	{ "ablate", "[config.env] [key=value ..] toggles=LIST [rounds=N] [--json]",
	  "what choices of a configuration do, alone and together", yk_cmd_ablate, 0,
	  ABLATE_MORE TRAIN_KEYS },
	{ "advise", "[config.env] [key=value ..] [--measure] [--json]", "which device a training suits", yk_cmd_advise,
	  0, ADVISE_MORE TRAIN_KEYS },
	{ "selftest", "[config.env] [key=value ..]", "does a model train here as it should?",
	  yk_cmd_selftest, 0, SELFTEST_MORE TRAIN_KEYS },
	{ "help", "[command [all]]", "this overview, or more about a command", yk_cmd_help, 0,
	  HELP_MORE },
	{ "version", "", "the version of yoke", yk_cmd_version, 0, NULL },
	{ 0 },
};

// Writes one line with one call, because ranks may write at the same time; control characters in
// the text are replaced.
static void say(const char *command, const char *text)
{
	char line[2200]; // longer than any error message
	snprintf(line, sizeof line - 1, "yoke%s%s: %s", *command ? " " : "", command, text);
	for (char *c = line; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	strcat(line, "\n");
	fputs(line, stderr);
}

int yk_usage(const char *command, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, "; see `yoke help%s%s`",
			 *command ? " " : "", command);
	say(command, text);
	return YK_USAGE;
}

int yk_failed(const char *command)
{
	say(command, *yoke_error() ? yoke_error() : "failed without a reason");
	return YK_FAILED;
}

bool yk_reader_gone(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return ferror(stdout) && poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

int yk_finish(const char *command, int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (yk_reader_gone())
		return status;
	if (status == YK_DONE) {
		yoke_error_clear();
		yk_fail(YOKE_EIO, "standard output: %s",
			errno ? strerror(errno) : "write error");
		yk_failed(command);
	}
	return YK_FAILED;
}

int yk_cmd_version(int argc, char **argv)
{
	if (argc > 1)
		return yk_usage("version", "'%s': it takes no arguments", argv[1]);
	printf("yoke %s\n", yoke_version());
	return yk_finish("version", YK_DONE);
}

// Runs a command, unless its arguments request its help or the version.
static int run(const struct yk_command *c, int argc, char **argv)
{
	struct yk_screen screen = { 0 };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			yk_help(stdout, c, false);
			return yk_finish(c->name, YK_DONE);
		}
		if (!strcmp(argv[i], "--version"))
			return yk_cmd_version(1, argv);
	}
	yk_warmup_show(&screen, !strcmp(c->name, "generate"));
	int status = c->run(argc, argv);
	yk_warmup_to(NULL, NULL);
	return status;
}

int main(int argc, char **argv)
{
	const char *names[32], *word = argc > 1 ? argv[1] : NULL, *nearest;
	int n = 0;

	// A reader that exits does not end a training; other commands then end quietly
	// (yk_reader_gone). A file that may not grow causes a write error with a message.
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	yk_guard_program(argv);
	if (!word) {
		yk_help(stderr, NULL, false);
		return YK_USAGE;
	}
	if (!strcmp(word, "--version"))
		word = "version";
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		word = "help";
	for (const struct yk_command *c = yk_commands; c->name; c++) {
		if (!strcmp(word, c->name))
			return run(c, argc - 1, argv + 1);
		names[n++] = c->name;
	}
	nearest = yk_nearest(word, names, n);
	if (nearest)
		return yk_usage("", "unknown command '%s'; did you mean '%s'", word,
				nearest);
	return yk_usage("", "unknown command '%s'", word);
}
