// SPDX-License-Identifier: Apache-2.0
// Who may ask the page for something: by the name it was asked under, where the question came from, and a token.
#ifndef YK_GUARD_H
#define YK_GUARD_H

#include <stdbool.h>
#include <stddef.h>

enum { YK_TOKEN_BYTES = 256 };

struct yk_guard {
	char token[YK_TOKEN_BYTES];
	char name[128]; // that it may be asked under besides those of the loopback; "": none
	char cookie[48]; // its name
};

// 128 bits, as 32 digits.  EIO: there are none to be had.
int yk_token_draw(char to[YK_TOKEN_BYTES]);
// The first line of a file that nobody else may read; 16 characters at least, letters, digits and "-._~".
int yk_token_read(const char *path, char to[YK_TOKEN_BYTES]);

// A Host header: 127.0.0.1, [::1] or localhost, with any port, or the guard's name.
bool yk_guard_host(const struct yk_guard *, const char *host);
// An Origin header, "http://" and such a host; NULL, where none was sent, is fine.
bool yk_guard_origin(const struct yk_guard *, const char *origin);
// In constant time.
bool yk_guard_token(const struct yk_guard *, const char *given);
// "Bearer .." of an Authorization header, or the cookie among those of a Cookie header; each may be NULL.
bool yk_guard_headers(const struct yk_guard *, const char *authorization, const char *cookies);
bool yk_is_loopback(const char *address);

#endif
