// SPDX-License-Identifier: Apache-2.0
// Tests sources of samples against third-party readers: tests/readers.py writes files with numpy,
// csv, json and Pillow and compares their values with this program's output. With arguments FILE
// SETTINGS the program prints the samples: one line per field, with its name, dtype, dims, and
// bytes in hexadecimal.
#include "config.h"

#include <unistd.h>

#include "tap.h"
#include "yoke-data.h"

static int print_all(const char *path, const char *settings)
{
	yoke_dataset *d = yoke_dataset_open(path, settings);
	struct yoke_field f[16] = { { .size = sizeof *f } };
	int64_t dims[16][YOKE_MAX_RANK];
	void *to[16];
	const int n = d ? yoke_dataset_fields(d, 16, f) : 0;
	if (!d || n > 16) {
		printf("error %s\n", yoke_error());
		return 0;
	}
	for (int i = 0; i < n; i++) {
		size_t bytes = yoke_dtype_size(f[i].dtype);
		for (int k = 0; k < f[i].rank; k++)
			bytes *= (size_t)f[i].dims[k];
		to[i] = malloc(bytes);
	}
	for (int64_t s = 0; s < yoke_dataset_count(d); s++) {
		if (yoke_dataset_read(d, s, 0, 0, s, to, dims) < 0) {
			printf("error %s\n", yoke_error());
			yoke_error_clear();
			continue;
		}
		for (int i = 0; i < n; i++) {
			size_t bytes = yoke_dtype_size(f[i].dtype);
			printf("%s %s ", f[i].name, yoke_dtype_name(f[i].dtype));
			for (int k = 0; k < f[i].rank; k++) {
				printf("%s%lld", k ? "," : "", (long long)dims[i][k]);
				bytes *= (size_t)dims[i][k];
			}
			printf("%s ", f[i].rank ? "" : "-");
			for (size_t b = 0; b < bytes; b++)
				printf("%02x", ((unsigned char *)to[i])[b]);
			putchar('\n');
		}
	}
	for (int i = 0; i < n; i++)
		free(to[i]);
	yoke_dataset_free(d);
	return 0;
}

int main(int argc, char **argv)
{
	char script[4096], cases[20], seed[24];
	const char *source = getenv("srcdir");

	if (argc > 2)
		return print_all(argv[1], argv[2]);
	snprintf(script, sizeof script, "%s/tests/readers.py", source ? source : ".");
	snprintf(cases, sizeof cases, "%d", tap_cases(60, 5000));
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)tap_seed_value());
	// one of the system has the packages of the system
	const char *python =
		system("python3 -c 'import numpy' 2>/dev/null") == 0 ? "python3" :
		system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0 ? "/usr/bin/python3" :
		"python3";
	fflush(stdout);
	execlp(python, python, script, argv[0], cases, seed, (char *)NULL);
	return skip_all("no python3");
}
