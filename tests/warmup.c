// SPDX-License-Identifier: Apache-2.0
// Tests warm-up progress: the callback receives what is tested and compiled, the plan's progress
// and the end; plans that need neither cause no calls; the ETA excludes warm-up.
#include "config.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/warmup.h"
#include "tap.h"
#include "train/progress.h"

struct heard {
	uint64_t calls, overs, bad, tested, compiled;
	uint64_t at[2];
	char what[160];
	double seconds;
};

static void hear(const struct yk_warmup *w, void *arg)
{
	struct heard *h = arg;
	int phase = !strcmp(w->doing, "compiles");
	diag("%s %s %llu of %llu %s, %llu tested: %s%s", w->device, w->doing,
	     (unsigned long long)w->at, (unsigned long long)w->of, w->items,
	     (unsigned long long)w->tested, w->what, w->over ? ", over" : "");
	h->calls++;
	h->bad += strcmp(w->device, "fault:0") || !w->at || w->at > w->of || w->at < h->at[phase] ||
		  w->seconds < h->seconds || w->tested < h->tested;
	h->at[phase] = w->at;
	h->seconds = w->seconds;
	h->tested = w->tested;
	h->compiled = w->compiled;
	h->overs += w->over;
	if (*w->what)
		snprintf(h->what, sizeof h->what, "%s", w->what);
}

static void run(void)
{
	float y[2] = { NAN, NAN };
	yoke_scope *s = yoke_scope_begin("run");
	yoke_tensor *x = yoke_from(yoke_f32, 1, (int64_t[]){ 2 }, (float[]){ 1, 2 });
	yoke_read(yoke_cumsum(yoke_exp(x), 0, 0), y, sizeof y);
	yoke_scope_end(s);
	ok(fabsf(y[1] - 10.107338f) < 1e-5f, "%g %s", y[1], yoke_error());
}

static void test_told(void)
{
	struct heard h = { 0 };
	yoke_context *ctx = yoke_context_new("fault"), *former = yoke_use(ctx);
	if (!ctx) {
		skip("tests of kernels are told", yoke_error());
		yoke_error_clear();
		return;
	}
	yk_warmup_to(hear, &h);
	run();
	ok(h.calls > 2 && h.overs == 1 && !h.bad,
	   "%llu progress calls, %llu of them final, %llu wrong", (unsigned long long)h.calls,
	   (unsigned long long)h.overs, (unsigned long long)h.bad);
	ok(h.tested > 0 && strstr(h.what, " f32"), "%llu kernels tested, the last %s",
	   (unsigned long long)h.tested, h.what);
	ok(yk_warmup_seconds() >= h.seconds && h.seconds > 0, "%g s of warm-up, reported %g",
	   yk_warmup_seconds(), h.seconds);
	h = (struct heard){ 0 };
	yoke_setting_set("plan.cse", "0"); // plans anew
	run();
	ok(!h.calls, "known results are not reported again: %llu", (unsigned long long)h.calls);
	yk_warmup_to(NULL, NULL);
	yoke_use(former);
	yoke_context_free(ctx);
}

static void keep_what(const struct yk_warmup *w, void *to)
{
	snprintf(to, 32, "%s", w->what);
}

static void test_what(void)
{
	char what[32] = "";
	yk_warmup_to(keep_what, what);
	yk_warmup_begin("some:0");
	yk_warmup_at("tests", "operations", 1, 2);
	yk_warmup_tests("map f32");
	yk_warmup_compiled(1);
	ok(!strcmp(what, "map f32"), "while a program is tested: '%s'", what);
	yk_warmup_at("tests", "operations", 2, 2);
	ok(!*what, "at the next operation: '%s'", what);
	yk_warmup_end();
	yk_warmup_to(NULL, NULL);
}

// What the progress says on stderr at a step.
static void logged(struct yk_progress *p, int64_t step, char *text, size_t cap)
{
	struct yk_step_metrics m = { .step = step, .loss = 2 };
	int save = dup(2), file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(file, 2);
	yk_progress_logged(p, &m);
	fflush(stderr);
	dup2(save, 2);
	ssize_t n = pread(file, text, cap - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(save);
	close(file);
	unlink("said");
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

static void test_eta(void)
{
	enum { STEPS = 1000 };
	struct yk_progress p;
	char text[256] = "", *eta;
	int part[3] = { -1, -1, -1 };
	yk_progress_open(&p, NULL, "auto", STEPS);
	p.bar = false;
	p.lines = true;
	nap(); // the first step
	const double began = yk_seconds();
	logged(&p, 1, text, sizeof text);
	ok(strstr(text, "ETA ?"), "without information there is no ETA: %s", text);
	yk_warmup_begin("some:0");
	yk_warmup_tests("map f32");
	const double napped = yk_seconds();
	nap();
	const double nap_s = yk_seconds() - napped;
	yk_warmup_end();
	logged(&p, 2, text, sizeof text);
	const double step_s = yk_seconds() - began - nap_s;
	eta = strstr(text, "ETA ");
	const int parts = eta ? sscanf(eta, "ETA %d:%d:%d", &part[0], &part[1], &part[2]) : 0;
	const double got =
		parts == 3 ? 3600 * part[0] + 60 * part[1] + part[2] : 60 * part[0] + part[1];
	ok(parts >= 2 && got <= (STEPS - 2) * step_s + 1,
	   "ETA %g s of at most %g s: it does not count a warm-up of %g s", got,
	   (STEPS - 2) * step_s, nap_s);
	yk_progress_close(&p);
}

int main(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES");
	tap_folder();
	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	setenv("YOKE_SELFTEST", "force", 1);
	test_told();
	test_what();
	test_eta();
	return done();
}
