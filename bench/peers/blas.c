// SPDX-License-Identifier: Apache-2.0
// The peer of contractions: cblas_sgemm of the library that is linked, called directly.
#include "config.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

bool peer_sgemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b,
		float *c);
const char *peer_sgemm_name(void);

// a is (m,k), or (k,m) when transposed; b (k,n) or (n,k); c (m,n); all dense.  False: no
// peer.
bool peer_sgemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b,
		float *c)
{
#ifdef HAVE_CBLAS
	cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
		    tb ? CblasTrans : CblasNoTrans, m, n, k, 1, a, ta ? m : k, b,
		    tb ? k : n, 0, c, n);
	return true;
#else
	(void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)b, (void)c;
	return false;
#endif
}

const char *peer_sgemm_name(void)
{
#if defined HAVE_CBLAS && defined OPENBLAS_VERSION
	return openblas_get_config();
#elif defined HAVE_CBLAS
	return "CBLAS";
#else
	return "none";
#endif
}
