// SPDX-License-Identifier: Apache-2.0
// Prints the report of a profile for people and as JSON.
#include "config.h"

#include "observe/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "device/device.h"
#include "device/facts.h"
#include "observe/memory.h"

static const struct {
	const char *key, *name;
} kinds[YK_BUSY_KINDS] = {
	[YK_BUSY_CONTRACT] = { "contractions", "contractions" },
	[YK_BUSY_ATTENTION] = { "attention", "attention" },
	[YK_BUSY_OTHER] = { "other", "other compute" },
	[YK_BUSY_TRANSFER] = { "transfers", "transfers" },
	[YK_BUSY_WAIT] = { "wait", "waiting for it" },
	[YK_BUSY_PLAN] = { "plan", "planning" },
};

double yk_amdahl(double wall, double part)
{
	return part < wall ? wall / (wall - part) : INFINITY;
}

static double seconds(const struct yk_report *r, int lane, int kind)
{
	return 1e-9 * (double)r->sum[lane][kind].ns;
}

static void print_row(const struct yk_report *r, const char *name, const char *device,
		      double s, const char *more, yk_line_fn *line, void *arg)
{
	char text[256];
	yk_snprintf(text, sizeof text, "  %-14s %-10s %10.3f s %6.1f %%%s%s", name, device,
		 s, r->wall > 0 ? 100 * s / r->wall : 0, *more ? "  " : "", more);
	line(arg, text);
}

static void print_sums(const struct yk_report *r, yk_line_fn *line, void *arg)
{
	for (int lane = 0; lane < 2 && *r->device[lane]; lane++)
		for (int k = 0; k < YK_BUSY_KINDS; k++) {
			const struct yk_busy_sum *s = &r->sum[lane][k];
			double t = seconds(r, lane, k), rate;
			char more[96] = "", b[32], n[64];
			if (!s->count || (k == YK_BUSY_WAIT && !s->ns))
				continue;
			rate = t > 0 ? 1e-9 *
					       (k == YK_BUSY_CONTRACT ?
							s->flops :
							(double)s->bytes) /
					       t :
				       0;
			if (k <= YK_BUSY_OTHER && !r->timed[lane])
				yk_snprintf(more, sizeof more, "%s, not timed (profile=1)",
					    yk_counted(n, (long long)s->count, "launch"));
			else if (k == YK_BUSY_CONTRACT)
				yk_snprintf(more, sizeof more, "%s, %.4g GFLOP/s",
					    yk_counted(n, (long long)s->count, "launch"), rate);
			else if (k <= YK_BUSY_OTHER)
				yk_snprintf(more, sizeof more, "%s, %.3g GB/s",
					    yk_counted(n, (long long)s->count, "launch"), rate);
			else if (k == YK_BUSY_TRANSFER)
				snprintf(more, sizeof more, "%s, %s",
					 yk_counted(n, (long long)s->count, "copy"),
					 yk_bytes_text(b, s->bytes));
			else if (k == YK_BUSY_PLAN)
				yk_counted(more, (long long)s->count, "plan");
			print_row(r, kinds[k].name, r->device[lane], t, more, line, arg);
		}
}

static int listed(const struct yk_report *r)
{
	const int max = sizeof r->fallback / sizeof *r->fallback;
	return r->nfallback < max ? r->nfallback : max;
}

// "    fell back: sort f32 [16,384], 120 launches, 3.2 MiB moved"
static void print_fallback(const struct yoke_fallback *f, yk_line_fn *line, void *arg)
{
	char text[320], b[32], count[64];
	int n = snprintf(text, sizeof text, "    fell back: %s %s [", f->op,
			 yoke_dtype_name(f->dtype));
	for (int i = 0; i < f->rank; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, i ? "," : "",
			      f->dims[i]);
	yk_snprintf(text + n, sizeof text - (size_t)n, "%s], %s, %s moved", f->rank < 0 ? ".." : "",
		    yk_counted(count, (long long)f->count, "launch"), yk_bytes_text(b, f->bytes));
	line(arg, text);
}

// "    failed the self-test: sort f32 by radix"
static void print_wrong(const struct yk_device *d, yk_line_fn *line, void *arg)
{
	json_t *list = d ? yk_facts_quarantine(d) : NULL, *o;
	char text[320];
	size_t i;

	json_array_foreach (list, i, o) {
		const char *name = json_string_value(json_object_get(o, "implementation"));
		snprintf(text, sizeof text, "    failed the self-test: %s %s%s%s",
			 json_string_value(json_object_get(o, "op")),
			 json_string_value(json_object_get(o, "dtype")), *name ? " by " : "", name);
		line(arg, text);
	}
	if (json_array_size(list)) {
		snprintf(text, sizeof text, "    `yoke check device %s` shows more", d->id);
		line(arg, text);
	}
	json_decref(list);
}

static json_t *fallbacks_json(const struct yk_report *r)
{
	json_t *all = json_array();
	for (int i = 0; i < listed(r); i++) {
		const struct yoke_fallback *f = &r->fallback[i];
		json_t *dims = f->rank < 0 ? json_null() : json_array();
		for (int k = 0; k < f->rank; k++)
			json_array_append_new(dims, json_integer(f->dims[k]));
		json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:I, s:I}", "op", f->op,
						     "dtype", yoke_dtype_name(f->dtype), "dims",
						     dims, "count", (json_int_t)f->count,
						     "bytes", (json_int_t)f->bytes));
	}
	return all;
}

// Sum over both lanes.
static double all_of(const struct yk_report *r, int kind)
{
	return seconds(r, 0, kind) + seconds(r, 1, kind);
}

void yk_report_print(const struct yk_report *r, yk_line_fn *line, void *arg)
{
	char text[320], b[4][32];
	line(arg, "where the time went");
	print_sums(r, line, arg);
	if (r->files > 0)
		print_row(r, "checkpoints", "host", r->files, "", line, arg);
	if (r->idle < 0)
		print_row(r, "overlap", "", r->idle, "at once with other work", line, arg);
	else if (r->timed[0])
		print_row(r, "idle", "", r->idle, "", line, arg);
	else
		print_row(r, "the host", "", r->idle, "a device may work meanwhile", line,
			  arg);
	print_row(r, "wall", "", r->wall, "", line, arg);
	if (r->data.batches) {
		yk_snprintf(
			text, sizeof text,
			"  data: steps waited %.3f s for it; %d threads read %.3f s, padded %.3f s; sent in "
			"%.3f s; %" PRIu64 " samples, %" PRIu64 " failed",
			r->data.waited, r->data.workers, r->data.reading, r->data.padding,
			r->data.sending, r->data.samples, r->data.failed);
		line(arg, text);
	}
	yk_snprintf(text, sizeof text,
		 "  %" PRIu64 " launches that read and wrote %s; %s up, %s down", r->launches,
		 yk_bytes_text(b[0], r->bytes), yk_bytes_text(b[1], r->bytes_up),
		 yk_bytes_text(b[2], r->bytes_down));
	line(arg, text);
	yk_snprintf(text, sizeof text,
		 "  %" PRIu64 " plans made, %" PRIu64 " found; %" PRIu64 " fallbacks, %s",
		 r->plan_misses, r->plan_hits, r->fallbacks,
		 yk_bytes_text(b[3], r->fallback_bytes));
	line(arg, text);
	if (r->programs_compiled || r->programs_found) {
		yk_snprintf(text, sizeof text,
			 "  %" PRIu64 " programs compiled, %" PRIu64 " loaded from the cache",
			 r->programs_compiled, r->programs_found);
		line(arg, text);
	}
	for (int i = 0; i < listed(r); i++)
		print_fallback(&r->fallback[i], line, arg);
	if (listed(r) < r->nfallback) {
		snprintf(text, sizeof text, "    and %d more", r->nfallback - listed(r));
		line(arg, text);
	}
	yk_layers_print(&r->layers, line, arg);
	print_wrong(r->of, line, arg);
	if (!r->timed[0])
		return;
	// upper bounds: the speedup if the named work took no time
	yk_snprintf(text, sizeof text,
		 "  at best, by Amdahl's law wall / (wall - part): %.2f x with "
		 "free contractions, %.2f x attention, %.2f x other compute, %.2f x idle",
		 yk_amdahl(r->wall, all_of(r, YK_BUSY_CONTRACT)),
		 yk_amdahl(r->wall, all_of(r, YK_BUSY_ATTENTION)),
		 yk_amdahl(r->wall, all_of(r, YK_BUSY_OTHER)),
		 yk_amdahl(r->wall, r->idle > 0 ? r->idle : 0));
	line(arg, text);
}

static json_t *bound_json(double wall, double part)
{
	double x = yk_amdahl(wall, part);
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *yk_report_json(const struct yk_report *r)
{
	json_t *devices = json_object(), *bounds = json_object(), *o;
	int bad = !devices || !bounds;
	for (int lane = 0; lane < 2 && *r->device[lane] && !bad; lane++) {
		json_t *d = json_pack("{s:b}", "timed", r->timed[lane]);
		for (int k = 0; k < YK_BUSY_KINDS && d; k++) {
			const struct yk_busy_sum *s = &r->sum[lane][k];
			json_t *sum = json_pack("{s:f, s:I, s:I, s:f}", "seconds",
						seconds(r, lane, k), "intervals",
						(json_int_t)s->count, "bytes",
						(json_int_t)s->bytes, "flops", s->flops);
			bad |= json_object_set_new(d, kinds[k].key, sum);
		}
		bad |= json_object_set_new(devices, r->device[lane], d);
	}
	o = json_pack("{s:f, s:f, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		      "wall", r->wall, "idle", r->idle, "checkpoints", r->files,
		      "devices", devices, "launches", (json_int_t)r->launches, "bytes",
		      (json_int_t)r->bytes, "bytes_up", (json_int_t)r->bytes_up,
		      "bytes_down", (json_int_t)r->bytes_down, "plan_misses",
		      (json_int_t)r->plan_misses, "plan_hits", (json_int_t)r->plan_hits,
		      "fallbacks", (json_int_t)r->fallbacks, "fallback_bytes",
		      (json_int_t)r->fallback_bytes, "programs_compiled",
		      (json_int_t)r->programs_compiled, "programs_found",
		      (json_int_t)r->programs_found);
	for (int k = 0; k <= YK_BUSY_OTHER && r->timed[0]; k++)
		bad |= json_object_set_new(bounds, kinds[k].key,
					   bound_json(r->wall, all_of(r, k)));
	bad |= json_object_set_new(o, "at_best", bounds);
	bad |= json_object_set_new(
		o, "data",
		json_pack("{s:i, s:f, s:f, s:f, s:f, s:I, s:I}", "workers", r->data.workers,
			  "waited", r->data.waited, "reading", r->data.reading, "padding",
			  r->data.padding, "sending", r->data.sending, "samples",
			  (json_int_t)r->data.samples, "failed", (json_int_t)r->data.failed));
	bad |= json_object_set_new(o, "fallback_ops", fallbacks_json(r));
	bad |= json_object_set_new(o, "misaligned", yk_layers_json(&r->layers));
	bad |= json_object_set_new(o, "quarantine",
				   r->of ? yk_facts_quarantine(r->of) : json_array());
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}
