#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the bindings of yoke's functions, from their declarations and comments in include/*.h.

	bind.py INCLUDE OUT

OUT gets bound_NAME.cc for each header, bound.h with the constants, and docs.h, comments of functions that are written by
hand.  What a declaration does not say is in the tables here; functions in HAND are written in src/*.cc, those in ABSENT are not
for Python.
"""
import os
import re
import sys

# ---- the tables ----

ABSENT = {
    "node_register": "a type of node is a table of C functions",
    "module_state": "the state is the Python object itself",
    "wrap": "from_dlpack is it",
    "item_random": "of the functions that read samples in C; Python has generators of its own",
    "item_uniform": "of the functions that read samples in C; Python has generators of its own",
    "dataset_map": "maps samples by a C function; map in the function that reads them",
    "site_hook": "the package uses it",
    "context_of": "operations are recorded where their operands are",
    "share": "numpy() and __dlpack__ are it",
    "tensordot": "yoke.tensordot has NumPy's arguments and is written in Python",
    "split": "slices are below NumPy's split",
    "chunk": "slices are below chunk",
    "meshgrid": "views are below NumPy's meshgrid",
    "group_run": "a thread a rank, which Python's threads do not help; use group_spawn",
    "profile_state": "of C programs that keep a schedule of their own",
    "dataset_cube_files": "dataset_cubes has the same arguments",
    "pipeline_fit_as": "pipeline_fit; what it has more are checkpoints and a C function that hears of progress",
    "generation_again": "of C programs; Model.generate begins anew",
    "generation_computed": "of C programs; Model.generate begins anew",
    "chat_template_render": "messages are chat_template_render_json's",
    "chat_template_render_spans": "of C programs; chat_template_encode_json encodes with it",
    "chat_template_encode": "messages are chat_template_encode_json's",
    "tokenizer_encode_spans": "of C programs; chat_template_encode_json encodes with it",
    "op_fail": "an exception is it",
    "eval_brief": "eval decides which thread evaluates",
    "fftn": "fft along each axis", "ifftn": "ifft along each axis", "rfftn": "rfft and fft along each axis",
    "irfftn": "ifft and irfft along each axis",
    "loader_errors": "a C function hears of each sample; loader_stats counts them",
}

# Written by hand: what the generator has no rule for.
HAND = """
error error_code error_clear setting_get context_new context_new_on context_on context_dry trim to context_free use scope_begin scope_end
keep lift free put from read eval sync moments module_new module_parameter module_buffer module_own module_child module_at
model_parameters module_each module_parameters module_find module_load forward call nn_sequential nn_residual nn_lora optim_add optim_step
optim_state statistic_read roc_auc cube_read cube_write cube_info dataset_new dataset_read dataset_fields dataset_cubes
loader_next loader_put loader_host group_spawn group_exchange profile_new profile_table run_log pipeline_train
op_register op_find op_call op_check pipeline_state pipeline_context module_free module_move optim_move scaler_check unscale_check counters_between scaler_inverse
run_open run_close recorder_new loader_new fit autocast device_of is_variable
engine_new engine_free engine_adapter engine_submit engine_cancel engine_context engine_step engine_next engine_wait engine_wake
engine_stats server_new server_free server_start server_run server_stop serve_function generation_new generation_next generation_end generation_free model_tokenizer model_embed_texts onnx_write quantize
tokenizer_parse tokenizer_encode tokenizer_decode tokenizer_piece tokenizer_id tokenizer_is_special tokenizer_bos tokenizer_pad
tokenizer_unknown tokenizer_eos tokenizer_train model_dataset
chat_template_parse chat_template_render_json chat_template_encode_json
""".split()

# Operands that may be None, by function.
OPTIONAL = {
    "linear": "b", "layer_norm": "w b", "batch_norm": "w b", "rms_norm": "w", "clamp": "lo hi", "attention": "mask",
    "attention_keys": "mask", "largest": "carried", "statistic_add": "weight", "resolvent": "b c", "recv": "behind",
    "recurrent": "h0 c0 lengths", "stft": "window", "istft": "window",
    "resolvent_complex": "a_im b c", "resolvent_corner": "a_im b c", "resolvent_log_det": "a_im b c",
}

# Functions whose tensor operands get one dtype.
PROMOTED = {
    "add", "sub", "mul", "div", "mod", "pow", "min", "max", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor",
    "shl", "shr", "clamp", "matmul", "linear", "mse", "bce_logits", "kl", "swiglu", "floor_div", "remainder", "atan2",
    "hypot", "copysign", "nextafter", "outer", "kron", "searchsorted", "bucketize",
}
# Of these the operands after the first one.
PROMOTED_BEHIND = {"select", "where"}

DEFAULTS = {
    "axes": "None", "flags": "0", "correction": "1", "reverse": "False", "descending": "False", "largest": "True",
    "causal": "False", "scale": "0.0", "dropout": "0.0", "bias": "True", "ignore": "-1", "smooth": "0.0",
    "smooth_": "False", "eps": "1e-5", "momentum": "0.1", "diagonal": "False", "side": "0", "keep_f32": "None",
    "settings": "None", "overwrite": "False", "kind": None, "step": None, "stride": None, "dilation": None,
    "text": "None", "mask": "None",
}
DEFAULTS_OF = {
    ("tril", "k"): "0", ("triu", "k"): "0", ("diag", "k"): "0", ("diagonal", "k"): "0", ("diagonal", "axis1"): "0", ("diagonal", "axis2"): "1",
    ("searchsorted", "right"): "False", ("bucketize", "right"): "False", ("index_put", "accumulate"): "False", ("stack", "axis"): "0",
    ("slice", "step"): "1", ("window", "stride"): "1", ("window", "dilation"): "1", ("softmax", "axis"): "-1",
    ("log_softmax", "axis"): "-1", ("logsumexp", "axis"): "-1", ("sort", "axis"): "-1", ("topk", "axis"): "-1",
    ("norm", "p"): "2.0", ("linear", "b"): "None", ("layer_norm", "w"): "None", ("layer_norm", "b"): "None",
    ("rms_norm", "w"): "None", ("batch_norm", "w"): "None", ("batch_norm", "b"): "None", ("pad", "value"): "0.0", ("concat", "axis"): "0", ("gather", "axis"): "0",
    ("nn_mlp", "activation"): "'gelu'", ("pipeline_fit", "loader"): "None", ("random_set", "step"): "0",
    ("scaler_new", "scale"): None, ("unscale_check", "scale"): None, ("pipeline_apply", "node"): None,
    ("resize", "smooth"): "False", ("nn_resize", "smooth"): "False", ("optim_set", "pattern"): None, ("matmul_to", "flags"): None,
    ("optim_set", "settings"): None, ("setting_set", "value"): None, ("clamp", "lo"): "None", ("clamp", "hi"): "None",
    ("nn_group_norm", "eps"): "1e-5", ("recv", "behind"): "None", ("statistic_add", "weight"): "None",
    ("optim_lr", "t"): None, ("dropout", "p"): None, ("resolvent", "b"): None, ("mod", "b"): None,
    ("masked_select", "mask"): None, ("masked_fill", "mask"): None, ("masked_scatter", "mask"): None,
    ("paged_attention", "window"): "0", ("paged_attention", "cap"): "0.0", ("attention_keys", "mask"): "None", ("telemetry", "id"): "None",
    ("pinv", "rcond"): "-1.0", ("lstsq", "rcond"): "-1.0", ("lstsq", "full_rank"): "False", ("svd", "full"): "False", ("qr", "complete"): "False",
}
# Functions of floating point alone, which take integers as f32.
REAL = set("exp log log1p expm1 sqrt rsqrt recip sin cos tanh sigmoid erf gelu gelu_tanh silu atan asin acos erfinv lgamma "
           "digamma softmax log_softmax logsumexp logcumsumexp".split())
# Descriptions of functions that their header explains elsewhere, or whose name is enough in C.
SAID = {
    "acos": "The arc cosine.", "asin": "The arc sine.", "atan": "The arc tangent.", "cos": "The cosine.", "sin": "The sine.",
    "tanh": "The hyperbolic tangent.", "exp": "e to the power x.", "expm1": "exp(x) - 1, exact near 0.",
    "log": "The natural logarithm.", "log1p": "log(1 + x), exact near 0.", "sqrt": "The square root.",
    "rsqrt": "1 over the square root.", "recip": "1 / x.", "square": "x times x.", "sigmoid": "1 / (1 + exp(-x)).",
    "erf": "The error function.", "sub": "a - b.", "mul": "a b.", "eq": "Is a equal to b?", "ne": "Is a not equal to b?",
    "lt": "Is a less than b?", "le": "Is a less than or equal to b?", "gt": "Is a greater than b?",
    "ge": "Is a greater than or equal to b?", "rank": "The number of axes.", "bytes": "Bytes of all elements.",
    "dtype": "The element type.", "count": "The number of elements.",
    "adamw_step": "A step of AdamW (Loshchilov and Hutter 2019) over lists of tensors, as assignments to p, m and v.",
    "lamb_step": "A step of LAMB (You et al. 2020) over lists of tensors, as assignments to p, m and v.",
    "place": "Where a variable lies from now on: ON_DEVICE, or ON_HOST: the host's memory.",
    "group_size": "The number of ranks of the group.", "leaks_end": "Ends the search for memory that stays.",
    "counters": "Counters of the current context, since it was made.", "loader_stats": "What the loader has done so far.",
    "pipeline_stats": "What the pipeline has done so far.", "profile_quality": "How far the profile's figures may be trusted.",
    "group_state": "What the group has done so far.",
    "scaler_save": "All that the scaler's next steps depend on but its options.", "scaler_load": "Takes what scaler_save gave.",
    "scaler_stats": "The scaler's scale, and how often gradients overflowed.",
}
# Integers that are yes or no.
YES_NO = set("reverse descending largest causal bias diagonal on training smooth tensorboard plain nesterov partial exact "
             "skip_first_wait resume overwrite ceil_mode count_include_pad right accumulate align_corners antialias "
             "include_last full complete full_rank".split())
# Members of structs whose default is not 0.
MEMBERS = {
    "embedding_bag": {"padding": "-1"},
    "resolvent": {"half": "yoke_f16", "sweeps": "YOKE_SWEEPS", "tolerance": "1e-4", "blend": "0.5", "adaptive": "1e-2"},
}
SKIPPED_MEMBERS = {("resolvent", "bound")}

# Their results are numbers; other functions that return an int give 0 or an error.
VALUES = set("""dtype_size rank dim count bytes group_rank group_size module_training scaler_update dataset_count
dataset_fingerprint counted tokenizer_size optim_steps optim_lr statistic_channels dataset_cubes_skipped pipeline_resume sampler sampler_count item_uniform""".split())

# They may take long, and let other threads of Python run meanwhile.
WAITS = set("""model_open model_adapt model_load_adapter model_save_adapter model_merge_adapter module_save module_save_split module_fold module_cast optim_check optim_save optim_load dataset_open dataset_concat
statistic_add statistic_save pipeline_fit pipeline_resume pipeline_save pipeline_load limits group_barrier group_split
loader_seek cube_open tokenizer_open place pack scaler_update group_world host_telemetry telemetry loader_free group_free
profile_trace memory_snapshot""".split())

CLASSES = {
    "dataset": "Dataset", "loader": "Loader", "module": "ModuleHandle", "optim": "Optim", "statistic": "Statistic",
    "pipeline": "Pipeline", "run": "Run", "profile": "Profile", "leaks": "Leaks", "recorder": "Recorder",
    "scaler": "Scaler", "cube": "Cube", "group": "Group", "context": "Context", "scope": "Scope", "model": "Model",
    "tokenizer": "TokenizerHandle", "chat_template": "ChatTemplate",
}
BY_HAND_CLASSES = {"context", "scope", "module"}

KEYWORDS = {"and", "or", "not", "from", "in", "is", "lambda", "pass", "with", "as", "if"}

def python_name(name):
    return name + "_" if name in KEYWORDS else name


# ---- the headers ----

class Function:
    def __init__(self, name, result, params, doc, header):
        self.name, self.result, self.params, self.doc, self.header = name, result, params, doc, header


def parse_params(text):
    if text.strip() == "void":
        return []
    out, depth, part = [], 0, ""
    for c in text + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            out.append(part.strip())
            part = ""
        else:
            part += c
    params = []
    for p in out:
        if "(" in p:
            params.append((p, re.search(r"\(\*?\s*(\w*)\)", p).group(1), ""))
            continue
        m = re.match(r"^(.*?[\s*])(\w+)?(\[\w*\])?$", p) or re.match(r"^(\w+)()()$", p)
        kind, name, array = m.group(1).strip(), m.group(2) or "", m.group(3) or ""
        if name and kind.split()[-1:] in (["struct"], ["const"]):  # a type without a name
            kind, name = p, ""
        params.append((re.sub(r"\s*\*", "*", re.sub(r"\s+", " ", kind)), name, array))
    return params


def comment_text(lines):
    text = "\n".join(re.sub(r"^\s*// ?", "", x) for x in lines).strip()
    text = re.sub(r"\byoke_(\w+)", lambda m: m.group(1), text)
    return text.replace("YOKE_NONE", "None").replace("NULL", "None")


def parse_header(path):
    """Functions, and the structs' members."""
    lines = open(path, encoding="utf-8").read().split("\n")
    functions, structs, comment, last, i = [], {}, [], [], 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("//"):
            if not line.startswith("// ----"):
                comment.append(line)
            i += 1
            continue
        m = re.match(r"^struct yoke_(\w+) \{", line)
        if m:
            body = []
            i += 1
            while not lines[i].startswith("}"):
                body.append(re.sub(r"//.*", "", lines[i]))
                i += 1
            members = []
            for d in " ".join(body).split(";"):
                d = d.strip()
                if not d or "(" in d:
                    if "(" in d:
                        members.append((d, re.search(r"\(\*(\w+)\)", d).group(1), "function"))
                    continue
                first, *more = d.split(",")
                fm = re.match(r"^(.*?[\s*])(\w+)\s*((?:\[\w+\])*)$", first.strip())
                kind = re.sub(r"\s*\*", "*", fm.group(1).strip())
                members.append((kind, fm.group(2), fm.group(3)))
                for x in more:
                    xm = re.match(r"^\s*((?:\*\s*(?:const\s*)?)*)(\w+)\s*((?:\[\w+\])*)$", x)
                    members.append((kind.rstrip("*") + "*" if xm.group(1) else kind, xm.group(2), xm.group(3)))
            structs[m.group(1)] = members
            comment, last = [], []
            i += 1
            continue
        if line.startswith("YOKE_API"):
            text = line
            while not re.search(r";\s*(//.*)?$", text):
                i += 1
                text += " " + lines[i].strip()
            trailing = re.search(r";\s*//(.*)$", text)
            text = re.sub(r";\s*(//.*)?$", "", text)
            fm = re.match(r"^YOKE_API (.*?)\s*(\*?)\s*yoke_(\w+)\((.*)\)$", " ".join(text.split()))
            mine = list(comment) or ([] if trailing else last)
            last = list(mine)
            doc = comment_text(mine + (["// " + trailing.group(1).strip()] if trailing else []))
            functions.append(Function(fm.group(3), fm.group(1) + fm.group(2), parse_params(fm.group(4)), doc,
                                      os.path.basename(path)))
            comment = []
            i += 1
            continue
        comment = []
        last = last if line.startswith((" ", "\t")) else []
        i += 1
    return functions, structs


def read_headers(folder):
    functions, structs = [], {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("yoke") and name.endswith(".h"):
            f, s = parse_header(os.path.join(folder, name))
            functions += f
            structs.update(s)
    return functions, structs


# ---- writing ----

class Unknown(Exception):
    pass


class Writer:
    """One function's lambda."""

    def __init__(self, f, structs):
        self.f, self.structs = f, structs
        self.args, self.names, self.pre, self.call, self.post, self.results = [], [], [], [], [], []
        self.ops, self.ctx, self.struct_out = [], [], []

    def default(self, name, kind=None):
        if (self.f.name, name) in DEFAULTS_OF:
            return DEFAULTS_OF[self.f.name, name]
        return DEFAULTS.get(name)

    def arg(self, kind, name, default="", keyword=False, shown=None):
        shown = shown or python_name(name)
        self.args.append(f"{kind} a_{name}")
        text = f'"{shown}"_a'
        default = self.default(name) if default == "" else default
        if default is not None:
            value = {"None": "nb::none()", "True": "true", "False": "false"}.get(default, default.replace("'", '"'))
            text += f" = {value}"
        elif kind in ("Optional", "Text", "Axes"):
            text += ".none()"
        self.names.append((text, default is not None, keyword))

    def operand(self, name):
        optional = name in OPTIONAL.get(self.f.name, "").split()
        self.arg("Optional" if optional else "Operand", name)
        self.pre += [f"Op v_{name};", f'v_{name}.take(a_{name}.o, {"true" if optional else "false"}, "{self.f.name}");']
        self.ops.append(name)
        self.ctx.append(f"v_{name}.ctx")
        self.call.append(f"v_{name}.h")

    def tensors(self, name, optional=False):
        self.arg("Optionals" if optional else "Tensors", name)
        self.pre.append(f'Ops v_{name}(a_{name}.o, {"true" if optional else "false"}, "{self.f.name}");')
        self.ctx.append(f"v_{name}.ctx")

    def scalar(self, kind, name, default=""):
        if name in YES_NO and kind == "int":
            self.arg("bool", name, default)
            return f"a_{name} ? 1 : 0"
        self.arg({"int": "int", "unsigned": "unsigned"}.get(kind, kind), name, default)
        return f"a_{name}"

    def options(self, struct):
        """A struct of options: its members are keywords."""
        short = struct
        self.pre.append(f"struct yoke_{struct} s_{short} = {{}};")
        self.pre.append(f"s_{short}.size = sizeof s_{short};")
        for kind, name, array in self.structs[struct]:
            if name == "size" or (struct, name) in SKIPPED_MEMBERS:
                continue
            default = MEMBERS.get(struct, {}).get(name, "0")
            target = f"s_{short}.{name}"
            if array == "function":
                raise Unknown(f"struct yoke_{struct} has a function, {name}")
            if array and kind == "int64_t":
                n = array[1:-1]
                self.arg("Shape", name, "0", True)
                self.pre.append(f'fill(a_{name}.o, {target}, {n}, "{self.f.name}");')
            elif array and kind == "uint64_t":
                self.arg("Shape", name, None, True)
                self.pre += [f'{{ std::vector<int64_t> l = shape_of(a_{name}.o, "{self.f.name}"); '
                             f'same_count("{self.f.name}", l.size(), {array[1:-1]}); '
                             f"for (size_t i = 0; i < l.size(); i++) {target}[i] = static_cast<uint64_t>(l[i]); }}"]
            elif array and kind == "double":
                self.arg("Numbers", name, "nb::make_tuple()", True)
                self.pre += [f'{{ std::vector<double> l = numbers_of(a_{name}.o, "{self.f.name}"); '
                             f"for (size_t i = 0; i < l.size() && i < {array[1:-1]}; i++) {target}[i] = l[i]; }}"]
            elif kind == "yoke_tensor*":
                self.arg("Optional", name, "None", True)
                self.pre += [f"Op v_{name};", f'v_{name}.take(a_{name}.o, true, "{self.f.name}");', f"{target} = v_{name}.h;"]
            elif kind == "const char*":
                self.arg("Text", name, "None", True)
                self.pre += [f'OwnText t_{name}(a_{name}.o, "{self.f.name}");', f"{target} = t_{name}.c();"]
            elif kind in ("int", "unsigned", "int64_t", "uint64_t", "double", "size_t") and not array:
                if name in YES_NO and kind in ("int", "unsigned"):
                    self.arg("bool", name, "False", True)
                elif name in ("half", "dtype"):
                    self.arg("Dtype", name, "static_cast<int>(" + default + ")" if default != "0" else "None", True)
                    self.pre.append(f"{target} = dtype_of(a_{name}.o);")
                    continue
                else:
                    self.arg(kind, name, default, True)
                self.pre.append(f"{target} = a_{name};")
            else:
                raise Unknown(f"struct yoke_{struct}: {kind} {name}{array}")
        self.call.append(f"&s_{short}")

    def record(self, struct, variable, to):
        """Statements that put a struct's members into a record."""
        out = []
        for kind, name, array in self.structs[struct]:
            v = f"{variable}.{name}"
            if name == "size":
                continue
            if kind == "yoke_tensor*":
                out.append(f'{to}.attr("{name}") = nb::steal(give({v}, ctx));')
            elif kind in ("char", "const char*"):
                out.append(f'{to}.attr("{name}") = nb::str({v} ? {v} : "");' if kind != "char" else
                           f'{to}.attr("{name}") = nb::str({v});')
            elif array and kind in ("int64_t", "uint64_t", "double"):
                out.append(f'{{ nb::list l; for (auto n : {v}) l.append(n); {to}.attr("{name}") = l; }}')
            elif not array and kind in ("int", "unsigned", "int64_t", "uint64_t", "double", "size_t", "uint32_t", "float"):
                out.append(f'{to}.attr("{name}") = nb::cast({v});')
            else:
                raise Unknown(f"struct yoke_{struct}: {kind} {name}{array} in a result")
        return out

    def parameters(self):
        params, i = self.f.params, 0

        def at(k):
            return params[k] if k < len(params) else ("", "", "")

        while i < len(params):
            kind, name, array = params[i]
            m = re.match(r"^(?:const )?yoke_(\w+)\*$", kind)
            if kind in ("yoke_tensor*", "const yoke_tensor*"):
                self.operand(name or "x")
            elif kind == "int" and at(i + 1)[0] == "yoke_tensor*const*" and name in ("n", "m"):
                i += 1
                first = None
                self.call.append(None)
                where = len(self.call) - 1
                while at(i)[0] == "yoke_tensor*const*":
                    self.tensors(at(i)[1])
                    if first:
                        self.pre.append(f'same_count("{self.f.name}", v_{first}.h.size(), v_{at(i)[1]}.h.size());')
                    first = first or at(i)[1]
                    self.call.append(f"v_{at(i)[1]}.h.data()")
                    i += 1
                self.call[where] = f"v_{first}.n()"
                if not (self.f.name == "barrier" and self.counted): # else results are as many as what was counted last
                    self.counted = first
                continue
            elif kind == "yoke_tensor*const*" and name == "starts":
                self.tensors(name, True)
                self.call.append(f"v_{name}.h.data()")
                self.pre.append(f'same_count("{self.f.name}", v_{name}.h.size(), '
                                f'static_cast<size_t>(std::max(0, yoke_rank(v_{params[0][1]}.h))));')
            elif kind == "yoke_tensor**":
                if not self.counted:
                    self.pre.append(f"yoke_tensor *r_{name} = nullptr;")
                    self.call.append(f"&r_{name}")
                    self.results.append(f"r_{name}")
                else:
                    self.pre.append(f"std::vector<yoke_tensor *> r_{name}(v_{self.counted}.h.size());")
                    self.call.append(f"r_{name}.data()")
                    self.results.append(f"list r_{name}")
            elif kind == "int" and name == "rank" and at(i + 1)[0] == "const int64_t*":
                i += 1
                self.arg("Shape", "shape" if at(i)[1] == "dims" else at(i)[1])
                n = "shape" if at(i)[1] == "dims" else at(i)[1]
                self.pre.append(f'std::vector<int64_t> v_{n} = shape_of(a_{n}.o, "{self.f.name}");')
                self.call += [f"static_cast<int>(v_{n}.size())", f"v_{n}.data()"]
            elif kind == "int" and name == "axes" and "nn_" in self.f.name:
                # after it is a list of as many numbers
                self.arg("int", "axes", None)
                self.call.append("a_axes")
            elif kind == "const int64_t*" and name in ("to", "kernel") and self.f.name.startswith("nn_"):
                self.arg("Shape", name)
                self.pre += [f"int64_t v_{name}[3] = {{ 1, 1, 1 }};", f'fill(a_{name}.o, v_{name}, 3, "{self.f.name}");']
                self.call.append(f"v_{name}")
            elif kind == "const int64_t*" and name in ("lo", "hi", "starts", "to", "sizes"):
                x = params[0][1]
                n = f"std::max(0, yoke_rank(v_{x}.h)" + (" - 2)" if name == "to" else ")")
                self.arg("Shape", name)
                self.pre += [f"int64_t v_{name}[YOKE_MAX_RANK] = {{}};", f'fill(a_{name}.o, v_{name}, {n}, "{self.f.name}");']
                self.call.append(f"v_{name}")
            elif kind == "const int*" and name == "order":
                self.arg("Shape", name)
                self.pre += [f"int v_order[YOKE_MAX_RANK] = {{}};",
                             f'{{ std::vector<int64_t> l = shape_of(a_order.o, "permute"); '
                             f'same_count("permute", l.size(), static_cast<size_t>(std::max(0, yoke_rank(v_{params[0][1]}.h)))); '
                             f"int rank = static_cast<int>(l.size()); "
                             f"for (int i = 0; i < rank; i++) v_order[i] = static_cast<int>(l[i] < 0 ? l[i] + rank : l[i]); }}"]
                self.call.append("v_order")
            elif kind == "int" and name == "dtype":
                self.arg("Dtype", "dtype", "None" if self.f.name == "autocast" else "" if self.f.name not in (
                    "variable", "full", "iota", "uniform", "normal", "recv") else None)
                self.call.append("dtype_of(a_dtype.o)")
            elif kind == "unsigned" and name == "axes":
                self.arg("Axes", "axes", "None" if self.f.name != "flip" else None, shown="axis")
                keep = self.f.name != "flip"
                if keep:
                    self.names_keep = True
                self.call.append(f'axes_of(a_axes.o, {"a_keep" if keep else "false"}, v_{params[0][1]}.h, "{self.f.name}")')
            elif kind in ("int", "unsigned", "int64_t", "uint64_t", "double", "size_t") and not array:
                if kind == "int" and name == "max" and at(i + 1)[0].startswith("struct yoke_"):
                    struct = at(i + 1)[0][len("struct yoke_"):-1]
                    self.many = struct
                    self.call += ["n_max", "n_max ? v_many.data() : nullptr"]
                    i += 2
                    continue
                if kind == "int" and name in ("n", "m") and at(i + 1)[0] == "yoke_dataset*const*":
                    i += 1
                    self.arg("nb::sequence", at(i)[1] or "sets", None)
                    a = at(i)[1] or "sets"
                    self.pre += ["std::vector<yoke_dataset *> v_sets;",
                                 f'for (nb::handle o : a_{a}) v_sets.push_back(nb::cast<Handle<yoke_dataset> *>(o)->get("{self.f.name}"));']
                    self.call += ["static_cast<int>(v_sets.size())", "v_sets.data()"]
                else:
                    self.call.append(self.scalar(kind, name))
            elif kind == "const double*" and name == "weight":
                self.arg("Numbers", name)
                self.pre.append(f'std::vector<double> v_{name} = numbers_of(a_{name}.o, "{self.f.name}"); '
                                f'same_count("{self.f.name}", v_{name}.size(), v_sets.size());')
                self.call.append(f"v_{name}.data()")
            elif kind == "const int64_t*" and self.f.name == "dataset_subset":
                self.arg("nb::object", name, "None")
                self.pre += ["std::vector<int64_t> v_number;", 'if (!a_number.is_none()) { v_number = shape_of(a_number, '
                             '"dataset_subset"); a_count = static_cast<int64_t>(v_number.size()); }']
                self.call.append("a_number.is_none() ? nullptr : v_number.data()")
            elif kind == "const char*":
                self.arg("Text", name)
                self.pre.append(f'OwnText t_{name}(a_{name}.o, "{self.f.name}");')
                self.call.append(f"t_{name}.c()")
            elif kind.startswith("const struct yoke_") and kind.endswith("*"):
                self.options(kind[len("const struct yoke_"):-1])
            elif kind.startswith("struct yoke_") and kind.endswith("*"):
                struct = kind[len("struct yoke_"):-1]
                self.pre += [f"struct yoke_{struct} r_{struct} = {{}};", f"r_{struct}.size = sizeof r_{struct};"]
                self.call.append(f"&r_{struct}")
                self.struct_out.append(struct)
            elif m and m.group(1) in CLASSES and m.group(1) not in BY_HAND_CLASSES:
                name = name or m.group(1)
                self.arg(f"Handle<yoke_{m.group(1)}> &", name, None)
                self.call.append(f'a_{name}.get("{self.f.name}")')
            elif m and m.group(1) == "module":
                name = name or "module"
                self.arg("Module &", name, None)
                self.call.append(f'a_{name}.get("{self.f.name}")')
            else:
                raise Unknown(f"parameter {kind} {name}{array}")
            i += 1

    def write(self):
        f = self.f
        self.counted = None
        self.many = None
        self.names_keep = False
        self.parameters()
        if self.names_keep:
            self.arg("bool", "keep", "False", True, shown="keepdims")
        if f.name in PROMOTED and len(self.ops) > 1:
            self.pre.append("promote({ " + ", ".join(f"&v_{o}" for o in self.ops) + " });")
        elif len(self.ops) > 1:
            self.pre.append("beside({ " + ", ".join(f"&v_{o}" for o in self.ops) + " });")
        if f.name in REAL:
            self.pre.append(f"promote({{ &v_{self.ops[0]} }}, true);")
        if f.name in PROMOTED_BEHIND:
            self.pre.append("promote({ " + ", ".join(f"&v_{o}" for o in self.ops[1:]) + " });")
        if f.name in WAITS: # what is Python's is looked at with the GIL
            for i, text in enumerate(self.call):
                if ".get(" in text or "dtype_of(" in text:
                    self.pre.append(f"const auto w_{i} = {text};")
                    self.call[i] = f"w_{i}"
        call = f"yoke_{f.name}({', '.join(self.call)})"
        if f.name in WAITS:
            call = f"unlocked([&] {{ return {call}; }})"
        result, body = self.outcome(call)
        ctx = "current()"
        if self.ctx:
            # what is no operand of its own has none; numbers have been put beside the tensors
            ctx = " ".join(f"{c} ? {c} :" for c in self.ctx) + " current()"
        lines = ["enter();"] + self.pre
        text = "\n\t\t".join(lines + [x.replace("@ctx", ctx) for x in body])
        names = "".join(", " + self.spelled(k) for k in range(len(self.names)))
        doc = c_text(f.doc or SAID.get(f.name, ""))
        return (f'\tm.def("{python_name(f.name)}", []({", ".join(self.args)}){result} {{\n\t\t{text}\n\t}}{names},\n'
                f'\t\t"{doc}");\n')

    def spelled(self, k):
        text, _, keyword = self.names[k]
        return ("nb::kw_only(), " if keyword and not any(x[2] for x in self.names[:k]) else "") + text

    def outcome(self, call):
        f, kind = self.f, self.f.result
        if self.many:
            return " -> Records", [
                f"int n_max = 0;", f"std::vector<struct yoke_{self.many}> v_many;",
                f"n_max = static_cast<int>(check({call}));",
                "v_many.resize(static_cast<size_t>(n_max));",
                f"if (n_max) {{ v_many[0].size = sizeof v_many[0]; check({call}); }}",
                "nb::list all;", "for (auto &one : v_many) {", "\tnb::object rec = record();",
                *["\t" + x for x in self.record(self.many, "one", "rec")], "\tall.append(rec);", "}",
                "return { nb::object(std::move(all)) };"]
        if self.struct_out:
            s = self.struct_out[0]
            return " -> RecordRet", [f"Context *ctx = @ctx;", "(void)ctx;", f"check({call});", "nb::object rec = record();",
                                     *self.record(s, f"r_{s}", "rec"), "return { rec };"]
        if kind == "yoke_tensor*":
            if self.results:
                made = [f"nb::object o_{r} = nb::steal(give({r}, ctx));" for r in ["y", *self.results]]
                return f' -> {("Pair", "Three", "Four")[len(self.results) - 1]}', [
                    "Context *ctx = @ctx;", f"yoke_tensor *y = {call};", *made,
                    "return { nb::make_tuple(" + ", ".join(f"o_{r}" for r in ["y", *self.results]) + ") };"]
            return " -> TensorRet", [f"return {{ nb::steal(give({call}, @ctx)) }};"]
        m = re.match(r"^yoke_(\w+)\*$", kind)
        if m:
            return f" -> decltype(made(std::declval<{kind[:-1]} *>()))", [f"return made({call});"]
        if kind == "const char*":
            return " -> std::optional<std::string>", [f"const char *text = {call};",
                                                      "if (!text && yoke_error_code()) fail();",
                                                      "return text ? std::optional<std::string>(text) : std::nullopt;"]
        if self.results:
            r = self.results[0].split()[-1]
            return " -> TensorList", [f"check({call});", f"return list_of({r}, @ctx);"]
        if kind == "void":
            return "", [f"{call};"]
        if f.name in VALUES:
            if f.name == "module_training":
                return " -> bool", [f"return {call} != 0;"]
            if kind in ("uint64_t", "size_t", "double"):
                return f" -> {kind}", [f"{kind} v = {call};", "if (yoke_error_code()) fail();", "return v;"]
            return " -> int64_t", [f"return check({call});"]
        if kind in ("int", "int64_t"):
            return "", [f"check({call});"]
        raise Unknown(f"result {kind}")


def main():
    include, out = sys.argv[1:3]
    functions, structs = read_headers(include)
    by = {}
    failed = []
    for f in functions:
        if f.name in ABSENT or f.name in HAND:
            continue
        m = re.match(r"^(\w+)_free$", f.name)
        if m and m.group(1) in CLASSES:
            text = (f'\tm.def("{f.name}", [](Handle<yoke_{m.group(1)}> &h) {{ enter(); h.drop(); }}, "h"_a, '
                    f'"Frees it now; it would be when nothing refers to it any more.");\n')
            by.setdefault(f.header, []).append(text)
            continue
        if f.name == "leaks_end":
            by.setdefault(f.header, []).append('\tm.def("leaks_end", [](Handle<yoke_leaks> &h) { enter(); h.drop(); }, "h"_a, '
                                                f'"{SAID[f.name]}");\n')
            continue
        try:
            by.setdefault(f.header, []).append(Writer(f, structs).write())
        except Unknown as e:
            failed.append(f"{f.header}: yoke_{f.name}: {e}")
    if failed:
        sys.exit("bind.py: no rule for\n  " + "\n  ".join(failed) + "\nadd one, or name them in HAND or ABSENT")
    os.makedirs(out, exist_ok=True)
    parts = {}
    for header, list_ in by.items():
        if header == "yoke.h":
            half = (len(list_) + 1) // 2
            parts["yoke_a"], parts["yoke_b"] = list_[:half], list_[half:]
        else:
            parts[header[:-2].replace("-", "_")] = list_
    small = ["yoke_cube", "yoke_dist", "yoke_run", "yoke_observe", "yoke_pipeline", "yoke_data", "yoke_optim", "yoke_model", "yoke_tokenizer"]
    parts["rest"] = [t for s in small for t in parts.pop(s, [])]
    for name, list_ in parts.items():
        write(os.path.join(out, f"bound_{name}.cc"),
              '// Written by bind.py.\n#include "core.h"\n#include "module.h"\n\nnamespace py {\n\n'
              f"void bind_{name}(nb::module_ &m)\n{{\n" + "".join(list_) + "}\n\n} // namespace py\n")
    write(os.path.join(out, "bound.h"), "// Written by bind.py.\n" + "".join(f"void bind_{p}(nb::module_ &);\n" for p in parts) +
          "#define YOKE_BOUND(X) " + " ".join(f"X({p})" for p in parts) + "\n" + constants(include))
    write(os.path.join(out, "docs.h"), "// Written by bind.py.\n#pragma once\n" +
          "".join(f'#define DOC_{f.name} "{c_text(f.doc)}"\n' for f in functions if f.name in HAND and f.doc))


def c_text(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def constants(include):
    """Names of the headers' enums and numbers, as X(name, value)."""
    names = []
    for name in sorted(os.listdir(include)):
        if name == "yoke-plugin.h":
            continue
        text = re.sub(r"//.*", "", open(os.path.join(include, name), encoding="utf-8").read())
        for m in re.finditer(r"\benum\b[^{;]*\{([^}]*)\}", text):
            names += [re.match(r"\s*(\w+)", x).group(1) for x in m.group(1).split(",") if x.strip()]
        names += re.findall(r"^#define (YOKE_\w+)\s+\(?-?\d+u?\)?\s*$", text, re.M)
        names += re.findall(r"^#define (YOKE_\w+)\s+(?:0x)?[0-9a-f]+u\s*$", text, re.M)
    names += ["YOKE_REDUCE_SUM", "YOKE_REDUCE_MAX", "YOKE_REDUCE_MIN"]
    seen = dict.fromkeys(n for n in names if n.startswith("YOKE_"))
    return "#define YOKE_CONSTANTS(X) " + " ".join(f"X({n[5:]}, {n})" for n in seen) + "\n"


def write(path, text):
    old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
    if old != text:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
