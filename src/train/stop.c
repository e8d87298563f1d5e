// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM.
#include "config.h"

#include "train/stop.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum { ECHO_NS = 1000000000 };

static void *watch(void *arg)
{
	struct yk_stop *s = arg;
	int number, state;
	uint64_t first = 0;
	for (;;) {
		if (sigwait(&s->set, &number) != 0) // where yk_stop_end cancels
			continue;
		bool again = atomic_load(&s->signal);
		const uint64_t now = yk_nanoseconds();
		if (again && s->echo && now - first < ECHO_NS)
			continue;
		first = now;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		if (!again)
			atomic_store(&s->signal, number);
		s->told(s->arg, number, again);
		if (again)
			_exit(128 + number);
		pthread_setcancelstate(state, NULL);
	}
	return NULL;
}

int yk_stop_begin(struct yk_stop *s, void (*told)(void *arg, int signal, bool again), void *arg)
{
	atomic_init(&s->signal, 0);
	s->told = told;
	s->arg = arg;
	sigemptyset(&s->set);
	sigaddset(&s->set, SIGINT);
	sigaddset(&s->set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &s->set, &s->old);
	int e = pthread_create(&s->thread, NULL, watch, s);
	if (e == 0)
		return 0;
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
	return yk_fail(YOKE_ENOMEM, "no thread to wait for signals: %s", strerror(e));
}

void yk_stop_end(struct yk_stop *s)
{
	pthread_cancel(s->thread);
	pthread_join(s->thread, NULL);
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
}
