// SPDX-License-Identifier: Apache-2.0
// Measures the throughput of loaders and of text preparation beside what limits them. All rows
// run in turn in every round, so that other load on the machine affects all of them; the figures
// are medians of the rounds, with minimum and maximum.
//
//	bench/data FOLDER [rows, all] [workers, 2] [seconds of a round, 0.3] [rounds, 7]
//
//	tokens            shuffled windows of 128 + 1 tokens from 64 Mi 2-byte tokens
//	                  (FOLDER/tokens.u16)
//	rows              shuffled rows of 4 KiB from a .npy file of 256 MiB (FOLDER/rows.npy)
//	memcpy            the same rows, copied in memory by one thread in the same order
//	csv               a table of 8 numeric columns, 24 MB (FOLDER/table.csv), opened and read in
//	                  order
//	words             the tokenizer alone: 32 MiB of words (FOLDER/text) in memory, in blocks as
//	                  prepare uses, one thread
//	prepare           the same text from file to token file, with as many threads as workers
//	sleep 1, sleep 4  a source that sleeps 5 ms per sample, read by one thread and by four
//	images            images of FOLDER/images (written by bench/peers/data_torch.py) resized to
//	                  224 x 224; only on request
//	end               not a rate: the time of the step at the end of an epoch divided by the
//	                  median step; a step works 2 ms
//
// The argument `rows` is a comma-separated list of these. Missing input files are written first.
// Batches have 64 samples; 16 for sleep; 10 of 210 for end.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "data/part.h"
#include "data/permute.h"
#include "data/prepare.h"
#include "rounds.h"
#include "yoke-data.h"

enum {
	CONTEXT = 128,
	ROW = 1024,
	ROWS = 65536,
	BATCH = 64,
	RECORDS = 300000,
	COLUMNS = 8,
	TEXT_BYTES = 32 << 20,
	BLOCK = 4 << 20
};
#define TOKENS ((int64_t)64 << 20)

enum { TOKENS_FILE, ROWS_FILE, TABLE_FILE, TEXT_FILE, OUT_FILE, IMAGES, FILES };
static char path[FILES][4096];
static float *memory; // copy of the rows in memory
static int workers = 2;
static double seconds = 0.3;

// ---- files ----

static int add(struct yk_file_writer *w, const void *data, size_t n)
{
	return yk_file_add(w, data, n);
}

static bool exists(const char *name)
{
	FILE *f = fopen(name, "rb");
	if (f)
		fclose(f);
	return f != NULL;
}

static int write_tokens(void)
{
	static uint16_t piece[1 << 20];
	struct yk_file_writer w;
	uint32_t x = 1;
	int e = exists(path[TOKENS_FILE]) ? 1 : yk_file_begin(&w, path[TOKENS_FILE]);
	if (e)
		return e < 0 ? e : 0;
	for (int64_t at = 0; at < TOKENS && e == 0; at += 1 << 20) {
		for (int i = 0; i < 1 << 20; i++)
			piece[i] = (uint16_t)((x = x * 1664525u + 1013904223u) >> 17);
		e = add(&w, piece, sizeof piece);
	}
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

static int write_rows(void)
{
	struct yk_file_writer w;
	char head[YK_NPY_BYTES];
	int e = exists(path[ROWS_FILE]) ? 1 : yk_file_begin(&w, path[ROWS_FILE]);
	if (e)
		return e < 0 ? e : 0;
	const size_t n = yk_npy_head(head, "<f4", 2, (int64_t[]){ ROWS, ROW });
	e = add(&w, head, n);
	if (e == 0)
		e = add(&w, memory, sizeof(float) * ROW * ROWS);
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

static uint32_t drawn(uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
	return *x >> 8;
}

static int write_table(void)
{
	char line[256];
	struct yk_file_writer w;
	uint32_t x = 1;
	int e = exists(path[TABLE_FILE]) ? 1 : yk_file_begin(&w, path[TABLE_FILE]);
	if (e)
		return e < 0 ? e : 0;
	e = add(&w, "a,b,c,d,e,f,g,h\n", 16);
	for (int64_t i = 0; i < RECORDS && e == 0; i++) {
		size_t n = 0;
		for (int k = 0; k < COLUMNS; k++) // 24 bits, as far from zero as is usual
			n += (size_t)snprintf(line + n, sizeof line - n, "%.7g%c",
					      (drawn(&x) - 8388608.0) / 1024,
					      k < COLUMNS - 1 ? ',' : '\n');
		e = add(&w, line, n);
	}
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

// Words of 2 to 9 letters; the n-th word has a frequency of about 1/n of the first.
static int write_text(void)
{
	struct yk_file_writer w;
	uint32_t x = 1;
	int e = exists(path[TEXT_FILE]) ? 1 : yk_file_begin(&w, path[TEXT_FILE]);
	if (e)
		return e < 0 ? e : 0;
	for (size_t at = 0; at < TEXT_BYTES && e == 0;) {
		char word[16];
		const uint32_t rank = (uint32_t)exp(log(50000) * drawn(&x) / 16777216.0);
		uint32_t y = rank * 2654435761u;
		const size_t n = 2 + drawn(&y) % 8;
		for (size_t k = 0; k < n; k++)
			word[k] = (char)('a' + drawn(&y) % 26);
		word[n] = at % 11 ? ' ' : '\n';
		e = add(&w, word, n + 1);
		at += n + 1;
	}
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

// ---- rates ----

static yoke_loader *open_file(const char *name, const char *format)
{
	char settings[96];
	yoke_dataset *d = yoke_dataset_open(name, format);
	snprintf(settings, sizeof settings, "batch=%d workers=%d seed=1", BATCH, workers);
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	yoke_dataset_free(d);
	return l;
}

// Samples per second from a loader with that number of fields, which it frees; the contents of
// batches are not read.
static double drain(yoke_loader *l, int fields)
{
	int64_t rows = 0;
	void *data[2];
	double began = 0;
	for (int64_t got; l && (got = yoke_loader_host(l, fields, data, NULL)) > 0;) {
		if (began > 0)
			rows += got;
		else
			began = yk_seconds(); // the first batch opens the file
		if (yk_seconds() - began > seconds)
			break;
	}
	const double took = yk_seconds() - began;
	yoke_loader_free(l);
	return rows ? (double)rows / took : NAN;
}

static double tokens(void)
{
	char format[40];
	snprintf(format, sizeof format, "format=u16 context=%d", CONTEXT);
	return drain(open_file(path[TOKENS_FILE], format), 1);
}

static double rows(void)
{
	return drain(open_file(path[ROWS_FILE], NULL), 1);
}

static double table_records(void)
{
	char settings[96];
	void *data[COLUMNS];
	int64_t rows = 0;
	const double began = yk_seconds();
	yoke_dataset *d = yoke_dataset_open(path[TABLE_FILE], NULL);
	snprintf(settings, sizeof settings, "batch=1024 workers=%d shuffle=0 epochs=1 last=keep",
		 workers);
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	for (int64_t got; l && (got = yoke_loader_host(l, COLUMNS, data, NULL)) > 0;)
		rows += got;
	yoke_loader_free(l);
	yoke_dataset_free(d);
	return rows == RECORDS ? (double)rows / (yk_seconds() - began) : NAN;
}

static double images(void)
{
	char settings[96];
	yoke_dataset *d = yoke_dataset_open(path[IMAGES], "size=224 crop=none");
	snprintf(settings, sizeof settings, "batch=%d workers=%d seed=1", BATCH, workers);
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	yoke_dataset_free(d);
	return drain(l, 2);
}

// Bytes per second.
static double words(void)
{
	char *text;
	size_t n;
	struct yk_tokens to = { 0 };
	struct yk_tokenizer *t = yk_tokenizer_new("word");
	if (!t || yk_file_read(path[TEXT_FILE], 2 * TEXT_BYTES, &text, &n) < 0)
		return NAN;
	const double began = yk_seconds();
	int e = 0;
	for (size_t at = 0, end; at < n && e == 0; at = end) {
		end = n - at > BLOCK ? at + BLOCK : n;
		while (end < n && text[end - 1] != ' ')
			end++;
		to.count = 0;
		e = yk_tokenizer_encode(t, text + at, end - at, &to);
	}
	const double took = yk_seconds() - began;
	yk_tokens_fini(&to);
	yk_tokenizer_free(t);
	free(text);
	return e == 0 ? (double)n / took : NAN;
}

static double prepare(void)
{
	const struct yk_prepare p = { .paths = path[TEXT_FILE],
				      .out = path[OUT_FILE],
				      .tokenizer = "word",
				      .valid = 0.1,
				      .context = CONTEXT,
				      .workers = workers };
	struct yk_prepared_text done;
	remove(path[OUT_FILE]);
	const double began = yk_seconds();
	const int e = yk_prepare(&p, &done);
	return e == 0 ? (double)done.bytes / (yk_seconds() - began) : NAN;
}

static double copies(void)
{
	static float to[4][BATCH][ROW];
	const double began = yk_seconds();
	double took;
	int64_t n = 0;
	do {
		for (int i = 0; i < BATCH; i++, n++)
			memcpy(to[n / BATCH % 4][i],
			       memory + ROW * yk_order_at(n % ROWS, ROWS, 1, 1, n / ROWS),
			       sizeof to[0][0]);
		took = yk_seconds() - began;
	} while (took < seconds);
	return (double)n / took;
}

static int sleep_item(void *arg, int64_t n, struct yoke_item *const *s)
{
	const int64_t *us = arg;
	for (int64_t i = 0; i < n; i++) {
		if (*us)
			nanosleep(&(struct timespec){ .tv_nsec = *us * 1000 }, NULL);
		*(float *)s[i]->to[0] = 1;
	}
	return 0;
}

static yoke_loader *sleeper(int64_t *us, int64_t count, const char *settings)
{
	const struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_f32 };
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "sleep",
						.count = count,
						.fields = 1,
						.field = &f,
						.read = sleep_item,
						.arg = us });
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	yoke_dataset_free(d);
	return l;
}

static double sleep_by(const char *settings)
{
	static int64_t us = 5000;
	return drain(sleeper(&us, 10000, settings), 1);
}

static double sleep_1(void)
{
	return sleep_by("batch=16 workers=1");
}

static double sleep_4(void)
{
	return sleep_by("batch=16 workers=4");
}

// ---- ends of epochs ----

static double epoch_end(void)
{
	enum { STEPS = 420, EPOCH = 21 };
	static double all[STEPS], ends[STEPS];
	static int64_t us = 20;
	yoke_loader *l = sleeper(&us, EPOCH * 10, "batch=10 workers=1");
	int n = 0;
	for (int k = 0; l && k < STEPS; k++) {
		void *data[1];
		const double began = yk_seconds();
		if (yoke_loader_host(l, 1, data, NULL) < 0)
			return NAN;
		while (yk_seconds() - began < 0.002)
			;
		all[k] = yk_seconds() - began;
		if (k % EPOCH == 0 && k > 0) // the first of an epoch waits for it
			ends[n++] = all[k];
	}
	yoke_loader_free(l);
	return median(ends, n) / median(all, STEPS);
}

// ---- rows of the table ----

static const struct row {
	const char *name, *unit;
	double (*fn)(void);
	double bytes; // bytes of a sample in memory
	bool named;   // runs only on request
} table[] = {
	{ "tokens", "samples/s", tokens, 4 * (CONTEXT + 1), false },
	{ "rows", "samples/s", rows, sizeof(float) * ROW, false },
	{ "memcpy", "samples/s", copies, sizeof(float) * ROW, false },
	{ "csv", "samples/s", table_records, 4 * COLUMNS, false },
	{ "images", "samples/s", images, 4 * 3 * 224 * 224, true },
	{ "words", "bytes/s", words, 1, false },
	{ "prepare", "bytes/s", prepare, 1, false },
	{ "sleep 1", "samples/s", sleep_1, 0, false },
	{ "sleep 4", "samples/s", sleep_4, 0, false },
	{ "end", "of the median", epoch_end, 0, false },
};
enum { TABLE = sizeof table / sizeof *table };

static bool wanted(const struct row *r, const char *rows)
{
	return rows ? yk_listed(rows, r->name) : !r->named;
}

int main(int argc, char **argv)
{
	static double got[TABLE][MAX_ROUNDS];
	const char *only = argc > 2 && strcmp(argv[2], "all") ? argv[2] : NULL;
	int n = argc > 5 ? atoi(argv[5]) : 7;
	workers = argc > 3 ? atoi(argv[3]) : workers;
	seconds = argc > 4 ? atof(argv[4]) : seconds;
	n = n < 1 ? 1 : n > MAX_ROUNDS ? MAX_ROUNDS : n;
	if (argc < 2 || workers < 0 || !(seconds > 0)) {
		fprintf(stderr,
			"usage: bench/data FOLDER [rows, all] [workers, 2] [seconds, 0.3] [rounds, 7]\n");
		return 2;
	}
	memory = malloc(sizeof(float) * ROW * ROWS);
	for (size_t i = 0; memory && i < (size_t)ROW * ROWS; i++)
		memory[i] = (float)(i % 8191);
	static const char *const name[FILES] = {
		"tokens.u16", "rows.npy", "table.csv", "text", "text.tokens.safetensors", "images"
	};
	for (int i = 0; i < FILES; i++)
		snprintf(path[i], sizeof path[i], "%s/%s", argv[1], name[i]);
	if (!memory || write_tokens() < 0 || write_rows() < 0 || write_table() < 0 ||
	    write_text() < 0) {
		fprintf(stderr, "bench/data: %s\n", memory ? yoke_error() : "no memory");
		return 1;
	}
	for (int r = 0; r < n; r++)
		for (int k = 0; k < TABLE; k++)
			if (wanted(&table[k], only))
				got[k][r] = table[k].fn();
	for (int k = 0; k < TABLE; k++) {
		if (!wanted(&table[k], only))
			continue;
		const double m = median(got[k], n);
		qsort(got[k], (size_t)n, sizeof *got[k], by_value);
		printf("%-8s %2d workers  %12.4g %s", table[k].name, workers, m, table[k].unit);
		if (table[k].bytes > 0)
			printf("  %8.1f MB/s", m * table[k].bytes / 1e6);
		printf("  (%.4g to %.4g in %d rounds)\n", got[k][0], got[k][n - 1], n);
	}
	if (yoke_error_code())
		fprintf(stderr, "bench/data: %s\n", yoke_error());
	free(memory);
	return yoke_error_code() != 0;
}
