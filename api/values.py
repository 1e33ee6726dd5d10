"""The rows of the tables of bindings/python/src/call.h: one per argument of a function or field of a struct."""
import dataclasses
import keyword
import re

NUMBERS = {"bool": "BOOL", "uint8_t": "U8", "int32_t": "I32", "int": "I32", "weft_status": "I32", "uint32_t": "U32", "int64_t": "I64",
           "uint64_t": "U64", "size_t": "SIZE", "double": "F64"}
MEMBERS = {"BOOL": "flag", "U8": "u8", "I32": "i32", "U32": "u32", "I64": "i64", "U64": "u64", "SIZE": "size", "F64": "f64",
           "TIMEOUT": "i64", "ENUM": "i32", "BITS": "u32"}
RENAMED = {"from": "source", "to": "target", "buffer": "array"}


class Undecided(Exception):
    """A person must decide how Python passes this; the text says what."""


@dataclasses.dataclass
class Row:
    name: str  # in Python; "": Python does not state it
    kind: str
    c_name: str = ""
    element: str = "BOOL"
    is_optional: bool = False
    is_out: bool = False
    is_owned: bool = False
    is_pointer: bool = False
    of: int = -1
    offset: str = ""
    length: str = ""
    handle: str = ""
    enum: str = ""
    record: str = ""
    count: str = ""
    c_type: str = ""
    facts: dict = dataclasses.field(default_factory=dict)

    def is_pointer_or_null(self):
        """Of a field: may it be NULL?"""
        return bool(self.facts.get("nullable"))

    def c_text(self):
        parts = [f'.name = "{self.name}"' if self.name else "", f".kind = VALUE_{self.kind}",
                 f".element = VALUE_{self.element}" if self.kind in ("LIST", "COUNT") or self.element == "U8" else ""]
        parts += [f".{flag} = 1" for flag in ("is_optional", "is_out", "is_owned", "is_pointer") if getattr(self, flag)]
        parts.append(f".of = {self.of}" if self.of >= 0 or self.kind == "LIST" else "")
        parts.append(f".offset = {self.offset}" if self.offset else "")
        parts.append(f".length = {self.length}" if self.length else "")
        parts.append(f".handle = &class_{self.handle}" if self.handle else "")
        parts.append(f".choices = &choices_{self.enum}" if self.enum else "")
        parts.append(f".record = &record_{self.record}" if self.record else "")
        parts.append(f".count = {c_counter(self.count)}" if self.count else "")
        return "{" + ", ".join(part for part in parts if part) + "}"


def c_counter(count):
    """The C function that returns a count; `->` begins the name of a field."""
    return count.replace("->", "_")


def python_name(name):
    name = RENAMED.get(name, name)
    return name + "_" if keyword.iskeyword(name) else name


def base_of(c_type):
    """`const weft_spec *const *` -> weft_spec."""
    return re.sub(r"\bconst\b|\*", " ", c_type).replace("enum ", "").replace("unsigned char", "uint8_t").split()[0]


class Maker:
    def __init__(self, description, left_out=()):
        self.api, self.left_out = description, left_out  # names `struct.field` that Python does not set
        self.records = {}  # name -> rows; those that functions use
        self.enums = set()

    # ---- structs ----

    def record(self, name, out, skip=False):
        """The rows of a struct, for reading or for a result; raises Undecided, unless it is to SKIP such fields."""
        key = name + ("_out" if out else "_in")
        if key not in self.records:
            fields = self.api["structs"][name]["fields"]
            self.records[key] = [self.field_or_none(name, fields, index, out, skip) for index in range(len(fields))]
            for row in self.records[key]:
                if row.kind == "LIST" and row.of >= 0:
                    counter = self.records[key][row.of]
                    if counter.kind != "COUNT":
                        counter.name, counter.kind, counter.element = "", "COUNT", counter.kind
        return key

    def field_or_none(self, struct, fields, index, out, skip):
        if not out and f"{struct}.{fields[index]['name']}" in self.left_out:
            return Row("", "UNUSED")
        try:
            row = self.field(struct, fields, index, out)
        except Undecided:
            if not skip:
                raise
            row = Row("", "UNUSED")
        return Row("", "UNUSED") if skip and row.kind == "ADDRESS" else row

    def field(self, struct, fields, index, out):
        field = fields[index]
        name = RENAMED.get(field["name"], field["name"]) if out else python_name(field["name"])
        row = Row(name, "UNUSED", field["name"], offset=f"offsetof({struct}, {field['name']})", is_out=out,
                  facts=field)
        c_type, base = field["type"], base_of(field["type"])
        pointers = c_type.count("*")
        if field["name"] in ("struct_size", "zero") or field["name"].startswith("reserved"):
            row.name = ""
            return row
        if "(*)" in c_type or base in self.api["callbacks"]:
            raise Undecided(f"`{struct}.{field['name']}` is a callback")
        row.is_optional = True
        if "array" in field:
            return self.array_field(row, struct, fields, field, base, out)
        if pointers == 0:
            return self.plain_field(row, struct, field, base, out)
        if base == "char" and pointers == 1:
            row.kind = "PATH" if field["name"] == "path" else "TEXT"
        elif base == "void":
            row.kind = "ADDRESS"
        elif base == "weft_stream" and not out:
            row.kind = "STREAM"
        elif base in self.api["handles"] and pointers == 1:
            row.kind, row.handle = "HANDLE", base
        elif base in self.api["structs"] and out and field["name"][-1:] != "s":
            row.kind, row.record, row.is_pointer = "RECORD", self.record(base, out), True
        else:
            self.list_field(row, struct, fields, index, base, pointers, out)
        return row

    def plain_field(self, row, struct, field, base, out):
        if field.get("enum"):
            row.kind = "BITS" if field["text"].startswith("bits of") else "ENUM"
            row.enum, row.element = field["enum"], NUMBERS[base]
            self.enums.add(row.enum)
        elif field["name"].endswith("timeout_ns"):
            row.kind, row.name, row.is_optional = "TIMEOUT", row.name.removesuffix("_ns"), False
        elif base in NUMBERS:
            row.kind = NUMBERS[base]
            row.is_optional = False
        elif base in self.api["structs"]:
            row.kind, row.record = "RECORD", self.record(base, out)
        else:
            raise Undecided(f"`{struct}.{field['name']}` is of the type {field['type']}")
        return row

    def array_field(self, row, struct, fields, field, base, out):
        if base == "char":
            row.kind, row.length = "TEXT", field["array"]
        elif base in NUMBERS:
            row.kind, row.element, row.length = "LIST", NUMBERS[base], field["array"]
            row.of = self.count_of(fields, field)
        elif base in self.api["structs"]:
            row.kind, row.element, row.length, row.record = "LIST", "RECORD", field["array"], self.record(base, out)
            row.of = self.count_of(fields, field)
        else:
            raise Undecided(f"`{struct}.{field['name']}` is an array of {base}")
        return row

    def list_field(self, row, struct, fields, index, base, pointers, out):
        row.kind, row.element = "LIST", self.element_of(row, base, pointers, struct + "." + row.c_name, out)
        row.of = self.count_of(fields, fields[index])
        if row.of < 0:
            raise Undecided(f"`{struct}.{row.c_name}`: no field beside it has its count; if one has, write `[FIELD entries]` in its "
                            "comment")

    @staticmethod
    def count_of(fields, field):
        """The field that has the number of entries of FIELD; -1: none."""
        stated = re.search(r"\[(?:\w+: )?(\w+) entries\]", field["text"])
        wanted = [stated[1]] if stated else []
        wanted += ["dims"] if field["name"] in ("shape", "strides", "offset") else []
        wanted += [re.sub(r"s$", "", field["name"]) + "_count"]
        for name in wanted:
            for index, other in enumerate(fields):
                if other["name"] == name and "*" not in other["type"]:
                    return index
        return -1

    def element_of(self, row, base, pointers, where, out):
        if base == "char" and pointers == 2:
            return "TEXT"
        if base in self.api["handles"] and pointers == 2:
            row.handle = base
            return "HANDLE"
        if base in self.api["structs"] and pointers == 1:
            row.record = self.record(base, out)
            return "RECORD"
        if base in NUMBERS and pointers == 1:
            return NUMBERS[base]
        if base in self.api["enums"] and pointers == 1:
            row.enum = base
            self.enums.add(base)
            return "ENUM"
        raise Undecided(f"`{where}` is a list of {base}")

    # ---- functions ----

    def rows(self, name, one, self_index):
        made = [self.argument(one, index, self_index) for index in range(len(one["arguments"]))]
        for index, row in enumerate(made):
            row.offset = f"{index} * sizeof(union value)"
            self.count(made, one, index)
            if row.kind in ("ARRAY", "BYTES"):
                row.of = [bool(other.c_name in ("bytes", "count")) for other in made].index(True)
                made[row.of].kind, made[row.of].name = "UNUSED", ""
                if made[row.of].c_name == "count":
                    made[row.of + 1].kind, made[row.of + 1].name = "DTYPE", ""
            if row.kind == "BUFFER":
                made[index + 1].kind, made[index + 1].name = "UNUSED", ""
                made[index + 2].kind, made[index + 2].name = "UNUSED", ""
        if sum(row.kind in ("ARRAY", "BYTES") for row in made) > 1:
            raise Undecided("it has several arrays")
        return made

    def count(self, made, one, index):
        """Note what has the number of entries of a list."""
        row, argument = made[index], one["arguments"][index]
        if row.kind != "LIST":
            return
        names = [a["name"] for a in one["arguments"]]
        count = argument["count"]
        if "argument" in count:
            row.of = names.index(count["argument"])
            counter = made[row.of]
            if counter.kind != "COUNT":
                counter.kind, counter.element, counter.name = "COUNT", counter.kind, ""
        elif "function" in count:
            row.of = names.index(count["of"])
            row.count = f"count_of_{count['function']}"
        elif "field" in count:
            row.of = names.index(count["of"])
            row.count = f"count_of_{base_of(one['arguments'][row.of]['type'])}->{count['field']}"
        elif "constant" in count:
            row.length = count["constant"]
        else:
            raise Undecided(f"`{argument['name']}` has {count['words']}, which no argument states")

    def argument(self, one, index, self_index):
        argument = one["arguments"][index]
        kind, c_type = argument["kind"], argument["type"]
        base = base_of(c_type)
        row = Row(python_name(argument["name"]), "UNUSED", argument["name"], is_optional=bool(argument.get("nullable")), is_out=argument["direction"] == "out", c_type=c_type, facts=argument)
        if index == self_index:
            row.kind, row.handle, row.is_optional = "HANDLE", base, False
        elif kind in ("number", "enum"):
            self.number(row, one, argument, base)
        elif kind == "text":
            row.kind = "PATH" if argument["name"] == "path" and not row.is_out else "TEXT"
        elif kind == "buffer":
            row.kind = "BUFFER"
        elif kind == "handle":
            self.handle(row, argument, base, self_index)
        elif kind == "memory" and (row.is_out or argument["name"] == "native"):  # an object of the vendor
            row.kind = "ADDRESS"
        elif kind == "memory" and self.has_size(one):
            row.kind, row.is_pointer = "BYTES" if argument["name"] == "host" else "ARRAY", not c_type.startswith("const ")
        elif kind in ("array", "texts", "handles", "structs"):
            row.is_pointer = kind == "structs" and row.is_out and c_type.count("*") == 2
            row.kind = "LIST"
            row.element = self.element_of(row, base, c_type.count("*") - row.is_pointer, argument["name"], row.is_out)
            row.is_owned = row.is_out and bool(argument.get("owned", True)) and kind == "handles"
        elif kind == "struct" and base in self.api["structs"]:
            self.struct(row, argument, base, c_type)
        else:
            raise Undecided(f"`{argument['name']}` is a {kind}")
        return row

    @staticmethod
    def has_size(one):
        """Has memory a number of bytes, or a count of elements and their dtype after it?"""
        names = [argument["name"] for argument in one["arguments"]]
        return "bytes" in names or ("count", "dtype") in zip(names, names[1:])

    def number(self, row, one, argument, base):
        bits = re.search(rf"\b{argument['name'].upper()}:? (?:are |is )?(?:bits of |\()?enum (weft_\w+)", " ".join(one["text"].split()))
        if argument["kind"] == "enum":
            row.kind, row.enum = "ENUM", base
            self.enums.add(base)
        elif bits and not row.is_out:
            row.kind, row.enum = "BITS", bits[1]
            self.enums.add(bits[1])
        elif argument["name"] == "timeout_ns" and not row.is_out:
            row.kind, row.name, row.is_optional = "TIMEOUT", "timeout", True
        elif base in NUMBERS:
            row.kind = NUMBERS[base]
            row.is_optional = row.is_optional or argument["name"] == "tag"  # 0 by default
        else:
            raise Undecided(f"`{argument['name']}` is of the type {argument['type']}")

    def handle(self, row, argument, base, self_index):
        if base == "weft_stream" and not row.is_out:
            row.kind, row.is_optional = "STREAM", True
        elif base == "weft_context" and self_index >= 0 and not row.is_out:
            row.kind, row.name = "CONTEXT", ""
        elif row.is_out and argument.get("nullable"):
            row.kind, row.name = "UNUSED", ""  # a work, which Python does not ask for
        else:
            row.kind, row.handle, row.is_owned = "HANDLE", base, bool(argument.get("owned"))

    def struct(self, row, argument, base, c_type):
        row.kind, row.is_pointer = "RECORD", c_type.count("*") == 2
        if c_type.count("*") == 1 and argument["direction"] == "in out" and not self.api["structs"][base]["sized"]:
            row.kind, row.record = "STATE", self.record(base, False)
            return
        if c_type.count("*") == 0 or argument["direction"] == "in out":
            raise Undecided(f"`{argument['name']}` is a struct that is not read or filled")
        row.record = self.record(base, row.is_out)

    def result(self, one):
        """The row of what the function returns; None: a status or nothing."""
        returns = one["returns"]
        base = base_of(returns["type"])
        row = Row("result", "UNUSED", c_type=returns["type"], is_out=True)
        if returns["kind"] in ("status", "nothing"):
            return None
        if returns["kind"] == "number":
            row.kind = NUMBERS[base]
        elif returns["kind"] == "enum":
            row.kind, row.enum = "ENUM", base
            self.enums.add(base)
        elif returns["kind"] == "text":
            row.kind = "TEXT"
        elif returns["kind"] == "memory":
            row.kind = "ADDRESS"
        elif returns["kind"] == "handle":
            row.kind, row.handle, row.is_owned = "HANDLE", base, bool(returns.get("owned"))
        elif returns["kind"] == "struct" and base in self.api["structs"]:
            row.kind, row.is_pointer, row.record = "RECORD", True, self.record(base, True)
        elif returns["kind"] == "array" and "function" in returns.get("count", {}) and base in NUMBERS:
            row.kind, row.element = "LIST", NUMBERS[base]
            row.of = [argument["name"] for argument in one["arguments"]].index(returns["count"]["of"])
            row.count = f"count_of_{returns['count']['function']}"
        else:
            raise Undecided(f"it returns {returns['type']}; if it is a list, write `[RESULT: one per dimension of X]` or the like")
        return row
