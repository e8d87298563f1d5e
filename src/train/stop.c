// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM.
#include "config.h"

#include "train/stop.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void *watch(void *arg)
{
	struct yk_stop *s = arg;
	int number, state;
	for (;;) {
		if (sigwait(&s->set, &number) != 0) // where yk_stop_end cancels
			continue;
		if (!atomic_load(&s->signal)) {
			atomic_store(&s->signal, number);
			continue;
		}
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		s->last(s->arg, number);
		_exit(128 + number);
	}
	return NULL;
}

int yk_stop_begin(struct yk_stop *s, void (*last)(void *arg, int signal), void *arg)
{
	atomic_init(&s->signal, 0);
	s->last = last;
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
