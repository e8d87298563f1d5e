// SPDX-License-Identifier: Apache-2.0
// Configuration: the keys of `yoke train`, `generate`, `chat`, `eval` and `serve`, declared once in
// this table and read from `config.env` files and key=value arguments. Precedence: argument, file,
// checkpoint, default.
#ifndef YK_CONF_H
#define YK_CONF_H

#include "data/text.h"
#include "nn/lora.h"
#include "optim/options.h"

// Commands that accept a key.
#define YK_T 1u // train
#define YK_G 2u // generate
#define YK_E 4u // eval
#define YK_C 8u // chat
#define YK_S 16u // serve

#define YK_MODEL_NAME(name) #name
#define YK_MODEL_NAMES YK_MODELS(YK_MODEL_NAME, " ")

// Groups of keys, in the order in which `yoke help` prints them.
#define YK_CONFIG_GROUPS(G) \
	G(MODEL, "model") \
	G(DATA, "data") \
	G(OPTIMIZER, "optimizer") \
	G(SCHEDULE, "schedule") \
	G(PRECISION, "precision") \
	G(MEMORY, "memory") \
	G(RANKS, "ranks") \
	G(LOGGING, "logging") \
	G(GENERATION, "generation") \
	G(SERVING, "serving") \
	G(RUN, "run")

// X(key, group, level, type, commands, default, min, max, choices, help); S(..) as in nn/model.h
// for model sizes; O(..) as in optim/options.h for optimizer options, whose defaults depend on the
// optimizer. Levels: BASIC keys are those that most people change, 20 for `yoke train`; its help
// lists ADVANCED keys only on request.
// Types: INT and REAL in [min, max]; STRING; CHOICE of the words in `choices`; PATHS, a
// comma-separated list; CHOICE_OR_PATH: a word of `choices` or a path; REAL_OR_PATHS: a number in
// [min, max] or PATHS; EVERY: an INT, or passes over
// the text as in 0.25ep. An INT or REAL with choices may also be one of these words; its value is
// then YK_AUTO.
#define YK_AUTO (-1)
#define YK_CONFIG_KEYS(X, S, O) \
	X(data, DATA, BASIC, PATHS, YK_T | YK_E, "", 0, 0, NULL, \
	  "text to read: files and directories, comma-separated; -: standard input; with format, a pipe of tokens") \
	X(format, DATA, ADVANCED, STRING, YK_T | YK_E, "", 0, 0, NULL, \
	  "dtype of raw tokens written by another program, for example u16 or u16:OFFSET; empty: text, or token files") \
	X(vocab, DATA, ADVANCED, INT, YK_T | YK_E, "0", 0, 1048576, NULL, \
	  "number of different tokens, with format and tokenizer=ids; with tokenizer=word the maximum, most " \
	  "frequent words first, 0: all; with tokenizer=bpe 257 or more, 0: 4096") \
	X(limit, DATA, ADVANCED, INT, YK_T, "0", 0, 1e15, NULL, \
	  "tokens to use, from the start of the text; 0: all") \
	X(field, DATA, ADVANCED, STRING, YK_T | YK_E, "", 0, 0, NULL, \
	  "for .jsonl files: the string of each line that is its text; empty: conversations with init=, else plain " \
	  "text") \
	X(pack, DATA, ADVANCED, CHOICE, YK_T, "1", 0, 0, "1 0", \
	  "for conversations: 1: several per window, which do not attend to each other; 0: one per window, padded") \
	X(tokenizer, DATA, BASIC, CHOICE_OR_PATH, YK_T, "byte", 0, 0, "byte word ids bpe", \
	  "how text is split into tokens; ids: the text consists of token ids; bpe: learned from the text; or " \
	  "tokenizer.json, tokenizer.model, a GGUF file, or a folder; a token file has its own") \
	X(init, MODEL, BASIC, STRING, YK_T, "", 0, 0, NULL, \
	  "pretrained model to start from, with its tokenizer: a Hugging Face folder, a GGUF file, or a model that " \
	  "was trained from one") \
	X(lora, MODEL, ADVANCED, INT, YK_T, "0", 0, YK_LORA_MAX_RANK, NULL, \
	  "rank of low-rank adapters (LoRA) for matrices of init=, whose own weights are not trained; 0: train all " \
	  "weights") \
	X(lora_alpha, MODEL, ADVANCED, REAL, YK_T, "16", 1e-6, 1e6, NULL, \
	  "with lora: the adapters' products are multiplied by lora_alpha / lora") \
	X(lora_targets, MODEL, ADVANCED, STRING, YK_T, "q,v", 0, 0, NULL, \
	  "with lora: matrices of each block that have adapters: q, k, v, o, gate, up, down, or all") \
	X(adapter, MODEL, ADVANCED, STRING, YK_T | YK_G | YK_C | YK_E, "", 0, 0, NULL, \
	  "low-rank adapters for a pretrained model: a folder that PEFT or a run with lora wrote; in training, to " \
	  "continue from") \
	X(model, MODEL, BASIC, CHOICE, YK_T, "gpt", 0, 0, YK_MODEL_NAMES, \
	  "architecture of the network") \
	YK_SIZES(S) \
	YK_TRAITS(X, YK_T) \
	X(context, MODEL, BASIC, INT, YK_T | YK_G | YK_C | YK_E | YK_S, "128", 1, 1048576, NULL, \
	  "tokens per window; of pretrained models, the maximum for a text") \
	X(batch, DATA, BASIC, INT, YK_T | YK_G | YK_E, "16", 1, 1048576, "auto", \
	  "windows, or prompts, per pass; auto: the fastest batch that fits") \
	X(accumulate, MEMORY, ADVANCED, INT, YK_T, "1", 1, 65536, NULL, \
	  "micro-batches of each rank per step") \
	X(accumulate_order, RANKS, ADVANCED, CHOICE, YK_T, "tree", 0, 0, "tree fast", \
	  "order in which the gradients of a step are added: tree: as a binary tree, with log2(accumulate) copies " \
	  "of the gradients, so that 2^k ranks give the same bits; fast: one after the other, with one copy") \
	X(ranks, RANKS, BASIC, INT, YK_T, "1", 1, 1024, "auto", \
	  "devices that train one model together; auto: all devices like the best one") \
	X(spawn, RANKS, ADVANCED, CHOICE, YK_T, "thread", 0, 0, "thread process", \
	  "run ranks as threads of this process, or as processes that it starts; results are bit-identical") \
	X(restarts, RANKS, ADVANCED, INT, YK_T, "0", 0, 1000, NULL, \
	  "how often the remaining ranks continue from the last checkpoint when a rank fails, dies or hangs") \
	X(min_ranks, RANKS, ADVANCED, INT, YK_T, "1", 1, 1024, NULL, \
	  "minimum number of ranks to continue with") \
	X(zero, RANKS, ADVANCED, INT, YK_T, "0", 0, 3, NULL, \
	  "sharding among ranks: 1: the optimizer's state; 2: also gradients; 3: also parameters, which are " \
	  "gathered where they are used") \
	X(stages, RANKS, ADVANCED, INT, YK_T, "1", 1, 1000, NULL, \
	  "pipeline stages: consecutive layers of the model, each stage on other ranks") \
	X(split, RANKS, ADVANCED, STRING, YK_T, "auto", 0, 0, NULL, \
	  "blocks of each stage, for example 4,4; auto: balanced by the amount of work") \
	X(pipeline, RANKS, ADVANCED, CHOICE, YK_T, "1f1b", 0, 0, "1f1b gpipe", \
	  "order in which a stage computes its micro-batches: 1f1b: one backward pass per forward pass once all " \
	  "stages are busy; gpipe: all forward, then all backward, which holds all activations; results are " \
	  "bit-identical") \
	X(tensor, RANKS, ADVANCED, INT, YK_T, "1", 1, 1024, NULL, \
	  "tensor parallelism: ranks that share the heads, widths and vocabulary of each layer") \
	X(wire, RANKS, ADVANCED, CHOICE, YK_T, "fp32", 0, 0, "fp32 bf16 fp16", \
	  "dtype in which gradients are sent between ranks; half precision is added in f32, and each sum rounded once") \
	X(compress, RANKS, ADVANCED, CHOICE, YK_T, "none", 0, 0, "none topk", \
	  "topk: ranks send only the largest elements of each gradient and add the rest to the next step's") \
	X(compress_ratio, RANKS, ADVANCED, REAL, YK_T, "0.1", 1e-9, 1, NULL, \
	  "with compress=topk: fraction of the elements to send") \
	X(compress_after, RANKS, ADVANCED, INT, YK_T, "100", 0, 1e12, NULL, \
	  "with compress=topk: number of initial steps that send complete gradients") \
	X(micro_batches, RANKS, ADVANCED, INT, YK_T, "auto", 1, 65536, "auto", \
	  "micro-batches of all ranks per step; auto: ranks times accumulate. A resumed run keeps the number, and its " \
	  "results are bit-identical if each rank has 2^k of them") \
	X(steps, SCHEDULE, BASIC, INT, YK_T, "1000", 0, 1e12, NULL, \
	  "total number of optimizer steps") \
	X(epochs, SCHEDULE, ADVANCED, REAL, YK_T, "0", 0, 1e9, NULL, \
	  "passes over the text; above 0 it sets steps, unless only steps is given as an argument") \
	X(schedule, SCHEDULE, ADVANCED, CHOICE, YK_T, "cosine", 0, 0, \
	  "cosine constant linear step exponential inverse_sqrt onecycle", \
	  "decay of the learning rate after warm-up") \
	X(warmup, SCHEDULE, ADVANCED, INT, YK_T, "auto", 0, 1e12, "auto", \
	  "steps in which the learning rate rises; auto: 100, with onecycle 0.3 of all steps") \
	X(plot, SCHEDULE, ADVANCED, CHOICE, YK_T, "0", 0, 0, "0 1", \
	  "1: draw the learning rate before the run starts") \
	X(optimizer, OPTIMIZER, BASIC, CHOICE, YK_T, "adamw", 0, 0, \
	  "sgd heavy_ball accelerated adam adamw lamb rmsprop adagrad adadelta nadam radam adamax rprop asgd muon " \
	  "adafactor", \
	  "the update rule; yoke help train all lists the options of each") \
	YK_OPTIM_OPTIONS(O) \
	X(dropout, MODEL, ADVANCED, REAL, YK_T, "0", 0, 0.99, NULL, \
	  "fraction of the activations that training drops") \
	X(recompute, MEMORY, BASIC, CHOICE, YK_T, "none", 0, 0, "none block auto", \
	  "recompute activations in the backward pass to save memory; block: wherever that saves memory; auto: as " \
	  "little as is needed to fit a step") \
	X(offload, MEMORY, ADVANCED, CHOICE, YK_T, "none", 0, 0, "none optimizer", \
	  "optimizer: keep its state in host memory and update the parameters there") \
	X(precision, PRECISION, BASIC, CHOICE, YK_T, "fp32", 0, 0, \
	  "fp32 32-true bf16-mixed fp16-mixed 16-mixed", \
	  "mixed: products in half precision, weights and sums in f32; 16-mixed is fp16-mixed, 32-true is fp32") \
	X(keep_f32, PRECISION, ADVANCED, STRING, YK_T, "", 0, 0, NULL, \
	  "in mixed precision: scopes that stay in f32, for example norm*,head") \
	X(allow_emulated, PRECISION, ADVANCED, CHOICE, YK_T, "0", 0, 0, "0 1", \
	  "1: allow mixed precision where the device converts half-precision products to f32") \
	X(loss_scale, PRECISION, ADVANCED, REAL, YK_T, "65536", 1, 8388608, NULL, \
	  "with fp16-mixed: scale of the loss at the first step; it then adapts") \
	X(valid, DATA, ADVANCED, REAL_OR_PATHS, YK_T, "0.1", 0, 0.9, NULL, \
	  "fraction of the text, at its end, for validation; 0: none; a token file has its own split; or files to " \
	  "validate on, read like data, all of which is then for training") \
	X(out, RUN, BASIC, STRING, YK_T, "model", 0, 0, NULL, \
	  "directory of the model; {device}, and any key such as {data}, {layers} or {lr}, are replaced by their values") \
	X(resume, RUN, BASIC, CHOICE, YK_T, "0", 0, 0, "0 1 auto best", \
	  "continue from the checkpoint in out; auto: if there is one; best: from that of keep_best=1") \
	X(save_every, RUN, ADVANCED, EVERY, YK_T, "500", 0, 1e12, NULL, \
	  "steps between checkpoints, or passes over the text such as 0.25ep; 0: only at the end") \
	X(keep_best, RUN, ADVANCED, CHOICE, YK_T, "0", 0, 0, "0 1", \
	  "1: also keep the checkpoint with the lowest validation loss, in the directory `best` of out") \
	X(snapshot_every, RUN, ADVANCED, INT, YK_T, "0", 0, 1e12, NULL, \
	  "steps between copies in host memory, from which another device continues when one fails; 0: use the last " \
	  "checkpoint") \
	X(workers, DATA, ADVANCED, INT, YK_T, "auto", 0, 1024, "auto", \
	  "threads that read windows ahead; 0: read them when a step needs them; auto: by the number of processors") \
	X(prefetch, DATA, ADVANCED, INT, YK_T, "2", 0, 4096, NULL, \
	  "steps whose windows are read ahead and uploaded to the device") \
	X(shuffle, DATA, ADVANCED, INT, YK_T, "auto", 0, 9e15, "auto", \
	  "order of an epoch's windows; 1: random; 0: as in the data; N: random within blocks of N; auto: 1, for a " \
	  "pipe 0") \
	X(on_error, DATA, ADVANCED, INT, YK_T | YK_E, "stop", 1, 9e15, "stop skip", \
	  "windows that cannot be read: stop: end the run; skip: use the next good one; N: skip at most N per epoch " \
	  "and per validation") \
	X(eval_every, LOGGING, BASIC, EVERY, YK_T, "250", 0, 1e12, NULL, \
	  "steps between validations, or passes over the text such as 0.25ep; 0: only at the end") \
	X(eval_tokens, LOGGING, ADVANCED, INT, YK_T, "auto", 0, 1e15, "auto", \
	  "tokens per validation; 0: all; auto: about 5 % of the run's time") \
	X(stop_after, SCHEDULE, ADVANCED, INT, YK_T, "0", 0, 1e9, NULL, \
	  "end the run after this number of validations without a lower loss; 0: never") \
	X(log_every, LOGGING, ADVANCED, INT, YK_T, "10", 1, 1e12, NULL, "steps between log lines") \
	X(progress, LOGGING, ADVANCED, CHOICE, YK_T, "auto", 0, 0, "auto 0 1", \
	  "1: a progress bar; 0: no output per step; auto: a bar on a terminal, else lines") \
	X(report, LOGGING, ADVANCED, CHOICE, YK_T, "auto", 0, 0, "auto 0 1", \
	  "1: report at the end where the time went; auto: for runs of 10 steps and more") \
	X(checkpoints, RUN, ADVANCED, CHOICE, YK_T, "1", 0, 0, "0 1", "0: save no model") \
	X(profile, LOGGING, ADVANCED, STRING, YK_T, "0", 0, 0, NULL, \
	  "1: times of each kind of step, and trace.json in out; skip,wait,warmup,active,repeat: profile cycles of " \
	  "steps, each in out/trace") \
	X(profile_table, LOGGING, ADVANCED, STRING, YK_T, "20:total", 0, 0, NULL, \
	  "rows of the profile's table, and the column that sorts them") \
	X(telemetry, LOGGING, ADVANCED, REAL, YK_T, "1", 0, 1e6, NULL, \
	  "seconds between samples of host and device in telemetry.jsonl, which grow in long runs; 0: none") \
	X(memory_history, LOGGING, ADVANCED, CHOICE, YK_T, "0", 0, 0, "0 1", \
	  "1: record allocations; writes memory.json to out at the end, or when an allocation fails") \
	X(dashboard, LOGGING, ADVANCED, INT, YK_T, "none", 1, 65535, "none", \
	  "port of a page that shows the run while it is in progress; 1: any free port") \
	X(tensorboard, LOGGING, ADVANCED, CHOICE, YK_T, "0", 0, 0, "0 1", \
	  "1: also write an event file for TensorBoard to out") \
	X(training_log, LOGGING, ADVANCED, STRING, YK_T, "", 0, 0, NULL, \
	  "file with one row per run; empty: training_log.tsv beside out") \
	X(prompt, GENERATION, ADVANCED, STRING, YK_G, "\n", 0, 0, NULL, \
	  "text to continue; -: standard input") \
	X(prompts, GENERATION, ADVANCED, STRING, YK_G, "", 0, 0, NULL, \
	  "file with one prompt per line, continued in one batch; -: standard input") \
	X(samples, GENERATION, ADVANCED, INT, YK_G, "1", 1, 1e6, NULL, \
	  "texts for each prompt; sample k is drawn with the seed seed + k - 1") \
	X(stop, GENERATION, ADVANCED, STRING, YK_G, "", 0, 0, NULL, \
	  "texts that end a text, and are not written; comma-separated, with \\n, \\t, \\\\ and \\, as escapes") \
	X(dtype, MODEL, ADVANCED, CHOICE, YK_T | YK_G | YK_C | YK_E | YK_S, "file", 0, 0, "file f32 f16 bf16", \
	  "convert the matrices of a pretrained model; file: keep its format; in training only with lora") \
	X(quant, MODEL, ADVANCED, CHOICE, YK_T | YK_G | YK_C | YK_E | YK_S, "none", 0, 0, "none q8_0 q4_0 q4_1 q5_0 q5_1", \
	  "quantize the matrices of a pretrained model; in training only with lora") \
	X(kv, GENERATION, ADVANCED, CHOICE, YK_G | YK_C | YK_S, "auto", 0, 0, "auto f16 f32", \
	  "keys and values in the cache; auto: f32 if all matrices are, otherwise f16") \
	X(by_row, GENERATION, ADVANCED, CHOICE, YK_G, "0", 0, 0, "0 1", \
	  "1: the text of a prompt does not depend on the other prompts of the batch, bit for bit; slower") \
	X(system, GENERATION, ADVANCED, STRING, YK_C, "", 0, 0, NULL, \
	  "the system message that a conversation begins with") \
	X(template, GENERATION, ADVANCED, STRING, YK_C | YK_S, "", 0, 0, NULL, \
	  "file with the chat template, in Jinja; empty: the one that comes with the model") \
	X(tokens, GENERATION, ADVANCED, INT, YK_G | YK_C, "auto", 0, 1e12, "auto", \
	  "tokens to generate; auto: 256, or in a conversation until the model ends its answer") \
	X(temperature, GENERATION, ADVANCED, REAL, YK_G | YK_C, "0.8", 0, 100, NULL, \
	  "0: always the most likely token") \
	X(top_p, GENERATION, ADVANCED, REAL, YK_G | YK_C, "0.9", 0, 1, NULL, \
	  "sample from the most likely tokens with this total probability") \
	X(top_k, GENERATION, ADVANCED, INT, YK_G | YK_C, "0", 0, 1048576, NULL, \
	  "sample from this number of most likely tokens; 0: from all") \
	X(min_p, GENERATION, ADVANCED, REAL, YK_G | YK_C, "0", 0, 1, NULL, \
	  "sample only tokens with at least this fraction of the largest probability") \
	X(repetition, GENERATION, ADVANCED, REAL, YK_G | YK_C, "1", 0.01, 100, NULL, \
	  "divide positive logits of tokens that occur in the text by this, and multiply negative ones; 1: off") \
	X(frequency, GENERATION, ADVANCED, REAL, YK_G | YK_C, "0", -100, 100, NULL, \
	  "subtract this from a token's logit for each of its occurrences in the text") \
	X(presence, GENERATION, ADVANCED, REAL, YK_G | YK_C, "0", -100, 100, NULL, \
	  "subtract this from the logits of tokens that occur in the text") \
	X(host, SERVING, BASIC, STRING, YK_S, "127.0.0.1", 0, 0, NULL, \
	  "address to listen on; others than those of this machine need a key, or open=1") \
	X(port, SERVING, BASIC, INT, YK_S, "8080", 0, 65535, NULL, "port to listen on; 0: any free port") \
	X(key_file, SERVING, BASIC, STRING, YK_S, "", 0, 0, NULL, \
	  "file with the API key that clients must send, which only its owner can read; empty: YOKE_API_KEY, if it is " \
	  "set") \
	X(open, SERVING, ADVANCED, CHOICE, YK_S, "0", 0, 0, "0 1", \
	  "1: serve other machines without a key") \
	X(name, SERVING, ADVANCED, STRING, YK_S, "", 0, 0, NULL, \
	  "name of the model for clients; empty: the last part of its path") \
	X(slots, SERVING, BASIC, INT, YK_S, "8", 1, 256, NULL, "texts that are generated at once") \
	X(queue, SERVING, ADVANCED, INT, YK_S, "64", 1, 65536, NULL, \
	  "requests that wait for a slot; more are refused with status 429") \
	X(step, SERVING, ADVANCED, INT, YK_S, "512", 1, 65536, NULL, \
	  "tokens per pass, of which prompts get what running texts leave") \
	X(pages, SERVING, ADVANCED, INT, YK_S, "0", 0, 1e9, NULL, \
	  "pages of 16 tokens in the cache of keys and values; 0: as many as slots texts need, at most 2 GB") \
	X(alike, SERVING, ADVANCED, CHOICE, YK_S, "1", 0, 0, "1 0", \
	  "1: the text of a request does not depend on other requests, bit for bit; 0: it may, and is faster") \
	X(body, SERVING, ADVANCED, STRING, YK_S, "4M", 0, 0, NULL, "maximum bytes of a request, at most 64M") \
	X(timeout, SERVING, ADVANCED, INT, YK_S, "600", 1, 1e6, NULL, "seconds after which a request is ended") \
	X(connections, SERVING, ADVANCED, INT, YK_S, "256", 8, 10000, NULL, "maximum number of connections") \
	X(drain, SERVING, ADVANCED, INT, YK_S, "30", 0, 1e6, NULL, \
	  "seconds to answer the requests in progress after SIGTERM") \
	X(seed, RUN, BASIC, INT, YK_T | YK_G | YK_C | YK_E, "1", 0, 9e15, NULL, \
	  "seed of all random numbers") \
	X(backend, RUN, BASIC, STRING, YK_T | YK_G | YK_C | YK_E | YK_S, "", 0, 0, NULL, \
	  "device to use, as in YOKE_BACKEND, which is the default; in training also fastest: measure the allowed devices") \
	X(memory, MEMORY, ADVANCED, STRING, YK_T | YK_G | YK_C | YK_E | YK_S, "", 0, 0, NULL, \
	  "maximum device memory to use, for example 512M; activations may move to host memory (YOKE_SPILL); empty: " \
	  "YOKE_MEMORY") \
	X(threads, RUN, ADVANCED, INT, YK_T | YK_G | YK_C | YK_E | YK_S, "0", 0, 4096, NULL, \
	  "CPU threads; 0: YOKE_THREADS")

enum yk_config_key {
#define X(key, ...) YK_KEY_##key,
	YK_CONFIG_KEYS(X, X, X)
#undef X
	YK_KEYS
};

enum yk_config_group {
#define G(group, title) YK_GROUP_##group,
	YK_CONFIG_GROUPS(G)
#undef G
	YK_GROUPS
};

enum yk_config_level { YK_BASIC, YK_ADVANCED };

enum yk_config_type {
	YK_KEY_INT,
	YK_KEY_REAL,
	YK_KEY_EVERY,
	YK_KEY_STRING,
	YK_KEY_CHOICE,
	YK_KEY_CHOICE_OR_PATH,
	YK_KEY_PATHS,
	YK_KEY_REAL_OR_PATHS
};

struct yk_config_row {
	const char *name;
	enum yk_config_group group;
	enum yk_config_level level;
	enum yk_config_type type;
	unsigned commands;
	const char *def;
	double min, max;
	const char *choices, *help;
};
extern const struct yk_config_row yk_config_rows[YK_KEYS];
extern const char *const yk_config_groups[YK_GROUPS]; // titles of the groups
extern const enum yk_config_key yk_config_sizes[YK_SIZE_COUNT]; // index: model size
extern const enum yk_config_key yk_config_traits[YK_TRAIT_COUNT]; // index: model trait

enum yk_config_origin { YK_BY_DEFAULT, YK_BY_CHECKPOINT, YK_BY_FILE, YK_BY_ARGUMENT };

struct yk_config {
	unsigned command; // YK_T, YK_G, YK_E, YK_C or YK_S
	struct yk_config_value {
		char *text;
		int64_t i; // INT, EVERY; REAL_OR_PATHS: 1 for paths
		double r;  // for EVERY: passes over the text, or 0 if it is in steps
		enum yk_config_origin origin;
	} value[YK_KEYS];
};

// Sets all defaults. ENOMEM.
int yk_config_init(struct yk_config *, unsigned command);
void yk_config_fini(struct yk_config *);
// Parses one argument "key=value". EINVAL: no '=' or a bad value; the error names allowed values.
// ENOENT: unknown key; the error names the nearest one.
int yk_config_argument(struct yk_config *, const char *argument);
// Reads a file of lines KEY=value. Keys may be in capitals; '#' starts a comment. Values are plain,
// in '..' (literal) or in ".." (with the escapes \n \t \" \\ \$). Outside '..', ${VAR} is an
// earlier key of the file, else an environment variable. If a key is set twice, the later line
// wins, with a warning. Errors begin with file:line.
int yk_config_file(struct yk_config *, const char *path);
// Parses all arguments; one without '=' is a file. EINVAL also if a key is given twice.
int yk_config_arguments(struct yk_config *, int argc, char *const *argv);
// Copies the configuration and sets further "key=value" arguments.
int yk_config_with(const struct yk_config *, int n, const char *const *arguments,
		   struct yk_config *to);
// Replaces "auto" by the number chosen for it; the key's origin stays that of "auto".
int yk_config_settle(struct yk_config *, enum yk_config_key, int64_t n);
// Replaces a key's value by one found in the data or by measuring; the key's origin stays the same.
int yk_config_settle_text(struct yk_config *, enum yk_config_key, const char *text);
// The configured model, and its shape for a vocabulary of that many tokens.  With init=, vocabulary
// and context only: the files have the shape (train/start.h).
const struct yk_model *yk_config_model(const struct yk_config *, int64_t vocab,
				       struct yk_model_shape *);

int64_t yk_config_int(const struct yk_config *, enum yk_config_key);
double yk_config_real(const struct yk_config *, enum yk_config_key);
// Converts an EVERY to steps: at least 1 unless it is 0.
int64_t yk_config_every(const struct yk_config *, enum yk_config_key, double steps_a_pass);
// The value of a key of any type as text.
const char *yk_config_str(const struct yk_config *, enum yk_config_key);
// Whether the value of a CHOICE_OR_PATH or REAL_OR_PATHS is a path.
bool yk_config_is_path(const struct yk_config *, enum yk_config_key);
// Do two configurations have the same value of a key?  Numbers are compared as numbers: 16 and
// 16.0.
bool yk_config_same(const struct yk_config *, const struct yk_config *, enum yk_config_key);
// The same for a value as text, which need not be valid.
bool yk_config_is(const struct yk_config *, enum yk_config_key, const char *text);
// Whether the value is not the default.
bool yk_config_is_set(const struct yk_config *, enum yk_config_key);
// Whether this command set it, rather than the checkpoint being resumed.
bool yk_config_is_explicit(const struct yk_config *, enum yk_config_key);
// How to read the data according to the keys, in windows of `context` tokens.
struct yk_data_spec yk_config_data(const struct yk_config *, int64_t context);
// The same for the files of valid=PATHS, which are for validation only.
struct yk_data_spec yk_config_valid_data(const struct yk_config *, int64_t context);
// To and from the JSON object of the manifest, without the keys out and resume, which describe
// where the model is stored rather than what it is. take: keys that were not given get the object's
// values; unknown keys are ignored.
json_t *yk_config_json(const struct yk_config *);
int yk_config_take(struct yk_config *, const json_t *, const char *what);
// Applies the settings that `backend`, `memory`, `threads` and `recompute` stand for.
int yk_config_apply(const struct yk_config *);
// Only that of `threads`, which must precede the search for devices.
int yk_config_apply_threads(const struct yk_config *);

// ---- setting a key from text: for conf.c and conf_file.c ----

// `where` begins error messages: "argument", "config.env:3".
// Index of the key with that name, in lower or upper case; -1: none.
int yk_config_key_of(const char *name);
// Fails with YOKE_ENOENT, naming the key that was probably meant.
int yk_config_unknown(const struct yk_config *, const char *where, const char *name);
// Checks text against the key's row, and sets to->i and to->r.
int yk_config_parse(enum yk_config_key, const char *where, const char *text,
		    struct yk_config_value *to);
// Sets a key unless its value has a stronger origin; a value of the same origin is replaced. epochs
// determines steps unless steps has a stronger origin.
int yk_config_set(struct yk_config *, enum yk_config_key, const char *where, const char *text,
		  enum yk_config_origin);

#endif
