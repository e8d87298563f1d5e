// SPDX-License-Identifier: Apache-2.0
// Returns a profile's rows as structs and as a text table, like PyTorch's key_averages.
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "base/sized.h"
#include "observe/cycle.h"
#include "observe/roof.h"
#include "observe/table.h"

// ---- rows ----

static struct yk_device *device_of(const struct yk_profile *p, const struct yk_row *r)
{
	return strcmp(r->device, p->ctx->device->id) ? p->ctx->cpu : p->ctx->device;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

static double occupancy_of(const struct yk_profile *p, const struct yk_row *r)
{
	const struct yk_device *d = device_of(p, r);
	if (!r->cpu_of_ns)
		return r->occupancy;
	return fmin(1, (double)r->cpu_ns / ((double)r->cpu_of_ns *
					    (double)(d->info.units ? d->info.units : 1)));
}

// all: total nanoseconds of all rows.
static void fill(const struct yk_profile *p, const struct yk_row *r, uint64_t all, bool timed,
		 struct yoke_profile_row *to)
{
	const double calls = (double)r->count, total = timed && r->ns ? 1e-9 * (double)r->ns : NAN;
	*to = (struct yoke_profile_row){
		.size = sizeof *to,
		.op = r->op,
		.device = r->device,
		.implementation = r->impl,
		.shapes = r->shapes,
		.range = r->range,
		.site = r->site,
		.scopes = r->nodes,
		.calls = r->count,
		.total = total,
		.mean = total / calls,
		.min = isnan(total) ? NAN : 1e-9 * (double)r->min,
		.max = isnan(total) ? NAN : 1e-9 * (double)r->max,
		.share = isnan(total) ? NAN : 100 * ratio((double)r->ns, (double)all),
		.host = 1e-9 * (double)r->host_ns,
		.bytes = (double)r->bytes,
		.flops = r->flops,
		.gbs = 1e-9 * ratio((double)r->bytes, total),
		.gflops = r->flops > 0 ? 1e-9 * ratio(r->flops, total) : NAN,
		.roofline = NAN,
		.memory = r->growth,
		.occupancy = occupancy_of(p, r),
	};
	if (!r->dtype || !yk_roof_enabled()) // not a step: its bytes are not device memory traffic
		return;
	const struct yk_bounded b =
		yk_roofline(yk_roof_of(device_of(p, r), r->dtype), r->dtype, r->flops / calls,
			    (double)r->bytes / calls, total / calls);
	to->roofline = b.share;
	to->bound = b.bound;
}

static bool is_timed(const struct yk_profile *p, const struct yk_row *r)
{
	return p->timed[strcmp(r->device, p->ctx->device->id) != 0] || !strcmp(r->device, "host");
}

// All rows with calls, in creation order; NULL: out of memory.
static struct yoke_profile_row *all_rows(struct yk_profile *p, size_t *n)
{
	struct yoke_profile_row *row = malloc((p->rows.n + 1) * sizeof *row);
	uint64_t all = 0;
	*n = 0;
	if (!row) {
		yk_fail(YOKE_ENOMEM, "profile: no memory for a table");
		return NULL;
	}
	yk_activity_resolve(p);
	for (size_t i = 0; i < p->rows.n; i++)
		all += p->rows.row[i].ns;
	for (size_t i = 0; i < p->rows.n; i++)
		if (p->rows.row[i].count)
			fill(p, &p->rows.row[i], all, is_timed(p, &p->rows.row[i]), &row[(*n)++]);
	return row;
}

// ---- sorting ----

enum column {
	OP,
	CALLS,
	TOTAL,
	MEAN,
	MIN_TIME,
	MAX_TIME,
	SHARE,
	HOST,
	BYTES,
	FLOPS,
	GBS,
	GFLOPS,
	ROOFLINE,
	MEMORY,
	OCCUPANCY,
	COLUMNS
};
static const char *const column_name[COLUMNS] = {
	"op",    "calls", "total", "mean",   "min",      "max",    "share",    "host",
	"bytes", "flops", "gbs",   "gflops", "roofline", "memory", "occupancy"
};

static double number(const struct yoke_profile_row *r, int column)
{
	switch (column) {
	case CALLS: return (double)r->calls;
	case MEAN: return r->mean;
	case MIN_TIME: return r->min;
	case MAX_TIME: return r->max;
	case SHARE: return r->share;
	case HOST: return r->host;
	case BYTES: return r->bytes;
	case FLOPS: return r->flops;
	case GBS: return r->gbs;
	case GFLOPS: return r->gflops;
	case ROOFLINE: return r->roofline;
	case MEMORY: return (double)r->memory;
	case OCCUPANCY: return r->occupancy;
	}
	return r->total;
}

struct sorted {
	const struct yoke_profile_row *row;
	double key;
	bool by_op;
};

// Descending by value, ascending by name; unknown values last.
static int compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	if (x->by_op) {
		int c = strcmp(x->row->op, y->row->op);
		return c ? c : (x->row > y->row) - (x->row < y->row);
	}
	if (isnan(x->key) != isnan(y->key))
		return isnan(x->key) ? 1 : -1;
	if (!isnan(x->key) && x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

static struct sorted *sort(const struct yoke_profile_row *row, size_t n, int column)
{
	struct sorted *s = malloc((n + 1) * sizeof *s);
	for (size_t i = 0; s && i < n; i++)
		s[i] = (struct sorted){ &row[i], number(&row[i], column), column == OP };
	if (s && n)
		qsort(s, n, sizeof *s, compare);
	if (!s)
		yk_fail(YOKE_ENOMEM, "profile: no memory for a table");
	return s;
}

static int column_of(const char *name)
{
	char hint[400];
	for (int k = 0; k < COLUMNS; k++)
		if (!strcmp(name, column_name[k]))
			return k;
	return yk_fail(YOKE_EINVAL, "profile_table: no column '%s'; %s", name,
		       yk_hint(name, column_name, COLUMNS, hint, sizeof hint));
}

int yk_profile_column(const char *name)
{
	return column_of(name);
}

int yoke_profile_rows(yoke_profile *p, int max, struct yoke_profile_row *to)
{
	size_t n;
	int e = yk_profile_require_as(p, __func__);
	if (!e)
		e = yk_sized_array(to, max, "profile_rows", "yoke_profile_row");
	if (e)
		return e;
	struct yoke_profile_row *row = all_rows(p->core, &n);
	struct sorted *s = row ? sort(row, n, TOTAL) : NULL;
	if (!s)
		e = yk_error_last();
	for (int i = 0; i < max && i < (int)n && to && e == 0; i++)
		e = yk_sized_write_at(to, i, sizeof *row, s[i].row, "profile_rows",
				      "yoke_profile_row");
	free(s);
	free(row);
	return e < 0 ? e : (int)n;
}

// ---- text ----

struct text {
	char *to;
	size_t cap, n;
};

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = yk_vsnprintf(t->n < t->cap ? t->to + t->n : NULL, t->n < t->cap ? t->cap - t->n : 0,
			     fmt, ap);
	va_end(ap);
	t->n += n > 0 ? (size_t)n : 0;
}

// "12.3" or "n/a", times a unit, in a field.
static void add_number(struct text *t, double x, double unit, int width, int digits)
{
	if (isnan(x))
		add(t, " %*s", width, "n/a");
	else
		add(t, " %*.*f", width, digits, x * unit);
}

// As one line, without control characters.
static void add_safe(struct text *t, const char *s)
{
	for (; *s; s++)
		add(t, "%c", (unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
}

static void add_row(struct text *t, unsigned flags, const struct yoke_profile_row *r)
{
	static const char *const bound[] = { "", "compute", "memory", "launch" };
	const char *const name[] = { r->implementation, r->shapes, r->range, r->site, r->scopes };
	add(t, "%8llu", (unsigned long long)r->calls);
	add_number(t, r->total, 1e3, 11, 3);
	add_number(t, r->share, 1, 6, 2);
	add_number(t, r->mean, 1e6, 11, 1);
	add_number(t, r->min, 1e6, 11, 1);
	add_number(t, r->max, 1e6, 11, 1);
	add_number(t, r->host, 1e3, 11, 3);
	add_number(t, r->bytes, 1e-6, 11, 2);
	add_number(t, r->flops, 1e-6, 12, 2);
	add_number(t, r->gbs, 1, 9, 2);
	add_number(t, r->gflops, 1, 9, 2);
	add_number(t, r->roofline, 100, 6, 1);
	add(t, " %-7s", bound[r->bound]);
	add_number(t, r->occupancy, 100, 6, 1);
	if (flags & YOKE_PROFILE_MEMORY)
		add(t, " %10.3f", 1e-6 * (double)r->memory);
	add(t, "  ");
	add_safe(t, r->op);
	if (*r->device)
		add(t, " %s", r->device);
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (*name[i]) {
			add(t, "  ");
			add_safe(t, name[i]);
		}
	add(t, "\n");
}

// Combines the rows beyond the row limit into one.
static struct yoke_profile_row others(const struct sorted *s, size_t from, size_t n)
{
	struct yoke_profile_row o = { .op = "others",
				      .device = "",
				      .implementation = "",
				      .shapes = "",
				      .range = "",
				      .site = "",
				      .scopes = "",
				      .total = NAN,
				      .mean = NAN,
				      .min = NAN,
				      .max = NAN,
				      .share = NAN,
				      .gbs = NAN,
				      .gflops = NAN,
				      .roofline = NAN,
				      .occupancy = NAN,
				      .flops = NAN };
	for (size_t i = from; i < n; i++) {
		const struct yoke_profile_row *r = s[i].row;
		o.calls += r->calls;
		o.host += r->host;
		o.bytes += r->bytes;
		o.memory += r->memory;
		o.flops = isnan(r->flops) ? o.flops : r->flops + (isnan(o.flops) ? 0 : o.flops);
		if (isnan(r->total))
			continue;
		o.total = r->total + (isnan(o.total) ? 0 : o.total);
		o.share = r->share + (isnan(o.share) ? 0 : o.share);
		o.min = isnan(o.min) || r->min < o.min ? r->min : o.min;
		o.max = isnan(o.max) || r->max > o.max ? r->max : o.max;
	}
	o.mean = o.total / (double)o.calls;
	return o;
}

int64_t yoke_profile_table(yoke_profile *p, int rows, const char *column, char *to, size_t cap)
{
	struct text t = { to, cap, 0 };
	size_t n, shown;
	int e = yk_profile_require_as(p, __func__);
	if (!e && cap)
		e = yk_require(to, "place of the text");
	if (!e && rows < 0)
		e = yk_fail(YOKE_EINVAL, "profile_table: %d rows; 0 are all", rows);
	if (e)
		return e;
	const int by = column_of(column ? column : "total");
	if (by < 0)
		return by;
	struct yoke_profile_row *row = all_rows(p->core, &n);
	struct sorted *s = row ? sort(row, n, by) : NULL;
	if (!s) {
		free(row);
		return yk_error_last();
	}
	shown = rows > 0 && (size_t)rows < n ? (size_t)rows : n;
	add(&t, "%8s %11s %6s %11s %11s %11s %11s %11s %12s %9s %9s %6s %-7s %6s", "calls",
	    "total ms", "%", "mean us", "min us", "max us", "host ms", "MB", "MFLOP", "GB/s",
	    "GFLOP/s", "roof %", "bound", "occ %");
	if (p->options.flags & YOKE_PROFILE_MEMORY)
		add(&t, " %10s", "growth MB");
	add(&t, "  op, device\n");
	for (size_t i = 0; i < shown; i++)
		add_row(&t, p->options.flags, s[i].row);
	if (shown < n) {
		const struct yoke_profile_row rest = others(s, shown, n);
		add_row(&t, p->options.flags, &rest);
	}
	free(s);
	free(row);
	return (int64_t)t.n;
}

// ---- ranges, peak, quality ----

// Device time of a range and its nested ranges.
static uint64_t device_ns(const struct yk_profile *p, uint32_t range)
{
	uint64_t ns = 0;
	for (uint32_t i = range; i < p->path.sums; i++) // nested ranges have higher numbers
		if (yk_path_common(&p->ctx->observe.ranges, i, range) == range)
			ns += p->path.sum[i].ns;
	return ns;
}

int yoke_profile_ranges(yoke_profile *prof, int max, struct yoke_profile_range *to)
{
	int n = 0, e = yk_profile_require_as(prof, __func__);
	if (!e)
		e = yk_sized_array(to, max, "profile_ranges", "yoke_profile_range");
	if (e)
		return e;
	const struct yk_profile *p = prof->core;
	yk_activity_resolve(prof->core);
	for (uint32_t i = 1; i < p->path.sums && e == 0; i++) {
		const struct yoke_profile_range r = {
			sizeof r, yk_path_name(&p->ctx->observe.ranges, i), p->path.sum[i].calls,
			1e-9 * (double)p->path.sum[i].host_ns, 1e-9 * (double)device_ns(p, i)
		};
		if (!r.calls && r.device == 0)
			continue;
		if (n < max && to)
			e = yk_sized_write_at(to, n, sizeof r, &r, "profile_ranges",
					      "yoke_profile_range");
		n++;
	}
	return e < 0 ? e : n;
}

int yoke_profile_peak(yoke_profile *prof, int max, struct yoke_profile_holder *to)
{
	int e = yk_profile_require_as(prof, __func__);
	if (!e)
		e = yk_sized_array(to, max, "profile_peak", "yoke_profile_holder");
	if (e)
		return e;
	const struct yk_peak *k = &prof->core->peak;
	for (int i = 0; i < max && i < (int)k->holders && to && e == 0; i++) {
		const struct yk_peak_holder *h = &k->holder[i];
		const struct yoke_profile_holder x = { sizeof x, h->op,    h->range,
						       h->site,  h->bytes, h->values };
		e = yk_sized_write_at(to, i, sizeof x, &x, "profile_peak", "yoke_profile_holder");
	}
	return e < 0 ? e : (int)k->holders;
}

int yoke_profile_quality(yoke_profile *prof, struct yoke_profile_quality *to)
{
	const int err = yk_profile_require_as(prof, __func__);
	if (err)
		return err;
	const struct yk_profile *p = prof->core;
	const struct yoke_profile_quality q = { sizeof q, 1e-9 * (double)p->clock.error,
						p->clock.shifted, p->trace.dropped };
	return yk_sized_write(to, sizeof q, &q, "profile_quality", "yoke_profile_quality");
}
