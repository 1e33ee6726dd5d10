#!/usr/bin/env python3
"""Write the description of the public API: describe.py OUT.json VERSION HEADERS...

It reads the headers (headers.py) and adds what C does not say: who owns what, what may be NULL, how many entries an
array has, which threads may call.  That is in the contracts, in these phrases, which docs/api.md lists.  A
declaration that leaves something open is an error that names the phrase to write."""
import json
import pathlib
import re
import sys

import headers

NUMBERS = {"bool", "int", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
           "size_t", "double", "float", "weft_status", "unsigned char"}
LIBRARIES = {"files": "weft_file", "parallel": "weft_parallel", "feed": "weft_feed"}  # by the folder of FOLDER/include/weft/*.h; others are of weft
COUNT_NAME = re.compile(r"(.*_)?(count|axes|dims)")
ENTRIES = re.compile(r"\[([A-Z_, ]+): ([^\[\]]+)\]")


class Incomplete(Exception):
    """A contract that leaves something open."""


class Description:
    def __init__(self):
        self.handles, self.structs, self.enums, self.callbacks = {}, {}, {}, {}
        self.functions, self.constants, self.headers = {}, {}, {}
        self.problems = []

    def add(self, header, library):
        any_thread = "All functions here may be called from any thread" in " ".join(header.text.split())
        c_only = "the bindings for C++ and Python do not have it" in " ".join(header.text.split())
        self.headers[header.name] = {"summary": header.text.split("\n")[0], "text": header.text, "any_thread": any_thread,
                                     "library": library, "c_only": c_only}
        for one in header.declarations:
            getattr(self, "_" + one.kind)(header, one)

    # ---- declarations without arguments ----

    def _number(self, header, one):
        pass  # weft_status, which C's enum cannot give a fixed width

    def _handle(self, header, one):
        self.handles[one.name] = {"header": header.name, "library": self.headers[header.name]["library"], "text": one.comment}

    def _constant(self, header, one):
        self.constants[one.name] = {"header": header.name, "value": one.text, "text": one.comment}

    def _enum(self, header, one):
        values, number = [], -1
        for value in one.values:
            number = self._value(value.number) if value.number else number + 1
            stated = re.match(r'"([^"]+)": ', value.comment)
            prints = value.text or (stated[1] if stated else "")
            values.append({"name": value.name, "value": number, "text": value.comment} | ({"prints": prints} if prints else {}))
        if one.name:
            self.enums[one.name] = {"header": header.name, "text": one.comment, "values": values}
        else:
            for value in values:
                self.constants[value["name"]] = {"header": header.name, "value": str(value["value"]), "text": value["text"]}

    @staticmethod
    def _value(text):
        shifted = re.fullmatch(r"1u? << (\d+)", text)
        return 1 << int(shifted[1]) if shifted else int(text.replace("- ", "-").rstrip("u"), 0)

    def _struct(self, header, one):
        fields = []
        for type_, comment in one.arguments:
            field = {"name": type_.name, "type": type_.c_text(), "text": comment}
            if type_.array:
                field["array"] = type_.array
            if type_.levels or type_.call:
                field["nullable"] = bool(re.search(r"\bNULL\b", comment))
            named = re.match(r"(?:bits of )?enum (weft_\w+)", comment)
            if named and not type_.levels:
                field["enum"] = named[1]
            fields.append(field)
        sized = bool(fields) and fields[0]["name"] == "struct_size"
        self.structs[one.name] = {"header": header.name, "text": one.comment, "sized": sized, "fields": fields}

    def _callback(self, header, one):
        self.callbacks[one.name] = {"header": header.name, "text": one.comment, "returns": one.result.c_text(),
                                    "arguments": [{"name": a.name, "type": a.c_text()} for a in one.arguments]}

    # ---- functions ----

    def _tier(self, header, one):
        return "stable" if self.headers[header.name]["library"] == "weft" and not one.preview else "preview"

    def _function(self, header, one):
        text = " ".join(one.comment.split())
        counts = {name.strip().lower(): count for names, count in ENTRIES.findall(text) for name in names.split(",")}
        made = {"header": header.name, "library": self.headers[header.name]["library"], "tier": self._tier(header, one), "text": one.comment, "section": one.section,
                "any_thread": "[any thread]" in text or self.headers[header.name]["any_thread"],
                "variadic": one.variadic,
                "returns": self._result(one, text + " " + one.section), "arguments": []}
        self.functions[one.name] = made
        for index, argument in enumerate(one.arguments):
            try:
                made["arguments"].append(self._argument(one, index, text, counts))
            except Incomplete as problem:
                self.problems.append(f"{header.name}:{one.line}: {one.name}: `{argument.c_text()} {argument.name}`: {problem}")

    def _result(self, one, text):
        type_ = one.result
        made = {"type": type_.c_text(), "kind": self._plain_kind(type_)}
        if type_.levels and made["kind"] == "handle":
            made["owned"] = one.name.endswith("_retain")
        stated = re.search(r"\[RESULT: ([^\[\]]+)\]", text)
        if stated:
            made["count"] = self._counted(one, stated[1])
        return made

    def _plain_kind(self, type_):
        words, depth = type_.words, len(type_.levels)
        if depth == 0:
            return "nothing" if words == "void" else "status" if words == "weft_status" else \
                "enum" if words.startswith("enum ") else "number" if words in NUMBERS else "struct"
        if words == "char":
            return "text"
        if words == "void":
            return "memory"
        return "handle" if words in self.handles else "struct" if words in self.structs else "array"

    def _argument(self, one, index, text, counts):
        type_ = one.arguments[index]
        made = {"name": type_.name, "type": type_.c_text()}
        kind, direction = self._kind(one, index, counts)
        if direction == "out" and kind in ("number", "enum", "handle") and re.search(rf"\b{type_.name.upper()}\[", text):
            raise Incomplete(self._open_count(type_.name))
        made |= {"kind": kind, "direction": direction}
        if type_.levels or kind == "callback":
            made["nullable"], when = self._nullable(one, index, kind, text)
            if when:
                made["null_if"] = when
        if kind == "handle" and direction == "out":
            made["owned"] = self._owned(text)
        if kind in ("array", "handles", "texts", "memories", "structs"):
            made["count"] = self._count(one, index, counts)
        size = re.search(rf"\b{type_.name.upper()} is sizeof\((weft_\w+)\)", text)
        if size and kind == "number":
            made["sizeof"] = size[1]
        if kind == "memory" and type_.name in counts:
            made["bytes"] = self._counted(one, counts[type_.name])
        return made

    def _kind(self, one, index, counts):
        """(kind, direction) of an argument."""
        type_ = one.arguments[index]
        words, depth = type_.words, len(type_.levels)
        constant = depth > 0 and type_.levels[0]
        if type_.call or words in self.callbacks:
            return "callback", "in"
        if depth == 0:
            return ("enum" if words.startswith("enum ") else "number" if words in NUMBERS else "struct"), "in"
        if words == "void":
            if depth == 1:
                return ("user" if type_.name in ("user", "argument") else "memory"), "in" if constant else "in out"
            return ("memory", "out") if type_.levels == [False, False] else ("memories", "in")
        if words == "char":
            if depth == 2:
                return ("texts", "in") if type_.levels[1] else ("text", "out")
            return ("text", "in") if constant else ("buffer", "out")
        if words in self.handles:
            if depth == 1:
                return "handle", "in"
            if type_.levels[1]:
                return "handles", "in"
            if re.search(r"_(release|close)$", one.name):
                return "handle", "released"
            return ("handles" if type_.name in counts else "handle"), "out"
        if words in self.structs:
            sized = self.structs[words]["sized"]
            if depth == 1 and sized:
                return "struct", "in" if constant else "out"
            if depth == 2:
                before = [argument.name for argument in one.arguments[index - 1:index] if argument.levels]
                return ("structs" if type_.levels[0] and before == ["count"] else "struct"), "out"
            kind = "structs" if type_.name.endswith("s") else "struct"
            return kind, "in" if constant else "out" if kind == "structs" or type_.name == "out" else "in out"
        if words in NUMBERS or words.startswith("enum "):
            if constant:
                return "array", "in"
            if type_.name not in counts and re.search(rf"\b{type_.name.upper()}\[", one.comment):
                raise Incomplete(f"say how many entries it has: write `[{type_.name.upper()}: COUNT entries]`")
            return "array" if type_.name in counts else "enum" if words.startswith("enum ") else "number", "out"
        raise Incomplete(f"`{words}` is not declared in a header")

    @staticmethod
    def _nullable(one, index, kind, text):
        """May the argument be NULL, and, if only sometimes, when?"""
        type_ = one.arguments[index]
        if kind == "user" or type_.words == "weft_stream" and len(type_.levels) == 1 and index > 0:
            return True, ""  # the default stream of another object; a stream that comes first is the object
        if index >= 2 and (one.arguments[index - 2].name, type_.name) == ("text", "needed"):
            return True, ""
        name = type_.name.upper()
        if re.search(rf"\b([Uu]nless {name} is|If {name} is not) NULL", text):
            return True, ""
        found = re.search(rf"\b(?:[A-Z_]+ and )?{name}(?: and [A-Z_]+)? may be NULL(?: if ([^.;]*))?", text)
        return found is not None, found[1] or "" if found else ""

    @staticmethod
    def _owned(text):
        if re.search(r"[Tt]he caller (then )?(releases|closes|frees)", text):
            return True
        if re.search(r"[Bb]orrowed", text):
            return False
        raise Incomplete("say who owns it: write `The caller releases *OUT.` or `*OUT is borrowed`")

    def _count(self, one, index, counts):
        name = one.arguments[index].name
        if name in counts:
            return self._counted(one, counts[name])
        found = len(one.arguments[index].levels) == 2 and one.arguments[index].words in self.structs  # the function sets both
        for near in (index - 1, index + 1):
            if 0 <= near < len(one.arguments) and COUNT_NAME.fullmatch(one.arguments[near].name) and \
                    bool(one.arguments[near].levels) == found:
                return {"argument": one.arguments[near].name}
        raise Incomplete(self._open_count(name))

    @staticmethod
    def _open_count(name):
        return (f"say how many entries it has: write `[{name.upper()}: COUNT entries]`, where COUNT is an argument in capitals, "
                "a constant, or `one per axis of MESH` and the like")

    def _counted(self, one, text):
        """The number of entries that a marker states: an argument, a constant, the answer of a function, or words."""
        names = {argument.name: argument for argument in one.arguments}
        entries = re.fullmatch(r"(?:at most )?(\w+) entries", text)
        if entries and entries[1].lower() in names:
            return {"argument": entries[1].lower()}
        if entries and (entries[1] in self.constants or any(entries[1] == value["name"] for enum in self.enums.values()
                                                            for value in enum["values"])):
            return {"constant": entries[1]}
        calls = re.findall(r"(weft_\w+)\(([A-Z_, ]+)\)", text)
        if calls:
            return {"sum": [{"call": name, "with": given.lower().split(", ")} for name, given in calls]}
        field = re.fullmatch(r"(\w+)->(\w+) entries", text)
        if field and field[1] in names:
            return {"field": field[2], "of": field[1]}
        each = re.fullmatch(r"one per (axis|dimension|rank|parameter|expert) of ([A-Z]+)", text)
        if each and each[2].lower() in names:
            kind = names[each[2].lower()].words
            word = {"axis": "axes", "dimension": "dims", "rank": "size"}.get(each[1], "count")
            return {"function": f"{kind}_{word}", "of": each[2].lower()}
        return {"words": text}

    def finish(self):
        for name, one in self.functions.items():
            for argument in one["arguments"]:
                if argument["direction"] == "released":
                    self.handles[argument["type"].split()[0]]["release"] = name
            if one["returns"].get("owned"):
                self.handles[one["returns"]["type"].split()[0]]["retain"] = name

    def json(self, version):
        return {"format": 1, "version": version, "headers": self.headers, "constants": self.constants, "enums": self.enums,
                "handles": self.handles, "structs": self.structs, "callbacks": self.callbacks, "functions": self.functions}


def describe(paths):
    made = Description()
    # Types first: a header may use a type that a later one declares.
    parsed = [headers.Header(path.name, path.read_text(encoding="utf-8")) for path in paths]
    libraries = [LIBRARIES.get(path.resolve().parents[2].name, "weft") for path in paths]
    for header in parsed:
        for one in header.declarations:
            if one.kind == "handle":
                made.handles[one.name] = {}
            elif one.kind == "struct":
                made.structs[one.name] = {"sized": bool(one.arguments) and one.arguments[0][0].name == "struct_size"}
            elif one.kind == "callback":
                made.callbacks[one.name] = {}
            elif one.kind == "constant":
                made.constants[one.name] = {}
    for header, library in zip(parsed, libraries):
        made.add(header, library)
    made.finish()
    return made


def main():
    out, version, *paths = sys.argv[1:]
    try:
        made = describe([pathlib.Path(path) for path in paths])
    except headers.Unreadable as problem:
        sys.exit(str(problem))
    if made.problems:
        sys.exit("\n".join(made.problems))
    pathlib.Path(out).write_text(json.dumps(made.json(version), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
