// SPDX-License-Identifier: Apache-2.0
// Computes moments of standard input: any number of rows of C f32 values, in one pass and with
// little memory.
//
//	stream 50 <set/cube_00000.img
#include <stdio.h>
#include <stdlib.h>
#include <yoke-pipeline.h>

enum { ROWS = 4096 };

int main(int argc, char **argv)
{
	const int64_t c = argc > 1 ? atoll(argv[1]) : 1;
	yoke_statistic *s = yoke_statistic_new(c, 1);
	float *x = s ? malloc(ROWS * (size_t)c * sizeof *x) : NULL;
	double *number = s ? malloc(4 * (size_t)c * sizeof *number) : NULL, count = 0;
	size_t rows;
	int err = x && number ? 0 : -1;
	while (!err && (rows = fread(x, (size_t)c * sizeof *x, ROWS, stdin)) > 0) {
		yoke_scope *scope = yoke_scope_begin("rows");
		err = yoke_statistic_add(
			s, yoke_from(yoke_f32, 2, (int64_t[]){ (int64_t)rows, c }, x), YOKE_NONE);
		yoke_scope_end(scope);
	}
	for (int what = 0; what < 4 && !err; what++)
		err = yoke_statistic_read(s,
					  (int[]){ YOKE_STATISTIC_MEAN, YOKE_STATISTIC_VARIANCE,
						   YOKE_STATISTIC_MIN, YOKE_STATISTIC_MAX }[what],
					  number + what * c, (size_t)c);
	if (!err)
		err = yoke_statistic_read(s, YOKE_STATISTIC_COUNT, &count, 1);
	if (err)
		fprintf(stderr, "stream: %s\n", yoke_error());
	else
		printf("%.0f rows\nchannel mean variance min max\n", count);
	for (int64_t i = 0; i < c && !err; i++)
		printf("%lld %g %g %g %g\n", (long long)i, number[i], number[c + i],
		       number[2 * c + i], number[3 * c + i]);
	yoke_statistic_free(s);
	free(number);
	free(x);
	return err ? 1 : 0;
}
