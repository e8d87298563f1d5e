// SPDX-License-Identifier: Apache-2.0
// The extension yoke._core.
#include "core.h"

#include "bound.h"

namespace py {
void args_setup(nb::module_ &);
#define X(name) void bind_##name(nb::module_ &);
YOKE_BOUND(X)
#undef X
} // namespace py

// Where Python recorded an operation, for errors with YOKE_TRACE_OPS=1.
static const char *where()
{
	static thread_local std::string text;
	if (!py::locked())
		return nullptr;
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	text.clear();
	try {
		nb::object frame = nb::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
		while (frame.is_valid() && !frame.is_none()) {
			nb::object code = frame.attr("f_code");
			std::string file = nb::cast<std::string>(code.attr("co_filename"));
			if (file.find("/yoke/") == std::string::npos || file.find("/_") == std::string::npos) {
				text = file.substr(file.rfind('/') + 1) + ":" +
				       std::to_string(nb::cast<int>(frame.attr("f_lineno"))) + " in " +
				       nb::cast<std::string>(code.attr("co_name"));
				break;
			}
			frame = frame.attr("f_back");
		}
	} catch (...) {
		text.clear();
	}
	PyErr_Restore(type, value, trace);
	return text.empty() ? nullptr : text.c_str();
}

NB_MODULE(_core, m)
{
	m.doc() = "The bindings of yoke's functions; use `import yoke`.";
	py::args_setup(m);
	py::tensor_setup(m);
	py::share_setup(m);
	py::wait_setup(m);
	py::nn_setup(m);
	py::data_setup(m);
	py::op_setup(m);
	py::fit_setup(m);
	py::model_setup(m);
	py::engine_setup(m);
	py::serve_setup(m);
#define X(name) py::bind_##name(m);
	YOKE_BOUND(X)
#undef X
#define X(name, value) m.attr(#name) = static_cast<long long>(value);
	YOKE_CONSTANTS(X)
#undef X
	yoke_site_hook(where);
}
