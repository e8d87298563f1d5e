// SPDX-License-Identifier: Apache-2.0
// Puts style and script into a page, which then needs no other request.
#include "config.h"

#include "http/page.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

char *yk_page_text(const struct yk_page *p)
{
	static const char style[] = "/*style*/", script[] = "/*script*/";
	const char *css = strstr(p->html, style), *js = strstr(p->html, script);
	char *text = NULL;
	const int n = yk_asprintf(&text, "%.*s%s%.*s%s%s", (int)(css - p->html), p->html, p->css,
				  (int)(js - css - (ptrdiff_t)strlen(style)), css + strlen(style),
				  p->js, js + strlen(script));
	return n < 0 ? NULL : text;
}

void yk_page_policy(const struct yk_page *p, const char *more, char to[YK_POLICY_BYTES])
{
	snprintf(to, YK_POLICY_BYTES,
		 "default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; %s"
		 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		 p->js_hash, p->css_hash, more);
}
