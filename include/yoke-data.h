// SPDX-License-Identifier: Apache-2.0
// Datasets, and loaders that feed a training loop with batches.
//
//	static int item(void *arg, int64_t n, struct yoke_item *const *s)
//	{
//		for (int64_t i = 0; i < n; i++)
//			*(float *)s[i]->to[0] = (float)s[i]->number;
//		return 0;
//	}
//
//	struct yoke_field x = { .size = sizeof x, .name = "x", .dtype = yoke_f32 };
//	struct yoke_dataset_options o = { .size = sizeof o, .name = "numbers", .count = 1000,
//					  .fields = 1, .field = &x, .read = item };
//	yoke_dataset *d = yoke_dataset_new(&o);
//	yoke_loader *l = yoke_loader_new(d, "batch=32 shuffle=1 workers=2");
//	for (..) {
//		yoke_scope *s = yoke_scope_begin("step");
//		yoke_tensor *batch;                        // [32] f32
//		yoke_loader_next(l, 1, &batch, NULL);
//		..
//		yoke_scope_end(s);
//	}
//	yoke_loader_free(l);
//	yoke_dataset_free(d);
//
// The composition of batches, their order, contents and random numbers depend only on the seed, the
// epoch and the position in it, not on the number of threads or prefetched batches.
#ifndef YOKE_DATA_H
#define YOKE_DATA_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_dataset yoke_dataset;
typedef struct yoke_loader yoke_loader;

// ---- datasets ----

// A field of each sample.
struct yoke_field {
	size_t size;      // sizeof an array element; set by the caller in the first one
	const char *name; // "ids"
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK];     // of one sample
	int64_t multiple[YOKE_MAX_RANK]; // nonzero for an axis of variable length: samples may be
					 // shorter than dims; a batch is as long as its longest
					 // sample, rounded up to a multiple of this (at most dims),
					 // which limits the number of different shapes
	double pad; // fills shorter samples, and the rows that last=pad adds
};

// A request to read one sample.
struct yoke_item {
	size_t size;
	int64_t number;     // index of the sample: 0 .. count - 1
	int64_t epoch;
	void *const *to;    // for each field a buffer for its dims, row-major; not cleared
	int64_t (*dims)[YOKE_MAX_RANK]; // for each field its dims; the reader reduces those of
					// variable axes and writes elements row-major with the
					// resulting dims
	char *why;          // optional reason of a failure, a buffer of why_size bytes
	size_t why_size;
	uint64_t seed;      // for the sample's random numbers, see yoke_item_random
	int64_t draw;
	int code;           // 0; when reading several samples: YOKE_E* for a sample that failed
};

// Reads n samples, on any thread.  Returns 0, or a negative YOKE_E* when none of them could be
// read; `why` may get a reason.  It must not call yoke, except yoke_item_random and
// yoke_item_uniform.
typedef int yoke_read_fn(void *arg, int64_t n, struct yoke_item *const *);

struct yoke_dataset_options {
	size_t size;
	const char *name;   // for messages; NULL: "unnamed"
	int64_t count;      // number of samples, at least 1
	int fields;
	const struct yoke_field *field;
	yoke_read_fn *read;
	int64_t chunk;      // maximum number of samples per call; 0: 1
	int serial;         // not 0: the function is not thread-safe and is called from one thread
			    // at a time
	void *arg;
	void (*free_fn)(void *arg); // called once, after the last user of the dataset is gone; may
				    // be NULL.  Not called after an error of yoke_dataset_new
	uint64_t fingerprint; // hash of the contents, by which loaders validate positions; 0:
			      // unknown
};

// Creates a dataset.  NULL with EINVAL that names the field and the rule.
YOKE_API yoke_dataset *yoke_dataset_new(const struct yoke_dataset_options *);
// Frees the handle; datasets and loaders derived from it remain valid.  NULL is fine.
YOKE_API void yoke_dataset_free(yoke_dataset *);
YOKE_API const char *yoke_dataset_name(const yoke_dataset *);
YOKE_API int64_t yoke_dataset_count(const yoke_dataset *);
// Fills the first `max` elements of `to` (NULL for none) and returns the number of fields.
YOKE_API int yoke_dataset_fields(const yoke_dataset *, int max, struct yoke_field *to);
// A hash of the contents; for datasets of unknown contents, of names, fields and numbers of
// samples.
YOKE_API uint64_t yoke_dataset_fingerprint(const yoke_dataset *);
// Reads one sample in the calling thread: to[f] is a buffer for field f; dims, unless NULL, gets
// its dims.  draw: the sample's counter for random numbers.
YOKE_API int yoke_dataset_read(const yoke_dataset *, int64_t number, uint64_t seed, int64_t epoch,
			       int64_t draw, void *const *to, int64_t (*dims)[YOKE_MAX_RANK]);

// Opens files as a dataset, which may be larger than memory: samples are read in place, by
// position, on demand.  Reading a sample from a truncated or unreadable file is EIO with file name
// and byte offset.  path: a file, or several of the same kind, comma-separated and concatenated (an
// existing file with the whole text as its name takes precedence); a directory of images; a pipe,
// or "-" for standard input.  A file with contents of another kind (a Git LFS pointer, an HTML
// page, a pickle, UTF-16 text) is EFORMAT, and the error names that kind.  settings:
//   format=auto  npy: the rows of a NumPy array along its first axis, field "x" (i16 and u16 become
//                i32, u32 and u64 i64); npz: the same for the arrays of an archive, one field each,
//                which are decompressed once into an unnamed file in TMPDIR (else /var/tmp) of at
//                most data.max bytes (a setting); needs libzip; safetensors: the rows of its
//                arrays, one field each; tokens: a token file; TYPE or TYPE:OFFSET: raw
//                little-endian elements from that byte on, of type u8, u16, u32, u64, i8, i16, i32,
//                i64, f16, bf16, f32, f64 or bool; csv, tsv: a table whose first record names its
//                columns (RFC 4180), one field each; jsonl: one object per line; text may start
//                with a UTF-8 byte-order mark, contain blank lines and end lines with CR LF;
//                images: a directory with one subdirectory per class, with .jpg, .jpeg and .png
//                files; auto: by the suffix .npy, .npz, .csv, .tsv, .jsonl or .safetensors (a token
//                file if it is one), else by the first bytes of .npy, .npz and .safetensors files;
//                a directory is images
//   fields=a,b   of safetensors and npz: the arrays to read; by default all, which must have the
//                same number of rows, except arrays of unsupported dtypes (C64, F8_.., F6_.., F4),
//                each of which is skipped with a warning
//   columns=a,b:category,c:text  of tables: the columns to read, by default all, as numbers.
//                Without a kind a column is a number, f32; f64; category: i32, the index among the
//                column's distinct texts in sorted order (yoke_dataset_label), for which the whole
//                file is read first, and which is not available for several files; text: u8, of
//                variable length.  A number has decimal digits and a point in every locale, or is
//                nan, inf or infinity; reading the sample fails if it is out of range of f32 or
//                f64.  f32 and number are the same.  A name with blanks, commas or colons stands in
//                quotes, a quote in it is doubled: columns="sepal length":f32,species:category
//   delimiter=;  of tables: the character that separates cells, or tab; by default a comma, of tsv
//                a tab, unless these do not separate cells and another one of , ; tab | divides all
//                of the first records into equally many, which is logged
//   header=0     of tables: the first record has data, and columns are column1, column2, ...
//   field=text   of JSON lines: the key of the string, UTF-8, that becomes field "text", u8, of
//                variable length; for a repeated key the last one.  Other keys may hold integers of
//                any size, NaN and repeated keys
//   dims=3x4     of raw elements: the dims of a sample of field "x"; by default one element
//   context=N    treats elements as token ids: samples are windows of N + 1 tokens, each starting
//                with the last token of the previous window, field "ids" i32 [N + 1].  For token
//                files and raw u8, u16 and u32: use format=u8 for text as bytes, format=u16 for
//                nanoGPT's files, format=u16:1024 for llm.c's
//   vocab=N      reading a sample with an id of N or above fails; 0: no limit.  Token files define
//                it themselves
//   count=N      of pipes, which contain raw elements: the samples of an epoch; the next epoch
//                continues in the pipe.  When the pipe ends, the first missing sample is EIO, which
//                on_error does not skip
//   keep=N       of pipes: how many of the last samples are kept, by default as many as fit 64 MiB.
//                Reading an earlier sample is an error: loaders need shuffle=0, or block shuffling
//                (shuffle=M) with keep= at least 2 M plus the prefetched samples
//   size=HxW     of images: the output size, field "image" f32 [3, H, W] in RGB; one number: both.
//                Field "class" i32: the index of the subdirectory's name in sorted order
//                (yoke_dataset_label).  Resizing is bilinear with antialiasing: a mean weighted by
//                a triangle whose half-width is one pixel of the smaller of the two images
//   crop=center  the largest centered area with the aspect ratio of size, its sides multiplied by
//                zoom; none: the whole image, stretched; random: an area with 0.08 to 1 of the
//                image's area, uniformly, and an aspect ratio of 3/4 to 4/3 times that of size,
//                log-uniformly: the first of ten attempts that fits, else the centered area.
//                Attempt k uses the sample's random numbers 4 k .. 4 k + 3
//   zoom=1       above 0, at most 1
//   flip=0       1: half of the samples are mirrored: those whose random number 1000 is below 1/2
//   mean=0 std=1 one number, or one per channel: x becomes (x / 255 - mean) / std
// A token file is a safetensors file with `tokens` (U8, U16 or U32, one axis) and the metadata
// `format` "yoke tokens 1" and `tokenizer`, a JSON object with its name and size; `yoke data
// prepare` writes them.  Images are at most 16384 pixels wide and high, with at most 2^26 pixels,
// in files of at most 256 MiB; damage that libjpeg-turbo or libpng detects is an error of the
// sample.
// NULL with ENOENT, EIO, EFORMAT, EUNSUPPORTED (also: built without the library), EINVAL; the error
// names the path or key, and the rule.
YOKE_API yoke_dataset *yoke_dataset_open(const char *path, const char *settings);

// The text of category i of a categorical field; NULL: there is none.
YOKE_API const char *yoke_dataset_label(const yoke_dataset *, const char *field, int64_t i);

// Concatenates n datasets with the same fields.
YOKE_API yoke_dataset *yoke_dataset_concat(int n, yoke_dataset *const *);
// A mixture of datasets with the same fields: `count` samples per epoch, shuffled, to which each
// dataset contributes in proportion to its weight (rounded to sum up to `count`).  All samples of a
// dataset are used equally often, up to a difference of one: the next epoch continues where the
// last one ended.  Weights are positive.
YOKE_API yoke_dataset *yoke_dataset_mix(int n, yoke_dataset *const *, const double *weight,
					int64_t count, uint64_t seed);
// The samples number[0 .. count - 1] of a dataset (the array is copied); or, with NULL, first ..
// first + count - 1.
YOKE_API yoke_dataset *yoke_dataset_subset(yoke_dataset *, int64_t first, int64_t count,
					   const int64_t *number);
// Caches samples in memory after their first read, up to `bytes` in total; UINT64_MAX: no limit.
// If the dataset's samples are random, the first read is kept.
YOKE_API yoke_dataset *yoke_dataset_cache(yoke_dataset *, uint64_t bytes);
// Computes samples from those of another dataset, on any thread, like yoke_read_fn.  With fields =
// 0 the fields are the same and changed in place (`from` is NULL).  Otherwise `from` has the
// original to and dims.
typedef int yoke_map_fn(void *arg, const struct yoke_item *from, struct yoke_item *);
YOKE_API yoke_dataset *yoke_dataset_map(yoke_dataset *, int fields, const struct yoke_field *,
					yoke_map_fn *, void *arg, void (*free_fn)(void *arg));

// Random numbers of a sample, which depend only on the loader's seed, the epoch, the sample and n:
// four words, one block of Philox 4x32-10 (Salmon et al. 2011) with key `seed` and counter (draw,
// epoch, n), of 64, 32 and 32 bits.  draw is the sample's index in the dataset that is loaded.
YOKE_API void yoke_item_random(const struct yoke_item *, uint32_t n, uint32_t to[4]);
// The first of these words as a number in [0, 1), in steps of 2^-24.
YOKE_API double yoke_item_uniform(const struct yoke_item *, uint32_t n);

// ---- loaders ----

// The position of a run in its data: the first sample not used by a finished step, and the number
// of failed samples in that epoch.  It does not depend on the number of threads, prefetched
// batches, batch size or ranks.
struct yoke_position {
	size_t size;
	int64_t epoch, index; // index: in the epoch's order, over all ranks
	int64_t failed;
};

// Creates a loader of a dataset.  settings: "key=value" words, NULL: none.
//   batch=1      samples per batch
//   workers=auto number of reader threads; 0: reads in the calling thread; auto: by the processors
//                available to the process
//   prefetch=2   batches prefetched by the workers: read and, for a device other than the CPU,
//                uploaded concurrently with its steps.  They take the memory of prefetch + 1
//                batches on the device, from the first call on, if there is enough
//   shuffle=1    1: each epoch in a new random order; 0: in the dataset's order; N > 1: in blocks
//                of N, each shuffled
//   last=wrap    handling of the samples after an epoch's last whole batch.  wrap: the batch is
//                completed from the next epoch; drop: they are dropped; keep: a smaller batch; pad:
//                rows of the fields' `pad`
//   seed=0       of the order and of the samples' random numbers
//   rank=0 world=1  of `world` processes this one takes every world-th sample of the order; the
//                epoch is wrapped to a multiple of world
//   on_error=stop  handling of a sample that cannot be read.  stop: the run fails; skip: the next
//                good sample of the order is used in its place, and again in its own; N: as skip,
//                at most N times per epoch
//   epochs=0     ends after this many epochs; 0: never
//   split=1      splits a batch into this many micro-batches with the same number of rows: in calls
//                below that take n tensors, arrays or dims, micro-batch k of field f is
//                [f * split + k], and n is the number of fields times split
//   part=0 parts=0  returns only `parts` micro-batches from number `part` on, 0: all following
//                ones, for callers that distribute a batch over devices; in the description of
//                calls, parts then takes the place of split.  Order and position are those of whole
//                batches.  stride=1: the step between them.  With on_error=stop the others are not
//                read; otherwise they are, since failures count for all
//   held=2       on the CPU: number of batches that tensors may hold in addition to the prefetched
//                ones; further ones are copied
// Batches lie in host memory allocated for the current context: pinned if its device supports it
// and enough is available, from the CPU's pool, where it is accounted, or else ordinary memory.
// NULL with EINVAL that names the key and the rule.  ERANGE: fewer samples than a batch with
// last=drop.  ENOMEM.
YOKE_API yoke_loader *yoke_loader_new(yoke_dataset *, const char *settings);
// Ends the threads, also in the middle of an epoch.  A read that does not return within the setting
// data.timeout is abandoned, and its memory is leaked.  Returned batches remain valid.  NULL is
// fine.
YOKE_API void yoke_loader_free(yoke_loader *);

// Waits for the next batch: to[f] gets field f as a tensor [rows, dims..], for n = the number of
// fields.  The tensors belong to the current context and the innermost scope; on the CPU they use
// the memory that the threads wrote, elsewhere they were uploaded in advance.  A device error is
// returned by this call, and the batch by the next one.  Returns the number of rows that are
// samples (with last=pad the tensors may have more); 0 after the last epoch; or a negative YOKE_E*
// for the first sample of the batch that failed, with name, number and reason, and again in all
// later calls.  weight, unless NULL: f32 [rows], 1, or 0 for rows added by last=pad.
YOKE_API int64_t yoke_loader_next(yoke_loader *, int n, yoke_tensor **to, yoke_tensor **weight);
// yoke_loader_next into existing variables of the batch's dtypes and shapes, like yoke_put;
// uploaded batches are not copied again.
YOKE_API int64_t yoke_loader_put(yoke_loader *, int n, yoke_tensor *const *variable);
// yoke_loader_next into host memory, aligned to 64 bytes and valid until the next call for this
// loader: data[f], and, unless NULL, dims[f], the batch's dims of each field with the rows first.
YOKE_API int64_t yoke_loader_host(yoke_loader *, int n, void **data,
				  int64_t (*dims)[YOKE_MAX_RANK + 1]);

// The position after the batches returned so far.
YOKE_API int yoke_loader_position(const yoke_loader *, struct yoke_position *);
// Continues at a position; discards prefetched batches.  EINVAL: the position does not exist.
YOKE_API int yoke_loader_seek(yoke_loader *, const struct yoke_position *);

// A sample that failed and was skipped.
struct yoke_data_error {
	size_t size;
	const char *name; // of the dataset
	int64_t number, epoch;
	int code;
	const char *why;
};
// Registers a function that is called for each skipped sample, in the order of the samples, inside
// the call that returns the batch in which it should have been.  The first ten are also logged.
// NULL: none.
YOKE_API int yoke_loader_errors(yoke_loader *,
				void (*fn)(void *arg, const struct yoke_data_error *), void *arg);

struct yoke_loader_stats {
	size_t size;
	int workers;
	uint64_t batches, samples; // returned
	uint64_t failed;
	double waited;             // seconds that calls waited for samples, or read them
				   // (workers=0)
	double reading;            // seconds in the dataset's functions, summed over threads
	int64_t ready;             // prefetched batches not yet returned
	uint64_t bytes;            // host memory for batches
	double padding;            // seconds spent on padding the samples of a batch to one shape,
				   // summed over threads
	double sending;            // seconds in which calls allocated device memory and started
				   // uploads
	int64_t sent;              // ready batches that are uploaded or being uploaded
};
YOKE_API int yoke_loader_stats(const yoke_loader *, struct yoke_loader_stats *);

#ifdef __cplusplus
}
#endif
#endif
