// SPDX-License-Identifier: Apache-2.0
// Tests records of runs: logged values equal the files' contents, which this test parses itself;
// a write failure is one warning.
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "runs/tfevents.h"
#include "tap.h"
#include "yoke-run.h"

static char folder[4096];
static int warnings;

static void count(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	warnings += level == YOKE_LOG_WARN;
	diag("%s: %s", topic, line);
}

static const char *in(const char *name)
{
	static char path[2][8192];
	static int turn;
	turn = !turn;
	snprintf(path[turn], sizeof *path, "%s/%s", folder, name);
	return path[turn];
}

static char *read_file(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(1 << 22);
	*bytes = f ? fread(text, 1, (1 << 22) - 1, f) : 0;
	text[*bytes] = 0;
	if (f)
		fclose(f);
	return text;
}

// ---- the file of events, decoded by hand ----

// CRC-32C bit by bit.
static uint32_t crc(const unsigned char *p, size_t n)
{
	uint32_t c = ~0u;
	while (n--) {
		c ^= *p++;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
	}
	return ~c;
}

static uint64_t little(const unsigned char *p, int n)
{
	uint64_t x = 0;
	for (int i = 0; i < n; i++)
		x |= (uint64_t)p[i] << 8 * i;
	return x;
}

static bool crc_good(const unsigned char *p, size_t n)
{
	uint32_t c = crc(p, n);
	return little(p + n, 4) == (uint32_t)((c >> 15 | c << 17) + 0xa282ead8u);
}

static uint64_t varint(const unsigned char **p)
{
	uint64_t x = 0;
	for (int s = 0;; s += 7) {
		x |= (uint64_t)(**p & 127) << s;
		if (!(*(*p)++ & 128))
			return x;
	}
}

struct event {
	double time;
	int64_t step;
	char version[32];
	int session, n;
	struct value {
		char tag[64];
		float x;
	} value[8];
};

static void value_of(const unsigned char *p, const unsigned char *end, struct value *v)
{
	while (p < end) {
		unsigned key = *p++;
		if (key == (1 << 3 | 2)) {
			size_t n = varint(&p);
			snprintf(v->tag, sizeof v->tag, "%.*s", (int)n, (const char *)p);
			p += n;
		} else if (key == (2 << 3 | 5)) {
			uint32_t bits = (uint32_t)little(p, 4);
			memcpy(&v->x, &bits, 4);
			p += 4;
		} else {
			break;
		}
	}
}

// One record; returns its bytes, 0 at the end or for an error.
static size_t record(const unsigned char *p, size_t left, struct event *to)
{
	memset(to, 0, sizeof *to);
	if (left < 16 || !crc_good(p, 8))
		return 0;
	size_t n = little(p, 8);
	if (left < n + 16 || !crc_good(p + 12, n))
		return 0;
	const unsigned char *at = p + 12, *end = at + n;
	while (at < end) {
		unsigned key = *at++;
		uint64_t bits;
		if (key == (1 << 3 | 1)) {
			bits = little(at, 8);
			memcpy(&to->time, &bits, 8);
			at += 8;
		} else if (key == (2 << 3 | 0)) {
			to->step = (int64_t)varint(&at);
		} else {
			size_t bytes = varint(&at);
			const unsigned char *q = at, *stop = at + bytes;
			if (key == (3 << 3 | 2))
				snprintf(to->version, sizeof to->version, "%.*s", (int)bytes,
					 (const char *)at);
			if (key == (7 << 3 | 2))
				to->session = at[0] == 8 ? at[1] : -1;
			while (key == (5 << 3 | 2) && q < stop && *q == (1 << 3 | 2)) {
				q++;
				size_t m = varint(&q);
				value_of(q, q + m, &to->value[to->n++]);
				q += m;
			}
			at = stop;
		}
	}
	return n + 16;
}

// The name of the event file in the folder, "" if there is none.
static void event_file(char *name, int room)
{
	char command[8300];
	snprintf(command, sizeof command, "ls '%s' | grep tfevents", folder);
	FILE *f = popen(command, "r");
	if (!f || !fgets(name, room, f))
		*name = 0;
	name[strcspn(name, "\n")] = 0;
	if (f)
		pclose(f);
}

static void events_read(int64_t steps, const double *loss, int64_t resumed)
{
	char name[4096];
	size_t bytes;
	event_file(name, sizeof name);
	char *text = read_file(in(name), &bytes);
	const unsigned char *p = (const unsigned char *)text;
	struct event e;
	size_t at = record(p, bytes, &e);
	ok(at && !strcmp(e.version, "brain.Event:2") && fabs(e.time - (double)time(NULL)) < 60,
	   "%s begins with its version", name);
	if (resumed) {
		at += record(p + at, bytes - at, &e);
		ok(e.session == 1 && e.step == resumed, "then the start of a session at step %lld",
		   (long long)e.step);
	}
	int64_t good = 0, n = 0;
	for (size_t more; (more = record(p + at, bytes - at, &e)); at += more, n += e.n == 2)
		good += e.n == 2 && !strcmp(e.value[0].tag, "train/loss") &&
			!strcmp(e.value[1].tag, "train/a<b>\"c") &&
			e.value[0].x == (float)loss[e.step] && e.value[1].x == (float)-e.step;
	ok(n == steps && good == n && at == bytes,
	   "%lld of %lld records are as logged, to the last byte", (long long)good, (long long)n);
	free(text);
}

// The tags of a line, by its stage: TensorBoard groups them by the word before the slash.
static void tags(void)
{
	static const struct {
		const char *stage, *name, *tag;
	} cases[] = {
		{ "train", "lr", "train/lr" },
		{ "train", "data_wait_s", "data/wait_s" },
		{ "train", "peak_bytes", "system/peak_bytes" },
		{ "train", "data_", "train/data_" },
		{ "valid", "val_loss", "valid/loss" },
		{ "valid", "perplexity", "valid/perplexity" },
		{ "memory", "rss", "system/rss" },
		{ "test", "recall", "test/recall" },
	};
	enum { CASES = sizeof cases / sizeof *cases };
	const struct yoke_run_options o = { .size = sizeof o, .tensorboard = 1 };
	char name[4096];
	yoke_run *r = yoke_run_open(folder, &o);
	for (int i = 0; i < CASES; i++)
		yoke_run_log(r, i + 1, cases[i].stage, 1, &cases[i].name, &(double){ i });
	yoke_run_close(r, "done", NULL);
	size_t bytes, at;
	event_file(name, sizeof name);
	char *text = read_file(in(name), &bytes);
	const unsigned char *p = (const unsigned char *)text;
	struct event e;
	at = record(p, bytes, &e); // the version
	for (int i = 0; i < CASES; i++) {
		const size_t more = record(p + at, bytes - at, &e);
		ok(more && e.n == 1 && !strcmp(e.value[0].tag, cases[i].tag) &&
			   e.value[0].x == (float)i,
		   "%s of %s is %s", cases[i].name, cases[i].stage,
		   e.n ? e.value[0].tag : "missing");
		at += more;
	}
	free(text);
}

// ---- ----

static void written(void)
{
	enum { STEPS = 200 };
	static double loss[STEPS + 1];
	struct yoke_run_options o = { .size = sizeof o,
				      .device = "dev\"ice",
				      .driver = "d",
				      .config = "{\"lr\": 0.5}",
				      .data = 0xabc,
				      .tensorboard = 1 };
	const char *names[] = { "loss", "a<b>\"c" };
	yoke_run *r = yoke_run_open(folder, &o), *second;
	if (!ok(r != NULL, "open %s", yoke_error()))
		return;
	second = yoke_run_open(folder, &o);
	ok(!second && yoke_error_code() == YOKE_EBUSY, "a second run in the same directory: %s",
	   yoke_error());
	yoke_error_clear();
	for (int64_t t = 1; t <= STEPS; t++) {
		loss[t] = ldexp(rnd_real(-1, 1), (int)rnd_int(-60, 60));
		yoke_run_log(r, t, "train", 2, names, (double[]){ loss[t], (double)-t });
	}
	yoke_run_event(r, 7, "went\nwell", "<script>");
	ok(yoke_run_log(r, 1, "train", 1, (const char *[]){ "time" }, (double[]){ 1 }) ==
			   YOKE_EINVAL &&
		   yoke_run_log(r, 1, "train", 2, (const char *[]){ "a", "a" },
				(double[]){ 1, 2 }) == YOKE_EINVAL &&
		   yoke_run_log(r, 1, "train", 1, (const char *[]){ "\xff" }, (double[]){ 1 }) ==
			   YOKE_EINVAL &&
		   yoke_run_log(r, -1, "train", 0, NULL, NULL) == YOKE_EINVAL,
	   "invalid log calls: %s", yoke_error());
	yoke_error_clear();
	FILE *f = fopen(in("abc"), "w");
	fputs("abc", f);
	fclose(f);
	ok(yoke_run_artifact(r, in("abc")) == 0 && yoke_run_artifact(r, in("abc")) == 0,
	   "artifact");
	ok(yoke_run_artifact(r, in("none")) == YOKE_ENOENT, "a missing artifact: %s", yoke_error());
	yoke_error_clear();
	yoke_run_log(r, STEPS, "valid", 2, (const char *[]){ "x", "y" }, (double[]){ NAN, 1 });
	yoke_run_close(r, "done", NULL);

	size_t bytes, n = 0, good = 0;
	char *text = read_file(in("metrics.jsonl"), &bytes), *rest = text, *line;
	double last = 0;
	bool rises = true;
	while ((line = strsep(&rest, "\n")) && *line) {
		json_t *l = json_loads(line, 0, NULL);
		double time = json_number_value(json_object_get(l, "time"));
		int64_t step = json_integer_value(json_object_get(l, "step"));
		rises &= time >= last && time > 1.5e9;
		last = time;
		if (n < STEPS)
			good += (int64_t)n + 1 == step &&
				json_number_value(json_object_get(l, "loss")) == loss[step] &&
				!strcmp(json_string_value(json_object_get(l, "stage")), "train");
		else
			ok(!json_object_get(l, "x") &&
				   json_number_value(json_object_get(l, "y")) == 1,
			   "a NaN is omitted: %s", line);
		json_decref(l);
		n++;
	}
	ok(n == STEPS + 1 && good == STEPS && rises,
	   "metrics.jsonl has %zu lines, %zu of them correct, in order of time", n, good);
	free(text);
	json_t *about = json_load_file(in("run.json"), 0, NULL);
	const json_t *a = json_array_get(json_object_get(about, "artifacts"), 0);
	ok(json_array_size(json_object_get(about, "artifacts")) == 1 &&
		   !strcmp(json_string_value(json_object_get(a, "name")), "abc") &&
		   !strcmp(json_string_value(json_object_get(a, "xxh64")), "44bc2cf5ad770999") &&
		   json_integer_value(json_object_get(a, "bytes")) == 3,
	   "its checksum is XXH64's of \"abc\"");
	ok(json_integer_value(json_object_get(about, "pid")) == getpid() &&
		   !strcmp(json_string_value(json_object_get(about, "device")), "dev\"ice") &&
		   !strcmp(json_string_value(json_object_get(about, "data")), "0000000000000abc") &&
		   json_number_value(json_object_get(json_object_get(about, "config"), "lr")) ==
			   0.5 &&
		   !strcmp(json_string_value(
				   json_object_get(json_object_get(about, "ended"), "how")),
			   "done"),
	   "run.json has what ran and how it ended");
	json_decref(about);
	events_read(STEPS, loss, 0);
}

// A run.json as written by a process that has ended, or by this one.
static const char *unfinished(bool ended)
{
	static char name[64];
	pid_t pid = ended ? fork() : getpid();
	if (pid == 0)
		_exit(0);
	if (ended)
		waitpid(pid, NULL, 0);
	snprintf(name, sizeof name, "run.json.%ld-0.tmp", (long)pid);
	fclose(fopen(in(name), "w"));
	return in(name);
}

// Lines that an earlier run wrote after its last save are removed, including an incomplete line.
static void resumed(void)
{
	struct yoke_run_options o = { .size = sizeof o };
	const char *name = "loss";
	yoke_run *r = yoke_run_open(folder, &o);
	for (int64_t t = 1; t <= 5; t++)
		yoke_run_log(r, t, "train", 1, &name, (double[]){ (double)t });
	yoke_run_close(r, "failed", "why");
	FILE *f = fopen(in("metrics.jsonl"), "a");
	fputs("{\"step\":6,\"lo", f);
	fclose(f);
	o.step = 3;
	o.tensorboard = 1;
	char *killed = strdup(unfinished(true)), *alive = strdup(unfinished(false));
	r = yoke_run_open(folder, &o);
	ok(access(killed, F_OK) < 0 && access(alive, F_OK) == 0,
	   "an incomplete line of a killed run is removed, and nothing else: %s", killed);
	unlink(alive);
	free(killed);
	free(alive);
	static double loss[8];
	const char *names[] = { "loss", "a<b>\"c" };
	loss[4] = 0.25;
	yoke_run_log(r, 4, "train", 2, names, (double[]){ 0.25, -4 });
	yoke_run_close(r, NULL, NULL);
	size_t bytes;
	char *text = read_file(in("metrics.jsonl"), &bytes), steps[64] = "";
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;)
		sprintf(steps + strlen(steps), "%d ", atoi(line + strlen("{\"step\":")));
	ok(!strcmp(steps, "1 2 3 4 "), "steps after the third are made again: %s", steps);
	free(text);
	events_read(1, loss, 4);
}

// Nothing can be written: one warning per file, whatever is logged.
static void lost(void)
{
	struct yoke_run_options o = { .size = sizeof o };
	const char *name = "loss";
	mkdir(folder, 0777);
	mkdir(in("metrics.jsonl"), 0777);
	mkdir(in("events.jsonl"), 0777);
	mkdir(in("run.json"), 0777);
	warnings = 0;
	yk_log_to(count, NULL);
	yoke_run *r = yoke_run_open(folder, &o);
	ok(r != NULL, "a run whose files cannot be written: %s", yoke_error());
	int e = 0;
	for (int64_t t = 1; t <= 20; t++) {
		e |= yoke_run_log(r, t, "train", 1, &name, (double[]){ 1 });
		e |= yoke_run_event(r, t, "x", NULL);
	}
	ok(e == 0 && !*yoke_error(), "continues without an error");
	yoke_run_close(r, "done", NULL);
	yk_log_to(NULL, NULL);
	ok(warnings == 3, "%d warnings", warnings);
	ok(yoke_run_log(NULL, 1, "train", 1, &name, (double[]){ 1 }) == 0 &&
		   yoke_run_event(NULL, 1, "x", "") == 0 && yoke_run_artifact(NULL, "x") == 0,
	   "a NULL run is no error");
	yoke_run_close(NULL, "done", NULL);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	static void (*const part[])(void) = { written, tags, resumed, lost };
	tap_seed();
	// RFC 3720's check value
	ok(yk_crc32c("123456789", 9) == 0xe3069283u, "CRC-32C of the digits");
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		snprintf(folder, sizeof folder, "%s/runs.%ld.%zu", tmp ? tmp : "/tmp",
			 (long)getpid(), i);
		part[i]();
		char command[8300];
		snprintf(command, sizeof command, "rm -r '%s'", folder);
		ok(system(command) == 0, "%s", command);
	}
	return done();
}
