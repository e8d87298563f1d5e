// SPDX-License-Identifier: Apache-2.0
// Tokenizes blocks of text files in several threads: the first pass counts tokens and learns words,
// the second writes tokens.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/system.h"
#include "data/lines.h"
#include "data/prepare.h"

enum { TAIL = 1 << 16, MAX_TAIL = 32 << 20 };

// Where a word first occurs.
struct first {
	int64_t block, token;
};

struct job {
	struct yk_blocks *b;
	struct yk_tokenizer *fixed;         // vocabulary used for writing; NULL in the counting
					    // pass
	const struct yk_file_writer *out;
	uint64_t tokens, documents;         // byte offsets in the file
	const int64_t *token_base, *document_base; // per block: tokens and documents before it
	pthread_mutex_t lock;
	int64_t next;                       // next block to process
	int64_t bad;                        // the first block that failed; b->count: none
	int code;
	char why[600];
};

struct worker {
	struct job *job;
	int number;
	pthread_t thread;
	struct yk_tokenizer *own;
	struct yk_tokens list;
	struct first *first;                // of the words of `own`
	size_t first_cap;
	char *text;
	size_t text_cap;
	int64_t *begin;                     // token indices at which documents of the block begin
	size_t begin_cap;
	int64_t begins;
};

// ---- reading ----

static bool lines(const struct job *j, const struct yk_text_block *b)
{
	return yk_jsonl_taken(j->b->file[b->file].path, j->b->options->field);
}

// Does this byte end a token, or a line?
static bool ends(char c, bool line)
{
	return line ? c == '\n' : c == ' ' || (c >= '\t' && c <= '\r');
}

static int read_more(struct worker *w, int fd, const char *path, uint64_t at, size_t have,
		     size_t more)
{
	if (yk_grow(&w->text, &w->text_cap, have + more + 1, 1) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a block of text", path);
	return yk_file_read_at(fd, path, at, w->text + have, more);
}

// Reads the tokens or lines that begin in a block: `n` bytes from offset `skip` of w->text, which
// begins at byte *from of the file.  Byte tokens can be split anywhere.
static int read_whole(struct worker *w, const struct yk_text_block *b, int fd,
		      const struct yk_text_file *f, uint64_t *from, size_t *skip, size_t *n)
{
	const bool line = lines(w->job, b), bytes = !line && !*yk_tokenizer_separator(w->own);
	*from = b->begin - (b->begin > f->begin && !bytes);
	size_t have = (size_t)(b->end - *from), at = 0;
	int e = read_more(w, fd, f->path, *from, 0, have);
	if (e < 0)
		return e;
	if (b->begin > f->begin && !bytes) {
		while (at < have && !ends(w->text[at], line))
			at++;
		at++;
	}
	*skip = at;
	if (at >= have || bytes) { // no token begins here
		*n = at >= have ? 0 : have;
		return 0;
	}
	for (uint64_t next = b->end; next < f->bytes && !ends(w->text[have - 1], line);) {
		const size_t more = f->bytes - next < TAIL ? (size_t)(f->bytes - next) : TAIL;
		if (next - b->end > MAX_TAIL)
			return yk_fail(YOKE_ERANGE,
				       "%s: from byte %llu on there is a %s of more than %d MiB",
				       f->path, (unsigned long long)b->begin,
				       line ? "line" : "word", MAX_TAIL >> 20);
		if ((e = read_more(w, fd, f->path, next, have, more)) < 0)
			return e;
		size_t k = 0;
		while (k < more && !ends(w->text[have + k], line))
			k++;
		have += k < more ? k + 1 : more;
		next += more;
		if (k < more)
			break;
	}
	*n = have - at;
	return 0;
}

// ---- encoding ----

static int note_document(struct worker *w)
{
	if (yk_grow(&w->begin, &w->begin_cap, (size_t)w->begins + 1, sizeof *w->begin) < 0)
		return yk_fail(YOKE_ENOMEM, "data: no memory for the offsets of documents");
	w->begin[w->begins++] = (int64_t)w->list.count;
	return 0;
}

static int encode(struct worker *w, const char *text, size_t n)
{
	return yk_tokenizer_encode(w->job->fixed ? w->job->fixed : w->own, text, n, &w->list);
}

static int encode_document(void *arg, const char *text, size_t n)
{
	struct worker *w = arg;
	const int e = note_document(w);
	return e == 0 ? encode(w, text, n) : e;
}

// Records words that are new since id `before`; ids count in order of first appearance.
static int note_words(struct worker *w, int64_t block, int64_t before)
{
	const int64_t now = yk_tokenizer_learnt(w->own);
	if (yk_grow(&w->first, &w->first_cap, (size_t)now + 1, sizeof *w->first) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory for a vocabulary");
	for (size_t i = 0; i < w->list.count && before < now; i++)
		if (yk_tokens_get(&w->list, i) == before)
			w->first[before++] = (struct first){ block, (int64_t)i };
	return 0;
}

// `at`: byte offset of the text in the file.
static int encode_block(struct worker *w, int64_t number, const struct yk_text_block *b,
			uint64_t at, const char *text, size_t n)
{
	const struct yk_text_file *f = &w->job->b->file[b->file];
	const int64_t before = yk_tokenizer_learnt(w->own);
	char why[256];
	int e = 0;
	w->list.count = 0;
	w->begins = 0;
	if (lines(w->job, b)) {
		e = yk_jsonl_each(f->path, at, text, n, w->job->b->options->field, encode_document,
				  w);
	} else {
		if (b->begin == f->begin)
			e = note_document(w);
		if (e == 0)
			e = encode(w, text, n);
		if (e == YOKE_EFORMAT) { // raised by the tokenizer, which does not know the path
			snprintf(why, sizeof why, "%s", yoke_error());
			yoke_error_clear();
			e = yk_fail(e, "%s: %s", f->path, why);
		}
	}
	return e == 0 && !w->job->fixed ? note_words(w, number, before) : e;
}

static int write_block(struct worker *w, int64_t number, const struct yk_text_block *b)
{
	const struct job *j = w->job;
	const uint64_t base = (uint64_t)j->token_base[number], width = (uint64_t)w->list.width;
	if ((int64_t)w->list.count != b->tokens || w->begins != b->documents)
		return yk_fail(YOKE_EIO, "%s: changed while it was being read",
			       j->b->file[b->file].path);
	for (int64_t i = 0; i < w->begins; i++)
		w->begin[i] += (int64_t)base;
	int e = w->list.count ? yk_file_put_numbers(j->out, j->tokens + base * width, w->list.ids,
						    width, w->list.count) :
				0;
	if (e == 0 && w->begins)
		e = yk_file_put_numbers(j->out,
					j->documents + 8 * (uint64_t)j->document_base[number],
					w->begin, 8, (size_t)w->begins);
	return e;
}

// ---- results of the counting pass ----

// Is keeping ids cheaper than tokenizing again?  Not if tokens are just bytes.
static bool keeps(const struct worker *w, const struct yk_text_block *b)
{
	const struct yk_ids_cache *k = w->job->b->kept;
	return k && k->file.fd >= 0 && (lines(w->job, b) || *yk_tokenizer_separator(w->own));
}

// If there is no space, the block is tokenized again in the writing pass.
static void keep_block(struct worker *w, struct yk_text_block *b)
{
	struct yk_ids_cache *k = w->job->b->kept;
	const size_t tokens = w->list.count * (size_t)w->list.width, begins = 8 * (size_t)w->begins;
	const uint64_t at = atomic_fetch_add(&k->end, tokens + begins);
	b->kept = (!tokens || yk_file_put(&k->file, at, w->list.ids, tokens) == 0) &&
		  (!begins || yk_file_put(&k->file, at + tokens, w->begin, begins) == 0);
	b->at = at;
	b->by = w->number;
	b->width = w->list.width;
	yoke_error_clear();
}

static int take_kept(struct worker *w, const struct yk_text_block *b)
{
	const struct yk_ids_cache *k = w->job->b->kept;
	const size_t n = (size_t)b->tokens, tokens = n * (size_t)b->width;
	yk_tokens_fini(&w->list); // so that the list gets the width of the vocabulary
	int e = yk_tokens_reserve(&w->list,
				  b->width == 1 ? 256 :
				  b->width == 2 ? 65536 :
						  INT32_MAX,
				  n);
	if (e == 0)
		e = yk_file_read_at(k->file.fd, k->file.path, b->at, w->list.ids, tokens);
	if (e == 0 &&
	    yk_grow(&w->begin, &w->begin_cap, (size_t)b->documents + 1, sizeof *w->begin) < 0)
		e = yk_fail(YOKE_ENOMEM, "data: no memory for the offsets of documents");
	if (e == 0)
		e = yk_file_read_at(k->file.fd, k->file.path, b->at + tokens, w->begin,
				    8 * (uint64_t)b->documents);
	if (e < 0)
		return e;
	w->list.count = n;
	w->begins = b->documents;
	if (k->id)
		yk_tokens_renumber(&w->list, k->id[b->by], yk_tokenizer_size(w->job->fixed));
	return 0;
}

static int encode_text(struct worker *w, int64_t number, struct yk_text_block *b, int fd,
		       const struct yk_text_file *f)
{
	uint64_t from = 0;
	size_t skip = 0, n = 0;
	yk_file_prefetch(fd, b->begin, b->end - b->begin);
	const int e = read_whole(w, b, fd, f, &from, &skip, &n);
	return e == 0 ? encode_block(w, number, b, from + skip, w->text + skip, n) : e;
}

static int take_block(struct worker *w, int64_t number)
{
	struct yk_text_block *b = &w->job->b->block[number];
	const struct yk_text_file *f = &w->job->b->file[b->file];
	uint64_t bytes;
	const int fd = yk_file_open(f->path, &bytes);
	if (fd < 0)
		return fd;
	int e = bytes == f->bytes ?
			0 :
			yk_fail(YOKE_EIO, "%s: changed while it was being read", f->path);
	if (e == 0)
		e = w->job->fixed && b->kept ? take_kept(w, b) : encode_text(w, number, b, fd, f);
	close(fd);
	if (e == 0 && w->job->fixed)
		return write_block(w, number, b);
	b->tokens = (int64_t)w->list.count;
	b->documents = w->begins;
	if (e == 0 && keeps(w, b))
		keep_block(w, b);
	return e;
}

// ---- threads ----

static bool stopped(const struct job *j)
{
	return j->b->options->stop && atomic_load(j->b->options->stop);
}

// The next block, or -1.  Blocks after a failed one are skipped; all blocks before it are
// processed.
static int64_t take_next(struct job *j)
{
	pthread_mutex_lock(&j->lock);
	const int64_t n = j->next < j->bad && !stopped(j) ? j->next++ : -1;
	pthread_mutex_unlock(&j->lock);
	return n;
}

static void note_failure(struct job *j, int64_t number, int code)
{
	pthread_mutex_lock(&j->lock);
	if (number < j->bad) {
		j->bad = number;
		j->code = code;
		snprintf(j->why, sizeof j->why, "%s", yoke_error());
	}
	pthread_mutex_unlock(&j->lock);
	yoke_error_clear();
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int64_t n;
	while ((n = take_next(w->job)) >= 0) {
		const int e = take_block(w, n);
		if (e < 0)
			note_failure(w->job, n, e);
	}
	return NULL;
}

// Processes all blocks; the caller is the only worker if n is 1.
static int run(struct job *j, struct worker *w, int n)
{
	sigset_t all, old;
	int started = 0;
	pthread_mutex_init(&j->lock, NULL);
	j->bad = j->b->count;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals are handled by the caller's thread
	for (; n > 1 && started < n - 1; started++)
		if (pthread_create(&w[started].thread, NULL, work, &w[started]))
			break; // the threads that did start do its work
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	work(&w[n - 1]);
	for (int i = 0; i < started; i++)
		pthread_join(w[i].thread, NULL);
	pthread_mutex_destroy(&j->lock);
	if (j->bad < j->b->count)
		return yk_fail(j->code, "%s", j->why);
	return stopped(j) ?
		       yk_fail(YOKE_EPERM, "data prepare: ended by a signal; nothing is written") :
		       0;
}

static void workers_free(struct worker *w, int n)
{
	for (int i = 0; w && i < n; i++) {
		yk_tokenizer_free(w[i].own);
		yk_tokens_fini(&w[i].list);
		free(w[i].first);
		free(w[i].text);
		free(w[i].begin);
	}
	free(w);
}

static struct worker *workers_new(struct job *j)
{
	const int n = j->b->workers;
	struct worker *w = calloc((size_t)n, sizeof *w);
	if (!w)
		yk_fail(YOKE_ENOMEM, "data prepare: no memory for %d threads", n);
	for (int i = 0; w && i < n; i++) {
		w[i].job = j;
		w[i].number = i;
		w[i].own = yk_tokenizer_new(j->b->options->tokenizer);
		if (!w[i].own) {
			workers_free(w, n);
			return NULL;
		}
	}
	return w;
}

// ---- both passes ----

// Token or document index at which each block begins, [count + 1], which the caller frees; NULL:
// out of memory.
static int64_t *bases(const struct yk_blocks *b, bool documents)
{
	int64_t *at = calloc((size_t)b->count + 1, sizeof *at);
	for (int64_t i = 0; at && i < b->count; i++)
		at[i + 1] = at[i] + (documents ? b->block[i].documents : b->block[i].tokens);
	if (!at)
		yk_fail(YOKE_ENOMEM, "data prepare: no memory for %lld blocks",
			(long long)b->count);
	return at;
}

// The vocabulary of `to` becomes all words that the workers found among the first `train` tokens.
static int join_words(struct worker *w, int n, const int64_t *base, int64_t train,
		      struct yk_tokenizer *to)
{
	struct yk_tokenizer **from = calloc((size_t)n, sizeof *from);
	bool **in = calloc((size_t)n, sizeof *in);
	int e = from && in ? 0 : YOKE_ENOMEM;
	for (int i = 0; i < n && e == 0; i++) {
		const int64_t words = yk_tokenizer_learnt(w[i].own);
		from[i] = w[i].own;
		in[i] = calloc((size_t)words + 1, sizeof **in);
		e = in[i] ? 0 : YOKE_ENOMEM;
		for (int64_t k = 0; k < words && e == 0; k++)
			in[i][k] = base[w[i].first[k].block] + w[i].first[k].token < train;
	}
	e = e == 0 ? yk_tokenizer_join(to, n, from, in) :
		     yk_fail(e, "out of memory for a vocabulary");
	for (int i = 0; i < n && in; i++)
		free(in[i]);
	free(in);
	free(from);
	return e;
}

// Maps each worker's ids to the vocabulary, for the blocks that are kept.
static int map_words(const struct yk_blocks *b, const struct worker *w,
		     const struct yk_tokenizer *to)
{
	struct yk_ids_cache *k = b->kept;
	if (!k || !*yk_tokenizer_separator(to))
		return 0;
	k->id = calloc((size_t)b->workers, sizeof *k->id);
	k->workers = k->id ? b->workers : 0;
	for (int i = 0; i < k->workers; i++) {
		if (!(k->id[i] =
			      malloc(((size_t)yk_tokenizer_learnt(w[i].own) + 1) * sizeof **k->id)))
			return yk_fail(YOKE_ENOMEM, "out of memory for a vocabulary");
		yk_tokenizer_map(to, w[i].own, k->id[i]);
	}
	return k->id ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for a vocabulary");
}

void yk_ids_cache_open(struct yk_ids_cache *k)
{
	*k = (struct yk_ids_cache){ .file.fd = -1 };
	if (yk_file_nameless(&k->file, "the text") < 0)
		yoke_error_clear(); // the text is tokenized a second time
}

void yk_ids_cache_close(struct yk_ids_cache *k)
{
	for (int i = 0; i < k->workers; i++)
		free(k->id[i]);
	free(k->id);
	yk_file_nameless_close(&k->file);
}

int yk_blocks_count(struct yk_blocks *b, struct yk_tokenizer *to,
		    int64_t (*split)(void *arg, int64_t tokens), void *arg)
{
	struct job j = { .b = b };
	struct worker *w = workers_new(&j);
	int64_t *base = NULL, train = 0;
	int e = w ? run(&j, w, b->workers) : yoke_error_code();
	if (e == 0)
		e = (base = bases(b, false)) ? 0 : YOKE_ENOMEM;
	if (e == 0)
		e = (train = split(arg, base[b->count])) < 0 ? (int)train : 0;
	if (e == 0)
		e = join_words(w, b->workers, base, train, to);
	if (e == 0)
		e = map_words(b, w, to);
	free(base);
	workers_free(w, b->workers);
	return e;
}

int yk_blocks_write(struct yk_blocks *b, struct yk_tokenizer *fixed,
		    const struct yk_file_writer *out, uint64_t tokens, uint64_t documents)
{
	int64_t *token_base = bases(b, false), *document_base = token_base ? bases(b, true) : NULL;
	struct job j = { .b = b,
			 .fixed = fixed,
			 .out = out,
			 .tokens = tokens,
			 .documents = documents,
			 .token_base = token_base,
			 .document_base = document_base };
	struct worker *w = document_base ? workers_new(&j) : NULL;
	const int e = w ? run(&j, w, b->workers) : yoke_error_code();
	workers_free(w, b->workers);
	free(token_base);
	free(document_base);
	return e;
}
