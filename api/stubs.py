"""Signatures and type hints of the generated members of the Python package."""
import re

import docstrings
import values

HINTED = ("weft_collective", "weft_reduction")  # enums whose aliases hand-written hints use
TYPES = {"BOOL": "bool", "U8": "int", "I32": "int", "U32": "int", "I64": "int", "U64": "int", "SIZE": "int", "F64": "float",
         "TIMEOUT": "float", "TEXT": "str", "PATH": "_Path", "AXES": "str | int", "ADDRESS": "int", "STREAM": "_StreamLike", "BUFFER": "str", "ARRAY": "_Array",
         "HOST": "Buffer", "CALLBACK": "Callable[..., object]"}
DEFAULTS = {"BOOL": "False", "F64": "0.0", "TIMEOUT": "0", "U8": "0", "I32": "0", "U32": "0", "I64": "0", "U64": "0", "SIZE": "0"}


def positions(member, rows, group):
    """The arguments of a group that Python states: 0 those that must be given, 1 those with a default, 2 streams."""
    return [index for index, row in enumerate(rows) if row.name and not row.is_out and index != member.self_index
            and row.kind not in ("UNUSED", "COUNT", "CONTEXT", "DTYPE", "RECORD", "BITS")
            and group == (2 if row.kind == "STREAM" else 1 if row.is_optional else 0)]


def has_option_name(generator, rows):
    """Is `name` among the options of a call without a stream?  It may be given by position, after the arguments."""
    if any(row.kind == "STREAM" for row in rows):
        return False
    stated = [row.name for row in rows if row.kind != "RECORD" and not row.is_out]
    return "name" not in stated and any(field.name == "name" and field.kind == "TEXT" for row in rows if row.kind == "RECORD" and not row.is_out
                                        for field in generator.maker.records[row.record])


def stated(generator, member, rows):
    """The arguments in the order of Python: (name, hint, default or None), then the keywords."""
    arguments, keywords = [], []
    for group in range(3):
        for row in (rows[index] for index in positions(member, rows, group)):
            arguments.append((row.name, hint_of(generator, row) + (" | None" if group == 1 else ""), "None" if group else None))
        if group == 1 and has_option_name(generator, rows):
            arguments.append(("name", "str | None", "None"))
    for row in rows:
        if row.kind == "RECORD" and not row.is_out:
            keywords += [field for field in fields(generator, generator.maker.records[row.record])
                         if field[0] not in [argument[0] for argument in arguments] + [other.name for other in rows if not other.is_out]]
        elif row.kind == "BITS":
            keywords += [(text, "bool", "False") for text, _ in generator_choices(generator, row.enum)]
    return arguments, keywords


def alias(enum):
    """The alias of the texts of an enum: weft_reduction -> _Reduction."""
    return "_" + "".join(word.capitalize() for word in enum.removeprefix("weft_").split("_"))


def options_class(member):
    """The dictionary of the keywords of a member: _ContextSaveOptions."""
    words = (member.handle.removeprefix("weft_") + "_" + member.name.strip("_")).split("_") if member.kind != "constructor" else [member.name.strip("_")]
    return "_" + "".join(word[:1].upper() + word[1:] for word in words) + "Options"


def option_lines(generator):
    """The dictionaries of keywords: Unpack[...] hints them, where a function passes its keywords on."""
    lines = []
    for entries in generator.members.values():
        for member, rows, _ in entries:
            keywords = stated(generator, member, rows)[1]
            if keywords:
                lines += ["", f"class {options_class(member)}(TypedDict, total=False):", *[f"    {name}: {hint}" for name, hint, _ in keywords]]
    return lines


def fields(generator, rows):
    found = []
    for row in rows:
        if row.kind == "BITS":
            found += [(text, "bool", "False") for text, _ in generator_choices(generator, row.enum)]
        elif row.name and row.kind != "UNUSED":
            default = DEFAULTS.get(row.kind, "None")
            found.append((row.name, hint_of(generator, row) + (" | None" if default == "None" else ""), default))
    return found


def generator_choices(generator, enum):
    import python  # it imports this file
    return python.choices(generator.api, enum)


def hint_of(generator, row, kind=None):
    kind = kind or row.kind
    if kind == "ENUM":
        if row.enum == "weft_dtype":
            return "str"
        return alias(row.enum)
    if kind == "BITS":
        return "frozenset[str]"
    if kind == "HANDLE":
        return generator.reach.hint(row.handle, row.is_out)
    if kind == "RECORD":
        return "dict[str, Any]"
    if kind == "STATE":
        return "Mapping[str, Any] | Sequence[Any]"
    if kind == "LIST":
        if row.is_out:
            return f"tuple[{hint_of(generator, row, row.element)}, ...]"
        inner = "Mapping[str, Any] | Sequence[Any]" if row.element == "RECORD" else hint_of(generator, row, row.element)
        fields = generator.maker.records[row.record] if row.element == "RECORD" else []
        pairs = "dict[str, str] | " if [field.kind for field in fields] == ["TEXT", "TEXT"] else ""
        return f"{pairs}Sequence[{inner}{' | None' if row.element == 'HANDLE' else ''}]"
    return TYPES[kind]


def result_hint(generator, member, rows, result):
    outs = [row for row in rows if row.is_out and row.kind not in ("UNUSED", "COUNT")]
    text = member.one["text"]
    hints = [hint_of(generator, row) + (" | None" if may_be_none(row, text) else "") for row in outs]
    is_refused = values.refused(member.one, result) is not None
    if member.one["returns"]["kind"] == "status" and "WEFT_IN_PROGRESS" in text and not outs:
        return "bool"
    if result and (not outs or result.kind != "BOOL"):
        return hint_of(generator, result) + (" | None" if may_be_none(result, text) and not is_refused else "")
    made = "None" if not hints else hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
    return made + (" | None" if result and outs else "")


def may_be_none(row, text):
    return row.is_absent or row.kind == "ADDRESS" or row.kind in ("HANDLE", "TEXT", "RECORD", "LIST") and (row.kind != "RECORD" or row.is_pointer) and \
        bool(re.search(r"\bNULL\b", re.sub(r"\b[A-Z_]+ may be NULL[^.;]*[.;]?|NULL for NULL|NULL arguments|\b(?!OUT\b)[A-Z_]+\s+is\s+NULL", "", text))) and (row.is_out or row.name == "result")


def signature(generator, member, rows, with_hints):
    positional, keywords = stated(generator, member, rows)
    first = {"method": ("self", "$self"), "class method": ("cls", "$type"), "constructor": ("cls", "")}.get(member.kind, ("", ""))[not with_hints]
    parts = [first] if first else []
    if member.kind == "function" and not with_hints:
        parts = ["$module"]

    def one(name, hint, default):
        text = f"{name}: {hint}" if with_hints else name
        return text + ("" if default is None else f" = {default}" if with_hints else f"={default}")
    parts += [one(*argument) for argument in positional]
    if keywords:
        parts += ["*"] + [one(*argument) for argument in keywords]
    return ", ".join(parts)


def docstring(generator, member, rows, result):
    return f"{member.name}({signature(generator, member, rows, False)})\n--\n\n{docstrings.contract(generator, member, rows, result)}"


def field_doc(generator, member, row):
    struct = member.one["arguments"][-1]["type"].split(" ")[0]
    return next(docstrings.field(generator, member, row, field["text"]) for field in generator.api["structs"][struct]["fields"]
                if field["name"] == row.c_name)


def class_doc(generator, handle):
    """How it is made, and the text of the handle, of the function that makes one, or of its header."""
    import python
    new = python.constructor(generator, handle)
    made = next((entry for entries in generator.members.values() for entry in entries if entry[0] is new), None)
    head = f"{new.name}({signature(generator, new, made[1], False)})\n--\n\n" if new else ""
    return head + class_text(generator, handle, made)


def class_text(generator, handle, made):
    text = generator.api["handles"][handle]["text"]
    if made and not text:
        return docstrings.contract(generator, *made)
    header = generator.api["headers"][generator.api["handles"][handle]["header"]]
    return docstrings.described(generator, text or header["summary"].split(" - ", 1)[-1].strip())


def member_lines(generator, member, rows, result):
    hint = result_hint(generator, member, rows, result)
    if member.kind == "property":
        lines = ["    @property", f"    def {member.name}(self) -> {hint}: ..."]
        if member.name == "info":
            for row in generator.info_fields(member.handle, [], rows):
                optional = " | None" if row.is_absent or row.is_optional and row.kind in ("HANDLE", "TEXT", "LIST") and row.is_pointer_or_null() else ""
                lines += ["    @property", f"    def {row.name}(self) -> {hint_of(generator, row)}{optional}: ..."]
        return lines
    if member.kind == "str":
        return []
    if member.kind == "hash":
        return ["    def __hash__(self) -> int: ..."]
    text = f"def {member.name}({signature(generator, member, rows, True)}) -> {hint}: ..."
    if member.kind == "function":
        return [text]
    return (["    @classmethod"] if member.kind == "class method" else []) + ["    " + text]


def class_lines(generator, handle, entries):
    import python
    lines = []
    new = python.constructor(generator, handle)
    for member, rows, result in entries:
        if member is new:
            lines.append(f"    def __new__({signature(generator, member, rows, True)}) -> Self: ...")
        else:
            lines += member_lines(generator, member, rows, result)
    if generator.can_close(handle):
        lines += ["    def close(self) -> None: ...", "    def __enter__(self) -> Self: ...",
                  "    def __exit__(self, *exception: object) -> None: ..."]
    return lines


def exports(generator):
    """The module that offers the generated classes and functions that no class in Python refines."""
    names = [member.name for entries in generator.members.values() for member, _, _ in entries if not member.handle]
    names += [generator.reach.class_name(handle) for handle in generator.used_handles() if not generator.reach.classes.get(handle, ("", ""))[1]]
    lines = [f"from ._weft import {name} as {name}" for name in sorted(names) if not name.startswith("_")]
    counted = {argument["type"].removeprefix("enum ") for one in generator.api["functions"].values() if one["returns"]["kind"] == "number"
               and any(other["kind"] == "handle" for other in one["arguments"]) for argument in one["arguments"] if argument["kind"] == "enum"}
    lines += [f"_{enum.upper()} = {tuple(text for text, _ in generator_choices(generator, enum))}  # a handle has a number for each"
              for enum in sorted(counted)]
    return '"""Classes and functions of the C library as the build generates them (api/python.py)."""\n\n' + "\n".join(lines) + "\n"


def stub(generator, by_hand):
    """The stub: what is written by hand, with the generated members after the members of each class."""
    by_class = {}
    for entries in generator.members.values():
        for entry in entries:
            by_class.setdefault(entry[0].handle, []).append(entry)
    lines = by_hand.rstrip("\n").split("\n")
    modules = sorted({generator.reach.module(handle) for handle in generator.reach.classes} - {""})
    lines.insert(next(number for number, line in enumerate(lines) if not line.startswith(("from ", "import "))),
                 f"\nimport {', '.join('weft.' + name for name in modules)}\nfrom . import {', '.join(modules)}")
    aliases = sorted({*generator.maker.enums, *HINTED} - {"weft_dtype"})
    lines += [""] + [f"{alias(enum)}: TypeAlias = Literal[{', '.join(repr(text) for text, _ in generator_choices(generator, enum))}]" for enum in aliases]
    lines += option_lines(generator)
    for handle in generator.used_handles():
        name, made = generator.reach.class_name(handle), class_lines(generator, handle, by_class.get(handle, []))
        starts = [number for number, line in enumerate(lines) if re.fullmatch(rf"class {name}\b.*", line)]
        if not starts:
            lines += ["", "@disjoint_base", f"class {name}:", *(made or ["    ..."])]
            continue
        end = starts[0] + 1
        while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
            end += 1
        while not lines[end - 1].strip():
            end -= 1
        lines[end:end] = made
    functions = by_class.get("", [])
    return "\n".join(lines + [""] + [line for entry in functions for line in member_lines(generator, *entry)]) + "\n"
