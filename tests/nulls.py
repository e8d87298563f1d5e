#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C program that calls every public function with good arguments, and with what is none in each of them in turn:
NULL; YOKE_NONE, a freed tensor and one of another context for tensors, also as a member of a list; counts below 0; structs
of wrong sizes, and with NULL in each pointer of theirs.

	nulls.py SOURCE >nulls.c

Declarations come from SOURCE/include, read as python/bind.py reads them.  Good arguments are made by tests/nulls.h, as the
tables here say: by function, then by type and name.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv[1], "python"))
import bind  # noqa: E402

# Arguments by function, in the order of the declaration.
ARGS = {
    "tokenizer_open": "tokenizer_folder()", "tokenizer_template": "yoke_tokenizer_open(tokenizer_folder())",
    "tokenizer_bos": "yoke_tokenizer_open(tokenizer_folder())", "tokenizer_pad": "yoke_tokenizer_open(tokenizer_folder())", "tokenizer_parse": 'words_json, sizeof words_json - 1, "words"',
    "tokenizer_encode": 'tokenizer(), "a b", 3, 0, (int32_t **)pointers(), (size_t *)numbers64()',
    "tokenizer_decode": "tokenizer(), (const int32_t *)numbers64(), 2, 0, (char **)pointers(), (size_t *)numbers64()",
    "tokenizer_piece": "tokenizer(), 0, (size_t *)numbers64()", "tokenizer_id": 'tokenizer(), "a", 1',
    "tokenizer_train": '(const char *const[64]){ "a b" }, (const size_t[64]){ 3 }, 1, 260', "tokenizer_save": 'trained(), "new.json"',
    "chat_template_parse": '"x", 1, "x"', "chat_template_of": "chat_tokenizer()",
    "chat_template_render": "chat_template(), chat_message(), 1, chat_options(), (char **)pointers(), (size_t *)numbers64()",
    "chat_template_render_spans": 'chat_template(), "[]", 2, chat_options(), (char **)pointers(), (size_t *)numbers64(), text_spans(), (size_t *)numbers64()',
    "chat_template_encode": "chat_template(), tokenizer(), chat_message(), 1, chat_options(), (int32_t **)pointers(), (size_t *)numbers64()",
    "chat_template_encode_json": 'chat_template(), tokenizer(), "[]", 2, chat_options(), (int32_t **)pointers(), (size_t *)numbers64()',
    "tokenizer_encode_spans": 'tokenizer(), "a b", 3, 0, text_span(), 1, (int32_t **)pointers(), (size_t *)numbers64()',
    "chat_template_render_json": 'chat_template(), "[]", 2, chat_options(), (char **)pointers(), (size_t *)numbers64()',
    "tokenizer_is_special": "tokenizer(), 0", "tokenizer_eos": "tokenizer(), (const int32_t **)pointers()",
    "model_embed": "model(), ids22(), lengths(), embed_options()",
    "generation_new": "model(), 1, prompts(), counts(), generation_options()",
    "generation_again": "generation(), prompts(), counts(), generation_options()",
    "serve_function": 'idle_server(), "/f", serve_call, serve_options(), numbers64()', "server_start": "idle_server()",
    "engine_adapter": 'engine(), "a", adapter_folder()', "engine_cancel": "engine(), 1", "engine_wait": "engine(), 0",
    "model_tokenizer": "model_with_words()", "generation_end": "generation(), 0",
    "generation_next": "generation(), (int32_t *)numbers64()",
    "model_embed_texts": 'model_with_words(), 1, (const char *const[64]){ "a" }, embed_options(), floats()',
    "model_open": "model_folder(), model_options()", "model_logits": "model(), ids22()", "model_parameters": "model(), 2, room(), (const char **)pointers()",
    "model_adapt": "model(), lora_options()", "model_load_adapter": "model(), adapter_folder()",
    "model_save_adapter": 'adapted(), "new-adapter", 1', "model_merge_adapter": "adapted()", "model_module": "adapted()",
    "model_dataset": 'model_with_words(), "text", text_options()', "model_loss": "adapted(), ids22()",
    "onnx_write": '"new.onnx", 2, list22(), 2, list22(), onnx_options()',
    "cube_open": "cube_path(), NULL", "cube_write": '"new.hdr", new_cube(), floats()',
    "dataset_cube_files": "cube_files()", "dataset_cubes": "1, cube_paths(), label_paths(), NULL",
    "dataset_cubes_skipped": "pixels()", "dataset_synthetic": '"count=2"',
    "dataset_new": "set_options()", "dataset_fields": "set(), 1, fields()",
    "dataset_read": "set(), 1, 0, 0, 0, pointers(), (int64_t (*)[YOKE_MAX_RANK])numbers64()",
    "dataset_open": 'cube_npy(), NULL', "dataset_label": 'classes(), "kind", 0',
    "dataset_concat": "2, sets()", "dataset_mix": "2, sets(), doubles(), 8, 0", "dataset_subset": "set(), 0, 2, numbers64()",
    "dataset_cache": "set(), 100", "dataset_map": "set(), 1, field(), map_same, NULL, nothing",
    "item_random": "item(), 0, (uint32_t *)numbers64()",
    "loader_new": 'set(), "batch=2"', "loader_next": "loader(), 1, room(), room()", "loader_put": "loader(), 1, batch()",
    "loader_host": "loader(), 1, pointers(), (int64_t (*)[YOKE_MAX_RANK + 1])numbers64()",
    "loader_errors": "loader(), hear, NULL", "loader_seek": "loader(), position()",
    "group_run": '1, "cpu:0", of_rank, NULL', "group_spawn": "1, command", "group_exchange": "world(), floats(), 4, floats()",
    "group_split": "world(), 0, 0", "all_reduce": "world(), YOKE_REDUCE_SUM, x22()",
    "all_reduce_list": "world(), YOKE_REDUCE_SUM, 2, list22(), room()", "reduce_scatter": "world(), YOKE_REDUCE_SUM, x22()",
    "broadcast": "world(), 0, x22()", "broadcast_list": "world(), 0, 2, list22(), room()",
    "reduce": "world(), YOKE_REDUCE_SUM, 0, x22()", "send": "world(), 0, x22()",
    "recv": "world(), 0, yoke_f32, 2, d22, YOKE_NONE", "sampler_count": "world(), 0, 8", "sampler": "world(), 0, 8, 0, 0, 1",
    "integer_pow": "i22(), i22()", "searchsorted": "v2(), x22(), 0", "scatter_along": "x22(), ids22(), x22(), 0, YOKE_SCATTER_SET",
    "stft": "v2(), v2(), 2, stft_options()", "istft": "full(yoke_f32, 3, 2, 2, 2, 0, 1), v2(), 2, 0, stft_options()", "fft": "x22(), 0, 0, 0",
    "ifft": "x22(), 0, 0, 0", "rfft": "x22(), 0, 0, 0", "irfft": "x22(), 0, 0, 0", "fftn": "x22(), 1, 0", "ifftn": "x22(), 1, 0",
    "rfftn": "x22(), 1, 0", "irfftn": "x22(), 0, 1, 0",
    "recurrent": "full(yoke_f32, 3, 2, 2, 2, 0, 1), layer(), x22(), x22(), counts64(), room(), room()",
    "loss_ctc": "full(yoke_f32, 3, 2, 2, 2, 0, 1), ones64(), counts64(), counts64(), 0, 0, 0", "nn_recurrent": "recurrent_options()",
    "loss_cross_entropy": "x22(), ids(), loss()", "loss_bce_logits": "x22(), x22(), loss()", "loss_mse": "x22(), x22(), loss()",
    "module_new": "module_class(), NULL", "module_free": "linear()", "module_state": "stateful()",
    "module_parameter": 'plain(), "w", yoke_f32, 2, d22, YOKE_FIRST_VALUE, 1',
    "module_buffer": 'plain(), "w", yoke_f32, 2, d22, 1', "module_own": "linear(), 0", "module_child": 'plain(), "c", linear()',
    "module_at": "chain(), 0", "module_share": 'chain(), "0.weight", "1.weight"', "module_tie": 'linear(), "weight", linear(), "weight"', "module_each": "chain(), each, NULL",
    "module_parameters": "linear(), 2, room(), (const char **)pointers()", "module_find": 'linear(), "weight"',
    "module_freeze": 'linear(), "weight", 1', "module_mode": "linear(), 1", "module_cast": "linear(), yoke_f16",
    "module_move": "linear(), other()", "forward": "linear(), 1, list22(), 1, room()", "module_save": 'linear(), "saved.safetensors"',
    "module_save_split": 'linear(), "saved.safetensors.index.json", 100', "module_load": "linear(), weights(), load()",
    "nn_linear": "2, 2, 1", "nn_embedding": "2, 2", "nn_layer_norm": "2, 1e-5", "nn_rms_norm": "2, 1e-5",
    "nn_group_norm": "1, 2, 1e-5", "nn_batch_norm": "2, 1e-5, 0.1", "nn_conv": "2, 2, 2, ones, conv_options(), 1",
    "nn_conv_transposed": "2, 2, 2, ones, conv_options(), 1", "nn_adaptive_max_pool": "2, ones", "nn_adaptive_mean_pool": "2, ones",
    "nn_resize": "2, ones, 0", "nn_dropout": "0.5", "nn_activation": '"relu"', "nn_sequential": "2, modules()",
    "nn_residual": "linear()", "nn_mlp": '2, 2, 2, "gelu", 0', "nn_lora": "linear(), 1, 1",
    "profile_state": "schedule(), 1", "profile_rows": "profile(), 1, profile_rows()",
    "profile_table": 'profile(), 0, "total", text(), 4096', "profile_trace": 'profile(), "trace.json"',
    "profile_ranges": "profile(), 1, profile_ranges()", "profile_peak": "profile(), 1, holders()",
    "range_push": '"range"', "memory_record": "1", "memory_snapshot": '(history(), "memory.json")',
    "leaks_check": 'leaks(), "name", leak()', "telemetry": '"cpu:0", sample()', "recorder_tell": "recorder(), 1, 0",
    "op_find": "(op(), \"nulls.op0\")", "op_call": "op(), 1, list22(), 1, attributes(), 1, room()", "op_fail": 'op_args(), YOKE_ERANGE, "why"',
    "op_check": "op(), 1, list22(), 1, attributes(), 0",
    "optim_kind": "0", "optim_options": '"adamw"', "optim_new": '"adamw", "lr=0.1"', "optim_add": "fresh(), 2, variables(), names, NULL",
    "optim_set": 'optim(), "a", "lr=0.2"', "optim_step": "optim(), 2, list22(), step()", "optim_lr": 'optim(), "a", 1',
    "optim_skipped": "stepped()", "optim_state": 'optim(), "a", "m"', "optim_save": 'optim(), "new.safetensors"',
    "optim_load": "optim(), states()", "optim_move": "optim(), other(), moved()",
    "statistic_new": "2, 0", "statistic_add": "statistic(), x22(), v2()", "statistic_merge": "statistic(), statistic()",
    "statistic_read": "statistic(), YOKE_STATISTIC_MEAN, doubles(), 2", "statistic_save": 'statistic(), "new.safetensors"',
    "statistic_load": "statistics()", "pipeline_new": "PIPELINE", "pipeline_context": "PIPELINE",
    "pipeline_fit": "unfitted(), pixels(), \"batch=1\"", "pipeline_resume": 'pipeline(), "."',
    "roc_auc": "4, floats(), labels(), doubles()", "pipeline_apply": 'pipeline(), "scale", pixel()',
    "pipeline_state": 'pipeline(), "scale", "mean"', "pipeline_save": 'pipeline(), "new.safetensors"',
    "pipeline_load": "unfitted(), fitted()",
    "run_open": "new_folder(), run_options()", "run_log": 'run(), 1, "train", 2, names, doubles()',
    "run_event": 'run(), 1, "event", "text"', "run_artifact": "run(), weights()", "run_close": 'run(), "done", "error"',
    "error_name": "-1", "device_name": "0", "setting_set": '"plan.max", "10"', "setting_get": '"plan.max", text(), 4096',
    "context_new": '"cpu"', "context_new_on": '"cpu:0"', "context_on": '"cpu:0"', "to": 'x22(), "cpu:0"', "context_dry": '"cpu"', "context_free": "yoke_context_new(\"cpu\")",
    "use": "other()", "random_set": "1, 1", "scope_begin": '"scope"', "scope_end": 'yoke_scope_begin("scope")',
    "keep": "x22()", "lift": "x22()", "autocast": 'YOKE_DTYPE_NONE, NULL',
    "variable": '"v", yoke_f32, 2, d22', "put": "variable(), floats(), 16", "assign": "variable(), x22()",
    "quant_bytes": "YOKE_QUANT_Q8_0, 32", "quantize": "YOKE_QUANT_F32, 1, 4, floats(), floats()",
    "dequant": "full(yoke_u8, 2, 2, 34, 0, 0, 1), YOKE_QUANT_Q8_0, 32, yoke_f32",
    "qlinear": "full(yoke_f32, 2, 2, 32, 0, 0, 1), full(yoke_u8, 2, 2, 34, 0, 0, 1), YOKE_QUANT_Q8_0",
    "qgather": "full(yoke_u8, 2, 2, 34, 0, 0, 1), ids(), YOKE_QUANT_Q8_0, 32, yoke_f32",
    "pack": "2, variables()", "place": "variable(), YOKE_ON_DEVICE", "from": "yoke_f32, 2, d22, floats()",
    "wrap": "yoke_f32, 2, d22, floats(), nothing, NULL", "scalar_set": "number(), 2", "full": "yoke_f32, 2, d22, 1",
    "iota": "yoke_f32, 2, d22, 0", "rand_bits": "2, d22", "uniform": "yoke_f32, 2, d22", "normal": "yoke_f32, 2, d22",
    "and": "yes(), yes()", "or": "yes(), yes()", "xor": "yes(), yes()", "not": "yes()", "any": "yes(), 1", "all": "yes(), 1",
    "shl": "i22(), i22()", "shr": "i22(), i22()", "select": "yes(), x22(), x22()", "cast": "x22(), yoke_f64",
    "quantile": "x22(), v2(), 0", "moments": "x22(), v2(), 0, moments()", "histogram": "x22(), 4, 0, 1",
    "linear": "x22(), x22(), v2()", "eigh": "unit(), room()", "cholesky": "unit()", "lu": "x22(), room()", "slogdet": "x22(), room()", "matrix_power": "x22(), 2",
    "qr": "x22(), 0, room()", "svd": "x22(), 0, room(), room()", "pinv": "x22(), 0", "lstsq": "x22(), x22(), 0, 0", "matmul_to": "x22(), x22(), 0, yoke_f32",
    "reshape": "x22(), 2, d22", "bitcast": "x22(), yoke_i32", "permute": "x22(), (int[]){ 1, 0 }", "broadcast_to": "x22(), 2, d22",
    "slice": "x22(), 0, 0, 1, 1", "pad": "x22(), ones, ones, 0", "concat": "2, list22(), 0", "slice_update": "x22(), zeros, x22()",
    "slice_at": "x22(), starts(), ones", "slice_update_at": "x22(), starts(), x22()", "assign_at": "variable(), starts(), x22()",
    "gather": "x22(), ids(), 0", "scatter_add": "x22(), ids(), x22()", "take_along": "x22(), ids22(), 0",
    "scatter_add_along": "x22(), ids22(), x22(), 0", "topk": "x22(), 1, 0, 1, room()", "sort": "x22(), 0, 0, room()",
    "largest": "x22(), x22(), 2, room(), room()", "layer_norm": "x22(), v2(), v2(), 1e-5", "rms_norm": "x22(), v2(), 1e-5",
    "batch_norm": "x22(), v2(), v2(), 1e-5, room(), room()", "rope": "x4(), full(yoke_f32, 2, 2, 1, 0, 0, 1), full(yoke_f32, 2, 2, 1, 0, 0, 1)",
    "scatter_set": "x22(), ids(), x22()", "paged_attention": "x3(), x4(), x4(), full(yoke_i32, 2, 2, 2, 0, 0, 0), full(yoke_i32, 1, 2, 0, 0, 0, 0), full(yoke_i32, 1, 2, 0, 0, 0, 0), 0, 0, 0",
    "embedding": "x22(), ids()", "attention": "x4(), x4(), x4(), x4(), 0, 1, 0",
    "attention_keys": "x4(), x4(), x4(), number(), x4(), 0, 1, 0", "cross_entropy": "x22(), ids(), -1, 0",
    "window": "x22(), 0, 1, 1, 1", "conv": "x4(), x4(), conv_options()", "conv_transposed": "x4(), x4(), conv_options()",
    "max_pool": "x4(), pool_options()", "mean_pool": "x4(), pool_options()", "adaptive_max_pool": "x4(), ones",
    "max_pool_indices": "x4(), pool_options(), room()", "max_unpool": "x4(), full(yoke_i64, 4, 2, 2, 2, 2, 0), d22",
    "unfold": "x4(), pool_options()", "fold": "full(yoke_f32, 3, 1, 2, 4, 0, 1), d22, fold_options()",
    "interpolate": "x4(), d22, interpolate()", "grid_sample": "x4(), x4(), YOKE_LINEAR, 0, 0",
    "affine_grid": "full(yoke_f32, 3, 1, 2, 3, 0, 1), 2, d22, 0", "embedding_bag": "x22(), ids22(), embedding_bag()",
    "cummax_indices": "x22(), 0, room()", "cummin_indices": "x22(), 0, room()",
    "adaptive_mean_pool": "x4(), ones", "resize": "x4(), d22, 0", "grouped_matmul": "x22(), x3(), ids3()",
    "resolvent_complex": "x22(), x22(), v1(), v1(), x22(), 0", "resolvent_corner": "x22(), x22(), v1(), v1(), x22()",
    "resolvent_log_det": "x22(), x22(), v1(), v1(), x22()",
    "resolvent": "x22(), v1(), v1(), x22(), resolvent()", "barrier": "2, list22(), 2, list22(), room()",
    "grad": "grown(), 2, grown_by(), room()", "grad_from": "1, list22(), list22(), 2, variables(), room()",
    "adamw_step": "2, variables(), list22(), variables(), variables(), adamw()",
    "lamb_step": "2, variables(), list22(), variables(), variables(), lamb()", "sgd_step": "2, variables(), list22(), variables(), sgd()",
    "unscale_check": "2, list22(), number(), room(), room()", "global_norm": "2, list22()",
    "scaler_scale": "scaler(), x0()", "scaler_check": "scaler(), 2, variables(), list22(), room(), room()", "scaler_update": "checked()",
    "eval": "2, list22()", "eval_brief": "2, list22(), 1", "read": "x22(), floats(), 16", "share": "x22(), (const void **)pointers()", "fallbacks": "1, fallbacks()",
    "dim": "x22(), 0", "dropout": "x22(), 0.5", "clamp": "x22(), x22(), x22()", "norm": "x22(), 2, 1", "var": "x22(), 1, 1",
    "einsum": '"ij,jk->ik", 2, list22()', "tensordot": "x22(), x22(), 1, axis_1, axis_0", "stack": "2, list22(), 0",
    "split": "x22(), 0, 2, ones, room()", "chunk": "x22(), 0, 2, room()", "meshgrid": "2, listv(), room()", "tril": "x22(), 0", "triu": "x22(), 0",
    "diagonal": "x22(), 0, 0, 1", "diag": "x22(), 0", "one_hot": "ids(), 3, yoke_f32", "roll": "x22(), 1, 0", "repeat": "x22(), 2, 0",
    "repeat_each": "x22(), ids(), 2, 0", "tile": "x22(), 2, ones", "roll_axes": "x22(), 2, ones", "counted": "full(yoke_i64, 0, 0, 0, 0, 0, 1), 1", "nonzero": "x22(), 4, room()",
    "masked_select": "x22(), yes(), 4, room()", "unique": "x22(), 4, room(), room(), room()", "where": "yes(), x22(), x22()",
    "masked_fill": "x22(), yes(), x22()", "masked_scatter": "x22(), yes(), x22()", "index_put": "x22(), 1, list_ids(), x22(), 0",
    "bucketize": "x22(), v2(), 0", "histogram_weighted": "x22(), x22(), 4, 0, 1", "quantile_by": "x22(), v2(), 0, YOKE_QUANTILE_LOWER",
    "frexp": "x22(), room()",
    "std": "x22(), 1, 1", "cov": "x22(), 1", "site_hook": "where",
}
# By type and name, then by type.
TYPES = {
    "yoke_tensor*": "x22()", "yoke_module*": "linear()", "yoke_group*": "world()", "yoke_optim*": "optim()",
    "yoke_profile*": "profile()", "yoke_dataset*": "set()", "yoke_pipeline*": "pipeline()", "yoke_loader*": "loader()",
    "yoke_scaler*": "scaler()", "yoke_statistic*": "statistic()", "yoke_cube*": "cube()", "yoke_leaks*": "leaks()",
    "yoke_recorder*": "recorder()", "yoke_run*": "run()", "yoke_tensor*const*": "list22()",
    "int axis": "0", "unsigned axes": "1", "unsigned flags": "0", "int reverse": "0", "int dtype": "yoke_f32", "int i": "0",
    "struct yoke_nn_attention_options*": "attention()", "struct yoke_cube_info*": "cube_info()", "yoke_model*": "model()", "yoke_tokenizer*": "tokenizer()", "yoke_chat_template*": "chat_template()", "struct yoke_model_info*": "model_info()", "yoke_generation*": "generation()", "yoke_engine*": "engine()", "yoke_server*": "server()", "struct yoke_generation_options*": "generation_options()", "struct yoke_embed_options*": "embed_options()",
    "struct yoke_counters*": "counters()", "struct yoke_profile_quality*": "quality()", "uint32_t n": "0",
    "float*": "floats()", "double*": "doubles()", "double correction": "1",
}
# The struct of a call, if it is not the type's name without yoke_.
STRUCTS = {
    "yoke_dataset_options": "set_options", "yoke_field": "field", "yoke_nn_attention_options": "attention",
    "yoke_profile_schedule": "schedule", "yoke_module_load": "load",
}
# Optional arguments, and tensors in structs, according to their headers, by function: NULL; or
# :NONE, YOKE_NONE; :OF_NONE, such a member of a list; :OTHER, a tensor that is not read; :SIZE, any
# size of a struct that only the library makes.
OPTIONAL = {
    "server_new": "options", "server_free": "server", "serve_function": "options user",
    "engine_new": "options", "engine_free": "engine", "generation_again": "options",
    "generation_new": "options", "generation_free": "generation", "model_embed": "options", "model_embed_texts": "options", "model_open": "options", "onnx_write": "options", "model_free": "model", "model_dataset": "paths", "tokenizer_free": "tokenizer", "chat_template_free": "chat_template", "chat_template_render": "options options.tools options.variables",
    "tokenizer_train": "bytes",
    "chat_template_render_spans": "options options.tools options.variables", "chat_template_encode": "options options.tools options.variables",
    "chat_template_encode_json": "options options.tools options.variables",
    "chat_template_render_json": "options options.tools options.variables", "model_parameters": "names", "cube_open": "settings", "cube_read": "weight", "dataset_cubes": "label settings",
    "dataset_synthetic": "settings", "dataset_fields": "to", "dataset_read": "dims", "dataset_open": "settings",
    "dataset_subset": "number", "dataset_map": "arg free_fn", "loader_new": "settings", "loader_next": "weight",
    "loader_host": "dims", "loader_errors": "fn arg", "group_run": "devices arg", "fit": "end",
    "loss_cross_entropy": "how how.weight:NONE how.pos_weight:NONE how.pos_weight:OTHER",
    "stft": "window:NONE stft_options", "istft": "window:NONE stft_options",
    "recurrent": "h0:NONE c0:NONE lengths:NONE h c recurrent.b_ih:NONE recurrent.b_hh:NONE recurrent.w_hr:NONE",
    "loss_bce_logits": "how how.weight:NONE how.pos_weight:NONE",
    "loss_mse": "how how.weight:NONE how.pos_weight:NONE how.pos_weight:OTHER", "module_new": "state",
    "module_free": "module", "module_each": "arg", "module_parameters": "names", "module_load": "module_load",
    "nn_conv": "conv_options", "nn_conv_transposed": "conv_options", "profile_rows": "to", "profile_table": "column",
    "profile_ranges": "to", "profile_peak": "to", "leaks_check": "name to", "optim_new": "settings",
    "optim_add": "settings", "optim_set": "pattern settings", "optim_step": "step step.scale:NONE step.skip:NONE",
    "statistic_add": "weight:NONE", "pipeline_fit": "loader", "pipeline_apply": "node", "run_open": "run_options",
    "run_log": "run", "run_event": "run text", "run_artifact": "run", "context_new": "backend",
    "context_dry": "backend", "use": "context", "scope_begin": "name", "keep": "tensor:NONE", "lift": "tensor:NONE",
    "autocast": "keep_f32", "variable": "name", "wrap": "free_fn arg", "clamp": "lo:NONE hi:NONE",
    "nonzero": "count", "masked_select": "count", "unique": "inverse counts count", "frexp": "exponent",
    "moments": "weight:NONE", "linear": "b:NONE", "eigh": "vectors", "lu": "perm", "slogdet": "log_abs", "qr": "r", "svd": "values vh", "slice_at": "x:OTHER starts:OF_NONE",
    "slice_update_at": "starts:OF_NONE", "assign_at": "starts:OF_NONE", "sort": "indices", "topk": "indices",
    "largest": "carried:NONE places rest", "layer_norm": "w:NONE b:NONE", "rms_norm": "w:NONE",
    "batch_norm": "w:NONE b:NONE mean var", "attention": "mask:NONE", "attention_keys": "mask:NONE",
    "max_pool_indices": "indices", "cummax_indices": "indices", "cummin_indices": "indices", "interpolate": "to interpolate",
    "embedding_bag": "embedding_bag embedding_bag.offsets:NONE embedding_bag.weights:NONE",
    "conv": "conv_options", "conv_transposed": "conv_options", "resolvent": "b:NONE c:NONE how",
    "resolvent_complex": "a_im:NONE b:NONE c:NONE", "resolvent_corner": "a_im:NONE b:NONE c:NONE",
    "resolvent_log_det": "a_im:NONE b:NONE c:NONE",
    "adamw_step": "adamw.scale:NONE adamw.skip:NONE", "lamb_step": "lamb.scale:NONE lamb.skip:NONE",
    "sgd_step": "sgd.scale:NONE sgd.skip:NONE", "scaler_new": "scaler_options", "scaler_check": "p",
    "eval": "t:OF_NONE", "eval_brief": "t:OF_NONE", "fallbacks": "to", "item_random": "item:SIZE", "item_uniform": "item:SIZE",
    "op_fail": "op_args:OTHER",
}
# Members of structs that must not be NULL. Others may be NULL; members added later must be
# optional, because older callers lack them.
NEEDED = {
    "cube_write": "type", "dataset_cube_files": "path", "dataset_new": "field read", "dataset_map": "name",
    "fit": "net optim next loss", "module_new": "name forward", "recorder_new": "path", "op_register": "name shape decompose",
    "op_fail": "name", "engine_submit": "prompt", "optim_step": "scale skip", "node_register": "name channels dims fit forward",
    "pipeline_fit_as": "set", "pipeline_train": "train", "adamw_step": "lr c1 c2 scale", "lamb_step": "lr c1 c2 scale",
    "sgd_step": "lr first scale", "recurrent": "w_ih w_hh",
}


# Calls that always fail here: with one rank, a device without telemetry, without a previous call.
FAILS = {"send", "recv", "telemetry", "range_pop", "op_fail", "use"}


def arguments(f):
    """The C expressions of a call's good arguments."""
    if f.name in ARGS:
        out, depth, part, quoted = [], 0, "", False
        for c in ARGS[f.name] + ",":
            quoted ^= c == '"'
            depth += (c in "([{") - (c in ")]}")
            if c == "," and depth == 0 and not quoted:
                out.append(part.strip())
                part = ""
            else:
                part += c
        if len(out) != len(f.params):
            sys.exit(f"nulls.py: yoke_{f.name} has {len(f.params)} parameters, not {len(out)}")
        return out
    out = []
    for kind, name, array in f.params:
        bare = kind.replace("const ", "") if not kind.endswith("const*") else kind
        m = re.match(r"^struct yoke_(\w+)\*$", bare)
        good = TYPES.get(f"{bare} {name}") or TYPES.get(bare) or (STRUCTS.get("yoke_" + m.group(1), m.group(1)) + "()" if m else None)
        if not good and not kind.endswith("*") and not array and "(" not in kind:
            good = "1"
        if not good:
            sys.exit(f"nulls.py: no argument for {kind} {name} of yoke_{f.name}: name it in ARGS")
        out.append(good)
    return out


def spelled(kind, name, array):
    """The parameter as a declaration of a variable `name`."""
    if "(" in kind:
        return re.sub(r"\(\*?\s*\w*\)", f"(*{name})", kind, count=1)
    return f"{kind} *{name}" if array else f"{kind} {name}"


COUNTS = {"n", "m", "max", "nin", "nout", "fields", "nattr", "rank", "axes", "rows"}
SIZED32 = {"yoke_limits", "yoke_sample"}


def write(f, structs, out):
    args, body = arguments(f), []
    ways = [("good arguments", "MAY" if f.name in FAILS else "FINE")]
    operands = sum(k in ("yoke_tensor*", "yoke_tensor*const*") for k, n, a in f.params)
    names = []

    def way(position, kind, absent="NULL"):
        rule = position if absent == "NULL" else f"{position}:{absent}"
        free = rule in OPTIONAL.get(f.name, "").split()
        ways.append((f"{position} {kind}", "MAY" if free else "MUST"))

    for i, ((kind, name, array), good) in enumerate(zip(f.params, args)):
        var = f"a{i}"
        names.append(var)
        shown = name or kind.replace("const ", "").replace("struct ", "").replace("yoke_", "").rstrip("*")
        base = len(ways)
        bare = kind.replace("const ", "") if not kind.endswith("const*") else kind
        struct = re.match(r"^struct (yoke_\w+)\*$", bare)
        if bare == "yoke_tensor*":
            body.append(f"yoke_tensor *{var} = tensor(v - {base}, {good});")
            way(shown, "NULL")
            way(shown, "YOKE_NONE", "NONE")
            way(shown, "freed", "OTHER")
            if operands > 1:
                way(shown, "of another context", "OTHER")
            else:
                ways.append((f"{shown} of another context", "MAY"))
        elif kind == "yoke_tensor*const*":
            body.append(f"yoke_tensor **{var} = tensors(v - {base}, {good});")
            way(shown, "NULL")
            way(shown, "of a NULL", "OF_NULL")
            way(shown, "of a YOKE_NONE", "OF_NONE")
            way(shown, "of a freed one", "OTHER")
            if operands > 1:
                way(shown, "of one of another context", "OTHER")
            else:
                ways.append((f"{shown} of one of another context", "MAY"))
        elif struct and structs.get(struct.group(1)[5:], [("", "", "")])[0][1] == "size":
            t = struct.group(1)
            small = "sizeof(uint32_t)" if t in SIZED32 else "sizeof(size_t)"
            body.append(f"struct {t} *{var} = sized(v - {base}, {good}, {small});")
            way(shown, "NULL")
            for size in ("0", "3", "that of its size alone", "of all memory"):
                way(shown, f"of size {size}", "SIZE")
            if kind.startswith("const"):
                for mkind, member, marray in structs[t[5:]]:
                    if (mkind.endswith("*") or marray == "function") and not (marray and marray != "function"):
                        body.append(f"if (v == {len(ways)}) {var}->{member} = NULL;")
                        ways.append((f"{shown}.{member} NULL", "MUST" if member in NEEDED.get(f.name, "").split() else "MAY"))
                    if mkind == "yoke_tensor*" and not marray:
                        for k, (what, rule) in enumerate((("YOKE_NONE", "NONE"), ("freed", "OTHER"), ("of another context", "OTHER"))):
                            body.append(f"if (v == {len(ways)}) {var}->{member} = tensor({k + 1}, NULL);")
                            way(f"{shown}.{member}", what, rule)
        elif kind.endswith("*") or "(" in kind or kind in ("yoke_map_fn*",) or array:
            body.append(f"{spelled(kind, var, array)} = {good};")
            body.append(f"if (v == {base}) {var} = NULL;")
            way(shown, "NULL")
            if kind.endswith("*const*") and "char" not in kind or kind == "const char*const*":
                inner = kind[:-len("const*")].strip()
                body.append(f"{inner} holed{i}[MANY];")
                body.append(f"if (v == {base + 1}) memcpy(holed{i}, {var}, sizeof holed{i}), holed{i}[0] = NULL, {var} = holed{i};")
                way(shown, "of a NULL", "OF_NULL")
        else:
            body.append(f"{kind} {var} = {good};")
            if kind == "int" and name in COUNTS:
                body.append(f"if (v == {base}) {var} = -1;")
                ways.append((f"{shown} -1", "MUST"))
            if kind == "int" and name == "rank":
                body.append(f"if (v == {base + 1}) {var} = 1000000;")
                ways.append((f"{shown} 1000000", "MUST"))
    call = f"yoke_{f.name}({', '.join(names)})"
    if f.result == "void":
        result = f"{call};\n\treturn -1;"
    elif f.result == "double":
        result = f"return !({call} >= 0);"
    elif f.result in ("int", "int64_t"):
        result = f"return {call} < 0;"
    elif f.result.endswith("*"):
        result = f"return !{call};"
    else:
        result = f"return yoke_error_code() ? 1 : {call} ? 0 : yoke_error_code() ? 1 : -1;"
    out.append(f"static int call_{f.name}(int v)\n{{\n\t(void)v;\n\t" + "\n\t".join(body) +
               f"\n\tbefore();\n\t{result}\n}}\nstatic const struct way ways_{f.name}[] = {{\n" +
               "".join(f'\t{{ "{what}", {verdict} }},\n' for what, verdict in ways) + "};\n")
    return len(ways)


def main():
    functions, structs = bind.read_headers(os.path.join(sys.argv[1], "include"))
    # structs that begin with a uint32_t size belong to yoke-plugin.h, which has no functions
    out = ["// Written by tests/nulls.py.", '#include "nulls.h"', ""]
    count = {f.name: write(f, structs, out) for f in functions}
    out.append("static const struct function functions[] = {")
    out += [f'\t{{ "{f.name}", call_{f.name}, ways_{f.name}, {count[f.name]} }},' for f in functions]
    out.append("};\n")
    out.append("""int main(int argc, char **argv)
{
	tap_folder();
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		int wanted = argc < 2;
		for (int k = 1; k < argc; k++)
			wanted |= !strcmp(argv[k], functions[i].name);
		if (wanted)
			try_all(&functions[i]);
	}
	return done();
}""")
    print("\n".join(out))


if __name__ == "__main__":
    main()
