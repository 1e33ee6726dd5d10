#!/usr/bin/env python3
"""Write the C table of all public functions that call_suite.c tests: generate.py api.c DESCRIPTION.json

Every function of the description (api/describe.py) becomes one row with its pointer arguments and a call.  An argument
whose type or value is not known here makes the generator fail, so that a new function must be added to the tables
below."""
import contextlib
import json
import re
import sys

# Arguments that may be NULL under a condition of their contract, which holds in the calls below.
NULL_HERE = {("weft_mesh_concatenate", "within"), ("weft_fsdp_prefetch_set", "targets")}

# Arguments that may be NULL, but not with the other arguments below.
NEEDED_HERE = {("weft_mesh_unflatten", "names"),  # the mesh has names
               ("weft_checkpoint_spec", "layout"), ("weft_load", "layout")}  # the checkpoint has no layouts

# The result of a function if all its arguments are valid, unless it is WEFT_OK.
VALID = {
    "weft_fail": "WEFT_ERR_INVALID",  # returns its argument
    "weft_fail_reword": "WEFT_ERR_INVALID",
    "weft_context_grow": "WEFT_ERR_INVALID",  # the job is not elastic
    "weft_context_next": "WEFT_ERR_INVALID",  # the job is not elastic
    "weft_stream_wrap": "WEFT_ERR_UNSUPPORTED",  # gloo-cpu has no vendor objects
    "weft_work_wrap": "WEFT_ERR_UNSUPPORTED",
    "weft_plan_create_runner_up": "WEFT_ERR_NOT_FOUND",  # a plan without steps has no other
    "weft_op_remove": "WEFT_ERR_NOT_FOUND",  # nobody registered the name
    "weft_op_use_remove": "WEFT_ERR_NOT_FOUND",
    "weft_op_apply_phases": "WEFT_ERR_UNSUPPORTED",  # exp has no phases
    "weft_checkpoint_writer_create": "WEFT_ERR_SYSTEM",  # no file can be made at the path
    "weft_checkpoint_writer_commit": "WEFT_ERR_INVALID",  # the tensor was not written
    "weft_layout_file_open": "WEFT_ERR_PARSE",  # an empty file
    "weft_reshard_run": "WEFT_ERR_SYSTEM",  # no file can be made at the path
    "weft_reshard_predict": "WEFT_ERR_SYSTEM",
    "weft_save": "WEFT_ERR_SYSTEM",
    "weft_save_begin": "WEFT_ERR_SYSTEM",
    "weft_tensor_occupy": "WEFT_ERR_INVALID",  # the tensor has memory
    "weft_moves_leave": "WEFT_ERR_INVALID",  # the call before did not enter
}

# The result of an accessor without its object, unless it is 0, -1 or NULL.
NOTHING = {"weft_spec_dtype": "WEFT_DTYPE_COUNT", "weft_op_choice_memory": "(int64_t)SIZE_MAX"}

# Values of numbers, by function and name, or by name.
NUMBERS = {
    ("weft_rendezvous_has_entered", "number"): "4",
    ("weft_comm_create", "count"): "1", ("weft_agree", "bytes"): "4", ("weft_agree", "status"): "WEFT_OK",
    ("weft_publisher_open", "count"): "1", ("weft_publisher_publish", "version"): "next_version()",
    ("weft_subscriber_open", "count"): "1", ("weft_subscriber_stage", "version"): "WEFT_NEWEST",
    ("weft_save", "count"): "1", ("weft_save_begin", "count"): "1",
    ("weft_mesh_create", "axes"): "1", ("weft_mesh_parse_for", "ranks"): "2",
    ("weft_spec_counts", "count"): "1", ("weft_spec_parse_placements", "dims"): "1",
    ("weft_mesh_unflatten", "axis"): "0", ("weft_mesh_follow", "count"): "1", ("weft_spec_lost", "count"): "1",
    ("weft_mesh_unflatten", "count"): "1",
    ("weft_placements_parse", "axes"): "1",
    ("weft_placements_free", "axes"): "1",
    ("weft_owners_balance", "count"): "1",
    ("weft_owners_balance", "owners"): "2",
    ("weft_plan_create_batch", "count"): "1",
    ("weft_plan_measure_step", "index"): "0",
    ("weft_move", "count"): "1",
    ("weft_tensors_move_into", "count"): "1",
    ("weft_tensors_check", "count"): "1", ("weft_tensors_lend", "count"): "1", ("*", "written"): "1",
    ("weft_fsdp_group_create", "count"): "1", ("weft_fsdp_prefetch_set", "count"): "0",
    ("weft_fsdp_reshard_to", "ranks"): "1",
    ("weft_clip_gradient_norm", "count"): "1", ("weft_clip_gradient_value", "count"): "1",
    ("weft_clip_gradient_norm_wait", "count"): "1", ("weft_spec_parse_shards", "count"): "1",
    ("*", "max_norm"): "1", ("*", "max_value"): "1",
    ("*", "low"): "0", ("*", "high"): "1", ("*", "mean"): "0", ("*", "deviation"): "1",
    ("*", "probability"): "0.5",
    ("weft_checkpoint_writer_create", "count"): "1",
    ("weft_cp_plan_problems", "capacity"): "1", ("weft_experts_route", "count"): "1",
    ("weft_fail", "status"): "WEFT_ERR_INVALID", ("weft_fail_reword", "status"): "WEFT_ERR_INVALID",
    ("weft_load_into", "count"): "1", ("weft_layout_file_warn", "count"): "1", ("*", "width"): "1",
    ("weft_log_to", "sink"): "NULL",
    ("weft_recorder_text", "text"): "0", ("weft_recorder_record", "id"): "0",
    ("weft_recorder_print", "size"): "64", ("weft_record_print", "size"): "64", ("weft_comm_report_print", "size"): "64",
    ("weft_tensor_narrow", "start"): "0", ("weft_tensor_narrow", "length"): "1",
    ("weft_reorder_create", "count"): "3", ("weft_cost_table_compute_ns", "flops"): "1",
    ("weft_cost_table_product_ns", "flops"): "1", ("weft_cost_table_product_ns", "elements"): "1",
    ("weft_schedule_create", "ranks"): "2", ("weft_schedule_create", "chunks"): "0",
    ("weft_schedule_create", "microbatches"): "4", ("weft_schedule_lower", "flags"): "0",
    ("*", "count"): "4",
    ("*", "bytes"): "16",
    ("*", "dims"): "1",
    ("*", "size"): "1",
    ("weft_op_apply", "output_count"): "1", ("weft_op_apply_phases", "output_count"): "3",
}
ZERO = {"index", "rank", "a", "b", "color", "key", "peer", "tag", "root", "timeout_ns", "channel",
        "value", "offset", "byte", "axis", "position", "dim", "from", "line", "first_rank",
        "second_rank", "world_rank", "status", "kind", "ticks", "text", "input",
        "flags", "stage", "coordinate", "step"}
ENUMS = {
    "enum weft_dtype": "WEFT_DTYPE_F32", "enum weft_reduction": "WEFT_REDUCE_SUM",
    "enum weft_collective": "WEFT_COLL_ALL_REDUCE", "enum weft_memory_kind": "WEFT_MEMORY_DEVICE",
    "enum weft_signal_op": "WEFT_SIGNAL_SET", "enum weft_compare": "WEFT_COMPARE_GE",
    "enum weft_backend_role": "WEFT_BACKEND_ROLE_COMM", "enum weft_backend_reason": "WEFT_BACKEND_REASON_USABLE",
    "enum weft_step_kind": "WEFT_STEP_SLICE", "enum weft_record_operation": "WEFT_RECORD_SEND",
    "enum weft_fsdp_phase": "WEFT_FSDP_FORWARD",
    "enum weft_schedule_action_kind": "WEFT_SCHEDULE_ACTION_F", "enum weft_reorder_limit": "WEFT_REORDER_LIMIT_END",
    "weft_dl_dtype": "(weft_dl_dtype){2, 32, 1}",
    "enum weft_style_part": "WEFT_STYLE_INPUT",
    "enum weft_follow": "WEFT_FOLLOW_PACK",
    "enum weft_log_level": "WEFT_LOG_ERROR", "enum weft_file_format": "WEFT_FILE_NPY",
}
NUMBER_TYPES = {"int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "uint8_t", "weft_status",
                "double"}

# Objects that call_world.c makes, by type; (function, argument) first.
OBJECTS = {
    ("weft_checkpoint_unlisted_get", "checkpoint"): "w->indexed",
    "weft_context *": "w->context", "weft_comm *": "w->comm", "weft_mesh *": "w->mesh",
    "weft_spec *": "w->spec", "weft_plan *": "w->plan", "weft_bound *": "w->bound",
    "weft_symm *": "w->symm", "weft_stream *": "w->stream", "weft_work *": "w->work",
    "weft_cost_table *": "w->costs", "const weft_cost_step *": "cost_step(w, %d)",
    "weft_backends *": "w->backends", "weft_rendezvous *": "w->rendezvous",
    "weft_threads *": "w->threads", "weft_op_choice *": "w->op_choice", "weft_op_list *": "w->op_list",
    "weft_op_backward *": "w->op_backward", "const weft_op_operand *": "&w->op_operand",
    ("weft_op_backward_apply", "user"): "w",
    ("weft_op_backward_apply", "forward"): "w->pair_of_tensors",
    "const weft_op_call *": "op_call(w, %d)", "weft_observation *": "w->observation",
    "weft_recorders *": "w->recorders", "weft_recorder *": "w->recorder",
    "weft_record_counts *": "w->counted",
    "const weft_record *": "&w->record", "weft_tensor *": "w->tensor",
    "weft_tensor *const *": "w->tensors", "weft_random *": "&w->random",
    ("weft_tensor_integers", "tensor"): "w->integers",
    ("weft_tensor_from_dlpack", "managed"): "&w->versioned",
    ("weft_tensor_from_full", "memory"): "w->buffer",
    ("weft_tensor_to_host", "host"): "w->buffer", ("weft_tensor_from_host", "host"): "w->buffer",
    ("weft_tensors_move_into", "targets"): "w->second_tensors",
    ("weft_tensor_occupy", "memory"): "w->target", ("weft_memory_cast", "source"): "w->buffer",
    ("weft_memory_cast", "target"): "w->target", ("weft_tensor_set_keeper", "user"): "w",
    "const weft_placement *": "w->placements",
    "const weft_spec *const *": "w->specs",
    "const void *const *": "w->sources", "void *const *": "w->targets",
    "const void *const *const *": "w->batch_sources", "void *const *const *": "w->batch_targets",
    "const int64_t *": "w->sizes64", "const int32_t *": "w->sizes32",
    "const weft_move_item *": "w->items",
    "weft_checkpoint *": "w->checkpoint", "weft_checkpoint_writer *": "w->writer",
    "const weft_checkpoint_entry *": "w->entries",
    "weft_layout_file *": "w->layout", "weft_checkpoint_rules *": "w->rules", "weft_reshard *": "w->reshard",
    "weft_saving *": "w->saving", "weft_publisher *": "w->publisher", "weft_subscriber *": "w->subscriber",
    "weft_dependent *": "w->dependent", "const weft_dependent_calls *": "&dependent_calls",
    ("weft_dependent_create", "user"): "w", ("weft_object_check", "object"): "&w->object",
    ("weft_layout_file_warn", "names"): "w->tensor_names",
    "weft_answers *": "w->answers", "weft_object *": "&w->object", "const weft_object *": "&w->object",
    "const weft_open_record *": "&w->open_record", ("weft_agree", "data"): "w->buffer",
    "weft_fsdp *": "w->fsdp", "weft_fsdp_group *": "group_in(w, WEFT_FSDP_SHARDED, false)",
    "const weft_fsdp_param *": "new_params(w)", "weft_fsdp_group *const *": "w->groups",
    ("weft_fsdp_unshard_end", "group"): "group_in(w, WEFT_FSDP_GATHERING, false)",
    ("weft_fsdp_reshard_to", "group"): "group_in(w, WEFT_FSDP_GATHERED, false)",
    ("weft_fsdp_parameter", "group"): "group_in(w, WEFT_FSDP_GATHERED, false)",
    ("weft_fsdp_reduce_end", "group"): "group_in(w, WEFT_FSDP_SHARDED, true)",
    ("weft_fsdp_reduce_begin", "gradients"): "w->gradients",
    ("weft_fsdp_group_release", "group"): "w->group",
    "weft_schedule *": "w->schedule", "weft_timeline *": "w->timeline",
    "const weft_schedule_action *": "&w->action", "weft_reorder *": "w->reorder",
    "const weft_reorder_node *": "w->nodes", "weft_pipeline *": "w->pipeline",
    "const weft_pipeline_options *": "pipeline_options(w, %d)",
    "weft_saving *": "w->saving", "weft_cp_plan *": "w->cp_plan", "weft_cp *": "w->cp",
    "weft_model *": "w->model", "const weft_model_graph_options *": "options(w, %d, sizeof(weft_model_graph_options))",
    "weft_graph *": "w->graph", "weft_prediction *": "w->prediction",
    ("weft_graph_parse", "styles"): "NULL",  # the text has the mesh
    ("weft_graph_check", "graph"): "new_graph(w)", ("weft_graph_release", "graph"): "w->spare_graph",
    "weft_styles *": "w->styles", "const weft_style *": "options(w, %d, sizeof(weft_style))",
    "const weft_cp_options *": "cp_options(w, %d)", "const weft_cp_tensors *": "cp_tensors(w, %d)",
    "weft_cp_kernel": "cp_kernel",
    "weft_experts *": "w->experts", "weft_routing *": "w->routing",
    "const weft_experts_options *": "experts_options(w, %d)",
    "weft_overlap *": "w->overlap",
    "const weft_overlap_options *": "overlap_options(w, %d)",
    "weft_overlap_kernel": "overlap_rows",
    ("weft_overlap_gather", "user"): "w", ("weft_overlap_reduce_scatter", "user"): "w",
    ("weft_overlap_gather", "input"): "w->tensor",
    ("weft_overlap_reduce_scatter", "output"): "w->tensor",
    ("*", "tokens"): "w->tokens", ("*", "received"): "w->received", ("*", "outputs"): "w->received",
    ("weft_cp_shard", "source"): "w->tensor", ("weft_cp_shard", "target"): "w->second_tensor",
    ("weft_cp_restore", "source"): "w->tensor", ("weft_cp_restore", "target"): "w->second_tensor",
    ("weft_cp_forward", "user"): "w", ("weft_cp_backward", "user"): "w",
    ("weft_fsdp_group_release", "group"): "w->group", ("weft_clip_gradient_norm", "total"): "w->target",
    ("weft_clip_gradient_norm_wait", "norm"): "w->target",
    ("weft_checkpoint_read", "offset"): "w->zeros64", ("weft_checkpoint_box_bytes", "offset"): "w->zeros64",
    ("weft_mesh_follow", "old_ranks"): "w->zeros32",
    ("weft_checkpoint_writer_write", "offset"): "w->zeros64",
    "const weft_collective_args *": "collective_args(w, %d)",
    "const weft_rendezvous_options *": "rendezvous_options(w, %d)",
    "weft_threads_main": "rank_main",
    "weft_tensor_keeper": "tensor_keeper",
    "weft_op_rows": "op_rows", "weft_op_kernel": "op_kernel", ("weft_op_apply", "user"): "w",
    ("weft_op_apply_phases", "user"): "w",
    ("weft_owners_balance", "bytes"): "w->counts",
    ("weft_redistribute_batch", "bound"): "w->batch_bound",
    ("weft_simulate", "plan"): "w->batch",
    ("weft_plan_step_get", "plan"): "w->stepping",
    ("weft_plan_measure_step", "plan"): "w->stepping",
    ("weft_mesh_rank", "coord"): "w->zeros32",
    ("weft_comm_create", "ranks"): "w->zeros32",
    ("weft_mesh_concatenate", "second"): "w->second_mesh",
    ("weft_mesh_unflatten", "names"): "w->names", ("weft_mesh_unflatten", "mesh"): "w->named_mesh",
    ("weft_stream_wrap", "native"): "w->buffer", ("weft_work_wrap", "native"): "w->buffer",
    ("weft_threads_run", "user"): "w",
    ("weft_op_use_register", "user"): "w",
    ("weft_log_to", "user"): "w", ("weft_record_counts_end", "counts"): "begun_counts(w)",
    ("weft_free", "pointer"): "w->spare", ("weft_free_on", "pointer"): "ordered_memory(w)",
    ("weft_tensor_wrap", "memory"): "w->buffer",
    ("weft_symm_register", "memory"): "w->spare",
    ("weft_pointer_get", "pointer"): "w->buffer",
    ("weft_symm_offset", "pointer"): "weft_symm_local(w->symm)",
    ("*", "send"): "w->buffer", ("*", "recv"): "w->target", ("*", "source"): "w->buffer",
    ("*", "target"): "w->target", ("weft_send", "buffer"): "w->buffer",
    ("weft_receive", "buffer"): "w->target",
    ("*", "send_counts"): "w->counts", ("*", "recv_counts"): "w->counts",
    ("*", "send_offsets"): "w->offsets", ("*", "recv_offsets"): "w->offsets",
}
TEXTS = {
    ("weft_publisher_open", "feed"): "api", ("weft_subscriber_open", "feed"): "api", ("*", "token"): "a token of a test",
    ("weft_schedule_create", "name"): "1f1b", ("weft_schedule_parse", "text"): "0F0,0B0",
    ("weft_fail", "format"): "a text", ("weft_dtype_parse", "text"): "f32",
    ("weft_cost_table_open", "name"): "cpu",
    ("weft_mesh_parse_for", "text"): "*", ("weft_mesh_parse", "text"): "2x2", ("weft_mesh_find_axis", "name"): "0",
    ("weft_comm_along", "axes"): "0", ("weft_cp_plan_create", "axis"): "0", ("*", "placements"): "R",
    ("weft_mesh_slice", "axes"): "0", ("weft_mesh_flatten", "axes"): "0", ("weft_mesh_follow", "axis"): "left",
    ("weft_mesh_flatten", "name"): "flat", ("weft_spec_parse", "text"): "f32[4] R",
    ("weft_shape_parse", "text"): "4x4", ("weft_placements_parse", "text"): "R",
    ("weft_spec_parse_shards", "placements"): "R",
    ("weft_rendezvous_report_gone", "text"): "is gone", ("weft_stream_set_name", "name"): "copies",
    ("weft_dump", "prefix"): "test_api_calls.dump",
    ("weft_op_register", "text"): "api_one: a[i] -> b[i]",
    ("weft_op_replace", "text"): "api_two: a[i] -> b[i]",
    ("weft_op_remove", "name"): "unknown",
    ("weft_op_rules_print", "rules"): "mm: a[m] -> b[m]", ("weft_op_print", "name"): "mm",
    ("weft_op_meaning_print", "name"): "mm", ("weft_op_use_register", "name"): "api",
    ("weft_op_use_remove", "name"): "unknown",
    ("weft_checkpoint_writer_create", "path"): "/proc/none/x", ("weft_checkpoint_find", "name"): "t",
    ("weft_layout_file_parse", "text"): "mesh 2\\n* R", ("weft_layout_file_open", "path"): "/dev/null",
    ("weft_checkpoint_rules_parse", "text"): "let n = 1\\n* = *", ("weft_checkpoint_rules_parse", "values"): "n=2",
    ("weft_checkpoint_rules_open", "path"): "/dev/null",
    ("weft_model_parse", "text"): "model gpt layers=2 hidden=8 heads=2 vocabulary=9", ("weft_model_is_text", "text"): "model gpt",
    ("weft_graph_parse", "text"): "mesh 1\\ninput x f32[4]", ("weft_graph_unmatched_print", "styles_text"): "mesh 1\\n* 0 R",
    ("weft_styles_parse", "text"): "mesh 1\\n* 0 R", ("weft_styles_find", "name"): "t",
    ("weft_styles_apply", "name"): "t",
    ("weft_layout_file_find", "name"): "t", ("weft_layout_file_heads", "name"): "t",
    ("weft_reshard_create", "path"): "/proc/none/x",
    ("weft_save", "path"): "/proc/none/x", ("weft_save_begin", "path"): "/proc/none/x",
    ("*", "function"): "my_call", ("*", "type"): "my_cache", ("weft_object_check", "function"): "weft_object_check",
    ("weft_stream_check", "function"): "weft_stream_check", ("weft_tensors_check", "function"): "weft_tensors_check",
    ("weft_tensors_check", "argument"): "tensors",
    ("weft_tensor_create_vacant", "name"): "t", ("*", "reason"): "it is empty",
    ("weft_object_check", "argument"): "object", ("weft_moves_enter", "function"): "weft_moves_enter",
    ("weft_log", "format"): "a line", ("weft_fail_reword", "format"): "a text",
    ("weft_fsdp_shard_spec", "axes"): "0", ("weft_fsdp_create", "axes"): "0", ("weft_experts_create", "axis"): "0",
    ("weft_overlap_create", "axis"): "0", ("weft_cp_create", "axis"): "0", ("weft_pipeline_create", "axis"): "0",
}
OBJECT_EXPRESSIONS = {("weft_subscriber_open", "address"): "weft_publisher_address(w->publisher)",
                      ("weft_checkpoint_rules_open", "values"): '""',  # an empty file has no value
                      ("weft_cost_table_parse", "text"): "w->costs_text",
                      ("weft_recorder_open", "path"): "w->recorder_path",
                      ("weft_checkpoint_open", "path"): "w->checkpoint_path"}
# Results are pointers to what the function writes.
RESULTS = {"int32_t *", "int64_t *", "uint64_t *", "size_t *", "char *", "void **", "const char **",
           "enum weft_dtype *", "enum weft_support_level *",
           "weft_placement *", "weft_symm_device *", "weft_dl_dtype *", "const weft_schedule_action **", "const weft_reorder_node **",
           "weft_cp_problem *", "weft_pipeline_values *", "weft_shard *", "weft_index_run *", "weft_intersection *", "weft_segment *",
           "weft_open_record *", "const weft_spec **", "weft_tensor_local *"}
LISTS = {"const weft_spec *const *", "weft_tensor *const *", "const void *const *", "void *const *",
         "const void *const *const *", "void *const *const *"}
ABI_INFO = {"weft_device_info", "weft_pointer_info"}  # struct_size is a uint32_t


def fail(text):
    sys.exit(f"generate.py: {text}; add it to the tables of tests/api/generate.py")


def look(table, function, name):
    return table.get((function, name), table.get(("*", name)))


def number(function, kind, name):
    value = look(NUMBERS, function, name)
    if value is None and kind in ENUMS:
        value = ENUMS[kind]
    if value is None and kind in NUMBER_TYPES and name in ZERO:
        value = "0"
    if value is None:
        fail(f"{function}: no value for `{kind} {name}`")
    return value


def pointer(function, result, kind, name, at):
    """(role, expression, size, struct) of a pointer argument; %d in an expression is its slot."""
    made = re.fullmatch(r"weft_(\w+) \*\*", kind)
    plain = kind.replace("const ", "")
    struct = plain[:-2]
    if made and re.search(r"_(release|close)$", function):
        return "ROLE_RELEASED", "released(w, %d, %s)" % (at, object_of(function, kind[:-1], name)), "0", ""
    if made:
        return "ROLE_RESULT", "result(w, %d)" % at, "0", ""
    if struct.endswith(("_info", "_prediction")) and kind != "const weft_prediction *":
        role = "ROLE_ABI_INFO" if struct in ABI_INFO else "ROLE_INFO"
        return role, "info(w, %d, sizeof(%s), %s)" % (at, struct, role), "sizeof(%s)" % struct, struct
    if kind == "const weft_collective_args *":
        return "ROLE_ABI_OPTIONS", OBJECTS[kind] % at, "sizeof(%s)" % struct, struct
    if kind in ("const weft_op_call *", "const weft_cp_tensors *", "const weft_style *", "const weft_cost_step *"):
        return "ROLE_OPTIONS", OBJECTS[kind] % at, "sizeof(%s)" % struct, struct
    if struct.endswith("_options") or struct in ("weft_init_options", "weft_observer"):
        expression = OBJECTS.get(kind, "options(w, %d, sizeof({}))".format(struct)) % at
        return "ROLE_OPTIONS", expression, "sizeof(%s)" % struct, struct
    if kind == "const char *":
        text = look(TEXTS, function, name)
        expression = OBJECT_EXPRESSIONS.get((function, name)) or (text and '"%s"' % text)
        if expression is None:
            fail(f"{function}: no text for `{name}`")
        return "ROLE_INPUT", expression, "0", ""
    if kind in RESULTS:
        return "ROLE_RESULT", "result(w, %d)" % at, "0", ""
    optional_entries = (function, name) in {("weft_op_apply", "inputs"),
                                            ("weft_tensors_check", "tensors"),
                                            ("weft_tensors_lend", "tensors"),
                                            ("weft_op_apply_phases", "inputs"),
                                            ("weft_op_backward_apply", "forward"),
                                            ("weft_clip_gradient_norm", "tensors"),
                                            ("weft_clip_gradient_value", "tensors"),
                                            ("weft_clip_gradient_norm_wait", "tensors"),
                                            ("weft_fsdp_reduce_begin", "gradients")}
    role = "ROLE_LIST" if kind in LISTS and not optional_entries else "ROLE_INPUT"
    return role, object_of(function, kind, name), "0", ""


def object_of(function, kind, name):
    found = look(OBJECTS, function, name) or OBJECTS.get(kind) or \
        (kind.count("*") == 1 and OBJECTS.get(kind.replace("const ", "")))
    if not found:
        fail(f"{function}: no object for `{kind} {name}`")
    return found


def returned(kind):
    if kind == "void":
        return "RETURNS_NOTHING", "{call};"
    if kind == "weft_status":
        return "RETURNS_STATUS", "answer->status = {call};"
    if kind.endswith("*"):
        return "RETURNS_POINTER", "answer->pointer = {call};"
    return "RETURNS_NUMBER", "answer->number = (int64_t){call};"


def is_optional(function, argument):
    place = (function, argument["name"])
    return argument["nullable"] and place not in NEEDED_HERE and ("null_if" not in argument or place in NULL_HERE)


def write(function, description):
    fills, values, rows = [], [], []
    result = description["returns"]["type"]
    for argument in description["arguments"]:
        kind, name = argument["type"], argument["name"]
        if "*" not in kind and kind not in OBJECTS:  # a type of functions is a pointer too
            values.append(f"sizeof({argument['sizeof']})" if "sizeof" in argument else number(function, kind, name))
            continue
        at = len(rows)
        role, expression, size, struct = pointer(function, result, kind, name, at)
        fills.append(f"    p[{at}] = (uintptr_t){expression};")
        values.append(f"({kind})p[{at}]")
        flag = "true" if is_optional(function, argument) else "false"
        rows.append(f'{{"{name}", "{struct}", {role}, {flag}, {size}}}')
    if description["variadic"]:
        values.append("0")  # unused: the format takes no argument
    if len(rows) > 9:
        fail(f"{function} has {len(rows)} pointers, more than MAX_POINTERS")
    kind, pattern = returned(result)
    print(f"static void fill_{function}(struct world *w, uintptr_t *p)\n{{")
    print("\n".join(["    (void)w, (void)p;"] + fills) + "\n}")
    print(f"static void call_{function}(const uintptr_t *p, struct answer *answer)\n{{")
    print("    (void)p, (void)answer;")
    print("    " + pattern.format(call=f"{function}({', '.join(values)})") + "\n}")
    text = ", ".join(rows) or '{0}'
    return (f'    {{"{function}", {kind}, {VALID.get(function, "WEFT_OK")}, {NOTHING.get(function, "0")}, '
            f"{len(rows)}, {{{text}}},\n     fill_{function}, call_{function}}},")


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        functions = json.load(file)["functions"]
    with open(sys.argv[1], "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        print("/* Written by generate.py. */\n#include \"call_suite.h\"\n")
        table = [write(name, one) for name, one in functions.items()]
        print("\nconst struct function functions[] = {\n" + "\n".join(table) + "\n};")
        print("const size_t function_count = sizeof functions / sizeof *functions;")


main()
