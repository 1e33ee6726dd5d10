#!/usr/bin/env python3
"""test_foreign.py DESCRIPTION.json FOLDER - call the libraries in FOLDER from a foreign language, by the description alone.

A function whose arguments are handles, numbers, enumerations, texts, buffers for texts, options and information is
called through ctypes.  Types, directions and ownership come from the description; this file has sample texts and
numbers only."""
import ctypes
import glob
import json
import os
import sys
import tempfile
import unittest

with open(sys.argv[1], encoding="utf-8") as description_file:
    DESCRIPTION = json.load(description_file)
LIBRARIES = {name: ctypes.CDLL(os.path.join(sys.argv[2], f"lib{name}.so"))
             for name in sorted({one["library"] for one in DESCRIPTION["functions"].values()})}

NUMBERS = {"bool": ctypes.c_bool, "double": ctypes.c_double, "float": ctypes.c_float, "int": ctypes.c_int,
           "size_t": ctypes.c_size_t, "weft_status": ctypes.c_int32}
for _bits in (8, 16, 32, 64):
    NUMBERS[f"int{_bits}_t"] = getattr(ctypes, f"c_int{_bits}")
    NUMBERS[f"uint{_bits}_t"] = getattr(ctypes, f"c_uint{_bits}")

# Texts by (function, argument); the others get "0", which names the first axis.
TEXTS = {
    ("weft_mesh_parse", "text"): "dp=1,tp=1", ("weft_mesh_parse_for", "text"): "dp=*", ("weft_spec_parse", "text"): "f32[4,8] S(0),R",
    ("weft_spec_with", "placements"): "R,S(1)", ("weft_spec_with_mesh", "placements"): "R,R",
    ("weft_cost_table_open", "name"): "cpu", ("weft_dtype_parse", "text"): "f32",
    ("weft_schedule_create", "name"): "1f1b", ("weft_schedule_parse", "text"): "0F0,0B0",
    ("weft_layout_file_parse", "text"): "mesh dp=1,tp=1\n* R,R", ("weft_checkpoint_rules_parse", "text"): "* = *",
    ("weft_styles_parse", "text"): "mesh 1\n* 0 R", ("weft_graph_parse", "text"): "mesh 1\ninput x f32[4]",
    ("weft_model_parse", "text"): "model gpt layers=2 hidden=8 heads=2 vocabulary=9", ("weft_model_is_text", "text"): "model gpt",
    ("weft_graph_unmatched_print", "styles_text"): "mesh 1\n* 0 R", ("weft_op_rules_print", "rules"): "mm: a[m] -> b[m]",
    ("weft_op_register", "text"): "foreign: a[i] -> b[i]", ("weft_op_replace", "text"): "foreign: a[i] -> b[i]",
    ("weft_mesh_flatten", "axes"): "dp,tp", ("weft_mesh_flatten", "name"): "all", ("weft_checkpoint_open", "path"): "absent",
    ("weft_layout_file_open", "path"): "/dev/null", ("weft_checkpoint_rules_open", "path"): "/dev/null",
    ("weft_checkpoint_rules_parse", "values"): "", ("weft_checkpoint_rules_open", "values"): "", ("weft_cost_table_parse", "text"): "",
    ("weft_fsdp_shard_spec", "axes"): "tp", ("weft_op_print", "name"): "mm", ("weft_op_meaning_print", "name"): "mm", ("weft_op_remove", "name"): "foreign",
}
# Numbers by argument; the others are 0.
SAMPLES = {"ranks": 2, "microbatches": 4, "bytes": 64, "size": 1, "length": 1, "dim": 0, "b": 1,
           "high": 1, "deviation": 1, "timeout_ns": -1}
# What these samples cannot do.
ERRORS = {
    "weft_checkpoint_open": "WEFT_ERR_NOT_FOUND",  # no such file
    "weft_context_grow": "WEFT_ERR_INVALID",  # the job is not elastic
    "weft_context_next": "WEFT_ERR_INVALID",  # the job is not elastic
    "weft_cost_table_parse": "WEFT_ERR_PARSE", "weft_layout_file_open": "WEFT_ERR_PARSE",  # an empty text
    "weft_graph_layout_print": "WEFT_ERR_INVALID", "weft_graph_unmatched_print": "WEFT_ERR_INVALID",  # no styles
    "weft_mesh_concatenate": "WEFT_ERR_INVALID",  # a mesh with itself
    "weft_op_use_remove": "WEFT_ERR_NOT_FOUND",  # nobody registered it
    "weft_plan_create_runner_up": "WEFT_ERR_NOT_FOUND",  # a plan from a layout to itself has no step
    "weft_plan_measure_step": "WEFT_ERR_INVALID", "weft_plan_step_get": "WEFT_ERR_INVALID",
    "weft_record_counts_axes_get": "WEFT_ERR_INVALID",  # no data travelled
}
# These end or stop what the others use.
LAST = ["weft_move_clear", "weft_comm_abort", "weft_context_abort"]
KINDS = {"handle", "number", "enum", "text", "buffer", "struct"}


class Struct(ctypes.Structure):
    """Any struct that begins with struct_size: large enough, and zero."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("rest", ctypes.c_char * 4096)]


def is_simple(function):
    if function["variadic"] or function["returns"]["kind"] == "struct":
        return False
    for argument in function["arguments"]:
        sized = DESCRIPTION["structs"].get(argument["type"].replace("const", "").replace("*", "").strip(), {}).get("sized")
        if argument["kind"] not in KINDS or argument["kind"] == "struct" and not (sized and argument["type"].count("*") == 1):
            return False
        if argument["kind"] == "struct" and argument["direction"] == "in" and not argument["nullable"]:
            return False
        if argument["type"] == "char *" and argument["name"] != "text":
            return False
    return True


def words(argument):
    return argument["type"].replace("const", "").replace("*", "").strip()


class Foreign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # for what functions write
        cls.addClassCleanup(folder.cleanup)
        os.chdir(folder.name)
        os.environ["XDG_RUNTIME_DIR"] = folder.name  # the recorder of this process is the only one there
        cls.pool = {}  # type -> handle
        cls.owned = []  # (type, handle), in order
        cls.called = {}
        cls.simple = {name: one for name, one in DESCRIPTION["functions"].items() if is_simple(one)}
        begin = ["weft_init", "weft_world", "weft_mesh_parse", "weft_spec_parse", "weft_tensor_create",
                 "weft_stream_create", "weft_work_record", "weft_work_wait"]
        rest = [name for name in cls.simple if name not in begin and name not in LAST and not cls.releases(name)]
        for name in begin:
            cls.call(name)
        (recorder,) = glob.glob(os.path.join(folder.name, "weft", "*"))
        TEXTS["weft_recorder_open", "path"] = recorder
        for name in ["weft_recorder_open"] + rest + rest:  # twice: some need what a later one makes
            cls.call(name)
        cls.without = [name for name in rest if name not in cls.called]
        for name in cls.without:
            cls.call(name, True)
        for name in LAST:
            cls.call(name)
        for kind, handle in reversed(cls.owned):
            cls.release(kind, handle)

    @classmethod
    def releases(cls, name):
        return any(argument["direction"] == "released" for argument in cls.simple[name]["arguments"])

    @classmethod
    def release(cls, kind, handle):
        name = DESCRIPTION["handles"][kind]["release"]
        function = getattr(LIBRARIES[DESCRIPTION["functions"][name]["library"]], name)
        pointer = ctypes.c_void_p(handle)
        arguments = [ctypes.byref(pointer) if argument["direction"] == "released" else None
                     for argument in DESCRIPTION["functions"][name]["arguments"]]
        function.restype = None
        function(*arguments)
        cls.called[name] = "released" if pointer.value is None else "kept"

    @classmethod
    def call(cls, name, with_null=False):
        if name in cls.called:
            return
        description = cls.simple[name]
        values, made = [], []
        for argument in description["arguments"]:
            value = cls.value(name, argument, made)
            if value is NotImplemented and not with_null:
                return  # its handle does not exist yet
            values.append(None if value is NotImplemented else value)
        function = getattr(LIBRARIES[DESCRIPTION["functions"][name]["library"]], name)
        kind = description["returns"]["kind"]
        function.restype = {"nothing": None, "status": ctypes.c_int32, "text": ctypes.c_char_p, "enum": ctypes.c_int,
                            "number": NUMBERS.get(description["returns"]["type"])}.get(kind, ctypes.c_void_p)
        result = function(*values)
        cls.called[name] = result
        if kind == "status" and result == 0:
            for argument, pointer in made:
                cls.keep(words(argument), pointer.value, argument["owned"])
        elif kind == "handle" and result:
            cls.keep(words({"type": description["returns"]["type"]}), result, description["returns"]["owned"])

    @classmethod
    def keep(cls, kind, handle, owned):
        cls.pool.setdefault(kind, handle)
        if owned and handle:
            cls.owned.append((kind, handle))

    @classmethod
    def value(cls, name, argument, made):
        kind, direction = argument["kind"], argument["direction"]
        if kind == "handle" and direction == "out":
            made.append((argument, ctypes.c_void_p()))
            return ctypes.byref(made[-1][1])
        if kind == "handle":
            handle = cls.pool.get(words(argument))
            if handle is None:
                return None if argument["nullable"] else NotImplemented
            return ctypes.c_void_p(handle)
        if kind in ("number", "enum"):
            type_ = NUMBERS.get(words(argument), ctypes.c_int)
            return ctypes.byref(type_()) if direction == "out" else type_(SAMPLES.get(argument["name"], 0))
        if kind == "text":
            if direction == "out":
                return ctypes.byref(ctypes.c_char_p())
            return TEXTS.get((name, argument["name"]), "0").encode()
        if kind == "buffer":
            return ctypes.create_string_buffer(64)
        if argument["nullable"] and direction == "in":
            return None
        value = Struct()
        value.struct_size = ctypes.sizeof(Struct)  # more than weft knows: it fills in what it has
        return ctypes.byref(value)

    def test_every_simple_function_was_called(self):
        missing = sorted(name for name in self.simple if name not in self.called and not self.releases(name))
        self.assertEqual(missing, [])

    def test_every_status_is_one_of_weft(self):
        known = {value["value"] for value in DESCRIPTION["enums"]["weft_status_code"]["values"]}
        for name, result in self.called.items():
            if DESCRIPTION["functions"][name]["returns"]["kind"] == "status":
                self.assertIn(result, known, name)

    def test_functions_succeed(self):
        names = {value["value"]: value["name"] for value in DESCRIPTION["enums"]["weft_status_code"]["values"]}
        failed = {name: names[result] for name, result in self.called.items() if name not in self.without
                  and DESCRIPTION["functions"][name]["returns"]["kind"] == "status" and result < 0}
        self.assertEqual(failed, ERRORS)

    def test_a_missing_handle_is_refused(self):
        for name in self.without:
            if DESCRIPTION["functions"][name]["returns"]["kind"] == "status":
                self.assertEqual(self.called[name], -1, name)  # WEFT_ERR_INVALID

    def test_every_owned_handle_was_released(self):
        for kind, _ in self.owned:
            self.assertEqual(self.called[DESCRIPTION["handles"][kind]["release"]], "released", kind)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
