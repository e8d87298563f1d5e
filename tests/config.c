// SPDX-License-Identifier: Apache-2.0
// Tests configuration: defaults, files, arguments, precedence, and the errors for bad input.
#include "config.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "tap.h"
#include "config/conf.h"
#include "train/check.h"

static const char path[] = "config.env";

static void refused(struct yk_config *c, int e, int code, const char *part)
{
	bool good =
		e == code && strstr(yoke_error(), part) && !strchr(yoke_error(), '\n');

	if (!good)
		diag("got %d, wanted %d with '%s'", e, code, part);
	ok(good, "refused: %s", yoke_error());
	yoke_error_clear();
	yk_config_fini(c);
	yk_config_init(c, YK_T);
}

static void bad_argument(const char *argument, int code, const char *part)
{
	struct yk_config c;

	yk_config_init(&c, YK_T);
	int e = yk_config_argument(&c, argument);
	refused(&c, e, code, part);
	yk_config_fini(&c);
}

static void bad_file(const char *text, int code, const char *part)
{
	struct yk_config c;

	yk_file_write(path, text, strlen(text));
	yk_config_init(&c, YK_T);
	int e = yk_config_file(&c, path);
	refused(&c, e, code, part);
	yk_config_fini(&c);
}

static void test_table(void)
{
	struct yk_config c;
	int bad = 0;

	for (int k = 0; k < YK_KEYS; k++) {
		const struct yk_config_row *r = &yk_config_rows[k];
		bad += !r->commands || !*r->help ||
		       (r->type != YK_KEY_INT && r->type != YK_KEY_REAL &&
			(r->type == YK_KEY_CHOICE || r->type == YK_KEY_CHOICE_OR_PATH) !=
				!!r->choices);
		for (int i = 0; i < k; i++)
			bad += !strcmp(yk_config_rows[i].name, r->name);
	}
	ok(bad == 0, "%d rows", YK_KEYS);
	static const unsigned commands[] = { YK_T, YK_G, YK_E };
	for (int i = 0; i < 3; i++) {
		ok(yk_config_init(&c, commands[i]) == 0, "every default is valid %s",
		   yoke_error());
		yk_config_fini(&c);
	}
}

static void test_arguments(void)
{
	char *argv[] = { "layers=3",  "lr=2.5e-4", "out=a=b",           "data=",
			 "steps=1e3", "embed=64",  "schedule=constant", "LOG_EVERY=7" };
	struct yk_config c;

	yk_config_init(&c, YK_T);
	ok(yk_config_int(&c, YK_KEY_layers) == 4 && !yk_config_is_set(&c, YK_KEY_layers) &&
		   yk_config_real(&c, YK_KEY_lr) == YK_AUTO,
	   "an empty configuration has the defaults");
	ok(yk_config_arguments(&c, 8, argv) == 0, "arguments %s", yoke_error());
	ok(yk_config_int(&c, YK_KEY_layers) == 3 && yk_config_is_set(&c, YK_KEY_layers) &&
		   yk_config_real(&c, YK_KEY_lr) == 2.5e-4 &&
		   yk_config_int(&c, YK_KEY_steps) == 1000 &&
		   !strcmp(yk_config_str(&c, YK_KEY_out), "a=b") &&
		   !strcmp(yk_config_str(&c, YK_KEY_schedule), "constant") &&
		   yk_config_int(&c, YK_KEY_log_every) == 7,
	   "values of arguments");
	yk_config_fini(&c);

	char *twice[] = { "steps=5", "lr=1", "STEPS=9" };
	yk_config_init(&c, YK_T);
	refused(&c, yk_config_arguments(&c, 3, twice), YOKE_EINVAL,
		"'STEPS=9' repeats 'steps=5'");
	char *text[] = { "tokens=5", "It was" };
	yk_config_fini(&c);
	yk_config_init(&c, YK_G);
	refused(&c, yk_config_arguments(&c, 2, text), YOKE_ENOENT, "prompt='It was'");
	refused(&c, yk_config_arguments(&c, 2, text), YOKE_ENOENT, "unknown key 'tokens'");
	yk_config_fini(&c);
	bad_argument("layer=3", YOKE_ENOENT, "'layers'");
	bad_argument("wieght_decay=3", YOKE_ENOENT, "'weight_decay'");
	bad_argument("temperature=1", YOKE_ENOENT, "unknown key");
	bad_argument("qqqqqqqqqqqqqqqqqqq=3", YOKE_ENOENT, "yoke help");
	bad_argument("=3", YOKE_EINVAL, "key=value");
	bad_argument("layers", YOKE_EINVAL, "key=value");
	bad_argument("layers=", YOKE_EINVAL, "from 1 to 1000");
	bad_argument("layers=0", YOKE_EINVAL, "from 1 to 1000");
	bad_argument("layers=1001", YOKE_EINVAL, "from 1 to 1000");
	bad_argument("layers=2.5", YOKE_EINVAL, "whole number");
	bad_argument("layers= 2", YOKE_EINVAL, "whole number");
	bad_argument("layers=2x", YOKE_EINVAL, "whole number");
	bad_argument("layers=nan", YOKE_EINVAL, "whole number");
	bad_argument("steps=99999999999999999999", YOKE_EINVAL, "whole number");
	bad_argument("lr=nan", YOKE_EINVAL, "lr=nan");
	bad_argument("lr=-1", YOKE_EINVAL, "from 0 to 1000");
	bad_argument("lr=inf", YOKE_EINVAL, "lr=inf");
	bad_argument("dropout=1", YOKE_EINVAL, "0.99");
	bad_argument("schedule=cos", YOKE_EINVAL, "cosine constant linear");
	bad_argument("schedule=", YOKE_EINVAL, "cosine constant linear");
	bad_argument("schedule=cosine constant", YOKE_EINVAL, "one of");
	bad_argument("precision=fp16", YOKE_EINVAL, "fp32");
	bad_argument("optimizer=nag", YOKE_EINVAL, "sgd nesterov=1");
	bad_argument("optimizer=adamv", YOKE_EINVAL, "adafactor; did you mean 'adam'?");
	bad_argument("optimizer=Adam", YOKE_EINVAL, "did you mean 'adam'?");
	bad_argument("optimizer=lion", YOKE_EINVAL, "one of: sgd heavy_ball");
	bad_argument("momentum=1", YOKE_EINVAL, "from 0 to below 1, or auto");
	bad_argument("beta2=-0.1", YOKE_EINVAL, "from 0 to below 1");
	bad_argument("eps=-1e-8", YOKE_EINVAL, "eps=-1e-8");
	bad_argument("window=0", YOKE_EINVAL, "from 1 to 10000, or auto");
}

// Optimizer keys are checked together with the others.
static void bad_optimizer(char *key, char *other, int code, const char *part)
{
	char *argv[] = { "data=x", key, other };
	struct yk_config c;
	yk_config_init(&c, YK_T);
	int e = yk_config_arguments(&c, 3, argv);
	if (e == 0)
		e = yk_config_check(&c);
	refused(&c, e, code, part);
	yk_config_fini(&c);
}

static void test_optimizers(void)
{
	bad_optimizer(
		"optimizer=adagrad", "momentum=0.5", YOKE_EINVAL,
		"'momentum=0.5': optimizer=adagrad has no momentum; it has lr weight_decay clip eps lr_decay");
	bad_optimizer("rho=0.5", "steps=3", YOKE_EINVAL, "optimizer=adamw has no rho; it has lr");
	bad_optimizer("optimizer=heavy_ball", "nesterov=1", YOKE_EINVAL,
		      "heavy_ball has no nesterov");
	bad_optimizer("optimizer=rmsprop", "nesterov=1", YOKE_EINVAL,
		      "nesterov=1 needs momentum above 0, got momentum=0");
	bad_optimizer("optimizer=adagrad", "window_by=mean", YOKE_EINVAL,
		      "window_by=mean needs window");
	bad_optimizer("optimizer=muon", "zero=1", YOKE_EUNSUPPORTED, "needs whole parameters");
	bad_optimizer("optimizer=muon", "tensor=2", YOKE_EUNSUPPORTED, "needs whole parameters");
	bad_optimizer("clip=1", "clip_value=2", YOKE_EINVAL, "does not go with clip_value");
	bad_file("optimizer=sgd\nbeta1=2\n", YOKE_EINVAL, "beta1=2");
	struct yk_config c;
	yk_config_init(&c, YK_T); // a file may configure several optimizers
	yk_file_write(path, "DATA=x\nOPTIMIZER=sgd\nBETA1=0.5\n", 31);
	ok(yk_config_file(&c, path) == 0 && yk_config_check(&c) == 0,
	   "keys of other commands in a file are ignored %s", yoke_error());
	yoke_error_clear();
	yk_config_fini(&c);
}

// The value that a checkpoint stores is accepted again and means the same.
static bool again(const struct yk_config *c, int key)
{
	struct yk_config d;
	yk_config_init(&d, c->command);
	json_t *o = yk_config_json(c);
	bool good = o && yk_config_take(&d, o, "x") == 0;
	const struct yk_config_value *v = &c->value[key], *w = &d.value[key];
	if (good && json_object_get(o, yk_config_rows[key].name))
		good = v->i == w->i && v->r == w->r && !strcmp(v->text, w->text);
	// strings that are not text cannot be stored in a manifest and give an error
	if (!o)
		good = strstr(yoke_error(), "UTF-8") != NULL;
	json_decref(o);
	yk_config_fini(&d);
	yoke_error_clear();
	return good;
}

// Durations in steps or in epochs.
static void test_every(void)
{
	static const char *const wrong[] = { "ep",    "0ep",    "-1ep",    "1 ep", "nanep",
					     "infep", "1e10ep", "0.25epo", "0.25" };
	struct yk_config c;
	int bad = 0;
	yk_config_init(&c, YK_T);
	ok(yk_config_argument(&c, "eval_every=0.25ep") == 0 &&
		   yk_config_every(&c, YK_KEY_eval_every, 10) == 3 &&
		   yk_config_every(&c, YK_KEY_eval_every, 40) == 10 &&
		   yk_config_every(&c, YK_KEY_eval_every, 0.1) == 1 &&
		   yk_config_every(&c, YK_KEY_save_every, 10) == 500,
	   "a quarter of an epoch %s", yoke_error());
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char text[64];
		snprintf(text, sizeof text, "save_every=%s", wrong[i]);
		bad += yk_config_argument(&c, text) != YOKE_EINVAL ||
		       yk_config_every(&c, YK_KEY_save_every, 10) != 500;
		yoke_error_clear();
	}
	ok(!bad, "a value that is neither steps nor epochs is refused");
	yk_config_fini(&c);
}

// Every key of every command with unusual values: each is either refused in one line that names the
// key, keeping the previous value, or accepted unchanged within its bounds.
static void test_absurd(void)
{
	static const char *const values[] = {
		"",
		" ",
		"-1",
		"-0",
		"+1",
		"0",
		"1",
		"1.5",
		"-1e-320",
		"1e400",
		"-1e400",
		"nan",
		"-nan",
		"inf",
		"-inf",
		"0x7f",
		"1e3",
		"1e18",
		"9007199254740993",
		"9223372036854775807",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999999",
		"1,5",
		"1 ",
		" 1",
		"1\n",
		"\t1",
		"1k",
		"\xff\xfe",
		"a\nb",
		"a\tb",
		"\x1b[31m",
		"%s%n%n",
		"${HOME}",
		"../../../etc/passwd",
		"=",
		"==1",
		"true",
		"yes",
		"auto",
		"byte",
		"word",
		"'1'",
		"\"1\"",
	};
	static const unsigned commands[] = { YK_T, YK_G, YK_E };
	int refusals = 0, taken = 0, bad = 0;
	char *text = malloc(100200);
	for (int m = 0; m < 3; m++)
		for (int k = 0; k < YK_KEYS; k++) {
			const struct yk_config_row *row = &yk_config_rows[k];
			for (size_t i = 0; i <= sizeof values / sizeof *values; i++) {
				struct yk_config c;
				int n = snprintf(text, 100200, "%s=%s", row->name,
						 i ? values[i - 1] : "");
				if (!i) // one that is long
					memset(text + n, '9', 100000), text[n + 100000] = 0;
				yk_config_init(&c, commands[m]);
				int e = yk_config_argument(&c, text);
				const struct yk_config_value *v = &c.value[k];
				bool good;
				if (e < 0) {
					good = strstr(yoke_error(), row->name) &&
					       !strchr(yoke_error(), '\n') &&
					       !strcmp(v->text, row->def) &&
					       !yk_config_is_set(&c, k) &&
					       (e == YOKE_EINVAL ||
						(e == YOKE_ENOENT &&
						 !(row->commands & commands[m])));
					refusals++;
				} else {
					good = row->commands & commands[m] &&
					       yk_config_is_set(&c, k) &&
					       !strcmp(v->text, strchr(text, '=') + 1);
					if (row->type == YK_KEY_INT)
						good &= ((double)v->i >= row->min &&
							 (double)v->i <= row->max) ||
							(row->choices &&
							 !strcmp(v->text, row->choices) &&
							 v->i == YK_AUTO);
					if (row->type == YK_KEY_REAL)
						good &= (v->r >= row->min && v->r <= row->max) ||
							(row->choices &&
							 !strcmp(v->text, row->choices) &&
							 v->r == YK_AUTO);
					if (row->type == YK_KEY_REAL_OR_PATHS)
						good &= v->i == 1 ? v->r == 0 :
							v->i == 0 && v->r >= row->min &&
								v->r <= row->max;
					if (row->type == YK_KEY_EVERY)
						good &= v->r > 0 ? v->i == 0 :
							v->i >= 0 && (double)v->i <= row->max;
					good = good && again(&c, k);
					taken++;
				}
				if (!good)
					diag("%.60s: %d %s", text, e, yoke_error());
				bad += !good;
				yoke_error_clear();
				yk_config_fini(&c);
			}
		}
	ok(!bad && refusals > 1000 && taken > 200,
	   "unusual values: %d refused, %d accepted, %d wrong", refusals, taken, bad);
	free(text);
}

static void test_file(void)
{
	static const char text[] =
		"# a comment\n"
		"\n"
		"  LAYERS=3   # three\n"
		"lr=5e-4\r\n"
		"OUT=\"runs/${YOKE_TEST_NAME}/l${LAYERS}\"\n"
		"DATA='a b/${LAYERS} # no comment',\"t\\t\\\"\\$\\\\\"\n"
		"TEMPERATURE=0.5\n"
		"EMBED=32${LAYERS}";
	struct yk_config c;

	setenv("YOKE_TEST_NAME", "x y", 1);
	yk_file_write(path, text, strlen(text));
	yk_config_init(&c, YK_T);
	ok(yk_config_argument(&c, "lr=1") == 0 && yk_config_file(&c, path) == 0,
	   "a file %s", yoke_error());
	ok(yk_config_int(&c, YK_KEY_layers) == 3 &&
		   yk_config_int(&c, YK_KEY_embed) == 323,
	   "numbers; a key overrides an earlier one");
	diag("out '%s' data '%s'", yk_config_str(&c, YK_KEY_out),
	     yk_config_str(&c, YK_KEY_data));
	ok(!strcmp(yk_config_str(&c, YK_KEY_out), "runs/x y/l3"),
	   "environment variables expand in \"..\"");
	ok(!strcmp(yk_config_str(&c, YK_KEY_data), "a b/${LAYERS} # no comment,t\t\"$\\"),
	   "'..' is literal; escapes work in \"..\"");
	ok(yk_config_real(&c, YK_KEY_lr) == 1,
	   "an argument overrides a file, even before it");

	// before the file, after it; the value of epochs then
	static const char *const steps[][3] = { { NULL, "steps=12", "0" },
						{ "steps=12", NULL, "0" },
						{ NULL, "lr=1", "3" },
						{ "epochs=2", "steps=12", "2" } };
	yk_file_write(path, "EPOCHS=3\nSTEPS=9\n", 17);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct yk_config e, copy = { 0 };
		yk_config_init(&e, YK_T);
		int code = steps[i][0] ? yk_config_argument(&e, steps[i][0]) : 0;
		code = code ? code : yk_config_file(&e, path);
		code = code || !steps[i][1] ? code : yk_config_argument(&e, steps[i][1]);
		code = code ? code : yk_config_with(&e, 0, NULL, &copy);
		ok(code == 0 && !strcmp(yk_config_str(&copy, YK_KEY_epochs), steps[i][2]),
		   "epochs of a file, and %s, %s: %s %s", steps[i][0] ? steps[i][0] : "nothing",
		   steps[i][1] ? steps[i][1] : "nothing", yk_config_str(&copy, YK_KEY_epochs),
		   yoke_error());
		yk_config_fini(&copy);
		yk_config_fini(&e);
	}

	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "layers", "7", "heads", "2", "what",
			      "new", "lr", "9");
	ok(yk_config_take(&c, o, "x") == 0 && yk_config_int(&c, YK_KEY_layers) == 3 &&
		   yk_config_int(&c, YK_KEY_heads) == 2 &&
		   yk_config_real(&c, YK_KEY_lr) == 1,
	   "a checkpoint provides missing values %s", yoke_error());
	json_object_set_new(o, "embed", json_string("-1"));
	int e = yk_config_take(&c, o, "m/manifest.json");
	ok(e == YOKE_EINVAL && strstr(yoke_error(), "m/manifest.json"),
	   "values of a checkpoint are checked: %s", yoke_error());
	yoke_error_clear();
	json_decref(o);

	struct yk_config d;
	o = yk_config_json(&c);
	yk_config_init(&d, YK_T);
	ok(o && yk_config_take(&d, o, "x") == 0 &&
		   yk_config_int(&d, YK_KEY_embed) == 323 &&
		   yk_config_real(&d, YK_KEY_lr) == 1 &&
		   !yk_config_is_set(&d, YK_KEY_out) && !json_object_get(o, "prompt"),
	   "written as JSON and read back, except out and resume %s", yoke_error());
	json_decref(o);
	yk_config_fini(&d);
	yk_config_fini(&c);

	bad_file("LAYERS=3\nLAYERS=4\nLAYERS=\n", YOKE_EINVAL, ":3: layers=");
	bad_file("LAYERS=3\nLAYRES=4\n", YOKE_ENOENT,
		 ":2: unknown key 'LAYRES'; did you mean 'layers'");
	bad_file("LAYERS=3\n\nLAYERS=x\n", YOKE_EINVAL, ":3: layers=x");
	bad_file("LAYERS 3\n", YOKE_EINVAL, ":1: 'LAYERS 3'");
	bad_file("LAYERS = 3\n", YOKE_EINVAL, "KEY=value");
	bad_file("export LAYERS=3\n", YOKE_EINVAL, ":1:");
	bad_file("OUT=a b\n", YOKE_EINVAL, "'b' after the value");
	bad_file("OUT=\"a\n\"\n", YOKE_EINVAL, "not closed");
	bad_file("OUT='a\n", YOKE_EINVAL, "not closed");
	bad_file("OUT=\"a\\q\"\n", YOKE_EINVAL, "escape");
	bad_file("OUT=\"a\\", YOKE_EINVAL, "escape");
	bad_file("OUT=${NOT_SET_ANYWHERE}\n", YOKE_EINVAL, "${NOT_SET_ANYWHERE}");
	bad_file("OUT=${A\n", YOKE_EINVAL, "'}'");
	bad_file("OUT=${}\n", YOKE_EINVAL, "'}'");
	bad_file("TEMPERATURE=x\n", YOKE_EINVAL, "temperature=x");
	bad_file("OUT=\xff\n", YOKE_EINVAL, "UTF-8");
	unlink(path);
	yk_config_init(&c, YK_T);
	refused(&c, yk_config_file(&c, path), YOKE_ENOENT, path);
	yk_config_fini(&c);
}

// ${VAR} that doubles a value line by line must end in an error, not exhaust memory.
static void test_bomb(void)
{
	char text[4096];
	int n = snprintf(text, sizeof text, "OUT=%064d\n", 0);

	for (int i = 0; i < 40; i++)
		n += snprintf(text + n, sizeof text - (size_t)n,
			      "OUT=\"${OUT}${OUT}\"\n");
	bad_file(text, YOKE_ENOMEM, "memory");
}

static void test_check(void)
{
	struct yk_config c;

	yk_config_init(&c, YK_T);
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "data");
	yk_config_argument(&c, "data=x");
	ok(yk_config_check(&c) == 0, "heads must divide embed %s", yoke_error());
	yk_config_argument(&c, "heads=3");
	refused(&c, yk_config_check(&c), YOKE_EINVAL,
		"heads=3 does not divide embed=128");
	yk_config_argument(&c, "model=mlp");
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "data");
	yk_config_argument(&c, "data=x");
	yk_config_argument(&c, "model=mlp");
	yk_config_argument(&c, "heads=3");
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "'heads=3': model=mlp has no heads");
	yk_config_argument(&c, "data=x");
	yk_config_argument(&c, "history=3");
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "model=gpt has no history");
	yk_config_argument(&c, "data=x");
	yk_config_argument(&c, "model=mlp");
	yk_config_argument(&c, "context=7");
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "history=8 is more than the context=7");
	bad_argument("model=bert", YOKE_EINVAL, "one of: gpt mlp");
	yk_config_argument(&c, "data=x");
	yk_config_argument(&c, "out=");
	refused(&c, yk_config_check(&c), YOKE_EINVAL, "out");
	yk_config_fini(&c);
}

int main(void)
{
	tap_seed();
	tap_folder();
	test_table();
	test_arguments();
	test_optimizers();
	test_absurd();
	test_every();
	test_file();
	test_bomb();
	test_check();
	return done();
}
