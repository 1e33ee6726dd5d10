"""The text of generated C++, as the project formats it: four spaces, 100 columns."""
import re
import textwrap

COLUMNS = 100
FACTS = re.compile(r"\s*\[(?:any thread|[A-Z_, ]+: [^\[\]]*)\]")


def sentence(text):
    """The first sentence of a contract."""
    plain = " ".join(FACTS.sub("", text).split())
    return re.split(r"(?<=[a-z0-9)\]\"'`*][.:]) (?=[A-Z])|(?<=\.) (?=WEFT_|[A-Z])", plain, maxsplit=1)[0]


def comment(text, indent):
    whole = f"{indent}/* {text} */"
    if len(whole) <= COLUMNS:
        return [whole]
    lines = textwrap.wrap(text, COLUMNS - len(indent) - 3, break_on_hyphens=False)
    if len(lines[-1]) + len(indent) + 6 > COLUMNS:
        lines.append("")
    made = [f"{indent}{'/*' if number == 0 else ' *'} {line}".rstrip() for number, line in enumerate(lines)]
    made[-1] = made[-1] + "/" if not lines[-1] else made[-1] + " */"
    return made


def packed(head, parts, tail, indent):
    """HEAD(PART, PART ...)TAIL: as many parts in a line as fit, below each other."""
    if not parts:
        return [f"{indent}{head}(){tail}"]
    align = len(indent) + len(head) + 1
    lines, line = [], f"{indent}{head}("
    for number, part in enumerate(parts):
        part += tail_of(number, parts, tail)
        if line.strip() and len(line) + len(part) + (0 if line.endswith("(") else 1) > COLUMNS and not line.endswith("("):
            lines.append(line)
            line = " " * align + part
        else:
            line += part if line.endswith("(") or not line.strip() else " " + part
    return lines + [line]


def tail_of(number, parts, tail):
    return "," if number + 1 < len(parts) else ")" + tail


def fits(lines):
    return all(len(line) <= COLUMNS for line in lines)


def signature(member, indent, scope, tail):
    """The lines of a declaration.  SCOPE is the class before the name of a definition outside of it."""
    static = "static " if member.static and not scope else ""
    if scope or not member.owner:
        static = "inline "
    space = "" if member.result.endswith("*") else " "
    name = f"{scope}{member.name}"
    defaults = not scope
    parameters = [one.text + (f" = {one.default}" if one.default and defaults else "") for one in member.parameters]
    tail = (" const" if member.owner and not member.static else "") + tail
    lines = packed(f"{static}{member.result}{space}{name}", parameters, tail, indent)
    if not fits(lines):  # the result in a line of its own
        lines = [f"{indent}{static}{member.result}"] + packed(name, parameters, tail, indent)
    return lines


def statement(member, indent):
    head, arguments, wrap = member.call
    start = "" if member.result == "void" else "return "
    lines = packed(start + wrap + head, arguments, (")" if wrap else "") + ";", indent)
    if fits(lines):
        return lines
    return [f"{indent}{start}{wrap}", *packed(head, arguments, (")" if wrap else "") + ";", indent + "    ")]


def declaration(member, indent, tail):
    return signature(member, indent, "", tail)


def definition(member, indent):
    """In a class: in one line if it fits."""
    head, body = signature(member, indent, "", ""), statement(member, "")
    if len(head) == 1 and len(body) == 1 and len(head[0]) + len(body[0]) + 5 <= COLUMNS:
        return [f"{head[0]} {{ {body[0]} }}"]
    return [*head, indent + "{", *statement(member, indent + "    "), indent + "}"]


def inline_definition(member):
    scope = f"{member.owner}::" if member.owner else ""
    return [*signature(member, "", scope, ""), "{", *statement(member, "    "), "}"]


def class_head(name, base):
    head = f"class {name} : public {base}"
    if len(head) <= COLUMNS:
        return [head]
    if len(base) + 13 <= COLUMNS:
        return [f"class {name}", f"    : public {base}"]
    first, last = base.rsplit(" ", 1)
    inside = base.index("<") + 1
    head = f"class {name} : public {first}"
    if len(head) <= COLUMNS:
        return [head, " " * (len(head) - len(first) + inside) + last]
    first, middle = first.rsplit(" ", 1)
    head = f"class {name} : public {first}"
    indent = " " * (len(head) - len(first) + inside)
    if len(indent) + len(middle) + 1 + len(last) <= COLUMNS:
        return [head, f"{indent}{middle} {last}"]
    return [f"class {name}", f"    : public {first} {middle}", " " * (13 + inside) + last]
