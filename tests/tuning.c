// SPDX-License-Identifier: Apache-2.0
// Tests tuning: classes of contractions, the tuning file and its possible defects, and that plans
// follow the file and nothing else.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/param.h"
#include "device/tuning.h"
#include "tap.h"
#include "yoke.h"

static char said[8000];

static void hear(int level, const char *topic, const char *line, void *arg)
{
	size_t n = strlen(said);
	(void)level, (void)topic, (void)arg;
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

// ---- classes ----

struct shape {
	int64_t lead, m, n, k; // lead 0: no leading axis
	bool ta, tb, one_b;
	int dtype;
};

static struct yoke_op contraction(struct yoke_view v[3], const struct shape *s)
{
	int r = s->lead ? 1 : 0;
	const int64_t rows[3] = { s->m, s->m, s->k }, cols[3] = { s->n, s->k, s->n };
	const bool t[3] = { false, s->ta, s->tb };

	for (int i = 0; i < 3; i++) {
		v[i] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					   .dtype = (uint8_t)s->dtype,
					   .rank = (uint8_t)(r + 2) };
		v[i].dims[0] = s->lead;
		v[i].strides[0] = i == 2 && s->one_b ? 0 : rows[i] * cols[i];
		v[i].dims[r] = rows[i];
		v[i].dims[r + 1] = cols[i];
		v[i].strides[r] = t[i] ? 1 : cols[i];
		v[i].strides[r + 1] = t[i] ? rows[i] : 1;
	}
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = YOKE_OP_CONTRACT,
				 .nout = 1,
				 .nin = 2,
				 .out = v,
				 .in = v + 1 };
}

static void has_class(struct shape s, const char *want)
{
	struct yoke_view v[3];
	struct yk_tuning_class c;
	struct yoke_op op = contraction(v, &s);
	char name[YK_TUNING_NAME] = "none";

	if (yk_tuning_class_of(&op, &c))
		yk_tuning_class_name(&c, name);
	ok(!strcmp(name, want), "%lld of %lldx%lldx%lld: %s, want %s", (long long)s.lead,
	   (long long)s.m, (long long)s.n, (long long)s.k, name, want);
}

static void test_classes(void)
{
	static struct yk_tuning_class all[YK_TUNING_CLASSES];
	size_t n = yk_tuning_classes(all);
	char name[2][YK_TUNING_NAME];
	struct yk_tuning_class c;
	struct yoke_view v[3];
	int wrong = 0;
	const int f = yoke_f32;

	has_class((struct shape){ 0, 512, 512, 512, .dtype = f }, "contract.f32.nn.384x384x384x1");
	has_class((struct shape){ 0, 1, 17, 16, .dtype = f }, "contract.f32.nn.1x64x8x1");
	has_class((struct shape){ 0, 1024, 1025, 128, .tb = true, .dtype = yoke_bf16 },
		  "contract.bf16.nt.384x1536x64x1");
	has_class((struct shape){ 7, 20, 20, 20, .ta = true, .dtype = yoke_f16 },
		  "contract.f16.tn.64x64x64x16");
	has_class((struct shape){ 7, 20, 20, 20, .one_b = true, .dtype = f },
		  "contract.f32.nn.384x64x64x1"); // 140 rows
	has_class((struct shape){ 7, 2000, 20, 20, .dtype = f }, "contract.f32.nn.1536x64x64x1");
	has_class((struct shape){ 0, 1, 20, 20, .ta = true, .dtype = f },
		  "contract.f32.nn.1x64x64x1");
	has_class((struct shape){ 0, 20, 0, 20, .dtype = f }, "none");
	has_class((struct shape){ 0, 20, 20, 20, .dtype = yoke_i32 }, "none");
	has_class((struct shape){ 0, 20, 20, 20, .ta = true, .tb = true, .dtype = f }, "none");
	has_class((struct shape){ INT64_MAX / 2, 9, 20, 20, .one_b = true, .dtype = f }, "none");

	for (size_t i = 0; i < n; i++) { // each is what an op of its own extents is in
		yk_tuning_class_name(&all[i], name[0]);
		const struct shape s = { all[i].batch > 1 ? all[i].batch : 0, all[i].m, all[i].n,
					 all[i].k, all[i].ta, all[i].tb, false, all[i].dtype };
		struct yoke_op op = contraction(v, &s);
		strcpy(name[1], "none");
		if (yk_tuning_class_of(&op, &c))
			yk_tuning_class_name(&c, name[1]);
		bool good = !strcmp(name[0], name[1]) && yk_tuning_class_parse(name[0], &c) &&
			    !memcmp(&c.m, &all[i].m, 4 * sizeof c.m) && c.ta == all[i].ta &&
			    c.tb == all[i].tb && c.dtype == all[i].dtype;
		if (!good && !wrong++)
			diag("%s is in %s", name[0], name[1]);
	}
	ok(n > 100 && !wrong, "%zu classes contain their measured sizes, %d do not", n, wrong);
	ok(yk_tuning_class_parse("contract.f32.nn.3x4x5x1", &c) && c.m == 3 && c.n == 4 &&
		   c.k == 5 && !yk_tuning_class_parse("contract.f32.nn.0x3x3x1", &c) &&
		   !yk_tuning_class_parse("contract.f32.nn.3x3x3x1 ", &c) &&
		   !yk_tuning_class_parse("contract.f32.nn.1048576x1048576x3x1", &c) &&
		   !yk_tuning_class_parse("", &c),
	   "and other classes are none");
}

// ---- choosing ----

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	static const char *const names[] = { "one", "two", "three", "four" };
	(void)device, (void)op;
	return impl < 4 ? names[impl] : NULL;
}

static const struct yoke_backend table = { .size = sizeof table,
					   .name = "toy",
					   .impl_name = impl_name };

static struct yk_device toy(const char *driver)
{
	struct yk_device d = { .ops = &table, .id = "toy:0", .info = { .name = "Toy" } };

	snprintf(d.info.driver, sizeof d.info.driver, "%s", driver);
	return d;
}

static void forget(struct yk_device *d)
{
	if (d->tuning)
		yk_tuning_fini(d->tuning);
	free(d->tuning);
	d->tuning = NULL;
}

static void picks(struct yk_device *d, int64_t m, uint64_t impls, uint32_t want, const char *why)
{
	struct yoke_view v[3];
	const struct shape s = { 0, m, 384, 384, .dtype = yoke_f32 };
	struct yoke_op op = contraction(v, &s);
	uint32_t got = yk_tuning_pick(d, &op, impls);

	ok(got == want, "%s: %u, want %u", why, got, want);
}

static const char *const lines[] = {
	"contract.f32.nn.384x384x384x1 three=10 one=20 two=wrong",
	"contract.f32.nn.64x384x384x1 none=5 two=7 one=8",
	"contract.f32.nn.8x384x384x1 one=fails two=wrong",
	"contract.f32.nn.1x384x384x1 one=wrong two=wrong three=fails four=fails",
};

static void keep(struct yk_device *d, struct yk_tuning *t)
{
	yk_tuning_read(d, t);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		yk_tuning_add(t, lines[i]);
	ok(!yk_tuning_write(d, t), "%s is written", t->path);
}

static void test_choice(struct yk_device *d)
{
	struct yk_device other = toy("2.0");
	struct yk_tuning t;

	picks(d, 384, 15, 0, "without a file, the first");
	picks(d, 384, 14, 1, "of those offered");
	forget(d);
	keep(d, &t);
	yk_tuning_fini(&t);
	picks(d, 384, 15, 2, "what was found best");
	picks(d, 384, 3, 0, "the second best where the best is not offered");
	picks(d, 384, 10, 3, "none that is wrong");
	picks(d, 384, 2, 1, "unless it is the only one");
	picks(d, 64, 15, 1, "names that are gone are passed over");
	picks(d, 8, 15, 2, "the first of those that nothing is known against");
	picks(d, 1, 15, 0, "the first, where all are wrong");
	picks(d, 2000, 15, 0, "the first in a class that was not measured");
	picks(&other, 384, 15, 0, "the first with another driver");
	forget(&other);
	forget(d);
	yk_param_set("tune", "0", YK_ARGUMENT);
	picks(d, 384, 15, 0, "the first with YOKE_TUNE=0");
	yk_param_set("tune", "1", YK_ARGUMENT);
	forget(d);
}

// ---- files that are not as they should be ----

// The lines that are taken from a text, as the device's file.
static size_t taken(struct yk_device *d, const char *path, const char *text, size_t bytes)
{
	struct yk_tuning t;

	said[0] = '\0';
	FILE *f = fopen(path, "w");
	if (!f || fwrite(text, 1, bytes, f) != bytes || fclose(f))
		return 99;
	yk_tuning_read(d, &t);
	size_t n = t.n;
	yk_tuning_fini(&t);
	return n;
}

static void damaged(struct yk_device *d, const char *path, const char *text, int line,
		    const char *why)
{
	char want[64];
	size_t n = taken(d, path, text, strlen(text));

	snprintf(want, sizeof want, ".txt:%d: ", line);
	ok(!n && strstr(said, want) && strstr(said, why), "line %d, %s: %zu taken; %s", line, why,
	   n, said);
}

static void test_damage(struct yk_device *d)
{
	struct yk_tuning t;
	char *text, *other, path[PATH_MAX], link[PATH_MAX + 8];
	size_t bytes, wrong = 0;

	keep(d, &t);
	snprintf(path, sizeof path, "%s", t.path);
	yk_tuning_fini(&t);
	if (yk_file_read(path, 1 << 20, &text, &bytes) < 0 || !(other = malloc(2 * bytes + 200)))
		exit(99);
	ok(taken(d, path, text, bytes) == 4 && !*said, "the file as it was written");
	for (size_t n = 0; n < bytes; n++)
		wrong += taken(d, path, text, n) || !strstr(said, ".txt:");
	ok(!wrong, "truncated anywhere in %zu bytes: %zu accepted or without a line number", bytes,
	   wrong);
	for (size_t n = 0; n < bytes; n++)
		for (int bit = 0; bit < 8; bit += 3) {
			memcpy(other, text, bytes);
			other[n] = (char)(other[n] ^ 1 << bit);
			wrong += taken(d, path, other, bytes) || !strstr(said, ".txt:");
		}
	ok(!wrong, "with any byte changed: %zu accepted or without a line number", wrong);

	size_t head = strcspn(text, "\n") + 1;
	static const struct {
		const char *line, *why;
	} bad[] = {
		{ "contract.f32.nn.8x8x8x1", "no implementation" },
		{ " one=3", "no class" },
		{ "class one=3", "no class" },
		{ "a.b one", "not NAME=" },
		{ "a.b =3", "not NAME=" },
		{ "a.b one=", "neither" },
		{ "a.b one=fast", "neither" },
		{ "a.b one=-3", "neither" },
		{ "a.b one=99999999999999999999", "neither" },
		{ "a.b one=3  two=4", "not NAME=" },
		{ "", "no class" },
		{ "end 1 0000000000000000", "checksum" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(other, 2 * bytes + 200, "%.*sx.y one=3\n%s\n%s", (int)head, text,
			 bad[i].line, text + head);
		damaged(d, path, other, 3, bad[i].why);
	}
	damaged(d, path, "", 1, "cut off");
	damaged(d, path, "yoke-tuning 1 of something else\n", 1, "another device");
	taken(d, path, text, bytes);
	chmod(path, 0620);
	said[0] = '\0';
	yk_tuning_read(d, &t);
	ok(!t.n && strstr(said, "only this user"), "a file that others may write: %s", said);
	yk_tuning_fini(&t);
	chmod(path, 0600);
	snprintf(link, sizeof link, "%s.real", path);
	if (rename(path, link) || symlink(link, path))
		exit(99);
	said[0] = '\0';
	yk_tuning_read(d, &t);
	ok(!t.n && strstr(said, "is ignored"), "a symbolic link: %s", said);
	yk_tuning_fini(&t);
	unlink(path);
	unlink(link);
	free(text);
	free(other);
}

// ---- plans ----

// The implementation that the plan of a product of n x n matrices has.
static void test_plan(struct yk_device *d, int64_t n, const char *want)
{
	float *x = calloc((size_t)(n * n), sizeof *x);
	const int64_t dims[] = { n, n };
	char step[64];

	said[0] = '\0';
	yoke_scope *s = yoke_scope_begin("");
	yoke_tensor *a = yoke_from(yoke_f32, 2, dims, x);
	int err = yoke_read(yoke_matmul(a, a, 0), x, (size_t)(n * n) * sizeof *x);
	yoke_scope_end(s);
	snprintf(step, sizeof step, "\t%s\tmatmul\t%s\t", d->id, want);
	ok(!err && strstr(said, step), "a plan of %lld x %lld on %s has '%s': %s", (long long)n,
	   (long long)n, d->id, want, strstr(said, "matmul") ? strstr(said, "matmul") : said);
	free(x);
}

static void test_plans(void)
{
	struct yk_device *d;
	struct yk_tuning t;

	if (!getenv("YOKE_TEST_MODULES")) {
		skip("plans", "YOKE_TEST_MODULES does not name the fault backend");
		return;
	}
	if (!(d = yk_device_choose(NULL))) {
		ok(false, "no fault backend: %s", yoke_error());
		return;
	}
	yk_tuning_read(d, &t);
	yk_tuning_add(&t, "contract.f32.nn.8x8x8x1 second=1 first=2");
	yk_tuning_write(d, &t);
	yk_tuning_fini(&t);
	test_plan(d, 9, "second");
	test_plan(d, 40, "first");
}

int main(void)
{
	struct yk_device d = toy("1.0");
	const char *modules = getenv("YOKE_TEST_MODULES");

	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	setenv("YOKE_BACKEND", "fault", 1);
	setenv("YOKE_FAULT_IMPLS", "3", 1);
	setenv("YOKE_LOG", "plan", 1);
	yk_log_to(hear, NULL);
	test_classes();
	test_choice(&d);
	test_damage(&d);
	test_plans();
	return done();
}
