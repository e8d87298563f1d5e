// SPDX-License-Identifier: Apache-2.0
// Cases of LARGEST.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "conform/draw_program.h"

struct element {
	float a;
	int64_t at;
};

// Sorts by descending modulus, NaN first, then by index.
static int by_modulus(const void *va, const void *vb)
{
	const struct element *x = va, *y = vb;
	if (isnan(x->a) != isnan(y->a))
		return isnan(x->a) ? -1 : 1;
	if (fabsf(x->a) != fabsf(y->a) && !isnan(x->a))
		return fabsf(x->a) > fabsf(y->a) ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_place(const void *a, const void *b)
{
	const int64_t x = ((const struct element *)a)->at, y = ((const struct element *)b)->at;
	return (x > y) - (x < y);
}

// Few distinct moduli.
static struct yk_num draw_level(struct yk_case *c, int dtype, int64_t index)
{
	(void)dtype, (void)index;
	return (struct yk_num){ .f = (double)yk_draw_int(c, -2, 2) };
}

bool yk_make_largest(struct yk_case *c, int dtype)
{
	const bool plain = yk_case_plain(c);
	int64_t n = yk_draw_size(c, yk_case_large(c) ? 200000 : 3000);
	if (!plain && yk_draw_one_in(c, 24))
		n = 0;
	const int64_t k = yk_draw_one_in(c, 4) ? n :
			  yk_draw_one_in(c, 3) ? n / 100 :
						 yk_draw_int(c, 0, n);
	const bool levels = yk_draw_one_in(c, 3), two = yk_draw_one_in(c, 2);
	const uint32_t none = plain || !yk_draw_one_in(c, 3) ? 3 : (uint32_t)yk_draw_int(c, 0, 2);

	yk_case_op(c, YOKE_OP_LARGEST);
	yk_case_out(c, dtype, 1, &k, YK_DENSE);
	yk_case_out(c, yoke_i32, 1, &k, YK_DENSE);
	yk_case_out(c, dtype, 1, &n, YK_DENSE);
	const uint32_t x =
		yk_case_in_by(c, dtype, 1, &n, YK_DENSE, levels ? draw_level : yk_draw_wild);
	const uint32_t e =
		!two ? yk_case_none(c) :
		       yk_case_in_by(c, dtype, 1, &n, YK_DENSE, levels ? draw_level : yk_draw_wild);
	c->op.nattr = 1;
	c->op.attr[0].i = k;
	struct element *a = yk_case_alloc(c, (uint64_t)n * sizeof *a + 1);
	for (int64_t i = 0; i < n; i++) {
		const float sum =
			(float)c->array[x].num[i].f + (two ? (float)c->array[e].num[i].f : 0.0f);
		a[i] = (struct element){ two ? sum : (float)c->array[x].num[i].f, i };
		c->array[2].want[i] = (struct yk_expected){ .f = (double)a[i].a };
	}
	qsort(a, (size_t)n, sizeof *a, by_modulus);
	qsort(a, (size_t)k, sizeof *a, by_place);
	for (int64_t i = 0; i < k; i++) {
		c->array[0].want[i] = (struct yk_expected){ .f = (double)a[i].a };
		yk_expect_int(&c->array[1].want[i], a[i].at);
		c->array[2].want[a[i].at] = (struct yk_expected){ .f = 0 };
	}
	const bool of_e = two && yk_draw_one_in(c, 2);
	if (none != 2 && yk_draw_one_in(c, 2))
		yk_case_alias(c, 2, of_e ? e : x, of_e);
	if (none < 3) // result not requested
		c->view[none] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	yk_case_note(c, "%lld of %lld%s%s", (long long)k, (long long)n, two ? ", carried" : "",
		     levels ? ", of few moduli" : "");
	return true;
}
