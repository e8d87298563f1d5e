// SPDX-License-Identifier: Apache-2.0
// The chat page is one file, whose security policy allows its own script and style only.
#include "config.h"

#include "serve/page.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

void yk_page_reply(struct yk_exchange *x)
{
	static const char style[] = "/*style*/", script[] = "/*script*/";
	const char *html = yk_chat_page_html, *css = strstr(html, style),
		   *js = strstr(html, script);
	char *text = NULL, policy[512];
	const int n = yk_asprintf(&text, "%.*s%s%.*s%s%s", (int)(css - html), html,
				  yk_chat_page_css, (int)(js - css - (ptrdiff_t)strlen(style)),
				  css + strlen(style), yk_chat_page_js, js + strlen(script));
	snprintf(policy, sizeof policy,
		 "default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; "
		 "base-uri 'none'; "
		 "form-action 'none'; frame-ancestors 'none'",
		 yk_chat_page_js_hash, yk_chat_page_css_hash);
	yk_exchange_set(x, "Content-Security-Policy", policy);
	yk_exchange_set(x, "Referrer-Policy", "no-referrer");
	yk_exchange_set(x, "Cross-Origin-Resource-Policy", "same-origin");
	yk_exchange_reply(x, 200, "text/html; charset=utf-8", n < 0 ? NULL : text,
			  n < 0 ? 0 : (size_t)n);
}
