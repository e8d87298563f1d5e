// SPDX-License-Identifier: Apache-2.0
// Calls cblas_sgemm of the linked library.
#include "config.h"

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#include "peers.h"

bool peer_sgemm(const struct peer_shape *s, const float *a, const float *b, float *c)
{
#ifdef HAVE_CBLAS
	int64_t m = s->m, n = s->n, k = s->k;

	for (int64_t i = 0; i < s->batch; i++)
		cblas_sgemm(CblasRowMajor, s->ta ? CblasTrans : CblasNoTrans,
			    s->tb ? CblasTrans : CblasNoTrans, s->m, s->n, s->k, 1,
			    a + i * m * k, s->ta ? s->m : s->k, b + i * k * n,
			    s->tb ? s->k : s->n, 0, c + i * m * n, s->n);
	return true;
#else
	(void)s, (void)a, (void)b, (void)c;
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
	return "no CBLAS";
#endif
}
