// SPDX-License-Identifier: Apache-2.0
// Patterns of the formats that OpenAI's API knows, and of URIs with an authority.  Dates exist in
// the Gregorian calendar; times have no leap seconds.
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "schema/format.h"

#define YEAR "([1-9]\\d{3}|0\\d\\d[1-9]|0\\d[1-9]\\d|0[1-9]\\d\\d)"
#define LEAP_YEAR "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE \
	"(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(" \
	"0[1-9]|1\\d|2[0-8]))|" LEAP_YEAR "-02-29)"
#define HOURS "([01]\\d|2[0-3]):[0-5]\\d"
#define TIME HOURS ":[0-5]\\d(\\.\\d{1,9})?(Z|[+-]" HOURS ")"
// RFC 3339, appendix A
#define SECONDS "\\d{1,9}S"
#define MINUTES "\\d{1,9}M(" SECONDS ")?"
#define DURATION_TIME "T(\\d{1,9}H(" MINUTES ")?|" MINUTES "|" SECONDS ")"
#define DAYS "\\d{1,9}D"
#define MONTHS "\\d{1,9}M(" DAYS ")?"
#define DURATION \
	"P((\\d{1,9}Y(" MONTHS ")?|" MONTHS "|" DAYS ")(" DURATION_TIME ")?|" DURATION_TIME \
	"|\\d{1,9}W)"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4 OCTET "(\\." OCTET "){3}"
#define HEX "[0-9a-fA-F]"
#define GROUP HEX "{1,4}"
#define URI_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|%" HEX "{2})"

static const struct {
	const char *name, *pattern;
} formats[] = {
	{ "date", "^" DATE "$" },
	{ "date-time", "^" DATE "T" TIME "$" },
	{ "time", "^" TIME "$" },
	{ "duration", "^" DURATION "$" },
	{ "uuid", "^" HEX "{8}(-" HEX "{4}){3}-" HEX "{12}$" },
	{ "email", "^" ATOM "(\\." ATOM ")*@" LABEL "(\\." LABEL ")+$" },
	{ "hostname", "^" LABEL "(\\." LABEL ")*$" },
	{ "ipv4", "^" IPV4 "$" },
	{ "ipv6", "^((" GROUP ":){7}" GROUP "|(" GROUP ":){1,7}:|(" GROUP ":){1,6}:" GROUP
		  "|(" GROUP ":){1,5}(:" GROUP "){1,2}|(" GROUP ":){1,4}(:" GROUP "){1,3}|(" GROUP
		  ":){1,3}(:" GROUP "){1,4}|(" GROUP ":){1,2}(:" GROUP "){1,5}|" GROUP ":(:" GROUP
		  "){1,6}|:((:" GROUP "){1,7}|:))$" },
	{ "uri", "^[A-Za-z][A-Za-z0-9+.-]*://" LABEL "(\\." LABEL ")*(:\\d{1,5})?(/" URI_CHAR
		 "*)*(\\?(" URI_CHAR "|[/?])*)?(#(" URI_CHAR "|[/?])*)?$" },
};

const char *yk_format_pattern(const char *name)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name))
			return formats[i].pattern;
	return NULL;
}
