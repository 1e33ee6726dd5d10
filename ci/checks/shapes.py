#!/usr/bin/env python3
"""Equal things have equal shapes in all public headers: the table "Shapes of functions" of docs/api.md.

It reads the description of the API (api/describe.py).  weft_plugin.h has the shapes of the plugin ABI, and dlpack.h those
of DLPack.  It first checks itself: each rule finds a function or struct that breaks it."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOREIGN = ("weft_plugin.h", "dlpack.h")
VALUES = {"weft_placement", "weft_shard", "weft_index_run", "weft_intersection", "weft_segment", "weft_symm_device",
          "weft_checkpoint_pair"}  # never grow
WRITTEN_WHOLE = VALUES | {"weft_open_record", "weft_pipeline_values"}  # outputs without struct_size
ABOUT_STREAMS = {"weft_context_wait", "weft_stream_set_name"}  # the stream is what they are about, and may be the default one
WITH_CALL = {"weft_dependent_calls"}  # the user is an argument beside the struct
PADDING = re.compile(r"(_?pad(ding)?\d*|zero|unused|spare|previous|filler)$")
FLAG = re.compile(r"\b(1 if|1: yes|nonzero if|not 0 if)\b")
POINTED = re.compile(r"const (weft_\w+) \*$")


def api(folder=ROOT):
    headers = sorted(folder.glob("*/include/weft/*.h"))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, ROOT / "api/describe.py", out.name, "0", *headers], check=True)
        return json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))


# ---- functions ----

def counts(name, function, _):
    """Counts are size_t before their array, the size of an element behind it; indices are size_t."""
    arguments = function["arguments"]
    names = [one["name"] for one in arguments]
    for at, one in enumerate(arguments):
        if one["name"] == "index" and one["type"] not in ("size_t", "size_t *"):
            yield f"{one['name']} is {one['type']}, not size_t"
        count = one.get("count", {}).get("argument")
        if count is None or count not in names:
            continue
        number = arguments[names.index(count)]
        if count not in ("axes", "dims") and number["type"].replace(" *", "") != "size_t":
            yield f"{count} is {number['type']}, not size_t"
        if names.index(count) > at and number["direction"] == "in":
            yield f"{count} stands behind {one['name']}"
        struct = one["type"].replace("const ", "").split()[0]
        sized = at + 1 < len(arguments) and arguments[at + 1].get("sizeof") == struct
        if one["kind"] == "structs" and struct not in VALUES and not sized:
            yield f"the size of an element does not follow {one['name']}"


def outputs_last(name, function, _):
    """What a function writes stands behind its inputs, a stream behind the other inputs, and a work at the end."""
    arguments = function["arguments"]
    is_posted = bool(arguments) and arguments[-1]["type"] == "weft_work **"
    room = {"size", "output_count"} | {one.get("count", {}).get("argument") for one in arguments if one["direction"] == "out"}
    written = stream = None
    for at, one in enumerate(arguments):
        is_output = one["direction"] == "out" and not is_posted
        if one["direction"] == "in" and one["name"] not in room and "sizeof" not in one:
            if written:
                yield f"{one['name']} stands behind {written}, which the function writes"
            if stream:
                yield f"{one['name']} stands behind {stream}"
        if is_output:
            written = written or one["name"]
        if one["type"] == "weft_stream *" and at > 0 and name not in ABOUT_STREAMS:
            stream = one["name"]


def texts(name, function, _):
    """Text comes out as `weft_..._print(object, char *text, size_t size, size_t *needed)`."""
    arguments = [(one["type"].replace(" ", ""), one["name"]) for one in function["arguments"]]
    if any(type_ == "char*" for type_, _ in arguments):
        if arguments[-3:] != [("char*", "text"), ("size_t", "size"), ("size_t*", "needed")]:
            yield "a text comes out as text, size, needed at the end"
        if not name.endswith("_print") or function["returns"]["kind"] != "status":
            yield "a function that writes a text is called _print and returns a status"
    elif name.endswith("_print"):
        yield "a function _print writes a text"


def users(name, function, described):
    """A callback has a named type; the caller's pointer is `user`, right behind it, and no other input but a stream follows."""
    arguments = function["arguments"]
    for at, one in enumerate(arguments):
        if one["kind"] != "callback":
            continue
        if "(*)" in one["type"]:
            yield f"the type of {one['name']} has no name"
        if at + 1 == len(arguments) or (arguments[at + 1]["name"], arguments[at + 1]["type"]) != ("user", "void *"):
            yield f"`void *user` does not follow {one['name']}"
        for later in arguments[at + 2:]:
            if later["direction"] == "in" and later["type"] != "weft_stream *" and later["name"] not in ("output", "output_count"):
                yield f"{later['name']} stands behind `user`"


def options(name, function, described):
    """Options are `options`, a struct with struct_size."""
    for one in function["arguments"]:
        struct = re.fullmatch(r"const (weft_\w+_options) \*", one["type"])
        if struct is None:
            continue
        if one["name"] != "options":
            yield f"{one['name']} is not `options`"
        if not described["structs"][struct[1]]["sized"]:
            yield f"{struct[1]} has no struct_size"


def information(name, function, described):
    """A function _get writes a struct of information, which has struct_size."""
    last = function["arguments"][-1] if function["arguments"] else {"type": ""}
    struct = re.fullmatch(r"(weft_\w+) \*", last["type"])
    if name.endswith("_get") and struct and struct[1] in described["structs"] and struct[1] not in WRITTEN_WHOLE \
            and not described["structs"][struct[1]]["sized"]:
        yield f"{struct[1]} has no struct_size"


# ---- structs and types of callbacks ----

def fields(name, struct, described):
    """Counts are size_t before their array with the size of an element; yes or no is bool; padding is `reserved`."""
    listed = struct["fields"]
    passed = ("user", "void *") in [(one["name"], one["type"]) for one in listed]
    for at, one in enumerate(listed):
        where = f"{one['name']}: "
        if re.search(r"(^|_)count$", one["name"]) and one["type"] not in ("size_t", "double") and name != "weft_overlap_rows":
            yield where + f"{one['type']}, not size_t"
        if re.fullmatch(r"u?int(8|16|32)_t", one["type"]) and FLAG.search(one["text"]):
            yield where + "yes or no is bool"
        if PADDING.fullmatch(one["name"]):
            yield where + "padding is called reserved"
        array = POINTED.match(one["type"])
        counted = re.search(r"\[(\w+) entries\]", one["text"])
        if counted and counted[1] not in [other["name"] for other in listed[:at + 1]] and not re.search(r"->", one["text"]):
            yield where + f"{counted[1]} does not stand before it"
        if array and array[1] in described["structs"] and array[1] not in VALUES and at > 0 \
                and (counted or listed[at - 1]["name"].endswith("count")) and listed[at - 1]["type"] == "size_t":
            near = [other["name"] for other in listed[max(0, at - 4):at + 4]]
            if not any(near_name.endswith("_size") for near_name in near):
                yield where + "the size of an element is not beside it"
        if "(*)" in one["type"] or one["type"] in described["callbacks"]:
            if not passed and name not in WITH_CALL:
                yield where + "the struct has no `void *user` for it"
        if "(*)" in one["type"]:
            yield from first_user(where, re.search(r"\(\*\)\((.*)\)", one["type"])[1].split(", "), None)


def first_user(where, types, names):
    if not types or types[0] != "void *" or names and names[0] != "user":
        yield where + "its first argument is not `void *user`"


def callbacks(name, callback, _):
    """A function of the program gets `void *user` first."""
    yield from first_user("", [one["type"] for one in callback["arguments"]], [one["name"] for one in callback["arguments"]])


def words(name, _, __):
    """One word for one thing: gradient, never grad."""
    if re.search(r"(^|_)grads?(_|$)", name):
        yield "the word is gradient"


RULES = {"functions": (counts, outputs_last, texts, users, options, information, words), "structs": (fields, words),
         "callbacks": (callbacks, words), "enums": (words,), "handles": (words,)}


def problems(described):
    for kind, rules in RULES.items():
        for name, one in described[kind].items():
            if one.get("header") not in FOREIGN:
                for rule in rules:
                    yield from (f"{one.get('header')}: {name}: {problem}" for problem in rule(name, one, described))


WRONG = """/* wrong.h - each of these breaks a rule. */
typedef struct weft_wrong weft_wrong;
typedef void (*weft_wrong_sink)(int32_t level, void *user);
typedef struct weft_wrong_item {
    int32_t x;
} weft_wrong_item;
typedef struct weft_wrong_info {
    int32_t zero;
    uint32_t is_open; /* 1 if it is open */
    uint32_t item_count;
    const weft_wrong_item *items; /* [item_count entries] */
    size_t other_count;
    const weft_wrong_item *others; /* [other_count entries] */
} weft_wrong_info;
typedef struct weft_wrong_options {
    int32_t x;
} weft_wrong_options;
/* [RANKS: COUNT entries] */
WEFT_API weft_status weft_wrong_grad(const weft_wrong *wrong, const int32_t *ranks, int32_t count);
/* [ITEMS: COUNT entries] */
WEFT_API weft_status weft_wrong_add(weft_wrong *wrong, size_t count, const weft_wrong_item *items);
WEFT_API weft_status weft_wrong_get(const weft_wrong *wrong, int32_t index, weft_wrong_info *out);
/* The caller releases *OUT. */
WEFT_API weft_status weft_wrong_create(weft_wrong **out, const weft_wrong_options *how);
WEFT_API weft_status weft_wrong_text(const weft_wrong *wrong, char *buffer, size_t capacity);
WEFT_API weft_status weft_wrong_call(weft_wrong *wrong, void (*sink)(void *user), void *argument);
WEFT_API weft_status weft_wrong_visit(weft_wrong *wrong, void (*sink)(void *user), void *user, int32_t late);
"""
FOUND = ["ranks, int32_t count", "size of an element does not follow items", "index is int32_t", "stands behind out",
         "is not `options`", "weft_wrong_options has no struct_size", "weft_wrong_info has no struct_size",
         "text, size, needed", "is called _print", "has no name", "does not follow sink", "late stands behind `user`", "item_count: uint32_t",
         "yes or no is bool", "called reserved", "others: the size of an element", "first argument is not", "the word is gradient"]


def blind():
    """What the rules ought to find in WRONG, and do not."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "core/include/weft/wrong.h"
        path.parent.mkdir(parents=True)
        path.write_text(WRONG, encoding="utf-8")
        found = "\n".join(problems(api(pathlib.Path(folder))))
    found += "\nranks, int32_t count" if "count is int32_t" in found and "count stands behind ranks" in found else ""
    return [text for text in FOUND if text not in found]


def main():
    described = api()
    found = list(problems(described)) + [f"shapes.py does not find: {text}" for text in blind()]
    for problem in found:
        print(problem)
    if not found:
        print(f"shapes: {len(described['functions'])} functions, {len(described['structs'])} structs and "
              f"{len(described['callbacks'])} callbacks have the shapes of docs/api.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
