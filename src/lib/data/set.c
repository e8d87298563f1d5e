// SPDX-License-Identifier: Apache-2.0
// Datasets: construction from a read function and options, reference counts, and checked reads.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/philox.h"
#include "base/sized.h"
#include "data/set.h"

// ---- construction ----

// Bytes of a sample's field; 0: too large.
static size_t field_bytes(const struct yk_field *f)
{
	size_t n = yoke_dtype_size(f->dtype);
	for (int k = 0; k < f->rank; k++)
		if (__builtin_mul_overflow(n, (size_t)f->dims[k], &n) || n > SIZE_MAX / 4)
			return 0;
	return n;
}

static int field_take(struct yk_field *to, const struct yoke_field *from, const char *set)
{
	struct yoke_field f = { 0 };
	int e = yk_sized_read(&f, sizeof f, from, "dataset_new", "yoke_field");
	if (e < 0)
		return e;
	if (!f.name || !*f.name)
		return yk_fail(YOKE_EINVAL, "dataset %s: a field has no name", set);
	if (!yoke_dtype_size(f.dtype))
		return yk_fail(YOKE_EDTYPE, "dataset %s: field %s: there is no dtype %d", set,
			       f.name, f.dtype);
	if (f.rank < 0 || f.rank >= YOKE_MAX_RANK)
		return yk_fail(YOKE_EINVAL,
			       "dataset %s: field %s: rank %d; a sample has 0 to %d axes", set,
			       f.name, f.rank, YOKE_MAX_RANK - 1);
	if (!yk_num_real(f.dtype) && !(fabs(f.pad) <= 0x1p53 && f.pad == trunc(f.pad)))
		return yk_fail(YOKE_EINVAL,
			       "dataset %s: field %s: pad %g; for %s it must be a whole number",
			       set, f.name, f.pad, yoke_dtype_name(f.dtype));
	*to = (struct yk_field){ .dtype = f.dtype, .rank = f.rank, .pad = f.pad };
	for (int k = 0; k < f.rank; k++) {
		if (f.dims[k] < 1 || f.multiple[k] < 0)
			return yk_fail(
				YOKE_EINVAL,
				"dataset %s: field %s: axis %d has dim %lld, multiple %lld; wants "
				"dim >= 1 and multiple >= 0",
				set, f.name, k, (long long)f.dims[k], (long long)f.multiple[k]);
		to->dims[k] = f.dims[k];
		to->multiple[k] = f.multiple[k];
		to->varies |= f.multiple[k] > 0;
	}
	to->bytes = field_bytes(to);
	if (!to->bytes)
		return yk_fail(YOKE_ERANGE, "dataset %s: field %s: a sample does not fit in memory",
			       set, f.name);
	to->name = strdup(f.name);
	return to->name ? 0 : yk_fail(YOKE_ENOMEM, "dataset %s: no memory", set);
}

static int fields_take(struct yoke_dataset *d, int n, const struct yoke_field *from)
{
	if (n < 1 || !from)
		return yk_fail(YOKE_EINVAL, "dataset %s: has no fields", d->name);
	d->field = calloc((size_t)n, sizeof *d->field);
	if (!d->field)
		return yk_fail(YOKE_ENOMEM, "dataset %s: no memory for fields", d->name);
	const int size = yk_sized_check(from, sizeof from->size, "dataset_new", "yoke_field");
	if (size < 0)
		return size;
	for (int i = 0; i < n; i++) {
		const char *at = (const char *)from + (size_t)i * (size_t)size;
		struct yoke_field f = { 0 };
		memcpy(&f, at, (size_t)size < sizeof f ? (size_t)size : sizeof f);
		f.size = (size_t)size;
		int e = field_take(&d->field[i], &f, d->name);
		if (e < 0)
			return e;
		d->fields = i + 1;
		for (int k = 0; k < i; k++)
			if (!strcmp(d->field[k].name, d->field[i].name))
				return yk_fail(YOKE_EINVAL,
					       "dataset %s: field %s is declared twice", d->name,
					       f.name);
	}
	return 0;
}

static uint64_t described(const struct yoke_dataset *d, uint64_t hash)
{
	hash = yk_hash_numbers(&d->count, sizeof d->count, 1, hash);
	for (int i = 0; i < d->fields; i++) {
		const struct yk_field *f = &d->field[i];
		hash = yk_hash(f->name, strlen(f->name), hash);
		hash = yk_hash_numbers(&f->dtype, sizeof f->dtype, 1, hash);
		hash = yk_hash_numbers(f->dims, sizeof f->dims[0], (size_t)f->rank, hash);
	}
	return hash;
}

static int set_up(struct yoke_dataset *d, const struct yoke_dataset_options *o)
{
	if (!d->name)
		return yk_fail(YOKE_ENOMEM, "dataset_new: no memory");
	if (o->count < 1)
		return yk_fail(YOKE_EINVAL, "dataset %s: has %lld samples; must have at least 1",
			       d->name, (long long)o->count);
	if (!o->read)
		return yk_fail(YOKE_EINVAL, "dataset %s: has no read function", d->name);
	if (o->chunk < 0)
		return yk_fail(YOKE_EINVAL, "dataset %s: chunk=%lld: must be 0 or more", d->name,
			       (long long)o->chunk);
	d->count = o->count;
	d->chunk = o->chunk ? o->chunk : 1;
	d->read = o->read;
	d->arg = o->arg;
	d->serial = o->serial;
	int e = fields_take(d, o->fields, o->field);
	if (e < 0)
		return e;
	d->fingerprint = described(
		d, yk_hash_numbers(&o->fingerprint, sizeof o->fingerprint, 1,
				   yk_hash(d->name, o->fingerprint ? 0 : strlen(d->name), 0)));
	d->free_fn = o->free_fn;
	return 0;
}

yoke_dataset *yoke_dataset_new(const struct yoke_dataset_options *options)
{
	struct yoke_dataset_options o = { 0 };
	if (yk_sized_read(&o, sizeof o, options, "dataset_new", "yoke_dataset_options") < 0)
		return NULL;
	struct yoke_dataset *d = calloc(1, sizeof *d);
	if (!d) {
		yk_fail(YOKE_ENOMEM, "dataset_new: no memory");
		return NULL;
	}
	atomic_init(&d->refs, 1);
	pthread_mutex_init(&d->lock, NULL);
	d->name = strdup(o.name && *o.name ? o.name : "unnamed");
	if (set_up(d, &o) == 0)
		return d;
	yoke_dataset_free(d);
	return NULL;
}

void yoke_dataset_free(yoke_dataset *d)
{
	if (!d || atomic_fetch_sub(&d->refs, 1) > 1)
		return;
	if (d->free_fn)
		d->free_fn(d->arg);
	for (int i = 0; i < d->fields; i++)
		free(d->field[i].name);
	free(d->field);
	pthread_mutex_destroy(&d->lock);
	free(d->name);
	free(d);
}

yoke_dataset *yk_dataset_ref(yoke_dataset *d)
{
	atomic_fetch_add(&d->refs, 1);
	return d;
}

// ---- queries ----

const char *yoke_dataset_name(const yoke_dataset *d)
{
	return yk_require(d, "data set") ? NULL : d->name;
}

int64_t yoke_dataset_count(const yoke_dataset *d)
{
	const int err = yk_require(d, "data set");
	return err ? err : d->count;
}

uint64_t yoke_dataset_fingerprint(const yoke_dataset *d)
{
	return yk_require(d, "data set") ? 0 : d->fingerprint;
}

const char *yoke_dataset_label(const yoke_dataset *d, const char *field, int64_t i)
{
	if (yk_require(d, "data set") || yk_require(field, "name of a field"))
		return NULL;
	for (int f = 0; d->label && f < d->fields; f++)
		if (!strcmp(d->field[f].name, field))
			return d->label(d->arg, f, i);
	return NULL;
}

static void field_give(const struct yk_field *f, struct yoke_field *to)
{
	*to = (struct yoke_field){ .size = sizeof *to,
				   .name = f->name,
				   .dtype = f->dtype,
				   .rank = f->rank,
				   .pad = f->pad };
	memcpy(to->dims, f->dims, sizeof to->dims);
	memcpy(to->multiple, f->multiple, sizeof to->multiple);
}

int yoke_dataset_fields(const yoke_dataset *d, int max, struct yoke_field *to)
{
	int e = yk_require(d, "data set");
	if (!e)
		e = yk_sized_array(to, max, "dataset_fields", "yoke_field");
	for (int i = 0; !e && to && i < max && i < d->fields; i++) {
		struct yoke_field f;
		field_give(&d->field[i], &f);
		e = yk_sized_write_at(to, i, sizeof f, &f, "dataset_fields", "yoke_field");
	}
	return e ? e : d->fields;
}

yoke_dataset *yk_dataset_like(const yoke_dataset *from, const struct yoke_dataset_options *options)
{
	struct yoke_dataset_options o = *options;
	struct yoke_field *field = calloc((size_t)from->fields, sizeof *field);
	yoke_dataset *d = NULL;
	if (field) {
		for (int i = 0; i < from->fields; i++)
			field_give(&from->field[i], &field[i]);
		o.size = sizeof o;
		o.fields = from->fields;
		o.field = field;
		d = yoke_dataset_new(&o);
	} else {
		yk_fail(YOKE_ENOMEM, "dataset %s: no memory for fields", from->name);
	}
	free(field);
	return d;
}

void yk_dataset_widen(yoke_dataset *d, const yoke_dataset *than)
{
	for (int i = 0; i < d->fields && i < than->fields; i++) {
		struct yk_field *f = &d->field[i];
		for (int k = 0; k < f->rank && f->rank == than->field[i].rank; k++)
			if (f->multiple[k] && f->dims[k] < than->field[i].dims[k])
				f->dims[k] = than->field[i].dims[k];
		f->bytes = field_bytes(f);
	}
}

// ---- reading ----

void yk_sample_failed(struct yoke_item *s, int code)
{
	if (!*s->why)
		snprintf(s->why, s->why_size, "%s", yoke_error());
	s->code = code;
	yoke_error_clear();
}

// Sets a sample's default dims, which the read function may change.
static void set_dims(const struct yoke_dataset *d, struct yoke_item *s)
{
	for (int f = 0; f < d->fields; f++)
		for (int k = 0; k < d->field[f].rank; k++)
			s->dims[f][k] = d->field[f].dims[k];
}

static int check_dims(const struct yoke_dataset *d, struct yoke_item *s)
{
	for (int i = 0; i < d->fields; i++) {
		const struct yk_field *f = &d->field[i];
		for (int k = 0; k < f->rank; k++) {
			const int64_t n = s->dims[i][k];
			if (n == f->dims[k] || (f->multiple[k] && n >= 0 && n < f->dims[k]))
				continue;
			snprintf(s->why, s->why_size,
				 "field %s has dim %lld along axis %d, but must have %s%lld",
				 f->name, (long long)n, k, f->multiple[k] ? "0 to " : "",
				 (long long)f->dims[k]);
			return YOKE_ESHAPE;
		}
	}
	return 0;
}

int64_t yk_dataset_read(const yoke_dataset *set, int64_t n, struct yoke_item *const *s)
{
	struct yoke_dataset *d = (struct yoke_dataset *)set; // only to lock its mutex
	struct yk_error_aside *aside = yk_error_aside();
	int64_t failed = 0;
	for (int64_t i = 0; i < n; i++) {
		s[i]->code = 0;
		*s[i]->why = 0;
		set_dims(d, s[i]);
	}
	if (d->serial)
		pthread_mutex_lock(&d->lock);
	const int e = d->read(d->arg, n, s);
	if (d->serial)
		pthread_mutex_unlock(&d->lock);
	for (int64_t i = 0; i < n; i++) {
		if (e < 0 && !s[i]->code)
			yk_sample_failed(s[i], e);
		if (!s[i]->code)
			s[i]->code = check_dims(d, s[i]);
		if (!s[i]->code)
			continue;
		failed++;
		set_dims(d, s[i]);
		if (!*s[i]->why)
			snprintf(s[i]->why, s[i]->why_size, "%s", yk_error_text(s[i]->code));
	}
	yk_error_restore(aside);
	return failed;
}

int yoke_dataset_read(const yoke_dataset *d, int64_t number, uint64_t seed, int64_t epoch,
		      int64_t draw, void *const *to, int64_t (*dims)[YOKE_MAX_RANK])
{
	char why[256];
	struct yoke_item s = { .size = sizeof s,
			       .number = number,
			       .epoch = epoch,
			       .to = to,
			       .why = why,
			       .why_size = sizeof why,
			       .seed = seed,
			       .draw = draw };
	int err = yk_require(d, "data set");
	if (!err)
		err = yk_require(to, "list of buffers for fields");
	for (int f = 0; !err && f < d->fields; f++)
		err = d->field[f].bytes ? yk_require(to[f], "buffer for a field") : 0;
	if (err)
		return err;
	if (number < 0 || number >= d->count)
		return yk_fail(YOKE_ERANGE, "dataset %s: there is no sample %lld of %lld", d->name,
			       (long long)number, (long long)d->count);
	s.dims = dims ? dims : calloc((size_t)d->fields, sizeof *s.dims);
	if (!s.dims)
		return yk_fail(YOKE_ENOMEM, "dataset %s: no memory", d->name);
	struct yoke_item *one = &s;
	const bool failed = yk_dataset_read(d, 1, &one) > 0;
	if (!dims)
		free(s.dims);
	return failed ? yk_fail(s.code, "%s: sample %lld: %s", d->name, (long long)number, why) : 0;
}

// ---- random numbers ----

void yoke_item_random(const struct yoke_item *s, uint32_t n, uint32_t to[4])
{
	if (yk_require(s, "sample") || yk_require(to, "array for four words"))
		return;
	const uint64_t step = (uint64_t)(uint32_t)s->epoch | (uint64_t)n << 32;
	for (uint32_t w = 0; w < 4; w++)
		to[w] = yk_philox(4 * (uint64_t)s->draw + w, s->seed, step);
}

double yoke_item_uniform(const struct yoke_item *s, uint32_t n)
{
	uint32_t word[4];
	if (yk_require(s, "sample"))
		return NAN;
	yoke_item_random(s, n, word);
	return (double)(word[0] >> 8) * 0x1p-24;
}
