// SPDX-License-Identifier: Apache-2.0
// Replies with the chat page.
#include "config.h"

#include "serve/page.h"

#include <string.h>

#include "http/page.h"

void yk_page_reply(struct yk_exchange *x)
{
	const struct yk_page page = { yk_chat_page_html, yk_chat_page_css, yk_chat_page_js,
				      yk_chat_page_css_hash, yk_chat_page_js_hash };
	char *text = yk_page_text(&page), policy[YK_POLICY_BYTES];
	yk_page_policy(&page, "", policy);
	yk_exchange_set(x, "Content-Security-Policy", policy);
	yk_exchange_set(x, "Referrer-Policy", "no-referrer");
	yk_exchange_set(x, "Cross-Origin-Resource-Policy", "same-origin");
	yk_exchange_reply(x, 200, "text/html; charset=utf-8", text, text ? strlen(text) : 0);
}
