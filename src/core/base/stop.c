// SPDX-License-Identifier: Apache-2.0
// Waits for SIGINT, SIGTERM and SIGHUP, and decides which signals belong to one request to stop.
#include "config.h"

#include "base/stop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

void yk_stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	struct sigaction hangup;
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

const char *yk_stop_name(int signal)
{
	if (signal == SIGHUP)
		return "SIGHUP";
	return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

bool yk_stop_counts(struct yk_stop_window *w)
{
	if (w->end)
		return false;
	w->end = yk_nanoseconds() + YK_STOP_WINDOW_MS * UINT64_C(1000000);
	return true;
}

void yk_stop_drained(struct yk_stop_window *w)
{
	if (w->end && yk_nanoseconds() >= w->end)
		w->end = 0;
}

// Signals pending at the end of the window belong to it, too: this thread may have been stopped or
// late.
void yk_stop_swallow(struct yk_stop_window *w, const sigset_t *set)
{
	while (w->end) {
		const uint64_t now = yk_nanoseconds(), left = now < w->end ? w->end - now : 0;
		const struct timespec wait = { (time_t)(left / 1000000000),
					       (long)(left % 1000000000) };
		if (sigtimedwait(set, NULL, &wait) < 0 && errno == EAGAIN)
			yk_stop_drained(w);
	}
}

static void *watch(void *arg)
{
	struct yk_stop *s = arg;
	struct yk_stop_window window = { 0 };
	int number, state;
	for (;;) {
		if (sigwait(&s->set, &number) != 0) // yk_stop_end cancels the thread here
			continue;
		const bool again = atomic_load(&s->signal);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		if (!again)
			atomic_store(&s->signal, number);
		if (s->notify)
			s->notify(s->arg, number, again);
		if (again)
			_exit(128 + number);
		yk_stop_counts(&window);
		yk_stop_swallow(&window, &s->set);
		pthread_setcancelstate(state, NULL);
	}
	return NULL;
}

int yk_stop_begin(struct yk_stop *s, void (*notify)(void *arg, int signal, bool again), void *arg)
{
	atomic_init(&s->signal, 0);
	s->notify = notify;
	s->arg = arg;
	yk_stop_signals(&s->set);
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
