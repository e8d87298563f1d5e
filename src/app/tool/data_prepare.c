// SPDX-License-Identifier: Apache-2.0
// yoke data prepare: tokenizes text into a token file, or conversations for a model; describes
// files of the latter.
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/stop.h"
#include "data/chat_store.h"
#include "data/prepare.h"
#include "data/text.h"
#include "data/walk.h"
#include "tool/tool.h"
#include "models/tokenizer_files.h"
#include "config/conf.h"

#define END ".tokens.safetensors"

// "notes/" becomes "notes.tokens.safetensors"; several input paths require an explicit name.
static char *default_out(const char *paths)
{
	size_t n = strlen(paths);
	char *out;
	while (n > 1 && paths[n - 1] == '/')
		n--;
	return asprintf(&out, "%.*s%s", (int)n, paths, END) < 0 ? NULL : out;
}

static int number(const char *key, const char *value, int64_t min, int64_t max, int64_t *to)
{
	char *end;
	errno = 0;
	const long long n = strtoll(value, &end, 10);
	if (errno || *value < '0' || *value > '9' || *end || n < min || n > max)
		return yk_usage("data",
				"%s=%s: must be a whole number from %" PRId64 " to %" PRId64, key,
				value, min, max);
	*to = n;
	return YK_DONE;
}

// Conversations for a model have no key but out and model.
struct given {
	const char *model; // NULL: text
	const char *text;  // a key of text that was given; NULL: none
};

static int take(struct yk_prepare *p, struct given *g, char *word)
{
	char *value = strchr(word, '='), *end;
	if (!value)
		return yk_usage("data", "'%s' is not key=value", word);
	const size_t n = (size_t)(value++ - word);
	if (n == 5 && !strncmp(word, "model", n)) {
		g->model = value;
		return YK_DONE;
	}
	if (n == 3 && !strncmp(word, "out", n)) {
		p->out = value;
		return YK_DONE;
	}
	g->text = word;
	if (n == 9 && !strncmp(word, "tokenizer", n)) {
		p->tokenizer = value;
	} else if (n == 5 && !strncmp(word, "field", n)) {
		p->field = value;
	} else if (n == 7 && !strncmp(word, "context", n)) {
		return number("context", value, 1, 1048576, &p->context);
	} else if (n == 7 && !strncmp(word, "workers", n)) {
		return number("workers", value, 1, 1024, &p->workers);
	} else if (n == 5 && !strncmp(word, "valid", n)) {
		p->valid = strtod(value, &end);
		if (*end || end == value || !(p->valid >= 0 && p->valid <= 0.9))
			return yk_usage("data", "valid=%s: must be a number from 0 to 0.9", value);
	} else {
		return yk_usage("data",
				"prepare has no key '%.*s'; its keys are out, tokenizer, valid, "
				"context, field, workers, and for conversations out, model",
				(int)n, word);
	}
	return YK_DONE;
}

static void report(const struct yk_prepare *p, const struct yk_prepared_text *d)
{
	char files[64];
	if (d->reused)
		printf("%s is up to date with its text: nothing to do\n", p->out);
	printf("tokens       %" PRId64 " of %" PRId64 " different, %" PRId64 " to train, %" PRId64
	       " to validate\n"
	       "documents    %" PRId64 "\n",
	       d->tokens, d->vocab, d->train, d->tokens - d->train, d->documents);
	if (!d->reused)
		printf("text         %" PRIu64 " bytes in %s%s\n", d->bytes,
		       yk_counted(files, d->files, "file"),
		       d->skipped ? "; others were skipped, being empty or not text" : "");
	printf("next: yoke train data=%s\n", p->out);
}

static void print_chats(const struct yk_chats_prepared *d)
{
	printf("tokens       %" PRId64 ", %" PRId64 " of them to learn\n"
	       "samples      %" PRId64 " of %" PRId64 " conversations and texts\n",
	       d->tokens, d->targets, d->samples, d->lines);
}

int yk_data_chats_info(int argc, char **argv)
{
	struct yk_chats_prepared d;
	const bool check = !strcmp(argv[1], "check");
	if (!check && strcmp(argv[1], "info")) {
		yk_fail(YOKE_EUNSUPPORTED,
			"%s: holds conversations, which are no data set without a model; use info or check",
			argv[2]);
		return yk_failed("data");
	}
	if (argc > 3)
		return yk_usage("data", "'%s': files of conversations have no settings", argv[3]);
	if (yk_chat_store_check(argv[2], &d) < 0)
		return yk_failed("data");
	if (check)
		printf("0 of %" PRId64 " samples cannot be read\n", d.samples);
	else
		print_chats(&d);
	return YK_DONE;
}

static int prepare_chats(const char *paths, const char *model, const char *out)
{
	struct yk_tokenizer *t = yk_tokenizer_of_files(model);
	struct yk_chats_prepared d;
	const int e = t ? yk_data_prepare_chats(paths, t, out, &d) : yoke_error_code();
	yk_tokenizer_free(t);
	if (e < 0)
		return e;
	print_chats(&d);
	printf("next: yoke train init=%s data=%s\n", model, out);
	return 0;
}

int yk_data_prepare(int argc, char **argv)
{
	struct yk_prepare p = {
		.paths = argv[2], .tokenizer = "byte", .valid = 0.1, .context = 128
	};
	struct given given = { .model = NULL };
	struct yk_prepared_text done;
	struct yk_stop stop;
	for (int i = 3; i < argc; i++) {
		const int status = take(&p, &given, argv[i]);
		if (status != YK_DONE)
			return status;
	}
	if (given.model && given.text)
		return yk_usage("data",
				"%.*s: is a key of text; conversations for model= have out= only",
				(int)strcspn(given.text, "="), given.text);
	if (!p.out && strchr(p.paths, ','))
		return yk_usage("data", "several texts: name the token file with out=");
	char *out = p.out ? NULL : default_out(p.paths);
	p.out = p.out ? p.out : out;
	if (p.out && given.model) {
		const int failed = prepare_chats(p.paths, given.model, p.out);
		free(out);
		return failed < 0 ? yk_failed("data") : YK_DONE;
	}
	int e = p.out ? yk_stop_begin(&stop, NULL, NULL) :
			yk_fail(YOKE_ENOMEM, "out of memory for a path");
	if (e == 0) {
		p.stop = &stop.signal;
		e = yk_prepare(&p, &done);
		yk_stop_end(&stop);
	}
	if (e == 0)
		report(&p, &done);
	free(out);
	return e < 0 ? yk_failed("data") : YK_DONE;
}
