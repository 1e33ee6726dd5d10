"""Which member of which class each function of the description becomes.

A function belongs to the class of the handle whose name begins its own (`weft_mesh_slice`: Mesh), otherwise to the class
of its first handle.  A function that makes such a handle from other things is a class method; the others are methods, and
those that only answer a question about the object are properties."""
import dataclasses
import re

CONSTRUCTORS = ("create", "open", "parse", "record")  # the first that a class has is Class(...)


@dataclasses.dataclass
class Member:
    function: str  # of C
    one: dict  # its description
    handle: str  # of its class; "": a function of the module
    name: str  # in Python
    kind: str  # method, property, class method, constructor, function, str, hash
    self_index: int  # the argument that is self; -1: none
    public: str = ""  # where users find what it does, if it is private


def words_without(name, prefix):
    """`fsdp_unshard_begin` without the words that it shares with `fsdp_group`."""
    have, common = name.split("_"), prefix.split("_")
    while have and common and have[0] == common[0] and len(have) > 1:
        have, common = have[1:], common[1:]
    return "_".join(have)


def handles_in(one):
    """(index, handle) of the arguments that are single handles."""
    for index, argument in enumerate(one["arguments"]):
        if argument["kind"] == "handle" and argument["direction"] in ("in", "released"):
            yield index, argument["type"].replace("const ", "").split(" ")[0]


def handle_out(one):
    for argument in one["arguments"]:
        if argument["kind"] == "handle" and argument["direction"] == "out" and argument.get("owned"):
            return argument["type"].split(" ")[0]
    return ""


def owner_of(name, one):
    """(handle, index of self) of a function; index -1: a class method or a function of the module."""
    inputs = list(handles_in(one))
    made = handle_out(one)
    starts = [(len(handle), index, handle) for index, handle in inputs if name.startswith(handle + "_")]
    if made and name.startswith(made + "_") and made not in [handle for _, handle in inputs]:
        return made, -1
    if starts:
        _, index, handle = max(starts, key=lambda start: (start[0], -start[1]))
        return handle, index
    inputs = [(index, handle) for index, handle in inputs if handle != "weft_stream"]  # an option of the call
    return (inputs[0][1], inputs[0][0]) if inputs else ("", -1)


def member_of(name, one, wanted=""):
    """The member that a function becomes; of the class of the handle WANTED, if it is given."""
    handle, index = owner_of(name, one)
    if wanted:
        handle, index = wanted, next(position for position, found in handles_in(one) if found == wanted)
    short = name.removeprefix("weft_")
    if not handle:
        return Member(name, one, "", short, "function", -1)
    short = words_without(short, handle.removeprefix("weft_"))
    if index < 0:
        return Member(name, one, handle, short, "class method", -1)
    stated = [a for position, a in enumerate(one["arguments"]) if position != index and a["direction"] in ("in", "in out")
              and not a["type"].startswith(("weft_context *", "const weft_context *"))]
    outs = [a for a in one["arguments"] if a["direction"] == "out"]
    asked = [a for a in stated if one["arguments"][one["arguments"].index(a) - 1]["kind"] != "buffer"  # not its size
             and not a["type"].startswith("weft_stream *")]
    if short == "print" and not asked and [a["kind"] for a in outs] == ["buffer", "number"]:
        return Member(name, one, handle, "__str__", "str", index)
    if short == "hash":
        return Member(name, one, handle, "__hash__", "hash", index)
    if re.search(r"(^|_)get$", short) and not stated and len(outs) == 1 and outs[0]["kind"] == "struct":
        return Member(name, one, handle, "info" if short == "get" else short.removesuffix("_get"), "property", index)
    short = re.sub(r"_get$", "", short)
    short = re.sub(r"_print$", "", short)
    answers = one["returns"]["kind"] not in ("status", "nothing")
    kind = "property" if answers and not stated and not outs else "method"
    return Member(name, one, handle, short, kind, index)
