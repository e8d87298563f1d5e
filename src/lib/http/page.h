// SPDX-License-Identifier: Apache-2.0
// A web page whose style and script stand in it, and a security policy that allows no others.
#ifndef YK_HTTP_PAGE_H
#define YK_HTTP_PAGE_H

enum { YK_POLICY_BYTES = 512 };

struct yk_page {
	// has the comments /*style*/ and /*script*/ at the places of the other two
	const char *html;
	const char *css, *js;
	const char *css_hash, *js_hash; // as in the policy
};

// The whole page, to be freed; NULL: no memory.
char *yk_page_text(const struct yk_page *);
// The value of Content-Security-Policy; more: directives to be added, each with a semicolon.
void yk_page_policy(const struct yk_page *, const char *more, char to[YK_POLICY_BYTES]);

#endif
