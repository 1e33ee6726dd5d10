"""The rows of the tables of bindings/python/src/call.h: one per argument of a function or field of a struct."""
import dataclasses
import keyword
import re

NUMBERS = {"bool": "BOOL", "uint8_t": "U8", "int32_t": "I32", "int": "I32", "weft_status": "I32", "uint32_t": "U32", "int64_t": "I64",
           "uint64_t": "U64", "size_t": "SIZE", "double": "F64"}
MEMBERS = {"BOOL": "flag", "U8": "u8", "I32": "i32", "U32": "u32", "I64": "i64", "U64": "u64", "SIZE": "size", "F64": "f64",
           "TIMEOUT": "i64", "ENUM": "i32", "BITS": "u32", "ELEMENT": "size"}
RENAMED = {"from": "source", "to": "target", "buffer": "array"}
USERS = ("user", "argument", "state")  # what C passes to a callback first
SLOTS = 8  # of bindings/python/src/callback.c
ABSENT = re.compile(r"(?<![\w-])(?:-1|(?:UINT(?:32|64)|SIZE)_MAX): ")  # in the text of a number: what stands for None
REFUSED = re.compile(r"(?:^|[;.] )(-1|0|NULL)(?: if|:) ([^.;,]*\bno such \w+)(?=[.;]|$)")  # a result that is an IndexError


class Undecided(Exception):
    """A person must decide how Python passes this; the text says what."""


@dataclasses.dataclass
class Callback:
    name: str  # in Python
    returns: str
    types: list  # of the arguments after `user`
    rows: list  # of those that Python gets
    result: object  # the row of a struct that Python fills; None
    slot: int


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
    is_absent: bool = False  # -1, or the greatest number, is None
    of: int = -1
    offset: str = ""
    within: str = ""  # of a list that stands for one of the struct `of`: the offset of its count there
    length: str = ""
    handle: str = ""
    enum: str = ""
    record: str = ""
    callback: str = ""
    count: str = ""
    measure: tuple = ()  # (function, arguments) that tells the entries or bytes
    c_type: str = ""
    facts: dict = dataclasses.field(default_factory=dict)

    def is_pointer_or_null(self):
        """Of a field: may it be NULL?"""
        return bool(self.facts.get("nullable"))

    def c_text(self):
        parts = [f'.name = "{self.name}"' if self.name else "", f".kind = VALUE_{self.kind}",
                 f".element = VALUE_{self.element}" if self.kind in ("LIST", "COUNT") or self.element in ("U8", "U64") else ""]
        parts += [f".{flag} = 1" for flag in ("is_optional", "is_out", "is_owned", "is_pointer", "is_absent") if getattr(self, flag)]
        parts.append(f".of = {self.of}" if self.of >= 0 or self.kind == "LIST" else "")
        parts.append(f".offset = {self.offset}" if self.offset else "")
        parts.append(f".within = {self.within}" if self.within else "")
        parts.append(f".length = {self.length}" if self.length else "")
        parts.append(f".handle = &class_{self.handle}" if self.handle else "")
        parts.append(f".choices = &choices_{self.enum}" if self.enum else "")
        parts.append(f".record = &record_{self.record}" if self.record else "")
        parts.append(f".callback = &callback_{self.callback}" if self.callback else "")
        parts.append(f".measure = measure_{self.measure[0]}" if self.measure else "")
        parts.append(f".count = {c_counter(self.count)}" if self.count else "")
        return "{" + ", ".join(part for part in parts if part) + "}"


def c_counter(count):
    """The C function that returns a count; `->` begins the name of a field."""
    return count.replace("->", "_")


def python_name(name):
    name = RENAMED.get(name, name)
    return name + "_" if keyword.iskeyword(name) else name


def refused(one, result):
    """The number that a function returns if an argument is out of range, 0 for NULL too; None: it returns none."""
    found = REFUSED.search(" ".join(one["text"].split()))
    is_indexed = any(argument["kind"] == "number" and argument["direction"] == "in" for argument in one["arguments"])
    if not found or not is_indexed or result is None or result.kind not in ("I32", "TEXT", "HANDLE", "RECORD"):
        return None
    return -1 if found[1] == "-1" else 0


def base_of(c_type):
    """`const weft_spec *const *` -> weft_spec."""
    return re.sub(r"\bconst\b|\*", " ", c_type).replace("enum ", "").replace("unsigned char", "uint8_t").split()[0]


class Maker:
    def __init__(self, description, left_out=(), renamed=None):
        self.api = description
        self.renamed = renamed or {}  # fields -> their names in Python
        self.records = {}  # name -> rows; those that functions use
        self.callbacks = {}  # name -> Callback
        self.shards = set()  # structs that callbacks get as weft.Shard
        self.left_out = left_out  # fields of options that Python does not have
        self.enums = set()

    # ---- structs ----

    def record(self, name, out, skip=False):
        """The rows of a struct: for reading, for a result, or for a callback that gets it (OUT is "call").  Raises Undecided,
        unless it is to SKIP such fields."""
        key = name + ("_call" if out == "call" else "_out" if out else "_in")
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
        name = self.renamed.get(f"{struct}.{field['name']}") or name
        row = Row(name, "UNUSED", field["name"], offset=f"offsetof({struct}, {field['name']})",
                  is_out=bool(out), facts=field)
        c_type, base = field["type"], base_of(field["type"])
        pointers = c_type.count("*")
        if field["name"] in ("struct_size", "zero") or field["name"].startswith("reserved"):
            row.name = ""
            return row
        size = re.search(r"sizeof\((weft_\w+)\)", field["text"])
        if size and field["name"].endswith("_size"):  # of the elements of a list
            row.name, row.length = "", f"sizeof({size[1]})"
            row.kind = "UNUSED" if out else "ELEMENT"
            return row
        if not out and f"{struct}.{field['name']}" in self.left_out:
            return Row("", "UNUSED")
        if self.is_callback(field):
            return self.callback_field(row, struct, fields, index)
        if not out and field["name"] in USERS and any(self.is_callback(other) for other in fields):
            return Row("", "UNUSED", offset=row.offset)
        row.is_optional = True
        if "array" in field:
            return self.array_field(row, struct, fields, field, base, out)
        if pointers == 0:
            return self.plain_field(row, struct, field, base, out)
        if base == "char" and pointers == 1:
            row.kind = "PATH" if field["name"] == "path" else "TEXT"
        elif base == "void":
            row.kind = "MEMORY" if out == "call" else "ADDRESS"
        elif base == "weft_stream" and out != True:
            row.kind = "NATIVE" if out == "call" else "STREAM"
        elif base == "weft_context" and out == "call":
            row.name = ""
        elif base in self.api["handles"] and pointers == 1:
            row.kind, row.handle = "HANDLE", base
        elif base in self.api["structs"] and out and field["name"][-1:] != "s":
            row.kind, row.record, row.is_pointer = "RECORD", self.record(base, out), True
        elif base in self.api["structs"] and not out and field["name"][-1:] != "s" and self.api["structs"][base]["sized"]:
            row.kind, row.record = "STATE", self.record(base, out)
        else:
            self.list_field(row, struct, fields, index, base, pointers, out)
        return row

    def is_callback(self, field):
        return "(*)" in field["type"] or base_of(field["type"]) in self.api["callbacks"]

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
            row.is_absent = bool(out) and bool(ABSENT.search(field["text"]))
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
            lends = out == "call" and self.is_shard(base)
            row.record = self.shard(base) if lends else self.record(base, out)
            return "RECORD"
        if base in NUMBERS and pointers == 1:
            return NUMBERS[base]
        if base in self.api["enums"] and pointers == 1:
            row.enum = base
            self.enums.add(base)
            return "ENUM"
        raise Undecided(f"`{where}` is a list of {base}")

    # ---- callbacks ----

    def is_shard(self, struct):
        """Does it describe memory, with a layout and a weft_shard?"""
        names = {field["name"] for field in self.api["structs"][struct]["fields"]}
        return {"memory", "spec", "shard"} <= names

    def shard(self, struct):
        self.shards.add(struct)
        self.records[struct + "_shard"] = []
        return struct + "_shard"

    def callback_field(self, row, struct, fields, index):
        users = [number for number, field in enumerate(fields) if field["name"] in USERS]
        if row.is_out or len(users) != 1:
            raise Undecided(f"`{struct}.{row.c_name}` is a callback")
        before = [field for field in fields[:index] if self.is_callback(field)]
        row.kind, row.of, row.is_optional = "CALLBACK", users[0], True
        row.callback = self.callback(f"{struct}_{row.c_name}", row, row.facts["type"], len(before))
        return row

    def callback(self, key, row, c_type, slot):
        """The name of the callback, whose type is C_TYPE."""
        named = self.api["callbacks"].get(base_of(c_type))
        match = re.fullmatch(r"(.+?) ?\(\*\)\((.*)\)", c_type)
        returns = named["returns"] if named else match[1]
        types = [argument["type"] for argument in named["arguments"]] if named else match[2].split(", ")
        if types[0] != "void *" or returns not in ("weft_status", "bool", "void") or slot >= SLOTS:
            raise Undecided(f"`{row.c_name}` is a callback of the type {c_type}")
        made = Callback(row.name, returns, types[1:], [], None, slot)
        for number, type_ in enumerate(types[1:]):
            base = base_of(type_)
            given = Row("argument", "UNUSED", is_out=True, is_pointer="*" in type_, c_type=type_)
            if base in self.api["structs"] and type_.startswith("const "):
                given.kind, given.record = "RECORD", self.record(base, "call")
            elif base in self.api["structs"] and number + 2 == len(types):
                made.result = Row(row.name, "RECORD", record=self.record(base, False))
                continue
            elif type_ == "const char *":
                given.kind, given.is_pointer = "TEXT", False
            elif type_ in NUMBERS:
                given.kind = NUMBERS[type_]
            else:
                raise Undecided(f"`{row.c_name}` is a callback with an argument of the type {type_}")
            made.rows.append(given)
        self.callbacks[key] = made
        return key

    # ---- functions ----

    def rows(self, name, one, self_index):
        made = [self.argument(name, one, index, self_index) for index in range(len(one["arguments"]))]
        for index, row in enumerate(made):
            row.offset = f"{index} * sizeof(union value)"
            self.count(name, made, one, index)
            if row.kind in ("ARRAY", "HOST") and not row.measure:
                row.of = [bool(other.c_name in ("bytes", "count")) for other in made].index(True)
                made[row.of].kind, made[row.of].name = "UNUSED", ""
                if made[row.of].c_name == "count":
                    made[row.of + 1].kind, made[row.of + 1].name = "DTYPE", ""
            if row.kind == "BUFFER":
                made[index + 1].kind, made[index + 1].name = "UNUSED", ""
                made[index + 2].kind, made[index + 2].name = "UNUSED", ""
        if sum(row.kind in ("ARRAY", "HOST") for row in made) > 1:
            raise Undecided("it has several arrays")
        return made

    @staticmethod
    def measure(name, one, index, count):
        """The name of the C function that tells the size of an argument, and the calls in it."""
        names = [argument["name"] for argument in one["arguments"]]
        return f"{name}_{names[index]}", [(call["call"], [names.index(other) for other in call["with"]]) for call in count["sum"]]

    def count(self, name, made, one, index):
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
        elif "sum" in count:
            row.measure = self.measure(name, one, index, count)
        elif "field" in count:
            row.of, struct = names.index(count["of"]), base_of(one["arguments"][names.index(count["of"])]["type"])
            if row.name in [field["name"] for field in self.api["structs"][struct]["fields"]]:
                row.within = f"offsetof({struct}, {count['field']})"  # it stands for the list of the struct
            else:
                row.count = f"count_of_{struct}->{count['field']}"
        elif "constant" in count:
            row.length = count["constant"]
        else:
            raise Undecided(f"`{argument['name']}` has {count['words']}, which no argument states")
        if row.is_out and index > 0 and names[index - 1] == names[index].removesuffix("s") + "_count" and row.of < 0:
            row.of = index - 1  # C wants the number of entries too
            made[row.of].kind, made[row.of].element, made[row.of].name = "COUNT", made[row.of].kind, ""

    def argument(self, name, one, index, self_index):
        argument = one["arguments"][index]
        kind, c_type = argument["kind"], argument["type"]
        base = base_of(c_type)
        row = Row(python_name(argument["name"]), "UNUSED", argument["name"], is_optional=bool(argument.get("nullable")), is_out=argument["direction"] == "out", c_type=c_type, facts=argument)
        if index == self_index:
            row.kind, row.handle, row.is_optional = "HANDLE", base, False
        elif "sizeof" in argument:  # of the elements of a list
            row.name, row.kind, row.length = "", "ELEMENT", f"sizeof({argument['sizeof']})"
        elif kind in ("number", "enum"):
            self.number(row, one, argument, base)
        elif kind == "text":
            row.kind = "TEXT" if row.is_out else {"path": "PATH", "axis": "AXES", "axes": "AXES"}.get(argument["name"], "TEXT")
        elif kind == "buffer":
            row.kind = "BUFFER"
        elif kind == "callback":
            row.kind = "CALLBACK"
            row.of = next(number for number, other in enumerate(one["arguments"]) if other["kind"] == "user")
            row.callback = self.callback(f"{name}_{row.c_name}", row, c_type, 0)
        elif kind == "user":
            row.name = ""
        elif kind == "handle":
            self.handle(row, argument, base, self_index)
        elif kind == "memory" and "bytes" in argument:
            row.kind, row.is_pointer, row.measure = "ARRAY", not c_type.startswith("const "), self.measure(name, one, index, argument["bytes"])
        elif kind == "memory" and (row.is_out or argument["name"] == "native"):  # an object of the vendor
            row.kind = "ADDRESS"
        elif kind == "memory" and self.has_size(one):
            row.kind, row.is_pointer = "HOST" if argument["name"] == "host" else "ARRAY", not c_type.startswith("const ")
            if row.kind == "HOST" and (self_index < 0 or base_of(one["arguments"][self_index]["type"]) != "weft_tensor"):
                raise Undecided("`host` is host memory, but not of the shard of a tensor")
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
            row.is_absent = bool(ABSENT.search(one["text"])) and refused(one, row) is None
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
