"""What a page about a public function says, of the description of the API.  pages.py and man.py write it.

A contract is a text with sentences such as `WEFT_ERR_INVALID: PLAN has no such step.`  `split` separates these from
the rest, so that a page lists the errors by name."""
import json
import pathlib
import re

NAMES = r"(?:WEFT_(?:ERR_\w+|IN_PROGRESS)|Errors|Other errors)(?:(?:, | or |, and | and )WEFT_\w+)*"
ERROR = re.compile(rf"(?:(?<=[.:;\])]\s)|(?<=[.\])]\s\s)|^)({NAMES})(?: also)?(?:: | (?=(?:lists|names|gives|as)\b))", re.M)
MARK = re.compile(r"\s*\[(?:any thread|[A-Z][A-Z_, ]*: [^\]]*)\]")  # facts, which a page has elsewhere
# A sentence behind an error that is not about it, as are those that follow.
AFTER = re.compile(r"(?<=\.)\s+(?=(?:The caller|OPTIONS may|TEXT, SIZE|Linear in|Takes constant|After an?|The call|A call|Not collective|"
                   r"If (?:reading|only this|KERNEL|a communicator|a rank|files)|`release`|An empty shard|The first|A step that|It goes|"
                   r"With uneven|weft_\w+ checks)\b)")
LIBRARIES = {"weft": "weft", "weft_file": "weft-file", "weft_parallel": "weft-parallel",
             "weft_feed": "weft-feed"}  # their names in pkg-config
DIRECTIONS = {"in": "read", "out": "written", "in out": "read and written", "released": "released, and set to NULL"}


def load(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def split(text):
    """(contract, errors): errors are (names, text), in the order of the contract.  Sentences behind an error that are
    not about it are a part of the contract."""
    parts = ERROR.split(MARK.sub("", text).strip())
    contract, errors = [parts[0].strip()], []
    for at in range(1, len(parts), 2):
        said, *rest = AFTER.split(parts[at + 1].strip(), maxsplit=1)
        errors.append((parts[at], said.strip()))
        contract += rest
    return "  ".join(part for part in contract if part), errors


def declared(type_, name):
    """`weft_mesh **` and `out` as C writes them."""
    if "(*)" in type_:
        return type_.replace("(*)", f"(*{name})", 1)
    return type_ + ("" if type_.endswith("*") else " ") + name


def signature(name, function, width=88):
    """The prototype, in lines that are no longer than WIDTH if an argument fits."""
    arguments = [declared(one["type"], one["name"]) for one in function["arguments"]] + ["..."] * function["variadic"]
    head = declared(function["returns"]["type"], name) + "("
    lines, line = [], head
    for at, argument in enumerate(arguments or ["void"]):
        word = argument + (");" if at + 1 >= len(arguments) else ",")
        if line != head and not line.isspace() and len(line) + 1 + len(word) > width:
            lines.append(line.rstrip())
            line = " " * len(head) + word
        else:
            line += word if line == head or line.isspace() else " " + word
    return "\n".join([*lines, line])


def facts(argument):
    """What the description knows of an argument beside its type, in words."""
    made = []
    if argument["kind"] == "user":
        made.append("passed to the callback")
    elif argument["direction"] != "in" or argument["kind"] not in ("number", "enum", "struct", "callback", "text", "handle"):
        made.append(DIRECTIONS[argument["direction"]])
    if argument.get("null_if"):
        made.append(f"may be NULL if {argument['null_if']}")
    elif argument.get("nullable"):
        made.append("NULL: the default stream" if argument["type"] == "weft_stream *" else "may be NULL")
    if "owned" in argument:
        made.append("the caller releases it" if argument["owned"] else "borrowed")
    if "sizeof" in argument:
        made.append(f"sizeof({argument['sizeof']})")
    for key, unit in (("count", "entries"), ("bytes", "bytes")):
        if key in argument:
            made.append(counted(argument[key], unit))
    return ", ".join(made)


def counted(count, unit):
    if "argument" in count:
        return f"{count['argument']} {unit}"
    if "constant" in count:
        return f"{count['constant']} {unit}"
    if "field" in count:
        return f"{count['of']}->{count['field']} {unit}"
    if "function" in count:
        return f"{count['function']}({count['of']}) {unit}"
    if "sum" in count:
        return " + ".join(f"{one['call']}({', '.join(one['with'])})" for one in count["sum"]) + f" {unit}"
    return count["words"]


def tier(one):
    return "stable: changed only with a line in the changelog" if one["tier"] == "stable" else "preview: may change with any minor version"


def named(text, api):
    """The functions that a text names, in order, each once."""
    return list(dict.fromkeys(word for word in re.findall(r"\bweft_\w+", text) if word in api["functions"]))


def related(name, api):
    """Functions to read next: those that the contract names, then the neighbours in the section of the header."""
    one = api["functions"][name]
    near = [other for other, made in api["functions"].items()
            if other != name and made["header"] == one["header"] and made["section"] == one["section"]]
    first = [other for other in named(one["text"], api) if other != name]
    return first, [other for other in near if other not in first]


SAME = re.compile(r"The same(?:, | (?=for |with ))")  # of a function above in the header
AS = re.compile(r"\b[Aa]s (?:in )?(weft_\w+)")


def same(name, api):
    """The function that "The same" speaks of: the last one above in the header that has a text of another kind."""
    one = api["functions"][name]
    names = [other for other, made in api["functions"].items() if made["header"] == one["header"]]
    above = reversed(names[: names.index(name)])
    return next(other for other in above if not api["functions"][other]["text"].startswith("The same"))


def referred(name, api):
    """The functions whose contracts that of NAME needs, such as "As weft_stream_test, ..."."""
    made, left = [], [name]
    while left:
        one = left.pop(0)
        text = api["functions"][one]["text"]
        found = ([same(one, api)] if SAME.match(text) else []) + [word for word in AS.findall(text) if word in api["functions"]]
        if one != name and not SAME.match(text) and not text.startswith("As weft_"):
            continue  # it is quoted, and says enough
        left += [other for other in found if other not in made and other != name]
        made += [other for other in dict.fromkeys(found) if other not in made and other != name]
    return made


def quoted(name, api):
    """(function, its contract): what a page of NAME quotes."""
    return [(other, MARK.sub("", api["functions"][other]["text"]).strip()) for other in referred(name, api)]


def callers(folder):
    """{function: [path, ...]}: the programs below FOLDER that call each function, sorted."""
    made = {}
    for path in sorted(pathlib.Path(folder).rglob("*.[ch]")):
        for word in sorted(set(re.findall(r"\bweft_\w+(?=\()", path.read_text(encoding="utf-8")))):
            made.setdefault(word, []).append(path.relative_to(folder).as_posix())
    return made
