// SPDX-License-Identifier: Apache-2.0
// Functions of arrays by HTTP.  yoke_server_run has a thread of its own, so that signals reach Python; the functions are
// called on the thread that called server_run.
#include "core.h"
#include "docs.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <nanobind/stl/vector.h>

namespace py {

struct Server;

struct Function {
	Server *server;
	nb::object fn; // of (bytes, type, dims), and gives these of the result
};

struct Call {
	Function *f;
	const struct yoke_serve_array *in;
	struct yoke_serve_array *out;
	int code = 0;
	std::string message;
	bool done = false;
};

struct Server {
	std::vector<std::unique_ptr<Function>> functions;
	Handle<yoke_server> h;
	std::mutex lock; // protects the members below
	std::condition_variable changed;
	Call *call = nullptr;
	bool running = false, ended = false;
};

template <> void free_of(yoke_server *p) { unlocked([p] { yoke_server_free(p); return 0; }); }

static const struct {
	const char *name; // NumPy's
	int dtype;
	size_t bytes;
} types[] = { { "<f4", yoke_f32, 4 }, { "<f8", yoke_f64, 8 }, { "<i4", yoke_i32, 4 }, { "<i8", yoke_i64, 8 } };

static int type_of(const std::string &name)
{
	for (int i = 0; i < 4; i++)
		if (name == types[i].name)
			return i;
	throw nb::value_error("the type is none of float32, float64, int32 and int64");
}

// Makes it the thread's error.
static int report(int code, const std::string &message)
{
	struct yoke_op_args server = {};
	server.name = "server_run";
	return yoke_op_fail(&server, code, message.c_str());
}

// On the server's thread.
static int relay(void *user, const struct yoke_serve_array *in, struct yoke_serve_array *out)
{
	auto *f = static_cast<Function *>(user);
	Server &s = *f->server;
	Call c{ f, in, out, 0, "", false };
	std::unique_lock<std::mutex> guard(s.lock);
	s.call = &c;
	s.changed.notify_all();
	s.changed.wait(guard, [&] { return c.done; });
	return c.code < 0 ? report(c.code, c.message) : 0;
}

static void call_function(Call &c)
{
	size_t n = 1, type = 0;
	while (types[type].dtype != c.in->dtype)
		type++;
	std::vector<int64_t> dims(c.in->dims, c.in->dims + c.in->rank);
	for (int64_t d : dims)
		n *= static_cast<size_t>(d);
	const nb::tuple result(c.f->fn(nb::bytes(static_cast<const char *>(c.in->data), n * types[type].bytes), types[type].name, dims));
	const nb::bytes data(result[0]);
	const int made = type_of(nb::cast<std::string>(result[1]));
	dims = nb::cast<std::vector<int64_t>>(result[2]);
	if (dims.empty() || dims.size() > YOKE_MAX_RANK)
		throw nb::value_error("the result has no axes, or too many");
	void *to = std::malloc(data.size() + 1);
	if (!to)
		throw std::bad_alloc();
	std::memcpy(to, data.c_str(), data.size());
	*c.out = {};
	c.out->dtype = types[made].dtype;
	c.out->rank = static_cast<int>(dims.size());
	for (size_t i = 0; i < dims.size(); i++)
		c.out->dims[i] = dims[i];
	c.out->data = to;
}

static void answer(Call &c)
{
	try {
		call_function(c);
	} catch (nb::python_error &e) {
		c.code = e.matches(PyExc_ValueError) || e.matches(PyExc_TypeError) ? YOKE_EINVAL : YOKE_EFAILED;
		c.message = line_of(e);
	} catch (const std::exception &e) {
		c.code = YOKE_EFAILED;
		c.message = line_of(e);
	}
}

static Made<Server> server_new(std::optional<std::string> host, int port, std::optional<std::string> key, bool open, int connections,
			       int64_t body, int64_t queue, int64_t timeout)
{
	enter();
	struct yoke_server_options o = {};
	o.size = sizeof o;
	o.host = host ? host->c_str() : nullptr;
	o.port = port;
	o.key = key ? key->c_str() : nullptr;
	o.open = open;
	o.connections = connections;
	o.body = body;
	o.queue = queue;
	o.timeout = timeout;
	auto s = std::make_unique<Server>();
	s->h.p = yoke_server_new(&o);
	if (!s->h.p)
		fail();
	return { nb::cast(s.release(), nb::rv_policy::take_ownership) };
}

static void serve_function(Server &s, const std::string &path, nb::object fn, const std::string &type, int rank, int64_t batch)
{
	enter();
	yoke_server *p = s.h.get("serve_function");
	struct yoke_serve_options o = {};
	o.size = sizeof o;
	o.dtype = types[type_of(type)].dtype;
	o.rank = rank;
	o.batch = batch;
	auto f = std::make_unique<Function>(Function{ &s, fn });
	check(yoke_serve_function(p, path.c_str(), relay, &o, f.get()));
	s.functions.push_back(std::move(f));
}

static void begin_run(Server &s)
{
	std::lock_guard<std::mutex> guard(s.lock);
	if (s.running)
		throw nb::value_error("server_run: the server is running already");
	s.running = true;
	s.ended = false;
}

// The next call, or NULL; waits a moment for it.
static Call *next_call(Server &s, bool *ended)
{
	Unlocked gil;
	std::unique_lock<std::mutex> guard(s.lock);
	s.changed.wait_for(guard, std::chrono::milliseconds(100), [&] { return s.call || s.ended; });
	Call *c = s.call;
	s.call = nullptr;
	*ended = s.ended;
	return c;
}

static void server_run(Server &s)
{
	enter();
	yoke_server *p = s.h.get("server_run");
	int code = 0;
	std::string message;
	std::exception_ptr raised;
	begin_run(s);
	std::thread thread([&] {
		code = yoke_server_run(p);
		message = yoke_error();
		std::lock_guard<std::mutex> guard(s.lock);
		s.ended = true;
		s.changed.notify_all();
	});
	for (bool ended = false; !ended;) {
		if (Call *c = next_call(s, &ended)) {
			answer(*c);
			std::lock_guard<std::mutex> guard(s.lock);
			c->done = true;
			s.changed.notify_all();
		}
		if (!raised && PyErr_CheckSignals() < 0) {
			raised = std::make_exception_ptr(nb::python_error());
			yoke_server_stop(p);
		}
	}
	thread.join();
	s.running = false;
	if (raised)
		std::rethrow_exception(raised);
	if (code < 0) {
		report(code, message);
		fail();
	}
}

static void server_free(Server &s)
{
	enter();
	if (s.running)
		throw nb::value_error("server_free: the server is running");
	s.h.drop();
}

void serve_setup(nb::module_ &m)
{
	nb::class_<Server>(m, "ServerHandle", "Functions of arrays by HTTP; yoke.Server has more functions.");
	m.def("server_new", server_new, nb::kw_only(), "host"_a = nb::none(), "port"_a = 0, "key"_a = nb::none(), "open"_a = false,
	      "connections"_a = 0, "body"_a = 0, "queue"_a = 0, "timeout"_a = 0, DOC_server_new);
	m.def("server_free", server_free, "server"_a, DOC_server_free);
	m.def("serve_function", serve_function, "server"_a, "path"_a, "fn"_a, nb::kw_only(), "type"_a = "<f4", "rank"_a = 0, "batch"_a = 0,
	      DOC_serve_function);
	m.def("server_start", [](Server &s) { enter(); return check(yoke_server_start(s.h.get("server_start"))); }, "server"_a,
	      DOC_server_start);
	m.def("server_run", server_run, "server"_a, DOC_server_run);
	m.def("server_stop", [](Server &s) { enter(); yoke_server_stop(s.h.get("server_stop")); }, "server"_a, DOC_server_stop);
}

} // namespace py
