// SPDX-License-Identifier: Apache-2.0
// Tests call sites: with YOKE_TRACE_OPS=1 an error names the application function that recorded
// the op, however deep in the library the op was made, and an op of a backward pass names where
// its forward op was recorded. Linked to libyoke.so as an application is, with its symbols
// exported as by -rdynamic.

#include "config.h"

#include "tap.h"
#include "yoke-observe.h"
#include "yoke.h"

#ifndef HAVE_LIBDW
#define HAVE_LIBDW 0
#endif

#define OWN __attribute__((noinline, visibility("default"))) // a stack frame with a known name
OWN yoke_tensor *make_log(yoke_tensor *);
OWN yoke_tensor *make_error(yoke_tensor *);
OWN yoke_tensor *make_root(yoke_tensor *);

// Work after the call prevents a tail call.
yoke_tensor *make_log(yoke_tensor *x)
{
	yoke_tensor *y = yoke_log(x);
	return yoke_rank(y) == 1 ? y : NULL;
}

yoke_tensor *make_error(yoke_tensor *x)
{
	yoke_tensor *y = yoke_mse(x, yoke_const(3e38)); // made of several ops
	return yoke_rank(y) == 0 ? y : NULL;
}

yoke_tensor *make_root(yoke_tensor *x)
{
	yoke_tensor *y = yoke_sqrt(x);
	return yoke_rank(y) == 1 ? y : NULL;
}

static void expect(yoke_tensor *y, const char *op, const char *where, bool traced)
{
	char got[64];
	int err = yoke_read(y, got, yoke_bytes(y));
	const char *at = strstr(yoke_error(), ", recorded at ");
	bool named = at && strstr(at, where) && strstr(strstr(at, where), "main+0x");
	ok(err == YOKE_ERANGE && strstr(yoke_error(), op) && (traced ? named : !at), "%s",
	   yoke_error());
	yoke_error_clear();
}

// A profile by sites has a row for each line that recorded something.
OWN void test_lines(void);

void test_lines(void)
{
	struct yoke_profile_options o = { .size = sizeof o,
					  .active = 1,
					  .flags = YOKE_PROFILE_SITES };
	struct yoke_profile_row row[16] = { { .size = sizeof *row } };
	char want[64];
	yoke_setting_set("profile.limits", "0");
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &(int64_t){ 3 });
	yoke_profile *p = yoke_profile_new(&o);
	yoke_scope *s = yoke_scope_begin("lines");
	const int line = __LINE__ + 1;
	yoke_tensor *y = yoke_softmax(x, 0);
	yoke_eval(1, &y);
	yoke_scope_end(s);
	int n = yoke_profile_rows(p, 16, row), found = 0;
#if HAVE_LIBDW
	snprintf(want, sizeof want, "site.c:%d", line);
#else
	snprintf(want, sizeof want, "test_lines+0x");
	(void)line;
#endif
	for (int i = 0; i < n && i < 16; i++) {
		diag("%s at %s", row[i].op, row[i].site);
		found += !strcmp(row[i].op, "softmax") && strstr(row[i].site, want);
	}
	ok(found == 1, "a row of %s", want);
	yoke_profile_step(p);
	yoke_profile_free(p);
	yoke_free(x);
	yoke_error_clear();
}

OWN int main(int argc, char **argv);

int main(int argc, char **argv)
{
	const float x[3] = { 1, 0, 2 };
	yoke_setting_set("backend", "cpu");
	yoke_setting_set("check", "nan");
	bool traced = argc < 2;
	if (traced)
		yoke_setting_set("trace.ops", "1");
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *g = NULL, *p = yoke_from(yoke_f32, 1, &(int64_t){ 3 }, x);
	expect(make_log(p), "log f32 [3]", "(make_log+0x", traced);
	expect(make_error(p), "makes inf", "(make_error+0x", traced);
	yoke_tensor *y = yoke_sum(make_root(p), YOKE_ALL);
	yoke_grad(y, 1, &p, &g);
	expect(g, "backward of sqrt", "(make_root+0x", traced);
	yoke_tensor *wrong = yoke_reshape(make_root(p), 1, &(int64_t){ 5 });
	const char *at = strstr(yoke_error(), "recorded at ");
	ok(!wrong && !at == !traced && (!at || strstr(at, "main+0x")), "an invalid shape: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	test_lines();
	if (!traced)
		return done();
	char command[1024];
	snprintf(command, sizeof command, "'%s' untraced | sed 's/^/# /'", argv[0]);
	fflush(stdout);
	FILE *f = popen(command, "r");
	int good = 0;
	char line[2048];
	while (f && fgets(line, sizeof line, f)) {
		fputs(line, stdout);
		good += !strncmp(line, "# ok", 4);
	}
	ok(f && pclose(f) == 0 && good == 5, "without the setting no call site is recorded");
	return done();
}
