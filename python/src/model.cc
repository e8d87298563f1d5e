// SPDX-License-Identifier: Apache-2.0
// Pretrained models and their tokenizers: functions whose texts, ids and ownership bind.py has no rule for.
#include "core.h"
#include "docs.h"

#include <cstdlib>
#include <nanobind/stl/vector.h>

namespace py {

template <> void free_of(yoke_model *p) { unlocked([p] { yoke_model_free(p); return 0; }); }
template <> void free_of(yoke_generation *p) { unlocked([p] { yoke_generation_free(p); return 0; }); }
template <> void free_of(yoke_tokenizer *p) { yoke_tokenizer_free(p); }
template <> void free_of(yoke_chat_template *p) { yoke_chat_template_free(p); }

using Ids = std::vector<int32_t>;

// The weights, which the model owns, and their names.
static nb::tuple model_parameters(nb::object self)
{
	enter();
	yoke_model *m = nb::cast<Handle<yoke_model> &>(self).get("model_parameters");
	const int n = static_cast<int>(check(yoke_model_parameters(m, 0, nullptr, nullptr)));
	std::vector<yoke_tensor *> t(static_cast<size_t>(n));
	std::vector<const char *> name(static_cast<size_t>(n));
	check(yoke_model_parameters(m, n, t.data(), name.data()));
	nb::list names, tensors;
	for (size_t i = 0; i < t.size(); i++) {
		names.append(nb::str(name[i]));
		tensors.append(nb::steal(lend(t[i], current(), self.ptr())));
	}
	return nb::make_tuple(tensors, names);
}

static Made<Handle<yoke_tokenizer>> model_tokenizer(nb::object self)
{
	enter();
	yoke_model *m = nb::cast<Handle<yoke_model> &>(self).get("model_tokenizer");
	const yoke_tokenizer *t = unlocked([&] { return yoke_model_tokenizer(m); });
	Made<Handle<yoke_tokenizer>> h = made(const_cast<yoke_tokenizer *>(t));
	auto &to = nb::cast<Handle<yoke_tokenizer> &>(h.o);
	to.lent = true;
	to.keep = self;
	return h;
}

static nb::object model_embed_texts(nb::object self, const std::vector<std::string> &texts, Text pooling, int normalize)
{
	enter();
	yoke_model *m = nb::cast<Handle<yoke_model> &>(self).get("model_embed_texts");
	OwnText pool(pooling.o, "model_embed_texts");
	struct yoke_embed_options o = {};
	o.size = sizeof o;
	o.pooling = pool.c();
	o.normalize = normalize;
	struct yoke_model_info info = {};
	info.size = sizeof info;
	check(yoke_model_info(m, &info));
	std::vector<const char *> text = pointers(texts);
	std::vector<float> to(texts.size() * static_cast<size_t>(info.width) + 1);
	check(unlocked([&] { return yoke_model_embed_texts(m, static_cast<int64_t>(text.size()), text.data(), &o, to.data()); }));
	nb::object all = nb::module_::import_("numpy").attr("frombuffer")(
		nb::bytes(to.data(), (to.size() - 1) * sizeof to[0]), "float32");
	return all.attr("reshape")(static_cast<int64_t>(text.size()), info.width).attr("copy")();
}

// ---- fine-tuning ----

static Made<Handle<yoke_dataset>> model_dataset(Handle<yoke_model> &model, Text paths, int64_t context, bool separate,
						const std::optional<std::string> &text, nb::object ids)
{
	enter();
	yoke_model *m = model.get("model_dataset");
	OwnText name(paths.o, "model_dataset");
	struct yoke_text_options o = {};
	o.size = sizeof o;
	o.context = context;
	o.separate = separate;
	o.text = text ? text->data() : nullptr;
	o.bytes = text ? text->size() : 0;
	nb::object array;
	Py_buffer b = {};
	if (!ids.is_none()) {
		array = nb::module_::import_("numpy").attr("ascontiguousarray")(ids, "int32");
		if (PyObject_GetBuffer(array.ptr(), &b, PyBUF_C_CONTIGUOUS) < 0)
			throw nb::python_error();
		o.ids = static_cast<const int32_t *>(b.buf);
		o.count = static_cast<int64_t>(b.len / 4);
	}
	yoke_dataset *set = unlocked([&] { return yoke_model_dataset(m, name.c(), &o); });
	if (b.obj)
		PyBuffer_Release(&b);
	return made(set);
}

// ---- ONNX ----

// Names for n tensors, or none.
static std::vector<std::string> names_of(nb::handle list, size_t n, const char *what)
{
	std::vector<std::string> names;
	if (list.is_none())
		return names;
	names = nb::cast<std::vector<std::string>>(list);
	if (names.size() != n)
		throw nb::value_error((std::string("onnx_write: ") + std::to_string(names.size()) + " " + what + " for " + std::to_string(n) +
				       " tensors").c_str());
	return names;
}

static void onnx_write(const std::string &path, nb::object inputs, nb::object outputs, Text name, nb::object input_names,
		       nb::object output_names, nb::object weights, uint64_t external)
{
	enter();
	Ops in(inputs, false, "onnx_write"), out(outputs, false, "onnx_write");
	OwnText graph(name.o, "onnx_write");
	const nb::dict named = weights.is_none() ? nb::dict() : nb::cast<nb::dict>(weights);
	nb::list tensors;
	std::vector<std::string> texts;
	for (auto item : named) {
		texts.push_back(nb::cast<std::string>(item.first));
		tensors.append(item.second);
	}
	Ops weight(tensors, false, "onnx_write");
	const std::vector<std::string> in_text = names_of(input_names, in.h.size(), "names of inputs");
	const std::vector<std::string> out_text = names_of(output_names, out.h.size(), "names of outputs");
	const std::vector<const char *> in_name = pointers(in_text), out_name = pointers(out_text), weight_name = pointers(texts);
	struct yoke_onnx_options o = {};
	o.size = sizeof o;
	o.name = graph.c();
	o.inputs = in_name.empty() ? nullptr : in_name.data();
	o.outputs = out_name.empty() ? nullptr : out_name.data();
	o.weights = weight.n();
	o.weight = weight.h.data();
	o.weight_names = weight_name.data();
	o.external = external;
	check(unlocked([&] { return yoke_onnx_write(path.c_str(), in.n(), in.h.data(), out.n(), out.h.data(), &o); }));
}

// ---- generation ----

struct Generation { // a handle and the number of texts
	Handle<yoke_generation> h;
	size_t n = 0;
};

static Made<Generation> generation_new(nb::object model, const std::vector<Ids> &prompts, int64_t tokens, double temperature,
				       int64_t top_k, double top_p, double min_p, double repetition, double frequency, double presence,
				       uint64_t seed, bool past_end)
{
	enter();
	yoke_model *m = nb::cast<Handle<yoke_model> &>(model).get("generation_new");
	struct yoke_generation_options o = {};
	o.size = sizeof o;
	o.tokens = tokens;
	o.temperature = temperature;
	o.top_k = top_k;
	o.top_p = top_p;
	o.min_p = min_p;
	o.repetition = repetition;
	o.frequency = frequency;
	o.presence = presence;
	o.seed = seed;
	o.past_end = past_end;
	std::vector<const int32_t *> ids;
	std::vector<int64_t> count;
	for (const Ids &p : prompts) {
		ids.push_back(p.data());
		count.push_back(static_cast<int64_t>(p.size()));
	}
	static const int32_t *none;
	static const int64_t zero = 0;
	const int n = static_cast<int>(prompts.size());
	auto g = std::make_unique<Generation>();
	g->h.p = unlocked([&] { return yoke_generation_new(m, n, n ? ids.data() : &none, n ? count.data() : &zero, &o); });
	if (!g->h.p)
		fail();
	g->h.keep = model;
	g->n = prompts.size();
	return { nb::cast(g.release(), nb::rv_policy::take_ownership) };
}

static std::optional<Ids> generation_next(Generation &g)
{
	enter();
	yoke_generation *p = g.h.get("generation_next");
	Ids ids(g.n);
	const int64_t n = check(unlocked([&] { return yoke_generation_next(p, ids.data()); }));
	return n ? std::optional<Ids>(ids) : std::nullopt;
}

// ---- tokenizers ----

static Made<Handle<yoke_tokenizer>> tokenizer_parse(nb::bytes data, const std::string &name)
{
	enter();
	return made(unlocked([&] { return yoke_tokenizer_parse(data.c_str(), data.size(), name.c_str()); }));
}

static Made<Handle<yoke_tokenizer>> tokenizer_train(const std::vector<std::string> &texts, int64_t vocab)
{
	enter();
	std::vector<const char *> text;
	std::vector<size_t> bytes;
	for (const std::string &t : texts) {
		text.push_back(t.data());
		bytes.push_back(t.size());
	}
	return made(unlocked([&] { return yoke_tokenizer_train(text.data(), bytes.data(), text.size(), vocab); }));
}

static Ids tokenizer_encode(Handle<yoke_tokenizer> &t, const std::string &text, unsigned flags)
{
	enter();
	yoke_tokenizer *p = t.get("tokenizer_encode");
	int32_t *ids = nullptr;
	size_t n = 0;
	check(unlocked([&] { return yoke_tokenizer_encode(p, text.data(), text.size(), flags, &ids, &n); }));
	Ids all(ids, ids + n);
	free(ids);
	return all;
}

static nb::object tokenizer_decode(Handle<yoke_tokenizer> &t, const Ids &ids, unsigned flags)
{
	enter();
	yoke_tokenizer *p = t.get("tokenizer_decode");
	char *text = nullptr;
	size_t n = 0;
	static const int32_t none = 0;
	check(unlocked([&] { return yoke_tokenizer_decode(p, ids.empty() ? &none : ids.data(), ids.size(), flags, &text, &n); }));
	nb::object all = flags & YOKE_TOKENIZER_BYTES ? nb::object(nb::bytes(text, n)) :
							nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(n), "replace"));
	free(text);
	if (!all.is_valid())
		throw nb::python_error();
	return all;
}

// ---- chat templates ----

static Made<Handle<yoke_chat_template>> chat_template_parse(const std::string &source, const std::string &name)
{
	enter();
	return made(yoke_chat_template_parse(source.data(), source.size(), name.c_str()));
}

struct ChatOptions {
	struct yoke_chat_options o = {};
	OwnText tools, variables;
	ChatOptions(bool prompt, Text t, Text v, int64_t now, const char *call) : tools(t.o, call), variables(v.o, call)
	{
		o.size = sizeof o;
		o.add_generation_prompt = prompt;
		o.tools = tools.c();
		o.variables = variables.c();
		o.now = now;
	}
};

static nb::str chat_template_render(Handle<yoke_chat_template> &t, const std::string &messages, bool prompt, Text tools, Text variables,
				    int64_t now)
{
	enter();
	const yoke_chat_template *p = t.get("chat_template_render_json");
	const ChatOptions options(prompt, tools, variables, now, "chat_template_render_json");
	char *text = nullptr;
	size_t n = 0;
	check(unlocked([&] { return yoke_chat_template_render_json(p, messages.data(), messages.size(), &options.o, &text, &n); }));
	nb::object all = nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(n), "replace"));
	free(text);
	if (!all.is_valid())
		throw nb::python_error();
	return nb::str(all);
}

static Ids chat_template_encode(Handle<yoke_chat_template> &t, Handle<yoke_tokenizer> &tokenizer, const std::string &messages, bool prompt,
				Text tools, Text variables, int64_t now)
{
	enter();
	const yoke_chat_template *p = t.get("chat_template_encode_json");
	const yoke_tokenizer *words = tokenizer.get("chat_template_encode_json");
	const ChatOptions options(prompt, tools, variables, now, "chat_template_encode_json");
	int32_t *ids = nullptr;
	size_t n = 0;
	check(unlocked([&] {
		return yoke_chat_template_encode_json(p, words, messages.data(), messages.size(), &options.o, &ids, &n);
	}));
	Ids all(ids, ids + n);
	free(ids);
	return all;
}

static std::optional<int> id_or_none(int64_t id)
{
	return id < 0 ? std::nullopt : std::optional<int>(static_cast<int>(id));
}

static void tokenizer_setup(nb::module_ &m)
{
	nb::class_<Handle<yoke_tokenizer>>(m, "TokenizerHandle", "A tokenizer of a published model.");
	nb::class_<Handle<yoke_chat_template>>(m, "ChatTemplate", "A template that writes the messages of a conversation as text.");
	m.def("chat_template_parse", chat_template_parse, "source"_a, "name"_a = "chat template", DOC_chat_template_parse);
	m.def("chat_template_render_json", chat_template_render, "chat_template"_a, "messages"_a, nb::kw_only(),
	      "add_generation_prompt"_a = false, "tools"_a = nb::none(), "variables"_a = nb::none(), "now"_a = 0,
	      DOC_chat_template_render_json);
	m.def("chat_template_encode_json", chat_template_encode, "chat_template"_a, "tokenizer"_a, "messages"_a, nb::kw_only(),
	      "add_generation_prompt"_a = false, "tools"_a = nb::none(), "variables"_a = nb::none(), "now"_a = 0,
	      "Renders messages, a JSON array of objects, and encodes the text: a list of ids.  Special tokens come from the template "
	      "only; one that a message has is text.");
	m.def("tokenizer_parse", tokenizer_parse, "data"_a, "name"_a = "tokenizer", DOC_tokenizer_parse);
	m.def("tokenizer_train", tokenizer_train, "texts"_a, "vocab"_a,
	      "Trains a byte-level BPE of at most `vocab` ids on a list of texts, with the merges of BpeTrainer of `tokenizers`.");
	m.def("tokenizer_encode", tokenizer_encode, "tokenizer"_a, "text"_a, "flags"_a = 0,
	      "Encodes a text: a list of ids.  flags: TOKENIZER_ADD, TOKENIZER_PARSE.  Truncation and padding settings of the file "
	      "are not applied.");
	m.def("tokenizer_decode", tokenizer_decode, "tokenizer"_a, "ids"_a, "flags"_a = 0,
	      nb::sig("def tokenizer_decode(tokenizer: TokenizerHandle, ids: collections.abc.Sequence[int], flags: int = 0) -> typing.Any"),
	      "Decodes ids: a str, or with TOKENIZER_BYTES bytes.  flags: TOKENIZER_SKIP, TOKENIZER_BYTES.  Ids without a token are "
	      "left out.");
	m.def("tokenizer_piece", [](Handle<yoke_tokenizer> &t, int id) -> std::optional<nb::bytes> {
		enter();
		size_t n = 0;
		const char *piece = yoke_tokenizer_piece(t.get("tokenizer_piece"), id, &n);
		return piece ? std::optional<nb::bytes>(nb::bytes(piece, n)) : std::nullopt;
	}, "tokenizer"_a, "id"_a, "The token of an id as the file spells it, as bytes; None if the id has none.");
	m.def("tokenizer_id", [](Handle<yoke_tokenizer> &t, const std::string &piece) {
		enter();
		return id_or_none(yoke_tokenizer_id(t.get("tokenizer_id"), piece.data(), piece.size()));
	}, "tokenizer"_a, "piece"_a, "The id of a token as the file spells it; None if there is none.");
	m.def("tokenizer_is_special", [](Handle<yoke_tokenizer> &t, int id) {
		enter();
		return check(yoke_tokenizer_is_special(t.get("tokenizer_is_special"), id)) != 0;
	}, "tokenizer"_a, "id"_a, DOC_tokenizer_is_special);
#define SPECIAL(name, what) \
	m.def("tokenizer_" #name, [](Handle<yoke_tokenizer> &t) { \
		enter(); \
		return id_or_none(yoke_tokenizer_##name(t.get("tokenizer_" #name))); \
	}, "tokenizer"_a, "The id of the token " what "; None if the files name none.")
	SPECIAL(bos, "that begins a text");
	SPECIAL(pad, "for padding");
	SPECIAL(unknown, "for unknown text");
	m.def("tokenizer_eos", [](Handle<yoke_tokenizer> &t) {
		enter();
		const int32_t *ids = nullptr;
		const int64_t n = check(yoke_tokenizer_eos(t.get("tokenizer_eos"), &ids));
		return n ? Ids(ids, ids + n) : Ids();
	}, "tokenizer"_a, "Ids that end a text; several if generation_config.json lists them.");
}

// ---- quantization ----

static Array quantize(int format, nb::object x)
{
	enter();
	nb::module_ numpy = nb::module_::import_("numpy");
	nb::object from = numpy.attr("ascontiguousarray")(x, "float32");
	std::vector<int64_t> dims = shape_of(from.attr("shape"), "quantize");
	if (dims.size() != 2)
		throw nb::value_error("quantize: takes a matrix");
	const int64_t bytes = yoke_quant_bytes(format, dims[1]);
	nb::object to = numpy.attr("zeros")(nb::make_tuple(dims[0], bytes), "uint8");
	Py_buffer a, b;
	if (PyObject_GetBuffer(from.ptr(), &a, PyBUF_C_CONTIGUOUS) < 0)
		throw nb::python_error();
	if (PyObject_GetBuffer(to.ptr(), &b, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) {
		PyBuffer_Release(&a);
		throw nb::python_error();
	}
	const int e = unlocked([&] { return yoke_quantize(format, dims[0], dims[1], static_cast<const float *>(a.buf), b.buf); });
	PyBuffer_Release(&a);
	PyBuffer_Release(&b);
	check(e);
	return { to };
}

void model_setup(nb::module_ &m)
{
	nb::class_<Handle<yoke_model>>(m, "Model", "A pretrained language model; yoke.load has an object with more functions.");
	nb::class_<Generation>(m, "Generation", "Texts that a model continues.");
	tokenizer_setup(m);
	m.def("model_parameters", model_parameters, "model"_a, "Its weights, and their names.");
	m.def("model_tokenizer", model_tokenizer, "model"_a, DOC_model_tokenizer);
	m.def("model_embed_texts", model_embed_texts, "model"_a, "texts"_a, nb::kw_only(), "pooling"_a = nb::none(), "normalize"_a = 0,
	      nb::sig("def model_embed_texts(model: Model, texts: collections.abc.Sequence[str], *, pooling: str | None = None, "
		      "normalize: int = 0) -> numpy.ndarray[typing.Any, typing.Any]"),
	      "A vector for each text, an array [n,width], with the model's tokenizer and its special tokens.");
	m.def("model_dataset", model_dataset, "model"_a, "paths"_a.none(), nb::kw_only(), "context"_a = 0, "separate"_a = false,
	      "text"_a = nb::none(), "ids"_a = nb::none(),
	      nb::sig("def model_dataset(model: Model, paths: str | None, *, context: int = 0, separate: bool = False, "
		      "text: str | None = None, ids: typing.Any = None) -> Dataset"),
	      DOC_model_dataset);
	m.def("onnx_write", onnx_write, "path"_a, "inputs"_a, "outputs"_a, nb::kw_only(), "name"_a = nb::none(),
	      "input_names"_a = nb::none(), "output_names"_a = nb::none(), "weights"_a = nb::none(), "external"_a = 0,
	      nb::sig("def onnx_write(path: str, inputs: collections.abc.Sequence[Tensor], outputs: collections.abc.Sequence[Tensor], *, "
		      "name: str | None = None, input_names: collections.abc.Sequence[str] | None = None, "
		      "output_names: collections.abc.Sequence[str] | None = None, weights: dict[str, Tensor] | None = None, "
		      "external: int = 0) -> None"),
	      DOC_onnx_write);
	m.def("generation_new", generation_new, "model"_a, "prompts"_a, nb::kw_only(), "tokens"_a, "temperature"_a = 0.0, "top_k"_a = 0,
	      "top_p"_a = 0.0, "min_p"_a = 0.0, "repetition"_a = 0.0, "frequency"_a = 0.0, "presence"_a = 0.0, "seed"_a = 0,
	      "past_end"_a = false, DOC_generation_new);
	m.def("generation_next", generation_next, "generation"_a,
	      "The next token of each text, -1 for texts that are finished or end with this step; None: all are finished.");
	m.def("generation_end", [](Generation &g, int text) {
		enter();
		check(yoke_generation_end(g.h.get("generation_end"), text));
	}, "generation"_a, "text"_a, DOC_generation_end);
	m.def("generation_free", [](Generation &g) { enter(); g.h.drop(); }, "generation"_a,
	      "Frees it now; it would be when nothing refers to it any more.");
	m.def("quantize", quantize, "format"_a, "x"_a,
	      "Quantizes a matrix of numbers [N,K]: an array u8 [N, quant_bytes(format, K)].  The formats are F32, F16, BF16, Q4_0, "
	      "Q4_1, Q5_0, Q5_1 and Q8_0; the bytes equal those that the package gguf writes.");
}

} // namespace py
