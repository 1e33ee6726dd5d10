"""Signatures and type hints of the generated members of the Python package."""
import re

import docstrings

TYPES = {"BOOL": "bool", "U8": "int", "I32": "int", "U32": "int", "I64": "int", "U64": "int", "SIZE": "int", "F64": "float",
         "TIMEOUT": "float", "TEXT": "str", "PATH": "_Path", "ADDRESS": "int", "STREAM": "_StreamLike", "BUFFER": "str", "ARRAY": "_Array",
         "BYTES": "Buffer", "CALLBACK": "Callable[..., object]"}
DEFAULTS = {"BOOL": "False", "F64": "0.0", "TIMEOUT": "0", "U8": "0", "I32": "0", "U32": "0", "I64": "0", "U64": "0", "SIZE": "0"}


def positions(member, rows, group):
    """The arguments of a group that Python states: 0 those that must be given, 1 those with a default, 2 streams."""
    return [index for index, row in enumerate(rows) if row.name and not row.is_out and index != member.self_index
            and row.kind not in ("UNUSED", "COUNT", "CONTEXT", "DTYPE", "RECORD", "BITS")
            and group == (2 if row.kind == "STREAM" else 1 if row.is_optional else 0)]


def stated(generator, member, rows):
    """The arguments in the order of Python: (name, hint, default or None), then the keywords."""
    arguments, keywords = [], []
    for group in range(3):
        for row in (rows[index] for index in positions(member, rows, group)):
            arguments.append((row.name, hint_of(generator, row) + (" | None" if group == 1 else ""), "None" if group else None))
    for row in rows:
        if row.kind == "RECORD" and not row.is_out:
            keywords += [field for field in fields(generator, generator.maker.records[row.record])
                         if field[0] not in [other.name for other in rows if not other.is_out]]
        elif row.kind == "BITS":
            keywords += [(text, "bool", "False") for text, _ in generator_choices(generator, row.enum)]
    return arguments, keywords


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
        return "Literal[" + ", ".join(f'"{text}"' for text, _ in generator_choices(generator, row.enum)) + "]"
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
        return f"Sequence[{inner}{' | None' if row.element == 'HANDLE' else ''}]"
    return TYPES[kind]


def result_hint(generator, member, rows, result):
    outs = [row for row in rows if row.is_out and row.kind not in ("UNUSED", "COUNT")]
    text = member.one["text"]
    hints = [hint_of(generator, row) + (" | None" if may_be_none(row, text) else "") for row in outs]
    if member.one["returns"]["kind"] == "status" and "WEFT_IN_PROGRESS" in text and not outs:
        return "bool"
    if result and (not outs or result.kind != "BOOL"):
        return hint_of(generator, result) + (" | None" if may_be_none(result, text) else "")
    made = "None" if not hints else hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
    return made + (" | None" if result and outs else "")


def may_be_none(row, text):
    return row.kind in ("HANDLE", "TEXT", "RECORD", "LIST") and (row.kind != "RECORD" or row.is_pointer) and \
        bool(re.search(r"\bNULL\b", re.sub(r"\b[A-Z_]+ may be NULL[^.;]*[.;]?|NULL for NULL|NULL arguments", "", text))) and (row.is_out or row.name == "result")


def signature(generator, member, rows, with_hints):
    positional, keywords = stated(generator, member, rows)
    parts = {"method": ["self" if with_hints else "$self"], "class method": ["cls" if with_hints else "$type"]}.get(member.kind, [])
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
    """The text of the handle, of the function that makes one, or of its header."""
    import python
    text, new = generator.api["handles"][handle]["text"], python.constructor(generator, handle)
    if new and not text:
        return next(docstrings.contract(generator, *entry) for entries in generator.members.values() for entry in entries if entry[0] is new)
    header = generator.api["headers"][generator.api["handles"][handle]["header"]]
    return docstrings.described(generator, text or header["summary"].split(" - ", 1)[-1].strip())


def member_lines(generator, member, rows, result):
    hint = result_hint(generator, member, rows, result)
    if member.kind == "property":
        lines = ["    @property", f"    def {member.name}(self) -> {hint}: ..."]
        if member.name == "info":
            for row in generator.info_fields(member.handle, [], rows):
                optional = " | None" if row.is_optional and row.kind in ("HANDLE", "TEXT", "LIST") and row.is_pointer_or_null() else ""
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
            positional = signature(generator, member, rows, True)
            lines.append(f"    def __new__({positional}) -> Self: ...")
        lines += member_lines(generator, member, rows, result)
    if generator.can_close(handle):
        lines += ["    def close(self) -> None: ...", "    def __enter__(self) -> Self: ...",
                  "    def __exit__(self, *exception: object) -> None: ..."]
    return lines


def exports(generator):
    """The module that offers the generated classes and functions that no class in Python refines."""
    names = [member.name for entries in generator.members.values() for member, _, _ in entries if not member.handle]
    names += [generator.reach.class_name(handle) for handle in generator.used_handles() if not generator.reach.classes.get(handle, ("", ""))[1]]
    lines = [f"from ._weft import {name} as {name}" for name in sorted(names)]
    counted = {match[1] for struct in generator.api["structs"].values() for field in struct["fields"]
               if "array" in field and (match := re.search(r"\bby enum (weft_\w+)", field["text"]))}
    lines += [f"_{enum.upper()} = {dict((value, text) for text, value in generator_choices(generator, enum))}  # lists by this enum have its numbers"
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
