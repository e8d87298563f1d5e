// SPDX-License-Identifier: Apache-2.0
// Writes metrics of runs in the text format of Prometheus.
#include "config.h"

#include "live/prometheus.h"

#include <math.h>
#include <string.h>

#include "base/scan.h"

enum { DEVICES = 16 };

// Writes a label's value as UTF-8, with \\, \" and \n escaped.
static void label(FILE *to, const char *s)
{
	const unsigned char *at = (const unsigned char *)s, *end = at + strlen(s);
	while (at < end) {
		int n = *at < 128 ? 1 : yk_utf8(at, end);
		if (!n || *at < 32 || *at == 127)
			fputs(*at == '\n' ? "\\n" : "?", to);
		else if (*at == '\\' || *at == '"')
			fprintf(to, "\\%c", *at);
		else
			fwrite(at, (size_t)n, 1, to);
		at += n ? n : 1;
	}
}

static double counted(const struct yk_view *v, const char *key)
{
	const json_t *x = json_object_get(v->report, key);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

static void head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP yoke_%s %s\n# TYPE yoke_%s %s\n", name, help, name, type);
}

static void sample(FILE *to, const char *name, const struct yk_view *v, const char *key,
		   const char *value, double x)
{
	if (isnan(x))
		return;
	fprintf(to, "yoke_%s{run=\"", name);
	label(to, v->name);
	if (key) {
		fprintf(to, "\",%s=\"", key);
		label(to, value);
	}
	if (isinf(x))
		fprintf(to, "\"} %s\n", x > 0 ? "+Inf" : "-Inf");
	else
		fprintf(to, "\"} %.17g\n", x);
}

static void info(FILE *to, int n, struct yk_view *const *v)
{
	static const char *const key[] = { "host", "device", "driver", "version" };
	head(to, "run_info", "gauge", "Always 1; the labels describe the run.");
	for (int i = 0; i < n; i++) {
		fputs("yoke_run_info{run=\"", to);
		label(to, v[i]->name);
		fprintf(to, "\",state=\"%s", yk_view_state_name(v[i]->state));
		for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
			fprintf(to, "\",%s=\"", key[k]);
			label(to, yk_view_field(v[i], key[k]));
		}
		fputs("\"} 1\n", to);
	}
}

static void devices(FILE *to, int n, struct yk_view *const *v)
{
	static const struct {
		const char *name, *type, *column, *help;
	} rows[] = {
		{ "device_utilization_ratio", "gauge", "util",
		  "Fraction of the time in which the device computed." },
		{ "device_memory_used_bytes", "gauge", "mem_used", "Device memory in use." },
		{ "device_temperature_celsius", "gauge", "temp_c", "Temperature of the device." },
		{ "device_power_watts", "gauge", "power_w", "Power draw of the device." },
		{ "device_energy_joules_total", "counter", "energy_j",
		  "Energy consumed by the device." },
	};
	char column[64], number[16];
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		head(to, rows[k].name, rows[k].type, rows[k].help);
		for (int i = 0; i < n; i++)
			for (int d = 0; d < DEVICES; d++) {
				snprintf(column, sizeof column, "devices.%d.%s", d, rows[k].column);
				snprintf(number, sizeof number, "%d", d);
				sample(to, rows[k].name, v[i], "device", number,
				       yk_view_last(v[i], "telemetry", column));
			}
	}
}

// One sample per op, summed over its implementations and scopes.
static void kernels(FILE *to, int n, struct yk_view *const *v)
{
	head(to, "kernel_seconds_total", "counter", "Time in kernels, if the run is profiled.");
	for (int i = 0; i < n; i++) {
		json_t *sums = json_object(), *row;
		const json_t *rows = json_object_get(v[i]->kernels, "rows");
		const char *op;
		size_t k;
		json_array_foreach (rows, k, row) {
			const json_t *s = json_object_get(row, "seconds");
			if (!(op = json_string_value(json_object_get(row, "op"))) ||
			    !json_is_number(s))
				continue;
			double all =
				json_number_value(json_object_get(sums, op)) + json_number_value(s);
			json_object_set_new(sums, op, json_real(all));
		}
		json_object_foreach (sums, op, row)
			sample(to, "kernel_seconds_total", v[i], "op", op, json_real_value(row));
		json_decref(sums);
	}
}

void yk_prometheus(FILE *to, int n, struct yk_view *const *v)
{
	static const struct {
		const char *name, *type, *stage, *column, *help;
	} rows[] = {
		{ "train_loss", "gauge", "train", "loss", "Loss of the last logged step." },
		{ "train_learning_rate", "gauge", "train", "lr", "Learning rate." },
		{ "train_grad_norm", "gauge", "train", "grad_norm", "Gradient norm." },
		{ "train_tokens_total", "counter", "train", "tokens", "Tokens used for training." },
		{ "data_wait_seconds_total", "counter", "train", "data_wait_s",
		  "Time that steps waited for data." },
	};
	static const struct {
		const char *name, *key, *help;
	} counts[] = { { "launches_total", "launches", "Kernel launches." },
		       { "fallbacks_total", "fallbacks",
			 "Launches on the CPU of ops that the device does not support." } };
	info(to, n, v);
	head(to, "train_step", "gauge", "Completed steps.");
	for (int i = 0; i < n; i++) {
		const struct yk_view_table *t = yk_view_table(v[i], "train");
		sample(to, "train_step", v[i], NULL, NULL,
		       t && t->rows ? (double)yk_view_step(t, t->rows - 1) : NAN);
	}
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		head(to, rows[k].name, rows[k].type, rows[k].help);
		for (int i = 0; i < n; i++)
			sample(to, rows[k].name, v[i], NULL, NULL,
			       yk_view_last(v[i], rows[k].stage, rows[k].column));
	}
	devices(to, n, v);
	head(to, "transfer_bytes_total", "counter", "Bytes copied between host and device.");
	for (int i = 0; i < n; i++) {
		sample(to, "transfer_bytes_total", v[i], "direction", "up",
		       counted(v[i], "bytes_up"));
		sample(to, "transfer_bytes_total", v[i], "direction", "down",
		       counted(v[i], "bytes_down"));
	}
	kernels(to, n, v);
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		head(to, counts[k].name, "counter", counts[k].help);
		for (int i = 0; i < n; i++)
			sample(to, counts[k].name, v[i], NULL, NULL, counted(v[i], counts[k].key));
	}
}
