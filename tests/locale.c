// SPDX-License-Identifier: Apache-2.0
// Tests programs that set a locale: numbers in files, settings and records use a decimal point in
// German and in Pashto (whose decimal separator has two bytes), and names are case-folded as
// ASCII in Turkish (where the lower-case form of I differs).
#include "config.h"

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/param.h"
#include "data/prepare.h"
#include "data/text.h"
#include "tap.h"
#include "config/conf.h"
#include "yoke-cube.h"
#include "yoke-data.h"
#include "yoke-optim.h"
#include "yoke-pipeline.h"
#include "yoke-run.h"

static const char *now; // the locale

static void put(const char *path, const void *data, size_t bytes)
{
	if (yk_file_write(path, data, bytes) < 0)
		abort();
}

static bool holds(const char *path, const char *what)
{
	char *text;
	size_t n;
	const bool good = yk_file_read(path, 1 << 20, &text, &n) == 0 && strstr(text, what);
	if (!good)
		diag("%s has no \"%s\": %s", path, what, text);
	free(text);
	return good;
}

static void test_base(void)
{
	char text[64], *copy = NULL, *end;
	double x = 0, y = 0;
	yk_snprintf(text, sizeof text, "%g %.3f %a", 1.5, -2.25, 1.5);
	ok(!strcmp(text, "1.5 -2.250 0x1.8p+0"), "%s: prints %s", now, text);
	ok(yk_asprintf(&copy, "%s %g", "x", 0.125) == 7 && !strcmp(copy, "x 0.125"),
	   "%s: prints 0.125", now);
	free(copy);
	ok(yk_strtod("2.5,3", &end) == 2.5 && *end == ',', "%s: strtod stops at the comma", now);
	ok(yk_sscanf("1.5,2.25", "%lf,%lf", &x, &y) == 2 && x == 1.5 && y == 2.25,
	   "%s: sscanf reads 1.5 and 2.25", now);
	ok(yk_number(" -1.25e2 ", &x) && x == -125 && !yk_number("1,5", &x) &&
		   !yk_number("0x10", &x) && !yk_number("1e400", &x) && !yk_number("nan", &x) &&
		   !yk_number("", &x) && !yk_number("1 2", &x) && x == -125,
	   "%s: a decimal number is accepted, invalid ones are refused", now);
	yk_fail(YOKE_EINVAL, "eps=%g", 0.5);
	ok(!strcmp(yoke_error(), "eps=0.5"), "%s: the number in an error", now);
	yoke_error_clear();
	yk_param_env("dist.link", text, sizeof text);
	ok(!strcmp(text, "YOKE_DIST_LINK") && yk_same_word("LINES", "lines") &&
		   !yk_same_word("LINES", "line") && yk_same_words("Files", "FILED", 4),
	   "%s: a setting's variable is %s", now, text);
}

static void test_json(void)
{
	json_t *j = json_pack("{s:f, s:f}", "x", 1.5, "y", 0.1), *back = NULL;
	char *text = yk_json_text(j, JSON_COMPACT);
	ok(text && !strcmp(text, "{\"x\":1.5,\"y\":0.10000000000000001}"), "%s: JSON is %s", now,
	   text);
	free(text);
	double x = 0;
	ok(yk_json_save("x.json", j) == 0 && (back = yk_json_load("x.json")) &&
		   yk_json_real(back, "x", "y", &x) == 0 && x == 0.1,
	   "%s: JSON is read back %s", now, yoke_error());
	json_decref(back);
	json_decref(j);
}

static void test_records(void)
{
	yoke_run *r = yoke_run_open("run", NULL);
	yoke_run_log(r, 1, "train", 2, (const char *[]){ "loss", "lr" }, (double[]){ 1.5, 2.5e-5 });
	yoke_run_event(r, 1, "saved", "x");
	yoke_run_close(r, "done", NULL);
	ok(holds("run/metrics.jsonl", "\"loss\":1.5") && holds("run/metrics.jsonl", "\"lr\":2.5"),
	   "%s: metrics.jsonl", now);
	static const char *const path[] = { "run/metrics.jsonl", "run/events.jsonl",
					    "run/run.json" };
	for (int i = 0; i < 3; i++) {
		json_t *j = yk_json_load(path[i]);
		ok(j != NULL, "%s: %s is JSON %s", now, path[i], yoke_error());
		json_decref(j);
		yoke_error_clear();
	}
}

static bool reads(const char *path, const char *settings, int fields, double want)
{
	float x[3] = { 0 };
	int32_t class;
	void *to[] = { x, fields == 2 ? (void *)&class : x + 1 };
	yoke_dataset *d = yoke_dataset_open(path, settings);
	const bool good =
		d && yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) == 0 && fabs(x[0] - want) < 1e-6;
	yoke_dataset_free(d);
	return good;
}

static void test_data(void)
{
	static const unsigned char png[] = {
		// one pixel; its value is read below without a scale
		0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
		0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
		0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
		0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xc9, 0xfe, 0x92,
		0xef, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
	};
	static const char csv[] = "x\n0.1000000000000000055511151231257827\n1.5\n";
	put("t.csv", csv, sizeof csv - 1);
	ok(reads("t.csv", NULL, 1, 0.1), "%s: a table's 0.1 %s", now, yoke_error());
	yoke_error_clear();
#ifdef HAVE_PNG
	mkdir("img", 0777);
	mkdir("img/a", 0777);
	put("img/a/x.PNG", png, sizeof png);
	// red is 255
	ok(reads("img", "size=1 mean=0.75 std=0.125 zoom=0.5 crop=random", 2, 2),
	   "%s: mean=0.75 std=0.125 zoom=0.5 %s", now, yoke_error());
	yoke_error_clear();
#else
	(void)png;
	skip("images", "built without libpng");
#endif
}

static void test_cubes(void)
{
	static const char header[] =
		"ENVI\nSAMPLES = 1\nLINES = 1\nBANDS = 1\nDATA TYPE = 4\nINTERLEAVE = BIL\n"
		"DATA IGNORE VALUE = -0.5\nREFLECTANCE SCALE FACTOR = 2.5\nWAVELENGTH = {400.25}\n";
	const float out = -0.5f;
	const double nm = 400.25;
	float x = 0, weight = 1;
	struct yoke_cube_info i = { .size = sizeof i };
	put("c.hdr", header, sizeof header - 1);
	put("c.img", &out, sizeof out);
	yoke_cube *c = yoke_cube_open("c.hdr", NULL);
	ok(c && yoke_cube_info(c, &i) == 0 && yoke_cube_read(c, &x, &weight) == 0 &&
		   i.scale == 2.5 && i.wavelength && i.wavelength[0] == 400.25 && weight == 0 &&
		   fabsf(x + 0.2f) < 1e-6f,
	   "%s: an ENVI header %s", now, yoke_error());
	yoke_cube_free(c);
	i = (struct yoke_cube_info){ .size = sizeof i,
				     .lines = 1,
				     .samples = 1,
				     .bands = 1,
				     .type = "f32",
				     .scale = 2.5,
				     .ignore = -0.5,
				     .wavelength = &nm };
	ok(yoke_cube_write("w.hdr", &i, &x) == 0 && holds("w.hdr", "{400.25}") &&
		   holds("w.hdr", "= -0.5\n") && holds("w.hdr", "= 2.5\n"),
	   "%s: a header is written %s", now, yoke_error());
	yoke_error_clear();
}

static void test_settings(void)
{
	static const char
		env[] = "lr=1.5e-3\n",
		json[] = "{\"nodes\": [{\"name\": \"a\", \"type\": \"rx\", \"eps\": 0.125}]}";
	struct yk_config c;
	yk_config_init(&c, YK_T);
	put("c.env", env, sizeof env - 1);
	ok(yk_config_file(&c, "c.env") == 0 && yk_config_argument(&c, "valid=0.25") == 0 &&
		   yk_config_real(&c, YK_KEY_lr) == 1.5e-3 &&
		   yk_config_real(&c, YK_KEY_valid) == 0.25,
	   "%s: lr=1.5e-3 of a file, valid=0.25 of an argument %s", now, yoke_error());
	yk_config_fini(&c);
	yoke_optim *o = yoke_optim_new("adamw", "lr=1.5e-3 weight_decay=0.25");
	ok(o != NULL, "%s: an optimizer's settings %s", now, yoke_error());
	yoke_optim_free(o);
	yoke_pipeline *p = yoke_pipeline_new(json);
	ok(p && strstr(yoke_pipeline_config(p), "0.125"), "%s: a pipeline's configuration %s", now,
	   yoke_error());
	yoke_pipeline_free(p);
	yoke_error_clear();
}

static void test_tokens(void)
{
	static const char text[] = "a text of forty-two bytes, some to validate";
	const struct yk_prepare o = { .paths = "t.txt",
				      .out = "t.tokens",
				      .tokenizer = "byte",
				      .valid = 0.25,
				      .context = 3 };
	const struct yk_data_spec spec = { .context = 3 };
	struct yk_prepared_text done;
	put("t.txt", text, sizeof text - 1);
	bool good = yk_prepare(&o, &done) == 0;
	struct yk_tokenizer *t = good ? yk_data_tokenizer("t.tokens", &spec) : NULL;
	struct yk_data *d = t ? yk_data_new("t.tokens", t, &spec) : NULL;
	ok(d && yk_data_val_fraction(d) == 0.25, "%s: a token file's share is %g %s", now,
	   d ? 100 * yk_data_val_fraction(d) : 0, yoke_error());
	yk_data_free(d);
	yk_tokenizer_free(t);
	yoke_error_clear();
}

int main(void)
{
	static const char *const language[] = { "de_DE", "ps_AF", "tr_TR" };
	char path[4096 + 16], command[8400], name[32];
	tap_folder();
	if (!getcwd(path, 4096))
		return 1;
	setenv("LOCPATH", path, 1);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s.UTF-8", language[i]);
		snprintf(command, sizeof command, "localedef -i %s -f UTF-8 '%s/%s' 2>/dev/null",
			 language[i], path, name);
		now = name;
		// warnings alone give status 1
		if (system(command) < 0 || !setlocale(LC_ALL, name)) {
			skip(name, "localedef, or the source of this locale, is not installed");
			continue;
		}
		mkdir(language[i], 0777);
		if (chdir(language[i]) < 0)
			return 1;
		test_base();
		test_json();
		test_records();
		test_data();
		test_cubes();
		test_settings();
		test_tokens();
		setlocale(LC_ALL, "C");
		if (chdir("..") < 0)
			return 1;
	}
	return done();
}
