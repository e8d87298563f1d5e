// SPDX-License-Identifier: Apache-2.0
// Injects errors: YOKE_FAKE_FAIL is a comma-separated list of CALL:N:CODE. The N-th call of that
// name returns the code, a number or its symbolic name; with N+, so do all later calls.
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { MAX_FAULTS = 32 };

static struct fault {
	char call[64];
	long nth, calls;
	bool more;
	int code;
} faults[MAX_FAULTS];
static int count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void read_faults(void)
{
	const char *p = fake_setting("FAIL");

	while (p && *p && count < MAX_FAULTS) {
		struct fault *f = &faults[count];
		char nth[16], name[64], *end;
		if (sscanf(p, "%63[^:,]:%15[^:,]:%63[^,]", f->call, nth, name) != 3) {
			fprintf(stderr, "fake_gpu: YOKE_FAKE_FAIL is not CALL:N:CODE: %s\n", p);
			abort();
		}
		f->nth = strtol(nth, &end, 10);
		f->more = *end == '+';
		f->code = (int)strtol(name, &end, 10);
		if (*end)
			f->code = fake_code_of(name);
		count++;
		p += strcspn(p, ",");
		p += *p == ',';
	}
}

int fake_fault(const char *call)
{
	int code = 0;

	pthread_once(&once, read_faults);
	if (!count)
		return 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++)
		if (!strcmp(faults[i].call, call)) {
			const long n = ++faults[i].calls;
			if (n == faults[i].nth || (faults[i].more && n > faults[i].nth))
				code = faults[i].code;
		}
	pthread_mutex_unlock(&lock);
	return code;
}
