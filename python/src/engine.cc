// SPDX-License-Identifier: Apache-2.0
// The engine: requests, steps, events, and masks that are functions of Python.
#include "core.h"
#include "docs.h"

#include <map>
#include <mutex>

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

namespace py {

using Ids = std::vector<int32_t>;

// A request's mask and what it raised.
struct Mask {
	nb::object fn;
	int64_t vocabulary;
	int choices;
	std::exception_ptr raised;
};

struct Engine {
	Handle<yoke_engine> h;
	int64_t vocabulary = 0;
	std::mutex lock;
	std::map<int64_t, std::unique_ptr<Mask>> mask; // by request
};

template <> void free_of(yoke_engine *p) { unlocked([p] { yoke_engine_free(p); return 0; }); }

// The function gives the allowed ids, or None for all.
static int call_mask(void *user, int choice, int64_t n, const int32_t *tokens, uint32_t *bits)
{
	Locked gil;
	auto *m = static_cast<Mask *>(user);
	try {
		nb::object allowed = m->fn(choice, Ids(tokens, tokens + n));
		if (allowed.is_none())
			return 0;
		for (int64_t i = 0; i < (m->vocabulary + 31) / 32; i++)
			bits[i] = 0;
		for (int64_t id : nb::cast<std::vector<int64_t>>(allowed))
			if (id >= 0 && id < m->vocabulary)
				bits[id / 32] |= uint32_t(1) << id % 32;
		return 0;
	} catch (...) {
		m->raised = std::current_exception();
		return YOKE_EINVAL;
	}
}

static Made<Engine> engine_new(nb::object model, int slots, int queue, int64_t step, int64_t pages, bool alike, bool reuse)
{
	enter();
	yoke_model *m = nb::cast<Handle<yoke_model> &>(model).get("engine_new");
	struct yoke_engine_options o = {};
	struct yoke_model_info info = {};
	o.size = sizeof o;
	o.slots = slots;
	o.queue = queue;
	o.step = step;
	o.pages = pages;
	o.alike = alike ? 1 : -1;
	o.reuse = reuse ? 1 : -1;
	info.size = sizeof info;
	check(yoke_model_info(m, &info));
	auto e = std::make_unique<Engine>();
	e->h.p = unlocked([&] { return yoke_engine_new(m, &o); });
	if (!e->h.p)
		fail();
	e->h.keep = model;
	e->vocabulary = info.vocabulary;
	return { nb::cast(e.release(), nb::rv_policy::take_ownership) };
}

static int64_t engine_submit(Engine &e, const Ids &prompt, int64_t tokens, int choices, const std::map<int32_t, float> &bias,
			     double repetition, double frequency, double presence, double temperature, int64_t top_k, double top_p,
			     double min_p, uint64_t seed, const Ids &stop, bool past_end, Text adapter, int logprobs, nb::object mask)
{
	enter();
	yoke_engine *p = e.h.get("engine_submit");
	OwnText name(adapter.o, "engine_submit");
	Ids ids;
	std::vector<float> biases;
	for (const auto &[id, x] : bias) {
		ids.push_back(id);
		biases.push_back(x);
	}
	struct yoke_engine_request r = {};
	static const int32_t none = 0;
	r.size = sizeof r;
	r.prompt = prompt.empty() ? &none : prompt.data();
	r.count = static_cast<int64_t>(prompt.size());
	r.tokens = tokens;
	r.choices = choices;
	r.biases = static_cast<int64_t>(ids.size());
	r.bias_id = ids.data();
	r.bias = biases.data();
	r.repetition = repetition;
	r.frequency = frequency;
	r.presence = presence;
	r.temperature = temperature;
	r.top_k = top_k;
	r.top_p = top_p;
	r.min_p = min_p;
	r.seed = seed;
	r.stops = static_cast<int64_t>(stop.size());
	r.stop = stop.data();
	r.past_end = past_end;
	r.adapter = name.c();
	r.logprobs = logprobs;
	std::unique_ptr<Mask> m;
	if (!mask.is_none()) {
		m = std::make_unique<Mask>(Mask{ mask, e.vocabulary, choices ? choices : 1, nullptr });
		r.mask = call_mask;
		r.user = m.get();
	}
	const int64_t id = check(yoke_engine_submit(p, &r));
	if (m) {
		std::lock_guard<std::mutex> guard(e.lock);
		e.mask[id] = std::move(m);
	}
	return id;
}

// The oldest event as a record, or None.
static nb::object engine_next(Engine &e)
{
	enter();
	struct yoke_engine_event v = {};
	v.size = sizeof v;
	if (!check(yoke_engine_next(e.h.get("engine_next"), &v)))
		return nb::none();
	nb::object to = record();
	to.attr("request") = v.request;
	to.attr("choice") = v.choice;
	to.attr("end") = v.kind == YOKE_ENGINE_END;
	to.attr("token") = v.token < 0 ? nb::object(nb::none()) : nb::object(nb::int_(v.token));
	to.attr("generated") = v.generated;
	if (v.kind == YOKE_ENGINE_TOKEN) {
		to.attr("logprob") = v.logprob;
		nb::list all;
		for (int i = 0; i < v.alternatives; i++)
			all.append(nb::make_tuple(v.alternative[i], v.alternative_logprob[i]));
		to.attr("alternatives") = all;
		return to;
	}
	static const char *const reasons[] = { "", "stop", "length", "cancelled", "error" };
	to.attr("reason") = reasons[v.reason];
	to.attr("error") = v.error ? nb::object(nb::str(v.message)) : nb::object(nb::none());
	to.attr("prompt") = v.prompt;
	to.attr("cached") = v.cached;
	std::lock_guard<std::mutex> guard(e.lock);
	auto m = e.mask.find(v.request);
	if (m == e.mask.end())
		return to;
	const std::exception_ptr raised = m->second->raised;
	if (--m->second->choices == 0)
		e.mask.erase(m);
	else
		m->second->raised = nullptr;
	if (raised)
		std::rethrow_exception(raised);
	return to;
}

void engine_setup(nb::module_ &m)
{
	nb::class_<Engine>(m, "EngineHandle", "Requests to a language model that share each pass through it; yoke.Engine has more functions.");
	m.def("engine_new", engine_new, "model"_a, nb::kw_only(), "slots"_a = 0, "queue"_a = 0, "step"_a = 0, "pages"_a = 0, "alike"_a = true,
	      "reuse"_a = true, DOC_engine_new);
	m.def("engine_free", [](Engine &e) { enter(); e.h.drop(); }, "engine"_a, DOC_engine_free);
	m.def("engine_adapter", [](Engine &e, const std::string &name, const std::string &folder) {
		enter();
		yoke_engine *p = e.h.get("engine_adapter");
		check(unlocked([&] { return yoke_engine_adapter(p, name.c_str(), folder.c_str()); }));
	}, "engine"_a, "name"_a, "folder"_a, DOC_engine_adapter);
	m.def("engine_submit", engine_submit, "engine"_a, "prompt"_a, nb::kw_only(), "tokens"_a = 0, "choices"_a = 1,
	      "bias"_a = std::map<int32_t, float>(), "repetition"_a = 0.0, "frequency"_a = 0.0, "presence"_a = 0.0, "temperature"_a = 0.0,
	      "top_k"_a = 0, "top_p"_a = 0.0, "min_p"_a = 0.0, "seed"_a = 0, "stop"_a = Ids(), "past_end"_a = false, "adapter"_a = nb::none(),
	      "logprobs"_a = 0, "mask"_a = nb::none(),
	      nb::sig("def engine_submit(engine: EngineHandle, prompt: collections.abc.Sequence[int], *, tokens: int = 0, choices: int = 1, "
		      "bias: collections.abc.Mapping[int, float] = {}, repetition: float = 0.0, frequency: float = 0.0, presence: float = 0.0, "
		      "temperature: float = 0.0, top_k: int = 0, top_p: float = 0.0, min_p: float = 0.0, seed: int = 0, "
		      "stop: collections.abc.Sequence[int] = [], past_end: bool = False, adapter: str | None = None, logprobs: int = 0, "
		      "mask: typing.Any = None) -> int"),
	      DOC_engine_submit);
	m.def("engine_cancel", [](Engine &e, int64_t request) {
		enter();
		check(yoke_engine_cancel(e.h.get("engine_cancel"), request));
	}, "engine"_a, "request"_a, DOC_engine_cancel);
	m.def("engine_context", [](Engine &e) {
		enter();
		return check(yoke_engine_context(e.h.get("engine_context")));
	}, "engine"_a, DOC_engine_context);
	m.def("engine_step", [](Engine &e) {
		enter();
		yoke_engine *p = e.h.get("engine_step");
		return check(unlocked([p] { return yoke_engine_step(p); }));
	}, "engine"_a, DOC_engine_step);
	m.def("engine_next", engine_next, "engine"_a, nb::sig("def engine_next(engine: EngineHandle) -> yoke._record.Record | None"),
	      "Takes the oldest event of the engine, a record; None: there is none.");
	m.def("engine_wait", [](Engine &e, int64_t milliseconds) {
		enter();
		yoke_engine *p = e.h.get("engine_wait");
		return check(unlocked([p, milliseconds] { return yoke_engine_wait(p, milliseconds); })) != 0;
	}, "engine"_a, "milliseconds"_a = 1000, DOC_engine_wait);
	m.def("engine_wake", [](Engine &e) { enter(); yoke_engine_wake(e.h.get("engine_wake")); }, "engine"_a, DOC_engine_wake);
	m.def("engine_stats", [](Engine &e) -> RecordRet {
		enter();
		struct yoke_engine_stats s = {};
		s.size = sizeof s;
		check(yoke_engine_stats(e.h.get("engine_stats"), &s));
		nb::object to = record();
#define X(name) to.attr(#name) = s.name;
		X(running) X(queued) X(pages) X(pages_used) X(pages_kept) X(submitted) X(ended) X(cancelled) X(failed) X(prompt_tokens)
		X(cached_tokens) X(generated_tokens) X(computed_tokens) X(steps) X(preempted) X(last_step_tokens) X(failed_steps) X(waiting)
#undef X
		return { to };
	}, "engine"_a, "Counters of an engine; safe to call from any thread.");
}

} // namespace py
