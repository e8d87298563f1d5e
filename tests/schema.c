// SPDX-License-Identifier: Apache-2.0
// Tests the compiler of JSON schemas: which texts a schema accepts, byte by byte, and what schemas
// that are wrong, not supported, or made to exhaust memory get.
#include "config.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "fuzz/targets.h"
#include "schema/schema.h"
#include "schema_valid.h"
#include "tap.h"

// In a text '~' is before the first byte that is refused, or at the end of a text that is not
// complete.
static const struct {
	const char *schema, *text[16];
} cases[] = {
	{ "true",
	  { "null", "[1,-2.5e10,{\"x\":null,\"\":\"\\n\"}, true ]", "{\"a\":{\"b\":[[]]}}",
	    "\"\xf0\x9f\x98\x80\xc3\xa9\"", " 12", "[~,", "[]~ ", "{\"a\"~ :1}", "nul~", "0~1",
	    "1.~e", "1e29~9", "\"~\xc0", "\"\xed~\xa0\x80", "~+1" } },
	{ "{\"type\": \"string\"}",
	  { "\"\"", "\"\\ud83d\\ude00\\u00e9\\/\"", "\"\\ud83d~x", "\"\\ud~c00", "\"\\u000~0\"",
	    "\"\\~a", "\"~\x01", "\"a\"~\"", "\"a~", "~1" } },
	{ "{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
	  { "\"ab\"", "\"\xc3\xa9\\n\\u1234\"", "\"\\ud83d\\ude00x\"", "\"a~\"", "\"abc~d" } },
	{ "{\"type\": \"integer\"}",
	  { "0", "-12", "999999999999999999", "0~0", "1~.", "-~", "999999999999999999~9",
	    "1~e5" } },
	{ "{\"type\": \"integer\", \"minimum\": -3, \"maximum\": 120}",
	  { "0", "-3", "120", "99", "119", "12", "-~4", "12~1", "13~0" } },
	{ "{\"type\": \"integer\", \"exclusiveMinimum\": 9, \"exclusiveMaximum\": 1001.5}",
	  { "10", "1000", "1001", "9~", "100~2", "~-" } },
	{ "{\"type\": \"integer\", \"multipleOf\": 7, \"minimum\": 0}",
	  { "0", "7", "14", "7000", "6~", "15~" } },
	{ "{\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 1}",
	  { "1", "1.0", "0.001", "0~", "0.0~", "1.0~1", "~-0" } },
	{ "{\"type\": \"number\", \"minimum\": -1.25, \"maximum\": 20.5}",
	  { "-1.25", "-1.250", "20.5", "20.49", "3", "-0.9", "-1.2~6", "20.5~1", "2~1", "-~2",
	    "3~e" } },
	{ "{\"type\": \"number\", \"minimum\": 0}", { "0", "1.5e-7", "123456", "~-" } },
	{ "{\"type\": \"number\", \"multipleOf\": 0.01}", { "1.25", "-3", "1.25~5" } },
	{ "{\"type\": [\"boolean\", \"null\"]}", { "true", "false", "null", "t~x", "~1" } },
	{ "{\"enum\": [\"x\", \"y\\u00e9\", 1.5, null, [1, {\"a\": 2}], \"\\u0001/\\\"\"]}",
	  { "\"x\"", "\"y\xc3\xa9\"", "1.5", "null", "[1,{\"a\":2}]", "\"\\u0001/\\\"\"", "\"~z",
	    "\"y~\\u", "[1,~ " } },
	{ "{\"const\": {\"a\": \"b\"}}", { "{\"a\":\"b\"}", "{\"a\":\"~c" } },
	{ "{\"type\": \"string\", \"enum\": [\"a\", 1, \"bcd\"], \"maxLength\": 2}",
	  { "\"a\"", "\"~b", "~1" } },
	{ "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": "
	  "{\"type\": \"null\"}, \"c\": {}}, \"required\": [\"b\"]}",
	  { "{\"a\":1,\"b\":null,\"c\":[]}", "{\"b\":null}", "{\"b\":null, \"c\": 1}",
	    "{\n  \"a\": 1,\n  \"b\": null\n}", "{~}", "{\"a\":1~}", "{\"~c", "{\"b\":null,\"~a",
	    "{\"b\":null,~}", "{\"a\":1,\"~c", "{\"b\":null}~}", "{\"b\":null,\"~x", "{ ~ \"" } },
	{ "{\"properties\": {\"a\": false, \"b\": true}}", { "{}", "{\"b\":1}", "{\"~a" } },
	{ "{\"type\": \"object\", \"properties\": {\"ab\": {\"type\": \"null\"}}, "
	  "\"additionalProperties\": {\"type\": \"boolean\"}}",
	  { "{}", "{\"ab\":null,\"x\":true,\"y\":false}", "{\"abc\":true,\"a\":true}",
	    "{\"x\":true}", "{\"ab\":~t", "{\"x\":~n", "{\"\\u00~61", "{\"x\":true,\"ab~\"" } },
	{ "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"integer\"}}",
	  { "{}", "{\"\\u0061\":1,\"\":2}", "{\"a\":~\"" } },
	{ "{\"type\": \"object\", \"properties\": {\"a\": {}}, \"required\": [\"a\", \"z\"], "
	  "\"additionalProperties\": {\"type\": \"null\"}}",
	  { "{\"a\":1,\"z\":null}", "{\"a\":1~}", "{\"a\":1,\"z\":~1",
	    "{\"a\":1,\"z\":null,\"y\":null}" } },
	{ "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 2, "
	  "\"maxItems\": 3}",
	  { "[1,2]", "[ 1, 2, 3 ]", "[1~]", "[1,2,3~,", "[~]" } },
	{ "{\"type\": \"array\", \"prefixItems\": [{\"type\": \"integer\"}, {\"type\": \"null\"}], "
	  "\"minItems\": 1}",
	  { "[1]", "[1,null]", "[~]", "[1,null~,", "[~n" } },
	{ "{\"type\": \"array\", \"prefixItems\": [{\"type\": \"integer\"}], \"items\": {\"type\": "
	  "\"boolean\"}, \"minItems\": 3}",
	  { "[1,true,false]", "[1,true,false,true]", "[1,true~]", "[1,~1" } },
	{ "{\"items\": [{\"type\": \"integer\"}], \"additionalItems\": {\"type\": \"null\"}}",
	  { "[]", "[1]", "[1,null,null]", "[1,~1" } },
	{ "{\"type\": \"array\", \"maxItems\": 0}", { "[]", "[~1" } },
	{ "{\"type\": \"array\", \"items\": false}", { "[]", "[~1" } },
	{ "{\"anyOf\": [{\"type\": \"object\", \"properties\": {\"kind\": {\"const\": \"a\"}, "
	  "\"x\": {\"type\": \"integer\"}}, \"required\": [\"kind\", \"x\"]},"
	  " {\"type\": \"object\", \"properties\": {\"kind\": {\"const\": \"b\"}, \"y\": "
	  "{\"type\": \"null\"}}, \"required\": [\"kind\", \"y\"]}, {\"type\": \"null\"}]}",
	  { "{\"kind\":\"a\",\"x\":1}", "{\"kind\":\"b\",\"y\":null}", "null",
	    "{\"kind\":\"a\",\"~y", "{\"kind\":\"~c", "{\"kind\":\"b\"~}" } },
	{ "{\"type\": \"integer\", \"oneOf\": [{\"maximum\": 3}, {\"minimum\": 10}], \"minimum\": "
	  "0}",
	  { "3", "10", "11", "4~", "~-" } },
	{ "{\"allOf\": [{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}, "
	  "\"required\": [\"a\"]}, {\"properties\": {\"a\": {\"minimum\": 5},"
	  " \"b\": {\"type\": \"null\"}}, \"required\": [\"b\"]}]}",
	  { "{\"a\":5,\"b\":null}", "{\"a\":12,\"b\":null}", "{\"a\":4~,", "{\"a\":5~}" } },
	{ "{\"allOf\": [{\"enum\": [1, 2, 3]}, {\"enum\": [2, 3, 4]}, {\"minimum\": 2.5}]}",
	  { "3", "~2", "~4" } },
	{ "{\"type\": \"integer\", \"nullable\": true}", { "null", "12", "~t" } },
	{ "{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"type\": \"object\", \"properties\": "
	  "{\"v\": {\"type\": \"integer\"}, \"n\": {\"anyOf\": [{\"$ref\": \"#/$defs/n\"},"
	  " {\"type\": \"null\"}]}}, \"required\": [\"v\", \"n\"], \"additionalProperties\": "
	  "false}}}",
	  { "{\"v\":1,\"n\":{\"v\":2,\"n\":null}}", "{\"v\":1,\"n\":{\"v\":2,\"n\":null}~,",
	    "{\"v\":1~}" } },
	{ "{\"type\": \"object\", \"properties\": {\"children\": {\"type\": \"array\", \"items\": "
	  "{\"$ref\": \"#\"}}}, \"required\": [\"children\"]}",
	  { "{\"children\":[]}",
	    "{\"children\":[{\"children\":[]},{\"children\":[{\"children\":[]}]}]}",
	    "{\"children\":[{~}" } },
	{ "{\"definitions\": {\"a/b~c d\": {\"type\": \"null\"}}, \"type\": \"array\", \"items\": "
	  "{\"$ref\": \"#/definitions/a~1b~0c%20d\"}}",
	  { "[null,null]", "[~1" } },
	{ "{\"type\": \"string\", \"pattern\": \"^[a-c]{2,3}x?$\", \"maxLength\": 3}",
	  { "\"abc\"", "\"abx\"", "\"ab\"", "\"abc~x", "\"a~\"", "\"~d" } },
	{ "{\"pattern\": \"^(\u00e9|\\n|ab)*$\", \"minLength\": 2, \"maxLength\": 3}",
	  { "\"ab\"", "\"\xc3\xa9\\n\xc3\xa9\"", "\"ab\\n\"", "\"ab~ab", "\"\\n~\"",
	    "\"\\n\\n~a" } },
	{ "{\"pattern\": \"x\", \"maxLength\": 100000}", { "\"abx\"", "\"ab~\"" } },
	{ "{\"type\": \"string\", \"pattern\": \"^a|b$\"}",
	  { "\"a\"", "\"axx\"", "\"xxb\"", "\"x~\"", "\"b\"", "\"bx~\"" } },
	{ "{\"type\": \"string\", \"pattern\": \"x\"}",
	  { "\"x\"", "\"abxc\\n\xc3\xa9\"", "\"ab~\"", "\"\\u00~4" } },
	{ "{\"type\": \"string\", \"pattern\": \"^[^a-y\\\\d]+$\"}",
	  { "\"zZ\xe2\x82\xac\"", "\"\\\"\\\\\"", "\"~1", "\"~b" } },
	{ "{\"type\": \"string\", \"pattern\": "
	  "\"^(?:\\\\w+\\\\.)*\\\\x41\\\\u00e9[\\\\]\\\\-]?$\"}",
	  { "\"A\xc3\xa9\"", "\"ab.c_.A\xc3\xa9]\"", "\"A\xc3\xa9-\"", "\"ab~\"" } },
	{ "{\"type\": \"string\", \"pattern\": \"^.{3,}$\", \"minLength\": 5}",
	  { "\"abcde\"", "\"abcd~\"", "\"a\\~n" } },
	{ "{\"type\": \"string\", \"pattern\": \"^\\\\n\\\\t\\\\x01?$\"}",
	  { "\"\\n\\t\"", "\"\\n\\t\\u0001\"", "\"\\~r" } },
	{ "{\"type\": \"string\", \"format\": \"date\"}",
	  { "\"2024-02-29\"", "\"2000-02-29\"", "\"2023-12-31\"", "\"2023-02-2~9", "\"1900-02-2~9",
	    "\"2023-1~3", "\"000~0" } },
	{ "{\"type\": \"string\", \"format\": \"time\"}",
	  { "\"23:59:59Z\"", "\"00:00:00.125+05:30\"", "\"2~4", "\"12:00:00~\"" } },
	{ "{\"type\": \"string\", \"format\": \"date-time\"}",
	  { "\"2023-12-31T23:59:59.5-08:00\"", "\"2023-12-31~ " } },
	{ "{\"type\": \"string\", \"format\": \"duration\"}",
	  { "\"P1Y2M3DT4H5M6S\"", "\"PT36H\"", "\"P2W\"", "\"P~\"", "\"P1Y1~D", "\"P1YT~\"" } },
	{ "{\"type\": \"string\", \"format\": \"uuid\"}",
	  { "\"123e4567-e89b-12d3-A456-426614174000\"", "\"123e4567~e",
	    "\"123e4567-e89b-12d3-a456-42661417400~\"" } },
	{ "{\"type\": \"string\", \"format\": \"email\"}",
	  { "\"a.b+c@ex-1.org\"", "\"a@b.c.d\"", "\"a@b~\"", "\"~@" } },
	{ "{\"type\": \"string\", \"format\": \"ipv4\"}",
	  { "\"192.168.0.255\"", "\"25~6", "\"1.2.3~\"" } },
	{ "{\"type\": \"string\", \"format\": \"ipv6\"}",
	  { "\"::1\"", "\"2001:db8::8a2e:370:7334\"", "\"1:2:3:4:5:6:7:8\"", "\"1:2:3:4:5:6:7~\"",
	    "\":~1" } },
	{ "{\"type\": \"string\", \"format\": \"hostname\"}",
	  { "\"a-b.example\"", "\"~-", "\"a-~." } },
	{ "{\"type\": \"string\", \"format\": \"uri\"}",
	  { "\"https://example.org:80/a/b?c=d#e\"", "\"https:~x" } },
	{ "{\"title\": \"t\", \"description\": \"d\", \"default\": 1, \"examples\": [2], "
	  "\"x-unknown\": 3, \"type\": \"null\", \"uniqueItems\": false}",
	  { "null" } },
};

static struct yk_schema *compile(const char *text)
{
	json_t *j = yk_json_of(text, JSON_DECODE_ANY);
	struct yk_schema *g = j ? yk_schema_compile(j, NULL) : NULL;
	json_decref(j);
	return g;
}

// Accepts the text up to its '~', where it is refused or not complete; without one it is a value.
static bool check_text(struct yk_schema *g, const char *schema, const char *text)
{
	struct yk_schema_state *s = yk_schema_begin(g);
	const char *mark = strchr(text, '~');
	const size_t n = mark ? (size_t)(mark - text) : strlen(text);
	size_t i = 0;

	while (i < n && yk_schema_advance_bytes(s, text + i, 1) == 0)
		i++;
	bool good = i == n;
	if (good && mark && mark[1])
		good = yk_schema_advance_bytes(s, mark + 1, 1) == YOKE_EINVAL;
	else if (good)
		good = yk_schema_complete(s) == !mark;
	if (!good)
		diag("%s: of %s are %zu bytes accepted%s", schema, text, i,
		     yk_schema_complete(s) ? ", a complete value" : "");
	yoke_error_clear();
	yk_schema_end(s);
	return good;
}

static void test_texts(void)
{
	size_t wrong = 0, n = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_schema *g = compile(cases[i].schema);
		if (!g) {
			diag("%s: %s", cases[i].schema, yoke_error());
			wrong++;
			yoke_error_clear();
			continue;
		}
		for (size_t j = 0; j < 16 && cases[i].text[j]; j++, n++)
			wrong += !check_text(g, cases[i].schema, cases[i].text[j]);
		yk_schema_free(g);
	}
	ok(wrong == 0, "%zu texts are accepted or refused at the first byte that cannot be right",
	   n);
}

// An accepted text without '~' is valid by the validator of the tests, too.
static void test_valid(void)
{
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *schema = yk_json_of(cases[i].schema, JSON_DECODE_ANY);
		for (size_t j = 0; j < 16 && cases[i].text[j]; j++) {
			json_t *x = strchr(cases[i].text[j], '~') ?
					    NULL :
					    yk_json_of(cases[i].text[j], JSON_DECODE_ANY);
			if (x && !strstr(cases[i].schema, "pattern") &&
			    !strstr(cases[i].schema, "definitions") && !valid(schema, schema, x)) {
				diag("%s: %s is not valid", cases[i].schema, cases[i].text[j]);
				wrong++;
			}
			json_decref(x);
		}
		json_decref(schema);
	}
	ok(wrong == 0, "the texts that are values are valid by the tests' own validator");
}

// ---- errors ----

static const struct {
	const char *schema;
	int code;
	const char *place; // in the message
} errors[] = {
	{ "1", YOKE_EFORMAT, "#" },
	{ "false", YOKE_EINVAL, "#" },
	{ "{\"$ref\": \"#\"}", YOKE_EFORMAT, "#" },
	{ "{\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"string\"}]}", YOKE_EFORMAT, "#" },
	{ "{\"allOf\": [{\"$ref\": \"#/$defs/a\"}], \"$defs\": {\"a\": {\"oneOf\": [{\"$ref\": "
	  "\"#\"}]}}}",
	  YOKE_EFORMAT, "#/$defs/a" },
	{ "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#/properties/a\"}}}",
	  YOKE_EFORMAT, "#/properties/a" },
	{ "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": "
	  "[\"a\"]}",
	  YOKE_EINVAL, "#" },
	{ "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#\"}}", YOKE_EINVAL,
	  "#" },
	{ "{\"allOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}", YOKE_EINVAL, "#" },
	{ "{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}", YOKE_EINVAL, "#" },
	{ "{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 2}", YOKE_EINVAL, "#" },
	{ "{\"enum\": []}", YOKE_EINVAL, "#" },
	{ "{\"type\": \"array\", \"minItems\": 2, \"maxItems\": 1}", YOKE_EINVAL, "#" },
	{ "{\"type\": \"strin\"}", YOKE_EFORMAT, "#" },
	{ "{\"type\": 1}", YOKE_EFORMAT, "#" },
	{ "{\"properties\": []}", YOKE_EFORMAT, "#" },
	{ "{\"required\": [1]}", YOKE_EFORMAT, "#" },
	{ "{\"properties\": {\"a\": 1}}", YOKE_EFORMAT, "#/properties/a" },
	{ "{\"items\": {\"prefixItems\": {}}}", YOKE_EFORMAT, "#/items" },
	{ "{\"anyOf\": []}", YOKE_EFORMAT, "#" },
	{ "{\"enum\": 1}", YOKE_EFORMAT, "#" },
	{ "{\"minLength\": -1}", YOKE_EFORMAT, "#" },
	{ "{\"maxLength\": 1.5}", YOKE_EFORMAT, "#" },
	{ "{\"maxItems\": 1e300}", YOKE_EFORMAT, "#" },
	{ "{\"minimum\": \"a\"}", YOKE_EFORMAT, "#" },
	{ "{\"multipleOf\": 0}", YOKE_EFORMAT, "#" },
	{ "{\"pattern\": 1}", YOKE_EFORMAT, "#" },
	{ "{\"$ref\": \"#/a/b\"}", YOKE_EFORMAT, "#" },
	{ "{\"$ref\": \"http://example.org\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"anyOf\": [{}, {\"properties\": {\"x\": {\"not\": {}}}}]}", YOKE_EUNSUPPORTED,
	  "#/anyOf/1/properties/x" },
	{ "{\"prefixItems\": [{}, {\"if\": {}}]}", YOKE_EUNSUPPORTED, "#/prefixItems/1" },
	{ "{\"uniqueItems\": true}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"patternProperties\": {\"a\": {}}}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"minProperties\": 1}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"properties\": {\"a\": {}}, \"maxProperties\": 0}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"format\": \"nothing\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"type\": \"number\", \"multipleOf\": 0.3}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"type\": \"number\", \"minimum\": 1e-30}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"enum\": [{\"a\": 1}], \"required\": [\"a\"]}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(a)\\\\1\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(?=a)\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(?<!a)\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"\\\\bx\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"\\\\p{L}\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(^a)\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(a\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"a)\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"[a\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"[z-a]\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"*\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"a**\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"a{3,2}\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"a\\\\\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"\\\\u12\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"a{20000}\"}", YOKE_EUNSUPPORTED, "#" },
	{ "{\"pattern\": \"(a|b)*a(a|b){20}\"}", YOKE_ERANGE, "#" },
	{ "{\"pattern\": \"((a{0,9999}){0,9999}){0,9999}\"}", YOKE_ERANGE, "#" },
	{ "{\"pattern\": \"((){0,9999}){0,9999}\"}", YOKE_ERANGE, "#" },
	{ "{\"pattern\": \"^.*(a.*b.*c.*d|[^x]{9}e).{3000}$\"}", YOKE_ERANGE, "#" },
	{ "{\"pattern\": \"a\", \"minLength\": 100000}", YOKE_ERANGE, "#" },
	{ "{\"pattern\": \"^abc\", \"maxLength\": 2}", YOKE_EINVAL, "#" },
};

static const char *seeds;

static void write_seed(size_t i, const char *text)
{
	char path[600];
	snprintf(path, sizeof path, "%s/schema", seeds);
	mkdir(path, 0777);
	snprintf(path, sizeof path, "%s/schema/%zu", seeds, i);
	FILE *f = fopen(path, "wb");
	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(99);
}

// Does compiling fail with the code and one line that names the place?
static bool fails(const char *what, struct yk_schema *g, int code, const char *place)
{
	char named[128];

	snprintf(named, sizeof named, "schema: %s: ", place);
	const bool good = !g && yoke_error_code() == code && strstr(yoke_error(), named) &&
			  !strpbrk(yoke_error(), "\n\r\033");
	if (!good)
		diag("%s: wanted code %d at %s, got %d: %s", what, code, place,
		     g ? 0 : yoke_error_code(), yoke_error());
	yk_schema_free(g);
	yoke_error_clear();
	return good;
}

static void test_errors(void)
{
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		wrong += !fails(errors[i].schema, compile(errors[i].schema), errors[i].code,
				errors[i].place);
	ok(wrong == 0, "%zu wrong or hostile schemas get one line with their place",
	   sizeof errors / sizeof *errors);
}

// {"items": {"items": .. true}}
static json_t *nested(int depth, const char *key)
{
	json_t *j = json_true();

	for (int i = 0; i < depth; i++)
		j = json_pack("{s:o}", key, j);
	return j;
}

// Frees nested objects from the outside in, which json_decref would do recursively.
static void free_nested(json_t *j, const char *key)
{
	while (json_is_object(j)) {
		json_t *in = json_incref(json_object_get(j, key));
		json_decref(j);
		j = in;
	}
}

static void test_large(void)
{
	json_t *deep = nested(10000, "items"), *chain = json_object(), *defs = json_object(),
	       *wide = json_object(), *all = json_array();
	char name[32], ref[48];
	size_t wrong = 0;

	wrong += !fails("10,000 deep", yk_schema_compile(deep, NULL), YOKE_ERANGE, "#");
	free_nested(deep, "items");
	for (int i = 0; i < 10000; i++) { // each refers to the next
		snprintf(name, sizeof name, "d%d", i);
		snprintf(ref, sizeof ref, "#/$defs/d%d", i + 1);
		json_object_set_new(defs, name,
				    i == 9999 ? json_pack("{s:s}", "type", "null") :
						json_pack("{s:s}", "$ref", ref));
	}
	json_object_set_new(chain, "$defs", defs);
	json_object_set_new(chain, "$ref", json_string("#/$defs/d0"));
	struct yk_schema *g = yk_schema_compile(chain, NULL);
	ok(g || yoke_error_code() == YOKE_ERANGE,
	   "a chain of 10,000 references is followed or refused");
	yoke_error_clear();
	yk_schema_free(g);
	json_decref(chain);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "p%d", i);
		json_object_set_new(wide, name, json_pack("{s:s}", "type", "integer"));
	}
	json_t *object = json_pack("{s:s,s:o}", "type", "object", "properties", wide);
	g = yk_schema_compile(object, NULL);
	ok(g && check_text(g, "3000 properties", "{\"p7\":1,\"p100\":2,\"p1999\":3}"),
	   "an object has 3,000 optional properties");
	yk_schema_free(g);
	json_decref(object);
	for (int i = 0; i < 20; i++) // 2^20 combinations
		json_array_append_new(all, json_pack("{s:[{s:s},{s:s}]}", "anyOf", "type", "string",
						     "pattern", "a"));
	json_t *product = json_pack("{s:o}", "allOf", all);
	for (int i = 0; i < 20; i++) {
		json_t *any = json_object_get(json_array_get(all, (size_t)i), "anyOf");
		json_object_set_new(json_array_get(any, 0), "maxLength", json_integer(100 + i));
	}
	wrong += !fails("2^20 combinations", yk_schema_compile(product, NULL), YOKE_ERANGE,
			"#/allOf/13");
	json_decref(product);
	ok(wrong == 0, "schemas nested 10,000 deep or with 2^20 combinations are refused");
}

static void test_formats(void)
{
	static const struct {
		const char *format;
		int code; // 1: no grammar, and no error
	} formats[] = {
		{ "{\"type\": \"text\"}", 1 },
		{ "{\"type\": \"json_object\"}", 0 },
		{ "{\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", \"strict\": "
		  "true, \"schema\": {\"type\": \"object\"}}}",
		  0 },
		{ "{\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", \"schema\": "
		  "{\"not\": {}}}}",
		  YOKE_EUNSUPPORTED },
		{ "{\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", \"schema\": 1}}",
		  YOKE_EFORMAT },
		{ "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}}}", YOKE_EFORMAT },
		{ "{\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", \"strict\": 1, "
		  "\"schema\": {}}}",
		  YOKE_EFORMAT },
		{ "{\"type\": \"json_schema\"}", YOKE_EFORMAT },
		{ "{\"type\": \"yaml\"}", YOKE_EFORMAT },
		{ "{\"type\": 1}", YOKE_EFORMAT },
		{ "[]", YOKE_EFORMAT },
	};
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		json_t *j = yk_json_of(formats[i].format, 0);
		struct yk_schema *g = NULL;
		const int e = yk_schema_of_format(j, NULL, &g);
		const bool good = formats[i].code == 1 ? e == 0 && !g :
							 e == formats[i].code && !g == (e < 0) &&
								 yoke_error_code() == e;
		if (!good)
			diag("%s: got code %d: %s", formats[i].format, e, yoke_error());
		wrong += !good;
		yoke_error_clear();
		if (g && strstr(formats[i].format, "json_object"))
			wrong += !check_text(g, "json_object", "{\"a\":[1,{}]}") ||
				 !check_text(g, "json_object", "~[");
		yk_schema_free(g);
		json_decref(j);
	}
	ok(wrong == 0, "response_format of each type gives a grammar, none, or one line");
}

// Damages the schemas of the tests in a sample of bytes.
static void test_damaged(void)
{
	const int step = tap_cases(9, 1);
	size_t n = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static const char bytes[] = "{}[]\",:1-e\\*(";
		char *copy = strdup(cases[i].schema);
		const size_t length = strlen(copy);
		if (seeds)
			write_seed(i, copy);
		for (size_t at = i % (size_t)step; at < length; at += (size_t)step, n++) {
			copy[at] = bytes[at % (sizeof bytes - 1)];
			yk_fuzz_schema((const uint8_t *)copy, length);
			copy[at] = cases[i].schema[at];
		}
		yk_fuzz_schema((const uint8_t *)copy, length);
		free(copy);
	}
	for (size_t i = 0; seeds && i < sizeof errors / sizeof *errors; i++)
		write_seed(1000 + i, errors[i].schema);
	ok(n > 50, "%zu damaged schemas give one line, or texts that can always be completed", n);
}

int main(int argc, char **argv)
{
	seeds = argc > 1 ? argv[1] : NULL;
	test_texts();
	test_valid();
	test_errors();
	test_large();
	test_formats();
	test_damaged();
	return done();
}
