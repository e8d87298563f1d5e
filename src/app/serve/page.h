// SPDX-License-Identifier: Apache-2.0
// The chat page, embedded at build time.
#ifndef YK_SERVE_PAGE_H
#define YK_SERVE_PAGE_H

#include "http/http.h"

extern const char yk_chat_page_html[], yk_chat_page_css[], yk_chat_page_js[];
// Hashes for the Content-Security-Policy.
extern const char yk_chat_page_css_hash[], yk_chat_page_js_hash[];

// Replies with the page.
void yk_page_reply(struct yk_exchange *);

#endif
