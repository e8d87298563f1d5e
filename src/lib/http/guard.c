// SPDX-License-Identifier: Apache-2.0
// Decides from headers and a token whether a server answers a request.
#include "config.h"

#include "http/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/system.h"

int yk_token_draw(char to[YK_TOKEN_BYTES])
{
	unsigned char bits[16];
	const int e = yk_random(bits, sizeof bits);
	if (e < 0)
		return e;
	for (size_t i = 0; i < sizeof bits; i++)
		snprintf(to + 2 * i, 3, "%02x", bits[i]);
	return 0;
}

int yk_token_check(const char *token, const char *what)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	const size_t n = strlen(token);
	if (n < 16 || n >= YK_TOKEN_BYTES || token[strspn(token, plain)])
		return yk_fail(
			YOKE_EFORMAT,
			"%s: must be one line of 16 to %d characters, which may be letters, digits "
			"and -._~",
			what, YK_TOKEN_BYTES - 1);
	return 0;
}

int yk_token_read(const char *key, const char *path, char to[YK_TOKEN_BYTES])
{
	char what[600];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	snprintf(what, sizeof what, "%s=%s", key, path);
	if (fd < 0)
		return yk_fail(YOKE_ENOENT, "%s: %s", what, strerror(errno));
	ssize_t n =
		fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, to, YK_TOKEN_BYTES - 1) : -1;
	close(fd);
	if (n < 0)
		return yk_fail(YOKE_EIO, "%s: cannot be read", what);
	if (st.st_mode & 077)
		return yk_fail(YOKE_EPERM, "%s: other users may read it; run chmod go= %s", what,
			       path);
	to[n] = '\0';
	to[strcspn(to, "\r\n")] = '\0';
	return yk_token_check(to, what);
}

int yk_api_key_read(const char *key_file, bool foreign, char to[YK_TOKEN_BYTES])
{
	const char *variable = getenv("YOKE_API_KEY");
	*to = '\0';
	if (key_file && *key_file)
		return yk_token_read("key_file", key_file, to);
	if (!variable || !*variable)
		return 0;
	const int e = foreign ? 0 : yk_token_check(variable, "YOKE_API_KEY");
	if (e == 0)
		snprintf(to, YK_TOKEN_BYTES, "%s", variable);
	return e;
}

bool yk_is_loopback(const char *address)
{
	return !strcmp(address, "127.0.0.1") || !strcmp(address, "::1") ||
	       yk_same_word(address, "localhost");
}

// Extracts the name from "name:port" or "[::1]:port"; false: there is no name, or it is too long.
static bool host_name(const char *host, char to[128])
{
	size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	const char *port = host + n;
	if (n == 0 || n >= 128 || strlen(host) < n)
		return false;
	memcpy(to, host, n);
	to[n] = '\0';
	if (!*port)
		return true;
	size_t digits = strspn(port + 1, "0123456789");
	return *port == ':' && digits > 0 && digits < 6 && !port[1 + digits];
}

bool yk_guard_host(const struct yk_guard *g, const char *host)
{
	char name[128];
	if (!host || !host_name(host, name))
		return false;
	return !strcmp(name, "127.0.0.1") || !strcmp(name, "[::1]") ||
	       yk_same_word(name, "localhost") || (*g->name && yk_same_word(name, g->name));
}

bool yk_guard_origin(const struct yk_guard *g, const char *origin)
{
	if (!origin)
		return true;
	return !strncmp(origin, "http://", 7) && yk_guard_host(g, origin + 7);
}

bool yk_token_equal(const char *token, const char *given)
{
	const size_t n = strlen(token), m = strlen(given);
	unsigned char off = n != m;
	for (size_t i = 0; i < n; i++) // same duration for every given token
		off |= (unsigned char)(token[i] ^ (m ? given[i % m] : 0));
	return !off;
}

bool yk_guard_token(const struct yk_guard *g, const char *given)
{
	return yk_token_equal(g->token, given);
}

bool yk_guard_headers(const struct yk_guard *g, const char *authorization, const char *cookies)
{
	char value[YK_TOKEN_BYTES];
	const size_t name = strlen(g->cookie);
	if (authorization && yk_same_words(authorization, "Bearer ", 7))
		return yk_guard_token(g, authorization + 7);
	for (const char *at = cookies; at && *at; at += strcspn(at, ";"), at += *at == ';') {
		at += strspn(at, " ");
		size_t n = strcspn(at, ";");
		if (n > name && !strncmp(at, g->cookie, name) && at[name] == '=' &&
		    n - name - 1 < sizeof value) {
			memcpy(value, at + name + 1, n - name - 1);
			value[n - name - 1] = '\0';
			return yk_guard_token(g, value);
		}
	}
	return false;
}
