// SPDX-License-Identifier: Apache-2.0
// A thread waits for SIGINT and counts it.
#include "config.h"

#include "tool/interrupts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system.h"

static void *wait_for_signals(void *arg)
{
	struct yk_interrupts *s = arg;
	int number;
	for (;;) {
		if (sigwait(&s->set, &number) != 0) // yk_interrupts_end cancels the thread here
			continue;
		if (!atomic_load(&s->ready))
			_exit(128 + number);
		atomic_fetch_add(&s->count, 1);
		if (write(s->wake[1], "", 1) < 0)
			continue; // full, and therefore readable
	}
	return NULL;
}

int yk_interrupts_begin(struct yk_interrupts *s)
{
	atomic_init(&s->ready, false);
	atomic_init(&s->count, 0);
	s->taken = 0;
	if (yk_pipe(s->wake) < 0)
		return yk_fail(YOKE_EIO, "no descriptor to wait for signals: %s", strerror(errno));
	fcntl(s->wake[0], F_SETFL, O_NONBLOCK);
	fcntl(s->wake[1], F_SETFL, O_NONBLOCK);
	sigemptyset(&s->set);
	sigaddset(&s->set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &s->set, &s->old);
	const int e = pthread_create(&s->thread, NULL, wait_for_signals, s);
	if (e == 0)
		return 0;
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
	close(s->wake[0]);
	close(s->wake[1]);
	return yk_fail(YOKE_ENOMEM, "no thread to wait for signals: %s", strerror(e));
}

void yk_interrupts_end(struct yk_interrupts *s)
{
	pthread_cancel(s->thread);
	pthread_join(s->thread, NULL);
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
	close(s->wake[0]);
	close(s->wake[1]);
}

bool yk_interrupts_pending(const struct yk_interrupts *s)
{
	return atomic_load(&s->count) != s->taken;
}

void yk_interrupts_take(struct yk_interrupts *s)
{
	char signals[64];
	// first: a signal after this wakes the next poll
	while (read(s->wake[0], signals, sizeof signals) > 0)
		;
	s->taken = atomic_load(&s->count);
}
