// SPDX-License-Identifier: Apache-2.0
// The table of sub-commands with their help texts.
#include "config.h"

#include "tool/bench.h"
#include "tool/tool.h"
#include "config/conf.h"

#define TRAIN_KEYS \
	"The keys are those of `yoke train`; `yoke help train` lists them.\n"
#define TOP \
	"Without RUN it shows the devices and the host of this machine (use, memory, temperature, power), the\n" \
	"processes that use them, and all running trainings of the user. q quits.\n" \
	"  --once   prints the table once\n" \
	JSON, NULL
#define APPLY \
	"RUN is the folder that yoke fit wrote. Results of nodes=NAME,.. (by default the last node) are written to\n" \
	"out as .hdr and .img, or with format=npy or png in that format, named CUBE_NODE. Existing files are kept\n" \
	"without overwrite=1; input files are never replaced. Other keys are as in yoke fit: data.cubes='set/*.hdr'\n", NULL
#define JSON "  --json   prints the same as JSON\n"

static const struct yk_command plan_subjects[] = {
	{ "plan device", "[config.env] [key=value ..] [--measure] [--json]",
	  "recommend a device for a training", yk_plan_device, 0,
	  "Applies rules; where they do not decide, times the training on each device in turn.\n"
	  "With a configuration of `yoke train`, which has data=. Without one, these keys describe the workload:\n"
	  "samples=, batch=, channels=, height=, width=, parameters=, epochs=, loader= (the fraction of the time\n"
	  "that waits for data), trains=0, device=0.\n"
	  "  --measure   measures even if the rules decide\n"
	  "  --json      prints the same as JSON\n" TRAIN_KEYS,
	  NULL },
	{ "plan scaling", "[RUN] [ranks=N..N] [group=N] [bytes=N] [algorithm=NAME]",
	  "predict the time of sums and steps on more ranks", yk_plan_scaling, 0,
	  "Simulates the schedules of an all_reduce. A message takes alpha seconds plus beta seconds per byte (1:\n"
	  "within a machine, 2: between machines), an addition gamma seconds per byte; by default these are what\n"
	  "`yoke tune ranks` measured. Prints the closed form beside it, and the minimum for any schedule as a\n"
	  "fraction of the time. With RUN, a run profiled on one rank, predicts its training step.\n"
	  "  ranks=N, N..N    doubled from the first to the last, up to 4096\n"
	  "  group=N          ranks per machine; 1 by default\n"
	  "  bytes=N          size of the sum; 1 MiB by default\n"
	  "  algorithm=NAME   simulates only this algorithm\n"
	  "  alpha1= beta1= alpha2= beta2= gamma=  in seconds\n"
	  "  stages=N micro_batches=N forward=S backward=S bytes=N   a pipeline's step instead, and its idle time\n",
	  NULL },
	{ 0 },
};

static const struct yk_command data_subjects[] = {
	{ "data get", "NAME|--list [out=FILE] [overwrite=1]",
	  "write a well-known data set, or show how to download it", yk_data_get, 0,
	  "NAME is tinyshakespeare, wikitext2, mnist or digits; `yoke get NAME` is the same. A set that an installed\n"
	  "Python package contains is written to a file; otherwise prints the command that downloads and verifies\n"
	  "it, for `yoke get NAME | sh`, and what to run then. yoke itself uses no network.\n"
	  "  --list       names, sizes and sources\n"
	  "  out=FILE     its file; by default named after the set\n"
	  "  overwrite=1  replaces a file that exists\n",
	  NULL },
	{ 0 },
};

static const struct yk_command info_subjects[] = {
	{ "info models", "[FOLDER] [--json]", "list the models in a folder with size, loss and age",
	  yk_info_models, 0,
	  "Looks in FOLDER (the current folder by default) and in the folders inside it.\n" JSON,
	  NULL },
	{ "info memory", "SNAPSHOT", "show what occupied a device's memory, and when",
	  yk_info_memory, 0,
	  "SNAPSHOT is a file written by `yoke train .. memory_history=1` or by yoke_memory_snapshot. Prints what\n"
	  "was allocated at the peak and at the end, by op, range and call site, and the allocated bytes over time.\n",
	  NULL },
	{ 0 },
};

static const struct yk_command check_subjects[] = {
	{ "check model", "[config.env] [key=value ..]",
	  "test that a model trains correctly on this machine", yk_check_model, 0,
	  "Trains two small steps on the CPU, compares the gradients with finite differences, repeats both on the\n"
	  "device, and tests that plans are reused and that profiles and timings work: one line for each test.\n"
	  "With a configuration it tests that model, otherwise a small one.\n" TRAIN_KEYS,
	  NULL },
	{ "check device",
	  "[DEVICE] [--ops LIST] [--seed N] [--quick] [--shard K/N] [--pass K/N] [--skipped] [--bits]",
	  "test a device's ops against their definitions", yk_check_device, 0,
	  "DEVICE is a backend or one of its devices, e.g. opencl:0; by default the one that yoke would use.\n"
	  "Prints TAP: one line for each op, dtype and implementation, and the totals.\n"
	  "  --ops LIST   only these: op, op.dtype or op.dtype.case, e.g. map,contract.f32\n"
	  "  --seed N     seed of the numbers and shapes; 1 by default\n"
	  "  --quick      a sample of the cases\n"
	  "  --shard K/N  every N-th op and dtype starting with number K, to share the work among N processes\n"
	  "  --pass K/N   every N-th case of each starting with number K\n"
	  "  --skipped    prints lines for unsupported ops too\n"
	  "  --bits       ends each line with a hash of all result bits\n",
	  NULL },
	{ "check precision", "[config.env] [key=value ..] [--json]",
	  "compare a mixed precision with fp32", yk_check_precision, 0,
	  "Trains the configuration twice, 50 steps by default, and saves nothing. Prints losses, the first gradients\n"
	  "by layer, memory, speed and overflows. Fails where mixed precision is worse than its bounds.\n"
	  "The default is precision=bf16-mixed.\n" JSON TRAIN_KEYS,
	  NULL },
	{ "check resolvent", "[key=value ..] [--json]",
	  "compare a precision of resolvents with f64", yk_check_resolvent, 0,
	  "Uses random matrices. Keys: samples=, batch=, n=, eta=, tier=, sweeps=, tolerance=, seed=. Fails where an\n"
	  "error exceeds 1e-4.\n" JSON,
	  NULL },
	{ 0 },
};

static const struct yk_command bench_subjects[] = {
	{ "bench ablate", "[config.env] [key=value ..] toggles=LIST [rounds=N] [--json]",
	  "measure the effects of configuration choices, alone and combined", yk_bench_ablate, 0,
	  "A toggle is a key=value of the configuration or a setting; \"off\" is the configuration without it.\n"
	  "Trains with all off, each alone, all but each, and all on, for the same number of steps (steps=, 20 by\n"
	  "default), in alternation, and saves nothing.\n"
	  "  toggles=LIST  up to 8, e.g. recompute=block,precision=bf16-mixed\n"
	  "  rounds=N      repetitions of all variants; 3 by default\n"
	  "  --json        prints the same as JSON\n" TRAIN_KEYS,
	  NULL },
	{ "bench fit", "[workload=small|large|FILE] [key=value ..] [--json]",
	  "measure where the time of fitting a pipeline goes", yk_bench_fit, 0,
	  "Keys: devices=, loader_ms=, scale=batch|channels|side, count= (cubes of a scale), and those of `yoke fit`.\n" JSON,
	  NULL },
	{ "bench ranks", "[ranks=N] [spawn=N] [max=BYTES] [bytes=LIST] [--json]",
	  "measure an all_reduce, 8 bytes to 256 MiB, by algorithm", yk_bench_ranks, 0,
	  "Runs it among threads, or with spawn= among processes.\n" JSON, NULL },
	{ "bench serve",
	  "URL|MODEL [clients=N] [requests=N] [prompt=N] [tokens=N] [key=value ..] [--json]",
	  "load a server with requests and measure its rates and latencies", yk_bench_serve, 0,
	  "The server is one with OpenAI's API that runs at URL, or `yoke serve` of MODEL with the keys that are not here.\n"
	  "  clients=8, requests=64, warm=    clients at once; requests that are measured, and before (as many as clients)\n"
	  "  prompt=128, tokens=128           tokens of prompts and generated ones: a number, or MIN-MAX, drawn with seed=1\n"
	  "  endpoint=completions             or chat or embeddings; the latter with inputs= texts in a request\n"
	  "  stream=1, shared=0               streams; first tokens that all prompts have in common\n"
	  "  model=, timeout=600, key_file=   the name to request; seconds without a byte; a file with the API key\n" JSON,
	  NULL },
	{ 0 },
};

static const struct yk_command dashboard_subjects[] = {
	{ "dashboard terminal", "[RUN ..] [--once] [--json]",
	  "show runs and their processes in a terminal", yk_dashboard_terminal, 0, TOP },
	{ 0 },
};

#define BATCH \
	"Answers requests of a file in OpenAI's batch format, one JSON object per line: custom_id, method POST, url\n" \
	"(/v1/chat/completions, /v1/completions or /v1/embeddings) and body. The replies are written to another file,\n" \
	"in the same order. If that exists, the lines that it has are kept, and the rest is answered: so a batch\n" \
	"that was ended goes on.\n" \
	"  in=FILE   requests\n" \
	"  out=FILE  replies\n" \
	"The other keys are those of `yoke serve`.\n", NULL

static const struct yk_command serve_subjects[] = {
	{ "serve batch", "MODEL in=FILE out=FILE [key=value ..]", "answer the requests of a file",
	  yk_serve_file, 0, BATCH },
	{ 0 },
};

static const struct yk_command fit_subjects[] = {
	{ "fit apply", "RUN out=FOLDER [key=value ..]", "apply a fitted pipeline to cubes",
	  yk_cmd_apply, 0, APPLY },
	{ 0 },
};

const struct yk_command yk_commands[] = {
	{ "train", "[config.env] [key=value ..]", "train a model on text", yk_cmd_train, YK_T,
	  "A file of lines KEY=value sets the same keys; arguments override it. SIGINT, SIGTERM and SIGHUP finish\n"
	  "the step, save the model and exit with status 0; a second signal exits at once.\n",
	  NULL },
	{ "plan", "[device|scaling] [config.env] [key=value ..]",
	  "predict the memory of a training without running it", yk_cmd_plan, 0,
	  "Takes the arguments of `yoke train`; data= is needed only if the vocabulary depends on it. Computes and\n"
	  "allocates nothing, so the model may be of any size.\n" TRAIN_KEYS,
	  plan_subjects },
	{ "generate", "MODEL [key=value ..]", "write text with a trained model", yk_cmd_generate,
	  YK_G,
	  "MODEL is the folder that `yoke train` wrote, or a pretrained model: a folder with config.json and\n"
	  "safetensors files, or a GGUF file.\n",
	  NULL },
	{ "chat", "MODEL [key=value ..]", "hold a conversation with a model", yk_cmd_chat, YK_C,
	  "MODEL is as in `yoke generate`, with a chat template (tokenizer_config.json, chat_template.jinja, GGUF). A line\n"
	  "is a message; after a \\ at its end it continues on the next line; \"\"\" begins and ends a message of several\n"
	  "lines. Ctrl-C ends the answer; at the prompt, Ctrl-C or Ctrl-D exits. Without a terminal it reads lines and\n"
	  "prints only the answers.\n"
	  "  /reset        forgets the conversation, but not the system message\n"
	  "  /system TEXT  replaces the system message; without TEXT removes it\n"
	  "  /regenerate   answers the last message again, with other random numbers\n"
	  "  /resend       sends the last message that was refused again\n"
	  "  /save FILE    appends the conversation to FILE: a line of .jsonl, as `yoke train` reads it\n"
	  "  /load FILE    continues the last conversation in FILE\n"
	  "  /stats        prints the numbers of messages and tokens\n"
	  "  /help, /exit\n",
	  NULL },
	{ "serve", "[batch] MODEL [embed=MODEL] [adapter=NAME=FOLDER ..] [key=value ..]",
	  "serve a model to programs and browsers by HTTP", yk_cmd_serve, YK_S,
	  "MODEL is as in `yoke generate`, or a model for embeddings. Serves OpenAI's API (/v1/models, /v1/completions,\n"
	  "/v1/chat/completions, /v1/embeddings), /tokenize, /detokenize, /health, /metrics for Prometheus, and a page to\n"
	  "chat at /, until SIGINT, SIGTERM or SIGHUP, after which it answers the requests in progress; a second signal\n"
	  "ends it at once. A key in YOKE_API_KEY or key_file= must be sent as Authorization: Bearer KEY.\n"
	  "  embed=MODEL          a second model, for embeddings\n"
	  "  adapter=NAME=FOLDER  low-rank adapters that requests choose by \"model\": NAME; several are given one by one\n",
	  serve_subjects },
	{ "batch", "MODEL in=FILE out=FILE [key=value ..]",
	  "answer the requests of a file (yoke serve batch)", yk_serve_file, 0, BATCH },
	{ "eval", "MODEL [key=value ..]", "compute the loss of a trained model on text",
	  yk_cmd_eval, YK_E,
	  "MODEL is the folder that `yoke train` wrote, or a pretrained model: a folder with config.json and\n"
	  "safetensors files, or a GGUF file.\n"
	  "Without data= it uses the validation split of the training text; pretrained models need data=.\n",
	  NULL },
	{ "embed", "MODEL [TEXT ..] [key=value ..]", "compute vectors of texts", yk_cmd_embed, 0,
	  "MODEL is a pretrained model: a folder with config.json and safetensors files, or a GGUF file; of family bert, or\n"
	  "another one, whose hidden states are pooled. A text that begins with a word and '=' is given as prompt=TEXT.\n"
	  "Without a text, lines of standard input are read.\n"
	  "  prompt=TEXT       a text\n"
	  "  prompts=FILE      one text per line; -: standard input\n"
	  "  format=F          text: a line of numbers for each text; json: an object for each; csv; npy\n"
	  "  out=FILE          instead of standard output; npy needs it\n"
	  "  overwrite=1       replaces an existing FILE\n"
	  "  similarity=1      cosines of each text with all texts instead of its vector\n"
	  "  pooling=P         mean, cls, max or last; by default as the model's files specify, else mean\n"
	  "  normalize=0|1     1: length 1; by default as the model's files specify\n"
	  "  prompt_name=NAME  prompt of config_sentence_transformers.json to put before each text; by default the one\n"
	  "                    that the file names\n"
	  "  context=N         maximum of tokens per text, the rest is omitted; by default the model's\n"
	  "  dtype=D, quant=Q  as in `yoke generate`, as are backend=, memory= and threads=\n",
	  NULL },
	{ "export", "MODEL out=PATH format=hf|gguf|onnx|peft [key=value ..]",
	  "write a model for other programs", yk_cmd_export, 0,
	  "MODEL is as in `yoke generate`; of the models that `yoke train` wrote, those with model=gpt, which become gpt2, and\n"
	  "for onnx also those trained from a pretrained model; and those with lora=.\n"
	  "  format=hf    a folder as Hugging Face's libraries read it: config.json, model.safetensors, tokenizer files\n"
	  "  format=gguf  a file for llama.cpp and related programs\n"
	  "  format=onnx  a graph with its weights for ONNX runtimes, of any GPT or encoder: input_ids i64 [batch,context] ->\n"
	  "               logits f32, of encoders with attention_mask -> last_hidden_state; all shapes are static\n"
	  "  format=peft  the low-rank adapters of a run, or those of adapter=, as PEFT writes them\n"
	  "  adapter=FOLDER  low-rank adapters for MODEL, of PEFT or of a run\n"
	  "  merge=1      hf, gguf: adds the adapters to the weights\n"
	  "  dtype=D      hf, onnx: f32, f16 or bf16; by default as the model is stored, quantized weights as f32\n"
	  "  quant=Q      gguf: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0 or q5_1, for matrices; by default as the model is\n"
	  "               stored, quantized weights as f16\n"
	  "  shard=BYTES  hf: largest file of weights, e.g. 2G; 5 GB by default\n"
	  "  pre=NAME     gguf: tokenizer.ggml.pre, if no known name splits a sample text as the tokenizer does\n"
	  "  batch=N      onnx: texts at once; 1 by default\n"
	  "  context=N    onnx: tokens of each; by default the model's context, at most 1024\n"
	  "  external=BYTES  onnx: more weights than this are written to PATH.data; 2 GB, the format's limit, by default\n"
	  "  overwrite=1  replaces an existing target\n",
	  NULL },
	{ "data", "info|check|bench|prepare|get FILE [key=value ..]",
	  "inspect, prepare and get training data", yk_cmd_data, 0,
	  "FILE: a token file, .npy, .npz, .safetensors, .csv, .tsv, .jsonl, raw elements, or a folder of images; or\n"
	  "several of one kind, comma-separated; for prepare, text.\n"
	  "  info    prints samples, fields, fingerprint\n"
	  "  check   reads each sample, lists unreadable ones; fails if there are any\n"
	  "  bench   measures samples and bytes per second by number of threads; seconds=1 for each\n"
	  "  prepare writes the tokens of a text to a token file, which yoke train reads in place: out=FILE,\n"
	  "          tokenizer=byte|word, valid=0.1, context=128, field=NAME (of .jsonl), workers=N; with\n"
	  "          model=MODEL conversations, for yoke train init=MODEL, with the model's tokenizer and template\n"
	  "Other keys are settings of the source, as in yoke_dataset_open (yoke-data(3)): format=u16:1024,\n"
	  "context=128, fields=a,b, field=text, dims=3x4, vocab=50257; for tables\n"
	  "columns=a,\"two words\":f64,c:category, header=0, delimiter=tab; for images\n"
	  "size=224, crop=random, zoom=0.875, flip=1, mean=0.5, std=0.25\n",
	  data_subjects },
	{ "cubes", "info|check|convert|make FILE ..",
	  "inspect, convert and generate hyperspectral cubes", yk_cmd_cubes, 0,
	  "Hyperspectral cubes in ENVI files (.hdr) and .npy files.\n"
	  "  info CUBE ..      prints lines, samples, bands and the layout of the file\n"
	  "  check CUBE ..     reads each; fails if one is unreadable or contains a number that is not finite\n"
	  "  convert FROM TO   with type=u8..f64, interleave=bsq|bil|bip, order=little|big, bands=good or bands=0-9,20,\n"
	  "                    overwrite=0\n"
	  "  make FOLDER       generates random cubes with anomalies and labels: count=200 lines=128 samples=128\n"
	  "                    bands=50 seed=42 overwrite=0\n",
	  NULL },
	{ "fit", "[apply] FILE out=FOLDER [key=value ..]",
	  "fit a pipeline to cubes and train it, or apply it", yk_cmd_fit, 0,
	  "FILE is JSON: data (cubes or synthetic, labels, masks, bands, variable, batch, workers, split, nonfinite,\n"
	  "cache), and a pipeline as in yoke-pipeline(3). Cubes may differ in lines and samples, not in bands.\n"
	  "Keys are paths in it: nodes.pca.k=8, data.split=[0.5,0.3,0.2]. Those of `yoke train` need no path and may\n"
	  "also be in FILE: epochs=, accumulate=, clip=, precision=, log_every=, progress=, optimizer=, lr=,\n"
	  "momentum=, weight_decay=, batch=, workers=, seed=. ${VAR} in strings is replaced by the\n"
	  "environment variable. Writes pipeline.json (the effective configuration), pipeline.safetensors and records\n"
	  "of the run to out. A folder that holds a run is refused without resume=1, which continues a run\n"
	  "trained with trainer.enable_checkpointing=true or ended by a signal, or overwrite=1, which\n"
	  "replaces it.\n",
	  fit_subjects },
	{ "apply", "RUN out=FOLDER [key=value ..]",
	  "apply a fitted pipeline to cubes (yoke fit apply)", yk_cmd_apply, 0, APPLY },
	{ "setup", "[FILE]", "write a configuration file to edit", yk_cmd_setup, 0,
	  "FILE is config.env by default; an existing file is never overwritten.\n", NULL },
	{ "info", "[models|memory|MODEL] [--env [all]] [--dtypes] [--json]",
	  "list devices, plugins, threads, settings, models", yk_cmd_info, 0,
	  "With MODEL, a Hugging Face folder or a GGUF file: its family, sizes, formats of weights, tokenizer and the\n"
	  "memory that it will occupy, without loading the weights. ./models is a folder with the name of a subject.\n"
	  "  --env     settings: type, default, value, origin, help; --env all: with those for debugging\n"
	  "  --dtypes  tests what the selected device supports in each dtype, which may compile kernels\n"
	  "  --json    prints the same as JSON\n",
	  info_subjects },
	{ "doctor", "[RUN [RUN]] [--json]", "diagnose this installation, or a run", yk_cmd_doctor,
	  0,
	  "Lists folders and plugins, OpenCL's loader and drivers (each loaded in a separate process), device\n"
	  "nodes, threads and caches. Fails if something requested, as in YOKE_BACKEND, cannot be used.\n"
	  "With RUN, the folder of a run: reports problems found in its records, with evidence, a remedy and\n"
	  "its expected effect; with two runs also whether results differ that should be equal. Fails if there is a\n"
	  "problem.\n" JSON,
	  NULL },
	{ "bench",
	  "[ablate|fit|ranks|serve] [suite ..] [devices=LIST] [--quick] [--json] [--html FILE]",
	  "measure the performance of this machine", yk_cmd_bench, 0,
	  "Suites, all of them by default: contract, map, rows, attention, resolvent, train, memory, launches, scaling, batch.\n"
	  "Prints medians with the spread (half of the interquartile range), beside limits measured in the same run:\n"
	  "the peak of fp32 multiply-adds, and a copy in memory.\n"
	  "  devices=LIST  on these devices, e.g. cpu,opencl, side by side\n"
	  "  --quick       tiny sizes, to test that a suite runs\n"
	  "  --json        prints JSON to standard output, and the table to standard error\n"
	  "  --html FILE   writes a page with plots over sizes\n",
	  bench_subjects },
	{ "check", "[model|device|precision|resolvent] [arguments]",
	  "test that this machine computes correctly", yk_check_model, 0,
	  "Without a subject it checks a model.\n", check_subjects },
	{ "tune", "[DEVICE|ranks] [model=DIR] [minutes=N]", "find the fastest kernels of a device",
	  yk_cmd_tune, 0,
	  "Measures the device's matrix product kernels for each class of sizes, each in a separate process and\n"
	  "after a test of its results, and stores the result for this device and driver. Earlier\n"
	  "measurements are kept. Prints an estimate of the time, first and while it measures.\n"
	  "DEVICE is as in `yoke check device`.\n"
	  "  model=DIR         only what training and generating with that model use\n"
	  "  minutes=N         ends after this time, without the class in progress\n"
	  "  --budget SECONDS  the same in seconds\n"
	  "  --only CLASS      measures one class in this process and prints it; stores nothing\n"
	  "  --without LIST    implementations to omit then\n"
	  "ranks: measures sums over processes, 2 or ranks=N, by size and algorithm, and the parameters of\n"
	  "`yoke plan scaling`; ranks use the result from then on. Run it with mpirun to measure several machines.\n",
	  NULL },
	{ "dashboard", "[terminal] RUN .. [port=N] [bind=ADDRESS] [token_file=FILE]",
	  "show runs in progress, in a browser or a terminal (yoke top)", yk_cmd_dashboard, 0,
	  "Serves a page of the runs to browsers on this machine, and prints its address, which contains a token.\n"
	  "RUN is the folder of a run, or a folder with runs below it, which the page lists, also new ones.\n"
	  "The page follows runs in progress. /metrics serves Prometheus, with the token as Bearer.\n"
	  "  port=N           0 by default: any free port\n"
	  "  bind=ADDRESS     127.0.0.1 by default; others only with token_file=, and without encryption\n"
	  "  token_file=FILE  the token, in a file that only its owner can read\n"
	  "  --until-eof      ends at the end of standard input\n",
	  dashboard_subjects },
	{ "top", "[RUN ..] [--once] [--json]", "show devices, processes and runs in the terminal",
	  yk_dashboard_terminal, 0, TOP },
	{ "report", "RUN .. [--html FILE] [--md FILE] [--csv FILE] [--json]",
	  "summarize runs, with curves and tables", yk_cmd_report, 0,
	  "RUN is the folder of a run: out= of `yoke train`, or what a program passed to yoke_run_open. With\n"
	  "several runs, curves share a plot and differences are printed side by side.\n"
	  "  --html FILE  one self-contained page with plots\n"
	  "  --md FILE    Markdown; printed to standard output by default\n"
	  "  --csv FILE   columns run, section, row, name, value\n"
	  "  --json       prints JSON to standard output\n"
	  "FILE is - for standard output.\n",
	  NULL },
	{ "help", "[command [subject] [all]]", "show this overview, or help for a command",
	  yk_cmd_help, 0,
	  "`yoke help train` lists the keys that are changed most often, `yoke help train all` lists all of\n"
	  "them.\n",
	  NULL },
	{ 0 },
};
