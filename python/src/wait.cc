// SPDX-License-Identifier: Apache-2.0
// Waits without the GIL, on the main thread such that Ctrl-C interrupts them; and the objects that yoke released meanwhile.
#include "core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace py {

// ---- what yoke gave back ----

struct Back {
	void (*fn)(void *);
	void *arg;
};
static std::mutex back_lock;
static std::vector<Back> back;
static std::atomic<bool> any_back;

void release_later(void (*fn)(void *), void *arg)
{
	std::lock_guard<std::mutex> g(back_lock);
	back.push_back({ fn, arg });
	any_back.store(true, std::memory_order_release);
}

static void release_now()
{
	std::vector<Back> list;
	{
		std::lock_guard<std::mutex> g(back_lock);
		list.swap(back);
		any_back.store(false, std::memory_order_relaxed);
	}
	for (const Back &b : list)
		b.fn(b.arg);
}

// ---- the thread that waits for the main one ----

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;
static constexpr microseconds waking(100), brief(30); // what waking a thread may take; two threads that both poll

// Polls until the flag is set, for as long as it may take to wake a thread.
static bool poll(const std::atomic<bool> &flag)
{
	const auto until = Clock::now() + waking;
	while (!flag.load(std::memory_order_acquire))
		if (Clock::now() > until)
			return false;
	return true;
}

struct Job {
	std::function<int64_t()> fn;
	yoke_context *context;
	int64_t result = 0;
	int code = 0;
	std::string text;
	bool polled = false; // the main thread polls for its end, and the waiting one then for the next job
	std::atomic<bool> done{ false };
};

// Never destroyed: its thread may be at work when the process ends.
struct Waiter {
	std::mutex lock;
	std::condition_variable wanted, done;
	std::shared_ptr<Job> job;
	std::atomic<bool> posted{ false }; // there is a job
	// Small evaluations are polled for, since waking two threads takes much longer.  After failures in a row
	// (long evaluations, a busy machine, one processor) ever more jobs are not.  The first polled job after
	// these has to wake the thread.
	unsigned failures = 0, skips = 0;
	bool asleep = true;
};
static Waiter *waiter;
static std::shared_ptr<Job> left; // what Ctrl-C left alone

static void *work(void *arg)
{
	auto *w = static_cast<Waiter *>(arg);
	for (bool polls = false;;) {
		if (polls)
			poll(w->posted);
		std::unique_lock<std::mutex> lock(w->lock);
		w->wanted.wait(lock, [w] { return w->posted.load(); });
		std::shared_ptr<Job> job = std::move(w->job);
		w->posted = false;
		lock.unlock();
		polls = job->polled;
		yoke_use(job->context);
		job->result = job->fn();
		job->code = yoke_error_code();
		job->text = yoke_error();
		yoke_error_clear();
		job->fn = nullptr;
		lock.lock();
		job->done.store(true, std::memory_order_release);
		w->done.notify_all();
	}
	return nullptr;
}

static bool start()
{
	if (waiter)
		return true;
	auto *w = new Waiter;
	pthread_t thread;
	sigset_t all, was;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was); // signals are the main thread's
	const bool good = pthread_create(&thread, nullptr, work, w) == 0;
	pthread_sigmask(SIG_SETMASK, &was, nullptr);
	if (!good) {
		delete w;
		return false;
	}
	pthread_detach(thread);
	waiter = w;
	return true;
}

static void in_child() // which has no such thread
{
	waiter = nullptr;
	left = nullptr;
}

// Decides whether the next job is polled for.
static bool polls_next()
{
	if (!waiter->skips)
		return true;
	waiter->skips--;
	return false;
}

static bool polled(const Job &job)
{
	const auto began = Clock::now();
	const bool done = poll(job.done), slow = !done || (!waiter->asleep && Clock::now() - began > brief);
	if (slow)
		waiter->failures = std::min(waiter->failures + 1, 7u);
	else if (!waiter->asleep)
		waiter->failures = 0;
	waiter->skips = slow ? 1u << waiter->failures : 0;
	waiter->asleep = slow;
	return done;
}

// Waits for the job; false when a signal's handler raised.
static bool finished(const std::shared_ptr<Job> &job)
{
	for (bool first = job->polled;; first = false) {
		bool over;
		{
			Unlocked gil;
			if (first && polled(*job))
				return true;
			std::unique_lock<std::mutex> lock(waiter->lock);
			over = waiter->done.wait_for(lock, std::chrono::milliseconds(50), [&] { return job->done.load(); });
		}
		if (over)
			return true;
		if (PyErr_CheckSignals() < 0)
			return false;
	}
}

void enter()
{
	if (any_back.load(std::memory_order_acquire))
		release_now();
	if (!left || getpid() != gettid())
		return;
	if (!finished(left))
		throw nb::python_error();
	left = nullptr;
}

static thread_local bool recording;
Recording::Recording() : was(recording)
{
	recording = true;
}
Recording::~Recording()
{
	recording = was;
}

int64_t wait_for(std::function<int64_t()> fn)
{
	if (getpid() != gettid() || recording || !start()) {
		const int64_t r = unlocked(fn);
		enter();
		return check(r);
	}
	auto job = std::make_shared<Job>();
	job->fn = std::move(fn);
	job->context = current()->c;
	job->polled = polls_next();
	{
		std::lock_guard<std::mutex> g(waiter->lock);
		waiter->job = job;
		waiter->posted.store(true, std::memory_order_release);
	}
	waiter->wanted.notify_one();
	if (!finished(job)) {
		left = job;
		throw nb::python_error();
	}
	enter();
	if (job->result < 0) {
		set_error(job->code ? job->code : static_cast<int>(job->result), job->text.c_str());
		throw nb::python_error();
	}
	return job->result;
}

void wait_setup(nb::module_ &m)
{
	pthread_atfork(nullptr, nullptr, in_child);
	m.def("read", [](Operand t) {
		enter();
		if (!is_tensor(t.o.ptr())) {
			PyErr_SetString(PyExc_TypeError, "read: takes a tensor");
			throw nb::python_error();
		}
		return nb::object(t.o.attr("numpy")());
	}, "t"_a, nb::sig("def read(t: Tensor) -> numpy.ndarray[typing.Any, typing.Any]"),
	"Evaluates, waits, and gives the value as a NumPy array that cannot be written.");
	m.def("eval", [](nb::args t) {
		enter();
		std::vector<yoke_tensor *> h;
		for (nb::handle o : t)
			if (is_tensor(o.ptr())) {
				alive(as_tensor(o.ptr()), "eval");
				h.push_back(as_tensor(o.ptr())->h);
			} else
				for (yoke_tensor *one : Ops(o, false, "eval").h)
					h.push_back(one);
		const int n = static_cast<int>(h.size());
		evaluated(n, h.data(), true, [] { return 0; }, [h, n] { return yoke_eval(n, h.data()); });
	}, nb::sig("def eval(*t: Tensor | collections.abc.Sequence[Tensor]) -> None"),
	"Computes new versions of variables, values that objects hold, and the tensors given.");
	m.def("sync", [] {
		enter();
		wait_for([] { return static_cast<int64_t>(yoke_sync()); });
	}, "Waits for everything launched in the current context, and raises a failure that no call has raised yet.");
}

} // namespace py
