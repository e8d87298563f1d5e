// SPDX-License-Identifier: Apache-2.0
// Training text: reads files into one list of tokens and cuts it into windows. Memory: the tokens,
// and the largest single file while it is read; data.max bounds both.  Token files need none.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/kind.h"
#include "base/log.h"
#include "base/number.h"
#include "data/chats.h"
#include "data/lines.h"
#include "data/set.h"
#include "data/text.h"
#include "data/tokenfile.h"

// Windows in memory, starting at token `first` of d->tokens.
struct part {
	const struct yk_data *data;
	size_t first;
};

struct yk_data {
	struct yk_tokens tokens;
	int64_t context, files, skipped, count;
	uint64_t bytes;               // read so far
	struct part part[2];          // training, validation
	yoke_dataset *train, *valid;  // NULL: no windows
	uint64_t fingerprint;
	double share;
	bool endless;
	struct yk_chats *chats; // NULL: not conversations
	struct yk_data *other;  // for validation; NULL: `valid`
	struct yk_sources sources;
	struct yk_tokenizer *tokenizer; // only while reading
	int (*add)(void *arg, const char *text, size_t n); // takes a text
	void *arg;
	const char *field;
	const char *out; // a file to be written, which is not read; NULL: none
};

// ---- reading ----

// Adds the path to an error of the tokenizer, which does not know the path.
static int name_file(const char *path, int code)
{
	char why[256];

	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(code, "%s: %s", path, why);
}

static int add_text(void *arg, const char *text, size_t n)
{
	struct yk_data *d = arg;
	return yk_tokenizer_encode(d->tokenizer, text, n, &d->tokens);
}

// Adds one text: tokens, fingerprint, source.
static int take_text(struct yk_data *d, const char *path, char *text, size_t n, bool piped)
{
	const bool lines = yk_jsonl_taken(path, d->field);
	int e = 0;
	d->fingerprint = yk_hash(text, n, d->fingerprint);
	if (lines)
		d->fingerprint = yk_hash(d->field, strlen(d->field), d->fingerprint);
	e = piped ? yk_sources_add(&d->sources, path, n, yk_hash(text, n, 0)) :
		    yk_sources_add_file(&d->sources, path, 0);
	if (e == 0 && d->chats)
		e = yk_chats_add(d->chats, path, text, n);
	else if (e == 0 && lines)
		e = yk_jsonl_each(path, 0, text, n, d->field, d->add, d->arg);
	else if (e == 0 && (e = d->add(d->arg, text, n)) == YOKE_EFORMAT)
		e = name_file(path, e);
	d->bytes += n;
	d->files++;
	return e;
}

static int read_file(void *arg, const char *path, bool named)
{
	struct yk_data *d = arg;
	const uint64_t max = yk_data_max();
	bool piped = named && !strcmp(path, YK_STDIN);
	const int64_t before = d->files;
	char *text;

	if (d->out && yk_file_is_same(path, d->out))
		return named ? yk_fail(YOKE_EINVAL,
				       "%s: is both data and out; name another file with out=",
				       path) :
			       0;
	if (d->chats && !piped && yk_chat_store_is(path)) {
		int wrong = yk_sources_add_file(&d->sources, path, 0);
		d->files++;
		return wrong < 0 || (wrong = yk_chats_load(d->chats, path, &d->bytes)) < 0 ? wrong :
		       1;
	}
	size_t n;
	int e = piped ? yk_file_read_stdin(max - d->bytes, &text, &n) :
		       yk_file_read(path, max - d->bytes, &text, &n);

	if (e == YOKE_EFORMAT) {
		yoke_error_clear();
		return yk_fail(YOKE_ERANGE,
			       "%s: with it there are more than data.max = %llu bytes "
			       "of text; raise YOKE_DATA_MAX, give less, or `yoke data prepare` it",
			       path, (unsigned long long)max);
	}
	if (e < 0)
		return e;
	if (n && !memchr(text, 0, n) && (e = yk_text_begin(path, text, &n)) < 0) {
		free(text);
		return e;
	}
	if (!n && piped) {
		e = yk_fail(
			YOKE_EFORMAT,
			"data: standard input is empty, or was read before; a pipe is read once");
	} else if (!n || memchr(text, 0, n)) {
		if (named)
			e = yk_file_refused(path, text, n, "text", "it has a NUL byte");
		d->skipped++;
	} else {
		e = take_text(d, path, text, n, piped);
	}
	free(text);
	return e < 0 ? e : d->files > before;
}

// ---- memory ----

static bool in_memory(const struct yk_data_spec *spec)
{
	return spec->text || spec->ids;
}

static int take_ids(struct yk_data *d, const char *name, const struct yk_data_spec *spec)
{
	const int32_t size = yk_tokenizer_size(d->tokenizer);
	const int e = yk_tokens_reserve(&d->tokens, size, (size_t)spec->id_count);
	for (int64_t i = 0; i < spec->id_count && e == 0; i++) {
		if (spec->ids[i] < 0 || spec->ids[i] >= size)
			return yk_fail(YOKE_ERANGE, "%s: id %d at %lld is not in 0 .. %d", name,
				       (int)spec->ids[i], (long long)i, (int)size - 1);
		yk_tokens_add(&d->tokens, spec->ids[i]);
	}
	if (e == 0)
		d->fingerprint = yk_hash_numbers(spec->ids, sizeof *spec->ids,
						 (size_t)spec->id_count, d->fingerprint);
	return e;
}

static int take_memory(struct yk_data *d, const char *name, const struct yk_data_spec *spec)
{
	if (spec->ids)
		return take_ids(d, name, spec);
	if (memchr(spec->text, 0, spec->text_bytes))
		return yk_fail(YOKE_EFORMAT, "%s: has a NUL byte, and is no text", name);
	return take_text(d, name, (char *)(uintptr_t)spec->text, spec->text_bytes, true);
}

// Reads all of the data.
static int take_all(struct yk_data *d, const char *paths, const struct yk_data_spec *spec)
{
	return in_memory(spec) ? take_memory(d, paths, spec) : yk_walk(paths, read_file, d);
}

// ---- windows ----

int yk_data_split(const char *what, int64_t n, const struct yk_data_spec *spec, int64_t *start)
{
	int64_t min = spec->context + 1, parts = spec->valid > 0 && spec->valid < 1 ? 2 : 1, held;

	if (n / parts < min)
		return yk_fail(YOKE_ERANGE,
			       "data: %s: %lld tokens are too few: context=%lld needs "
			       "%lld%s; give more text or a smaller context",
			       what, (long long)n, (long long)spec->context,
			       (long long)(parts * min),
			       parts == 2 ? ", a window to train and one to validate" :
					    "");
	held = (int64_t)((double)n * spec->valid);
	if (parts == 2) {
		held = held < min ? min : held;
		held = held > n - min ? n - min : held;
	}
	*start = n - held;
	return 0;
}

static int read_windows(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct part *p = arg;
	const struct yk_data *d = p->data;
	for (int64_t i = 0; i < n; i++)
		yk_tokens_copy(&d->tokens, p->first + (size_t)(s[i]->number * d->context),
			       (size_t)d->context + 1, s[i]->to[0]);
	return 0;
}

// Makes windows of tokens first .. end - 1; each begins with the last token of the one before.  *to
// is NULL if there are none.
static int make_set(struct yk_data *d, int part, int64_t first, int64_t end, yoke_dataset **to)
{
	const struct yoke_field ids = { .size = sizeof ids,
					.name = "ids",
					.dtype = yoke_i32,
					.rank = 1,
					.dims = { d->context + 1 } };
	const int64_t n = end - first > d->context ? (end - first - 1) / d->context : 0;
	*to = NULL;
	if (n == 0)
		return 0;
	d->part[part] = (struct part){ d, (size_t)first };
	*to = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "text",
						.count = n,
						.fields = 1,
						.field = &ids,
						.read = read_windows,
						.chunk = 64,
						.arg = &d->part[part],
						.fingerprint = d->fingerprint });
	return *to ? 0 : yoke_error_code();
}

static void report_skipped(const struct yk_data *d, const char *paths)
{
	char files[64];
	if (d->skipped)
		yk_info("data", "%s: %s skipped (empty, or with a NUL byte)", paths,
			yk_counted(files, (long long)d->skipped, "file"));
}

static int read_text(struct yk_data *d, const char *paths, const struct yk_data_spec *spec)
{
	int64_t start = 0;
	int e = take_all(d, paths, spec);
	if (e == 0 && spec->limit && (int64_t)d->tokens.count > spec->limit) {
		d->tokens.count = (size_t)spec->limit;
		d->fingerprint =
			yk_hash_numbers(&spec->limit, sizeof spec->limit, 1, d->fingerprint);
	}
	d->count = (int64_t)d->tokens.count;
	if (e == 0)
		e = yk_data_split(paths, d->count, spec, &start);
	if (e < 0)
		return e;
	d->fingerprint = yk_hash_numbers(&spec->valid, sizeof spec->valid, 1, d->fingerprint);
	e = yk_tokenizer_settle(d->tokenizer, &d->tokens, (size_t)start, (size_t)spec->vocab);
	if (e == 0)
		e = make_set(d, 0, 0, start, &d->train);
	if (e == 0)
		e = make_set(d, 1, start, d->count, &d->valid);
	report_skipped(d, paths);
	return e;
}

// ---- conversations ----

static int find_lines(void *arg, const char *path, bool named)
{
	(void)named;
	*(bool *)arg |= yk_jsonl_is(path) || yk_chat_store_is(path);
	return 1;
}

// Are the files .jsonl files of conversations: no field is named, and the model can separate texts?
static bool are_chats(const char *paths, const struct yk_tokenizer *t,
		      const struct yk_data_spec *spec)
{
	bool found = false;
	if (!spec->chats || !yk_tokenizer_pretrained(t) || (spec->field && *spec->field))
		return false;
	if (in_memory(spec))
		return spec->text && yk_jsonl_is(paths);
	if (yk_data_piped(paths))
		return false;
	struct yk_error_aside *aside = yk_error_aside();
	if (yk_walk(paths, find_lines, &found) < 0) // the error is reported when the files are read
		yoke_error_clear();
	yk_error_restore(aside);
	return found;
}

static int read_chats(struct yk_data *d, const char *paths, const struct yk_data_spec *spec)
{
	if (spec->limit)
		return yk_fail(YOKE_EINVAL, "%s: limit applies to text, and these are "
			"conversations; give fewer of them", paths);
	d->chats = yk_chats_new(d->tokenizer, d->context);
	int e = d->chats ? take_all(d, paths, spec) : yoke_error_code();
	if (e == 0)
		e = yk_chats_windows(d->chats, paths, spec->valid, spec->pack, &d->train,
				     &d->valid);
	if (e < 0)
		return e;
	d->count = yk_chats_tokens(d->chats);
	d->fingerprint = yk_chats_fingerprint(d->chats);
	report_skipped(d, paths);
	return 0;
}

int yk_data_prepare_chats(const char *paths, struct yk_tokenizer *t, const char *out,
			  struct yk_chats_prepared *to)
{
	struct yk_data d = { .tokenizer = t, .out = out };
	if (yk_data_piped(paths))
		return yk_fail(
			YOKE_EINVAL,
			"data prepare: standard input has no name that tells conversations from text; "
			"write it to a .jsonl file");
	if (!yk_tokenizer_pretrained(t))
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"data prepare: the tokenizer %s has no special tokens, which conversations need",
			yk_tokenizer_name(t));
	d.chats = yk_chats_new(t, INT64_MAX - 1);
	int e = d.chats ? yk_chats_retain(d.chats) : yoke_error_code();
	yk_file_sweep(out); // files left in a folder of `paths` would be read
	if (e == 0)
		e = yk_walk(paths, read_file, &d);
	if (e == 0)
		e = yk_chats_save(d.chats, &d.sources, out);
	if (e == 0) {
		const struct yk_chat_store *s = yk_chats_kept(d.chats);
		yk_chats_summarize(s->target, s->ids.count, s->kind, s->count, to);
	}
	report_skipped(&d, paths);
	yk_chats_free(d.chats);
	yk_sources_fini(&d.sources);
	return e;
}

// ---- token files ----

static int open_tokens(struct yk_data *d, const char *paths, const struct yk_data_spec *spec)
{
	struct yk_token_sets sets;
	if (spec->limit)
		return yk_fail(YOKE_EINVAL, "%s: limit applies to text, and this file contains "
			"tokens; prepare less text", paths);
	const int e = yk_token_sets_open(paths, d->tokenizer, spec, &d->sources, &sets);
	if (e < 0)
		return e;
	d->train = sets.train;
	d->valid = sets.valid;
	d->count = sets.tokens;
	d->files = sets.files;
	d->fingerprint = sets.fingerprint;
	d->share = sets.share;
	d->endless = sets.endless;
	return 0;
}

// ---- entry points ----

struct yk_data *yk_data_new(const char *paths, struct yk_tokenizer *tokenizer,
			    const struct yk_data_spec *spec)
{
	struct yk_data *d = calloc(1, sizeof *d);

	if (!d) {
		yk_fail(YOKE_ENOMEM, "data: %s: no memory", paths);
		return NULL;
	}
	d->context = spec->context;
	d->tokenizer = tokenizer;
	d->add = add_text;
	d->arg = d;
	d->field = spec->field;
	d->share = spec->valid;
	const bool chats = are_chats(paths, tokenizer, spec),
		   prepared = !chats && !in_memory(spec) && yk_data_prepared(paths, spec);
	if ((prepared ? open_tokens : chats ? read_chats : read_text)(d, paths, spec) < 0) {
		yk_data_free(d);
		return NULL;
	}
	d->tokenizer = NULL;
	return d;
}

int yk_data_each_text(const char *paths, const struct yk_data_spec *spec,
		      int (*fn)(void *arg, const char *text, size_t n), void *arg)
{
	struct yk_data d = { .field = spec->field, .add = fn, .arg = arg };
	if (yk_data_piped(paths))
		return yk_fail(
			YOKE_EINVAL,
			"data: standard input is read once, and this tokenizer reads the text twice; write it to a file");
	const int e = yk_walk(paths, read_file, &d);
	yk_sources_fini(&d.sources);
	return e;
}

void yk_data_free(struct yk_data *d)
{
	if (!d)
		return;
	yk_data_free(d->other);
	yoke_dataset_free(d->train);
	yoke_dataset_free(d->valid);
	yk_chats_free(d->chats);
	yk_sources_fini(&d->sources);
	yk_tokens_fini(&d->tokens);
	free(d);
}

int yk_data_validate_on(struct yk_data *d, struct yk_data *other, const char *name)
{
	d->other = other;
	if (!d->chats == !other->chats)
		return 0;
	return yk_fail(YOKE_EINVAL,
		       "valid=%s: %s, but data %s; give both as conversations, or both as text",
		       name, other->chats ? "has conversations" : "is text",
		       d->chats ? "has conversations" : "is text");
}

int32_t *yk_data_windows(const struct yk_data *d, int64_t batch)
{
	size_t bytes;
	int32_t *to = NULL;
	if (!__builtin_mul_overflow((size_t)batch, (size_t)yk_data_width(d) * sizeof *to, &bytes))
		to = malloc(bytes);
	if (!to)
		yk_fail(YOKE_ENOMEM, "batch=%lld: no host memory for its windows of %lld tokens",
			(long long)batch, (long long)d->context);
	return to;
}

int64_t yk_data_tokens(const struct yk_data *d)
{
	return d->count;
}

int64_t yk_data_chats(const struct yk_data *d)
{
	return d->chats ? yk_chats_count(d->chats) : 0;
}

int64_t yk_data_width(const struct yk_data *d)
{
	return d->chats ? YK_PACKED_FIELDS * d->context : d->context + 1;
}

int64_t yk_data_targets(const struct yk_data *d, const int32_t *windows, int64_t count)
{
	const int64_t width = yk_data_width(d);
	int64_t n = 0;
	if (!d->chats)
		return count * d->context;
	for (int64_t i = 0; i < count; i++)
		for (int64_t k = d->context; k < 2 * d->context; k++)
			n += windows[i * width + k] != YK_NO_TARGET;
	return n;
}

int64_t yk_data_train_targets(const struct yk_data *d, int64_t window)
{
	return d->chats ? yk_chats_targets(d->chats, 0, window) : d->context;
}

int64_t yk_data_valid_targets(const struct yk_data *d, int64_t window)
{
	if (d->other)
		return yk_data_valid_targets(d->other, window);
	return d->chats ? yk_chats_targets(d->chats, 1, window) : d->context;
}

int64_t yk_data_files(const struct yk_data *d)
{
	return d->files;
}

int64_t yk_data_train_windows(const struct yk_data *d)
{
	return d->train ? d->train->count : 0;
}

bool yk_data_endless(const struct yk_data *d)
{
	return d->endless;
}

int64_t yk_data_valid_windows(const struct yk_data *d)
{
	if (d->other)
		return yk_data_valid_windows(d->other);
	return d->valid ? d->valid->count : 0;
}

const char *yk_data_valid_name(const struct yk_data *d)
{
	if (d->other)
		return yk_data_valid_name(d->other);
	return d->valid ? d->valid->name : "";
}

uint64_t yk_data_fingerprint(const struct yk_data *d)
{
	return d->fingerprint;
}

uint64_t yk_data_fingerprint_all(const struct yk_data *d)
{
	return d->other ? yk_hash_numbers(&d->other->fingerprint, sizeof d->other->fingerprint, 1,
					  d->fingerprint) :
			  d->fingerprint;
}

double yk_data_val_fraction(const struct yk_data *d)
{
	return d->share;
}

const struct yk_sources *yk_data_sources(const struct yk_data *d)
{
	return &d->sources;
}

yoke_dataset *yk_data_set(struct yk_data *d)
{
	return yk_dataset_ref(d->train);
}

int yk_data_verify(const struct yk_data *d, const json_t *then)
{
	struct yk_safetensors f;
	int e = 0;
	for (size_t i = 0; i < d->sources.n && e == 0; i++) {
		const struct yk_source *s = &d->sources.source[i];
		if (!s->whole || yk_sources_untouched(then, &d->sources, i))
			continue;
		if ((e = yk_safetensors_open(&f, s->name)) < 0)
			break;
		e = yk_token_file_verify(&f);
		yk_safetensors_close(&f);
	}
	return e;
}

int64_t yk_data_valid(const struct yk_data *d, int64_t first, int64_t batch, int32_t *to)
{
	int64_t b;

	if (d->other)
		return yk_data_valid(d->other, first, batch, to);
	for (b = 0; b < batch && first + b < yk_data_valid_windows(d); b++) {
		void *row[] = { to + b * yk_data_width(d) };
		const int e = yoke_dataset_read(d->valid, first + b, 0, 0, 0, row, NULL);
		if (e < 0)
			return e;
	}
	return b;
}
