// SPDX-License-Identifier: Apache-2.0
// Access control of servers: a request is checked by its Host header, its Origin header and a
// token.
#ifndef YK_GUARD_H
#define YK_GUARD_H

#include <stdbool.h>

enum { YK_TOKEN_BYTES = 256 };

struct yk_guard {
	char token[YK_TOKEN_BYTES];
	char name[128];  // accepted host name besides those of the loopback interface; "": none
	char cookie[48]; // name of the cookie that holds the token
};

// Draws 128 random bits, written as 32 hexadecimal digits. EIO: no random numbers are available.
int yk_token_draw(char to[YK_TOKEN_BYTES]);
// Reads the first line of a file that no other user may read; `key` is the argument that named it.
int yk_token_read(const char *key, const char *path, char to[YK_TOKEN_BYTES]);
// The key of a server's API: of a file (NULL or "": none is given), else of YOKE_API_KEY; ""
// without either. foreign: the server may be another program, whose keys need not look like ours.
int yk_api_key_read(const char *key_file, bool foreign, char to[YK_TOKEN_BYTES]);
// EFORMAT: not 16 or more letters, digits or "-._~"; `what` is for the message.
int yk_token_check(const char *token, const char *what);
// Compares in constant time.
bool yk_token_equal(const char *token, const char *given);

// Accepts a Host header: 127.0.0.1, [::1] or localhost, with any port, or the guard's name.
bool yk_guard_host(const struct yk_guard *, const char *host);
// Accepts an Origin header: "http://" and an accepted host. NULL (no header was sent) is accepted,
// too.
bool yk_guard_origin(const struct yk_guard *, const char *origin);
// Is this the token?
bool yk_guard_token(const struct yk_guard *, const char *given);
// Looks for the token as "Bearer TOKEN" in an Authorization header and as a cookie in a Cookie
// header; each may be NULL.
bool yk_guard_headers(const struct yk_guard *, const char *authorization, const char *cookies);
bool yk_is_loopback(const char *address);

#endif
