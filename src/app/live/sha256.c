// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a text in memory, computed in one call.
#include "config.h"

#include "live/sha256.h"

#include <stdint.h>
#include <string.h>

// Fractional parts of the cube roots of the first 64 primes (4.2.2).
static const uint32_t constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void block(uint32_t state[8], const unsigned char *p)
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, state, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t a = s[0], e = s[4];
		uint32_t one = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + constant[i] + w[i];
		uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

static void base64(const unsigned char *p, size_t n, char *to)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		uint32_t x = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
		*to++ = digit[x >> 18];
		*to++ = digit[x >> 12 & 63];
		*to++ = i + 1 < n ? digit[x >> 6 & 63] : '=';
		*to++ = i + 2 < n ? digit[x & 63] : '=';
	}
	*to = '\0';
}

void yk_sha256_text(const void *data, size_t bytes, char to[64])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	unsigned char last[128] = { 0 }, sum[32];
	const unsigned char *p = data;
	size_t rest = bytes % 64, tail = rest < 56 ? 64 : 128;
	for (size_t i = 0; i + 64 <= bytes; i += 64)
		block(state, p + i);
	memcpy(last, p + bytes - rest, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[tail - 1 - (size_t)i] = (unsigned char)((uint64_t)bytes * 8 >> 8 * i);
	for (size_t i = 0; i < tail; i += 64)
		block(state, last + i);
	for (int i = 0; i < 32; i++)
		sum[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
	strcpy(to, "sha256-");
	base64(sum, sizeof sum, to + strlen(to));
}
