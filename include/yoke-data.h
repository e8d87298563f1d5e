// SPDX-License-Identifier: Apache-2.0
// Datasets, and loaders that feed batches of them to a training loop.
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
// Which samples a batch has, their order, contents and random numbers follow from the seed, the epoch and the place
// in it alone, whatever the number of threads and of prefetched batches.
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
	size_t size;      // sizeof, of all in an array; set by the caller in the first of them
	const char *name; // "ids"
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK];     // of one sample
	int64_t multiple[YOKE_MAX_RANK]; // where it is not 0, samples may have less than dims along this axis; a batch
					 // has there the longest of its samples, rounded up to a multiple of this (at
					 // most dims), so that there are few different shapes
	double pad; // what stands behind the end of a shorter sample, and in rows that last=pad adds
};

// One sample that is to be read.
struct yoke_item {
	size_t size;
	int64_t number;     // which: 0 .. count - 1
	int64_t epoch;
	void *const *to;    // of each field the room for its dims, row major; not cleared
	int64_t (*dims)[YOKE_MAX_RANK]; // of each field the dims; whoever reads sets those that may vary, at most
					// as they are, and writes elements row major in them
	char *why;          // where what failed may be said, why_size bytes
	size_t why_size;
	uint64_t seed;      // random numbers of the sample: below
	int64_t draw;
	int code;           // 0; of several samples: YOKE_E* of one that failed
};

// Reads n samples, on any thread.  0, or a negative YOKE_E* when none of them could be read; a reason may be
// left in `why`.  It must not call yoke, except yoke_item_random and yoke_item_uniform.
typedef int yoke_read_fn(void *arg, int64_t n, struct yoke_item *const *);

struct yoke_dataset_options {
	size_t size;
	const char *name;   // for messages; NULL: "unnamed"
	int64_t count;      // samples, at least 1
	int fields;
	const struct yoke_field *field;
	yoke_read_fn *read;
	int64_t chunk;      // samples of one call at most; 0: 1
	int serial;         // not 0: the function is not safe to call from several threads at once; it is called
			    // from one at a time
	void *arg;
	void (*free_fn)(void *arg); // once, when the last that reads the set is gone; may be NULL.  After an
				    // error of yoke_dataset_new it is not called
	uint64_t fingerprint; // of the contents, 0: not known; what loaders compare positions by
};

// NULL with EINVAL that names the field and the rule.
YOKE_API yoke_dataset *yoke_dataset_new(const struct yoke_dataset_options *);
// Sets and loaders made of it go on.  NULL is fine.
YOKE_API void yoke_dataset_free(yoke_dataset *);
YOKE_API const char *yoke_dataset_name(const yoke_dataset *);
YOKE_API int64_t yoke_dataset_count(const yoke_dataset *);
// Fills the first `most` of to (NULL for none) and returns how many fields there are.
YOKE_API int yoke_dataset_fields(const yoke_dataset *, int most, struct yoke_field *to);
// A hash of what it is made of; of what is not known only names, numbers of samples and fields count.
YOKE_API uint64_t yoke_dataset_fingerprint(const yoke_dataset *);
// Reads one sample, in the calling thread: to[f] has room for field f; dims, unless NULL, gets its dims.  draw: its
// number for random numbers.
YOKE_API int yoke_dataset_read(const yoke_dataset *, int64_t number, uint64_t seed, int64_t epoch, int64_t draw,
			       void *const *to, int64_t (*dims)[YOKE_MAX_RANK]);

// A set of what files hold, which may be larger than memory: samples are read in place by position, when they are
// asked for.  A file that is cut short or cannot be read is EIO with name and byte, of the sample.  path: a file, or
// several of one kind, comma-separated, whose samples are one behind the other (a file of that whole name comes
// first); a folder of images; a pipe, or "-", standard input.  A file whose content is of another kind (a Git LFS
// pointer, an HTML page, a pickle, UTF-16 text) is EFORMAT, and the error names the kind.  settings:
//   format=auto  npy: the rows of a NumPy array along its first axis, field "x" (i16 and u16 become i32, u32 and u64 i64);
//                npz: those of the arrays of an archive, a field each, which are unpacked once into a file without a
//                name in TMPDIR (else /var/tmp), at most as many bytes as the setting data.max; needs libzip;
//                safetensors: the rows of its arrays, a field each; tokens: a token file; TYPE or TYPE:OFFSET: raw
//                elements from that byte on, little endian, of u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32,
//                f64, bool; csv, tsv: a table whose first record names its columns (RFC 4180), a field each; jsonl: one
//                object per line; in text a UTF-8 byte-order mark and blank lines are skipped, and lines may end in CR LF;
//                images: a folder with a folder for each class, with files named .jpg, .jpeg and .png;
//                auto: by the name's end, .npy, .npz, .csv, .tsv, .jsonl or .safetensors, a token file where that is
//                one, else by the first bytes of .npy, .npz and .safetensors files; a folder is one of images
//   fields=a,b   of safetensors and npz: these arrays; by default all, which then have equal numbers of rows, except
//                arrays of unsupported dtypes (C64, F8_.., F6_.., F4), each of which is skipped with a warning
//   columns=a,b:category,c:text  of tables: these columns; number, f32, is what stands without a kind; f64; category,
//                i32, the place among the column's different texts, sorted (yoke_dataset_label), for which the file
//                is read whole; text, u8, of lengths that vary.  By default all, as numbers.  No categories of
//                several files.  A number has decimal digits and a point in every locale, or is nan, inf or infinity;
//                reading the sample fails if it is out of range of f32 or f64
//   field=text   of JSON lines: the string of that name, UTF-8, is field "text", u8, of lengths that vary; the last one
//                if the key is repeated.  Other fields may hold integers of any size, NaN and repeated keys
//   dims=3x4     of raw elements: the dims of a sample of field "x"; by default one element
//   context=N    elements are ids of tokens: samples are windows of N + 1 of them, each beginning on the last one of
//                the window before, field "ids" i32 [N + 1].  Token files and raw u8, u16 and u32: a text as bytes is
//                format=u8, nanoGPT's files are format=u16, llm.c's format=u16:1024
//   vocab=N      ids have to be below N, else the sample fails; 0: any.  A token file says that itself
//   count=N      of pipes, which are of raw elements: the samples of an epoch; the next one goes on in the pipe.  It
//                ends with an error, EIO, of the first sample that is not there, which on_error passes over as little
//   keep=N       of pipes: how many of the last samples are kept, by default what 64 MiB hold.  A sample that has
//                passed is an error: loaders need shuffle=0, or blocks (shuffle=M) with keep= of 2 M and what is read
//                ahead
//   size=HxW     of images: what comes out, field "image" f32 [3, H, W] in RGB; one number: both.  Field "class" i32:
//                the place of the folder's name among them, sorted (yoke_dataset_label).  Resizing is bilinear,
//                antialiased: a mean weighted by a triangle as wide to either side as a pixel of the smaller of both
//   crop=center  the largest part in the middle that has the sides' ratio, its sides times zoom; none: all,
//                stretched; random: a part anywhere with 0.08 to 1 of the area, uniformly, and a ratio of sides of
//                3/4 to 4/3 times that of size, log-uniformly: the first of ten that is inside, else the middle.  Try
//                k takes the sample's numbers 4 k .. 4 k + 3
//   zoom=1       above 0, at most 1
//   flip=0       1: half of the samples are mirrored, those whose number 1000 is below 1/2
//   mean=0 std=1 a number, or one for each channel: x becomes (x / 255 - mean) / std
// A token file is a safetensors file with `tokens` (U8, U16 or U32, one axis) and, as metadata, `format`
// "yoke tokens 1" and `tokenizer`, JSON with its name and size; `yoke data prepare` writes them.  Images have sides of
// at most 16384 pixels, at most 2^26 in all, and files of at most 256 MiB; what libjpeg-turbo or libpng find damaged
// is an error of the sample.
// NULL with ENOENT, EIO, EFORMAT, EUNSUPPORTED (also: built without the library), EINVAL: path or key, and the rule.
YOKE_API yoke_dataset *yoke_dataset_open(const char *path, const char *settings);

// The text of category i of a field that has such; NULL: it has not.
YOKE_API const char *yoke_dataset_label(const yoke_dataset *, const char *field, int64_t i);

// One behind the other: n sets with the same fields.
YOKE_API yoke_dataset *yoke_dataset_concat(int n, yoke_dataset *const *);
// `count` samples an epoch, of which each set gives its weight's share (rounded so that they sum up), mixed.  A set's
// samples are used as often as each other, to one: the next epoch goes on where the last one ended.  Weights
// are positive; the same fields.
YOKE_API yoke_dataset *yoke_dataset_mix(int n, yoke_dataset *const *, const double *weight, int64_t count,
					uint64_t seed);
// The samples number[0 .. count - 1] of a set, copied; or, with NULL, first .. first + count - 1.
YOKE_API yoke_dataset *yoke_dataset_subset(yoke_dataset *, int64_t first, int64_t count, const int64_t *number);
// The same samples, of which each stays in memory once it was read, as far as they have room in so many bytes; UINT64_MAX: all.
// Of a set whose samples are random those of the first reading stay.
YOKE_API yoke_dataset *yoke_dataset_cache(yoke_dataset *, uint64_t bytes);
// Samples made of those of another set.  fields 0: the same fields, changed in place (`from` is NULL).  Else `from` has
// what the other set read: to, dims.  On any thread, as yoke_read_fn.
typedef int yoke_map_fn(void *arg, const struct yoke_item *from, struct yoke_item *);
YOKE_API yoke_dataset *yoke_dataset_map(yoke_dataset *, int fields, const struct yoke_field *, yoke_map_fn *, void *arg,
					void (*free_fn)(void *arg));

// Random numbers of a sample, which depend on the loader's seed, the epoch, the sample and n alone: four words, the
// block of Philox 4x32-10 (Salmon et al. 2011) with the key `seed` and the counter (draw, epoch, n), of 64, 32 and 32
// bits, draw being the sample's number in the set that is loaded.
YOKE_API void yoke_item_random(const struct yoke_item *, uint32_t n, uint32_t to[4]);
// The first of these words as a number of [0, 1), in steps of 2^-24.
YOKE_API double yoke_item_uniform(const struct yoke_item *, uint32_t n);

// ---- loaders ----

// Where a run is in its data: the first sample that no finished step has used, and how many samples of that
// epoch failed.  Good for any number of threads, prefetched batches, samples a batch, and ranks.
struct yoke_position {
	size_t size;
	int64_t epoch, index; // index: in the order of the epoch, of all ranks
	int64_t failed;
};

// A loader of a set.  settings: "key=value" words, NULL: none.
//   batch=1      samples of a batch
//   workers=auto threads that read; 0: the caller's; auto: by the processors that the process may use
//   prefetch=2   batches ahead, with workers: read, and on a device that is not the CPU brought up beside its steps.  Of
//                its memory they take prefetch + 1 batches, from the first call on, as far as there is room
//   shuffle=1    1: each epoch in an order of its own; 0: as the set has them; N > 1: in blocks of N, each in an
//                order of its own
//   last=wrap    what becomes of the samples behind an epoch's last whole batch.  wrap: the batch goes on into the
//                next epoch; drop: they are left out; keep: a smaller batch; pad: rows of the fields' `pad`
//   seed=0       of the order and of the samples' random numbers
//   rank=0 world=1  of `world` processes this one takes each world-th sample of the order; the epoch is wrapped
//                to a multiple of world
//   on_error=stop  a sample that cannot be read: stop: ends the run; skip: the next good one of the order takes
//                its place, in addition to its own; N: the same, at most N times an epoch
//   epochs=0     ends behind so many; 0: never
//   split=1      a batch comes in so many parts of as many rows, for steps in micro-batches: wherever a call below has n
//                tensors, arrays or dims, field f's part k is [f * split + k], and n the number of fields times split
//   part=0 parts=0  of the parts of split only `parts` from that one on, 0: all behind it, are given out, and stand for
//                split in what is said of calls: for who shares batches out among devices.  Order and position are those of
//                whole batches.  stride=1: to the next of them.  With on_error=stop the others are not read; else they are, since what fails counts for all
//   held=2       of the CPU: batches that tensors may hold beside those that are read ahead; further ones are copied
// Batches lie in host memory that is made for the context that is current: pinned, where its device has such and as much
// is to be had; of the CPU's pool, where it counts; else plain.
// NULL with EINVAL that names the key and the rule.  ERANGE: fewer samples than a batch with last=drop.  ENOMEM.
YOKE_API yoke_loader *yoke_loader_new(yoke_dataset *, const char *settings);
// Ends the threads, also in the middle of an epoch.  A read that does not return within the setting data.timeout is
// left alone, with its memory.  Batches that were given out stay good.  NULL is fine.
YOKE_API void yoke_loader_free(yoke_loader *);

// The next batch, for which it waits: to[f] = field f as a tensor [rows, dims..], for n = the number of fields.
// Tensors of the current context, in the innermost scope; on the CPU they lie where the threads wrote them, elsewhere
// they were brought up ahead.  A device's error is the call's, and the batch comes with the next one.
// Returns the rows that are samples (last=pad may have more in the tensors); 0 behind the last epoch; a negative
// YOKE_E* of the first sample of the batch that failed, by name, number and reason, and again from then on.
// weight, unless NULL: f32 [rows], 1, and 0 for rows of last=pad.
YOKE_API int64_t yoke_loader_next(yoke_loader *, int n, yoke_tensor **to, yoke_tensor **weight);
// The same into variables of the batch's dtypes and shapes, as yoke_put; what was brought up ahead is not copied.
YOKE_API int64_t yoke_loader_put(yoke_loader *, int n, yoke_tensor *const *variable);
// The same in host memory, aligned to 64 bytes and good until the next call for this loader: data[f], and, unless
// NULL, of each field the batch's dims, the rows first.
YOKE_API int64_t yoke_loader_host(yoke_loader *, int n, void **data, int64_t (*dims)[YOKE_MAX_RANK + 1]);

// Behind the batches given out.
YOKE_API int yoke_loader_position(const yoke_loader *, struct yoke_position *);
// Goes on there; what was read ahead is dropped.  EINVAL: no such place.
YOKE_API int yoke_loader_seek(yoke_loader *, const struct yoke_position *);

// A sample that failed and was passed over.
struct yoke_data_error {
	size_t size;
	const char *name; // of the set
	int64_t number, epoch;
	int code;
	const char *why;
};
// fn hears of each, in the order of the samples, inside the call that gives out the batch in which it should have been.
// The first ten are logged, too.  NULL: nobody.
YOKE_API int yoke_loader_errors(yoke_loader *, void (*fn)(void *arg, const struct yoke_data_error *), void *arg);

struct yoke_loader_stats {
	size_t size;
	int workers;
	uint64_t batches, samples; // given out
	uint64_t failed;
	double waited;             // seconds that calls waited for samples, or read them (workers=0)
	double reading;            // seconds of all threads in the set's functions
	int64_t ready;             // batches that are read and not given out
	uint64_t bytes;            // of host memory for batches
	double padding;            // seconds of all threads that brought samples of a batch to one shape
	double sending;            // seconds in which calls made room on the device and began copies
	int64_t sent;              // of the batches that are ready: on the device, or on their way
};
YOKE_API int yoke_loader_stats(const yoke_loader *, struct yoke_loader_stats *);

#ifdef __cplusplus
}
#endif
#endif
