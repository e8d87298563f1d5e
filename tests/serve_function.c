// SPDX-License-Identifier: Apache-2.0
// Tests functions of arrays served by HTTP: JSON and .npy in and out, batches, errors, queues,
// keys.
#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tap.h"

#include "yoke-serve.h"

enum { ROOM = 1 << 16, CLIENTS = 12 };

static atomic_int calls, gate; // gate: 1: the function waits
static int port;

// y = 2 x + 1 of f32 [n, k]
static int line(void *user, const struct yoke_serve_array *in, struct yoke_serve_array *out)
{
	int64_t n = 1;
	(void)user;
	atomic_fetch_add(&calls, 1);
	while (atomic_load(&gate))
		usleep(1000);
	for (int k = 0; k < in->rank; k++)
		n *= in->dims[k];
	float *y = malloc((size_t)n * sizeof *y);
	for (int64_t i = 0; y && i < n; i++)
		y[i] = 2 * ((const float *)in->data)[i] + 1;
	*out = *in;
	out->data = y;
	return y ? 0 : YOKE_ENOMEM;
}

// The sums of i64 [n, k]; negative ones are refused.
static int sums(void *user, const struct yoke_serve_array *in, struct yoke_serve_array *out)
{
	int64_t *y = calloc((size_t)in->dims[0], sizeof *y);
	(void)user;
	for (int64_t i = 0; y && i < in->dims[0] * in->dims[1]; i++)
		y[i / in->dims[1]] += ((const int64_t *)in->data)[i];
	*out = (struct yoke_serve_array){ yoke_i64, 1, { in->dims[0] }, y };
	for (int64_t i = 0; y && i < in->dims[0]; i++)
		if (y[i] < 0)
			return YOKE_EINVAL;
	return y ? 0 : YOKE_ENOMEM;
}

static int short_result(void *user, const struct yoke_serve_array *in, struct yoke_serve_array *out)
{
	(void)user;
	*out = (struct yoke_serve_array){
		yoke_f32, 1, { in->dims[0] + 1 }, calloc((size_t)in->dims[0] + 1, 4)
	};
	return 0;
}

// Sends a request and returns the status; the body of the reply and its length.
static int ask(const char *path, const char *headers, const void *body, size_t n, char to[ROOM],
	       size_t *bytes)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	char head[600];
	size_t got = 0;
	ssize_t more;
	int status = 0;
	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int length = snprintf(head, sizeof head,
				    "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: "
				    "close\r\n%sContent-Length: %zu\r\n\r\n",
				    path, headers, n);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    write(fd, head, (size_t)length) != length || write(fd, body, n) != (ssize_t)n) {
		close(fd);
		return -1;
	}
	while (got < ROOM - 1 && (more = read(fd, to + got, ROOM - 1 - got)) > 0)
		got += (size_t)more;
	close(fd);
	to[got] = 0;
	const char *end = strstr(to, "\r\n\r\n");
	if (!end || sscanf(to, "HTTP/1.1 %d", &status) != 1)
		return -1;
	*bytes = got - (size_t)(end + 4 - to);
	memmove(to, end + 4, *bytes + 1);
	return status;
}

static void expect(const char *title, const char *path, const char *body, int status,
		   const char *want)
{
	static char got[ROOM];
	size_t bytes = 0;
	const int s = ask(path, "", body, strlen(body), got, &bytes);
	ok(s == status && strstr(got, want), "%s: status %d, %.100s", title, s, got);
}

static void *run(void *server)
{
	return yoke_server_run(server) == 0 ? server : NULL;
}

struct client {
	pthread_t thread;
	int i, status;
	char got[ROOM];
};

static void *send_one(void *arg)
{
	struct client *c = arg;
	char body[40];
	size_t bytes;
	snprintf(body, sizeof body, "[[%d, 1]]", c->i);
	c->status = ask("/line", "", body, strlen(body), c->got, &bytes);
	return NULL;
}

// Requests that arrive while a batch is computed form the next one.
static void test_batches(void)
{
	static struct client c[CLIENTS];
	bool good = true;
	atomic_store(&gate, 1);
	atomic_store(&calls, 0);
	for (int i = 0; i < CLIENTS; i++) {
		c[i].i = i;
		pthread_create(&c[i].thread, NULL, send_one, &c[i]);
	}
	while (!atomic_load(&calls)) // the first batch
		usleep(1000);
	atomic_store(&gate, 0);
	for (int i = 0; i < CLIENTS; i++) {
		char want[40];
		pthread_join(c[i].thread, NULL);
		snprintf(want, sizeof want, "[[%d,3]]", 2 * i + 1);
		good = good && c[i].status == 200 && !strcmp(c[i].got, want);
	}
	const int n = atomic_load(&calls);
	ok(good && n >= 1 && n <= CLIENTS,
	   "%d requests are answered with their own samples, in %d calls", CLIENTS, n);
}

static void test_npy(void)
{
	static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
	const float x[] = { 1.5f, -3 };
	char body[200] = "\x93NUMPY\x01\x00\x76\x00";
	static char got[ROOM];
	float y[2];
	size_t bytes = 0;
	memset(body + 10, ' ', 118);
	memcpy(body + 10, dict, sizeof dict - 1);
	body[127] = '\n';
	memcpy(body + 128, x, sizeof x);
	const int s = ask("/line", "Content-Type: application/x-npy\r\n", body, 128 + sizeof x, got,
			  &bytes);
	memcpy(y, bytes >= 8 ? got + bytes - 8 : got, sizeof y);
	ok(s == 200 && bytes % 64 == 8 && !memcmp(got, "\x93NUMPY", 6) &&
		   strstr(got + 10, "'<f4'") && y[0] == 4 && y[1] == -5,
	   "a .npy file: status %d, %zu bytes, %g %g", s, bytes, (double)y[0], (double)y[1]);
	const int cut = ask("/line", "Content-Type: application/x-npy\r\n", body, 130, got, &bytes);
	ok(cut == 400 && strstr(got, "\"error\""), "a .npy file that is cut: status %d", cut);
}

int main(void)
{
	static const struct yoke_serve_options whole = { .size = sizeof whole,
							 .dtype = yoke_i64,
							 .rank = 2 };
	static const struct yoke_server_options keyed = { .size = sizeof keyed,
							  .key = "0123456789abcdef" };
	static char got[ROOM];
	pthread_t thread;
	void *result = NULL;
	size_t bytes;
	yoke_server *s = yoke_server_new(NULL);
	if (!s || yoke_serve_function(s, "/line", line, NULL, NULL) < 0) {
		printf("Bail out! %s\n", yoke_error());
		return 1;
	}
	port = yoke_server_start(s);
	if (port == YOKE_EUNSUPPORTED) {
		printf("1..0 # SKIP built without libmicrohttpd\n");
		return 0;
	}
	ok(yoke_serve_function(s, "/late", sums, NULL, NULL) == YOKE_EBUSY,
	   "no function is added to a server that listens");
	yoke_error_clear();
	yoke_server_free(s);
	s = yoke_server_new(NULL);
	yoke_serve_function(s, "/line", line, NULL, NULL);
	yoke_serve_function(s, "/sums", sums, &whole, NULL);
	yoke_serve_function(s, "/short", short_result, NULL, NULL);
	ok(yoke_serve_function(s, "/sums", sums, NULL, NULL) == YOKE_EINVAL,
	   "a path has one function");
	yoke_error_clear();
	ok(yoke_serve_function(s, "sums", sums, NULL, NULL) == YOKE_EINVAL, "a path begins with /");
	yoke_error_clear();
	port = yoke_server_start(s);
	ok(port > 0, "the server listens on port %d", port);
	pthread_create(&thread, NULL, run, s);
	expect("a list of lists", "/line", "[[1, 2.5], [-3, 1e3]]", 200, "[[3,6],[-5,2001]]");
	expect("a list", "/line", "[7]", 200, "[15]");
	expect("integers", "/sums", "[[9007199254740993, 0], [1, 2]]", 200, "[9007199254740993,3]");
	expect("a number that is no integer", "/sums", "[[1.5]]", 400, "not an integer");
	expect("a wrong number of axes", "/sums", "[1, 2]", 400, "axes");
	expect("an error of the function", "/sums", "[[-1]]", 400, "\"error\"");
	expect("a result of another length", "/short", "[[1]]", 500, "samples");
	expect("lists of different lengths", "/line", "[[1, 2], [3]]", 400, "different lengths");
	expect("a text", "/line", "[\"x\"]", 400, "not a number");
	expect("a number beyond f32", "/line", "[1e39]", 400, "beyond f32");
	expect("an empty list", "/line", "[]", 400, "empty");
	expect("no JSON", "/line", "[1, ", 400, "JSON");
	expect("nine axes", "/line", "[[[[[[[[[1]]]]]]]]]", 400, "axes");
	expect("another path", "/other", "[1]", 404, "no such path");
	test_npy();
	test_batches();
	yoke_server_stop(s);
	pthread_join(thread, &result);
	ok(result == s, "yoke_server_stop ends yoke_server_run");
	yoke_server_free(s);

	s = yoke_server_new(&keyed);
	yoke_serve_function(s, "/line", line, NULL, NULL);
	port = yoke_server_start(s);
	pthread_create(&thread, NULL, run, s);
	expect("no key", "/line", "[1]", 401, "invalid_api_key");
	const int status =
		ask("/line", "Authorization: Bearer 0123456789abcdef\r\n", "[1]", 3, got, &bytes);
	ok(status == 200 && !strcmp(got, "[3]"), "with the key: status %d, %s", status, got);
	yoke_server_stop(s);
	pthread_join(thread, &result);
	yoke_server_free(s);
	return done();
}
