// SPDX-License-Identifier: Apache-2.0
// Files of the dashboard's page (HTML, CSS, JavaScript), embedded at build time.
#ifndef YK_PAGE_H
#define YK_PAGE_H

// The page contains the comments /*style*/ and /*script*/ at the places of the other two.
extern const char yk_page_html[], yk_page_css[], yk_page_js[];
// Their hashes for the Content-Security-Policy: "sha256-" and base64.
extern const char yk_page_css_hash[], yk_page_js_hash[];

#endif
