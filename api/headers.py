"""Read C declarations with their comments from the public headers.

This is no C parser: it reads what the headers of weft have, one declaration per statement, and refuses
everything else with the line.  describe.py gives the declarations their meaning."""
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<blank>\n[ \t]*(?=\n))
  | (?P<space>\s+)
  | (?P<text>"(?:\\.|[^"\\])*")
  | (?P<word>\w+)
  | (?P<mark>\.\.\.|<<|.)
""", re.X | re.S | re.M)
CONDITIONAL = re.compile(r"^#if(?:def __cplusplus| ).*?^#endif[^\n]*$", re.S | re.M)  # all but the guard
SECTION = re.compile(r"/\*\s*----\s*(.*?)\s*-{4,}(.*?)\*/", re.S)


class Unreadable(Exception):
    """A declaration that this file does not understand; the text names the header and the line."""


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    line: int


@dataclasses.dataclass
class Type:
    """`const weft_spec *const *inputs`: words "weft_spec", levels ["const", "const"], name "inputs"."""

    words: str  # of the type that the pointers lead to, without const: "enum weft_dtype"
    levels: list  # one entry per `*`, from the words outwards: is what it points to constant?
    name: str = ""
    array: str = ""  # of a field: "WEFT_MAX_DIMS"
    call: object = None  # of a pointer to a function: (result, arguments)

    def c_text(self):
        if self.call:
            result, arguments = self.call
            return f"{result.c_text()} (*)({', '.join(a.c_text() for a in arguments) or 'void'})"
        text = ("const " if self.levels and self.levels[0] else "") + self.words
        for number in range(len(self.levels)):
            constant = number + 1 < len(self.levels) and self.levels[number + 1]
            text += (" " if number == 0 else "") + "*" + ("const " if constant else "")
        return text.rstrip()


@dataclasses.dataclass
class Value:
    """Of an enum."""

    name: str
    number: str  # an expression; "": one more than the value before
    comment: str
    text: str = ""  # the name that weft prints


@dataclasses.dataclass
class Declaration:
    kind: str  # function, struct, handle, enum, callback, constant, list
    name: str
    line: int
    comment: str  # the text above or beside it
    section: str
    result: Type = None
    arguments: list = None  # of a function or callback; the fields of a struct, as (Type, comment)
    values: list = None  # of an enum
    text: str = ""  # of a constant: its value; of a list: its rows
    variadic: bool = False
    preview: bool = False  # of a function: it has WEFT_PREVIEW


def plain(comment):
    """The text of a comment, without its marks; paragraphs and indented lines keep their lines."""
    body = re.sub(r"^/\*+|\*+/$", "", comment).split("\n")
    lines = [re.sub(r"^\s*\* ?", "", line) if at else line.strip() for at, line in enumerate(body)]
    text = ""
    for line in lines:
        line = line.rstrip()
        if not line:
            text = text.rstrip() + "\n\n"
        elif line.startswith(" ") or line.lstrip().startswith("- "):
            text = text.rstrip(" ") + ("" if text.endswith("\n") or not text else "\n") + line + "\n"
        else:
            text += ("" if not text or text.endswith("\n") else " ") + line
    return text.strip()


class Header:
    """The declarations of one header, in order, and its first comment."""

    def __init__(self, name, text):
        self.name = name
        self.declarations = []
        self.macros = {}
        self.tokens = list(self._tokens(CONDITIONAL.sub(lambda m: "\n" * m[0].count("\n"), text)))
        self.text = plain(self.tokens[0].text) if self.tokens and self.tokens[0].kind == "comment" else ""
        self._read()

    def fail(self, line, text):
        raise Unreadable(f"{self.name}:{line}: {text}")

    def _tokens(self, text):
        line = 1
        for match in TOKEN.finditer(text):
            kind = match.lastgroup
            if kind != "space":
                yield Token(kind, match[0], line)
            line += match[0].count("\n")

    def _read(self):
        comment, section, statement, depth, at_start = "", "", [], 0, True
        for index, token in enumerate(self.tokens):
            if statement or depth:
                if token.kind in ("blank", "directive"):
                    if token.kind == "directive":
                        self.fail(token.line, "a directive within a declaration")
                    continue
                statement.append(token)
                depth += (token.text in "{(") - (token.text in "})") if token.kind == "mark" else 0
                ends = "}" if statement[0].text == "WEFT_SYMM_INLINE" else ";"
                if token.text == ends and depth == 0:
                    beside = self._beside(index, token.line)
                    self._declare(statement, comment, beside, section)
                    statement = []
                continue
            if token.kind == "comment":
                found = SECTION.match(token.text)
                if found:
                    section, comment = (found[1] + " " + plain("/*" + found[2] + "*/")).strip(), ""
                elif not at_start and not self._is_beside(index):
                    comment = token.text
                at_start = False
            elif token.kind == "blank":
                comment = ""
            elif token.kind == "directive":
                self._directive(token, comment)
            else:
                statement = [token]

    def _is_beside(self, index):
        before = self.tokens[index - 1]
        return before.kind != "comment" and before.line + before.text.count("\n") == self.tokens[index].line

    def _beside(self, index, line):
        after = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        return after.text if after and after.kind == "comment" and after.line == line else ""

    def _directive(self, token, comment):
        text = re.sub(r"\\\n", " ", token.text)
        beside = " ".join(plain(c) for c in re.findall(r"/\*.*?\*/", text, re.S))
        bare = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        macro = re.match(r"\s*#define (\w+)\((.*?)\)\s*(.*)", bare, re.S)
        constant = re.match(r"\s*#define (WEFT_\w+)\s+(\S.*)", bare)
        if macro:
            rows = re.findall(r"X\(([^()]*)\)\s*(/\*.*?\*/)?", text)
            self.macros[macro[1]] = (macro[2], macro[3].strip(), rows)
        elif constant:
            self.declarations.append(Declaration("constant", constant[1], token.line,
                                                 " ".join((plain(comment) + " " + beside).split()), "",
                                                 text=constant[2].strip()))

    # ---- statements ----

    def _declare(self, tokens, above, beside, section):
        line = tokens[0].line
        words = [t.text for t in tokens if t.kind != "comment"]
        comment = "\n\n".join(plain(c) for c in (above, beside) if c)
        made = dict(line=line, comment=comment, section=section)
        if words[0] == "WEFT_API":
            self._function(words[1:], made)
        elif words[:2] == ["typedef", "struct"] and words[3] == "{":
            self._struct(tokens, words[2], made)
        elif words[:2] == ["typedef", "struct"] and len(words) == 5:
            self.declarations.append(Declaration("handle", words[2], **made))
        elif words[0] == "typedef" and "(" in words:
            self._callback(words[1:-1], made)
        elif words[0] == "typedef":
            self.declarations.append(Declaration("number", words[-2], text=" ".join(words[1:-2]), **made))
        elif words[0] == "enum":
            self._enum(tokens, made)
        elif words[0] != "WEFT_SYMM_INLINE" and "weft_plugin_entry" not in words:  # a plugin's, not the library's
            self.fail(line, f"cannot read `{' '.join(words[:12])} ...`")

    def _function(self, words, made):
        preview = "WEFT_PREVIEW" in words
        words = [w for w in words if w not in ("WEFT_NODISCARD", "WEFT_PREVIEW")]
        if "WEFT_PRINTF" in words:
            words = words[: words.index("WEFT_PRINTF")] + [";"]
        opened = words.index("(")
        result = self._type(words[:opened], made["line"])
        result, name = dataclasses.replace(result, name=""), result.name
        arguments = self._arguments(words[opened + 1 : -2], made["line"])
        variadic = bool(arguments) and arguments[-1] is None
        self.declarations.append(Declaration("function", name, result=result, variadic=variadic, preview=preview,
                                             arguments=arguments[:-1] if variadic else arguments, **made))

    def _arguments(self, words, line):
        return [None if one == ["..."] else self._type(one, line) for one in split(words) if one not in ([], ["void"])]

    def _callback(self, words, made):
        if words[words.index("(") + 1] == "*":  # typedef void (*name)(...)
            type_ = self._type(words, made["line"])
            result, arguments = type_.call
            name = type_.name
        else:  # typedef weft_status name(...)
            opened = words.index("(")
            result = self._type(words[:opened], made["line"])
            name, arguments = result.name, self._arguments(words[opened + 1 : -1], made["line"])
            result = dataclasses.replace(result, name="")
        self.declarations.append(Declaration("callback", name, result=result, arguments=arguments, **made))

    def _type(self, words, line):
        """One declarator; the name may be missing, as in `const char *`."""
        if "(" in words and "*" in words[words.index("(") :][:2]:
            opened = words.index("(")
            closed = words.index(")", opened)
            name = next((w for w in words[opened + 1 : closed] if w != "*"), "")
            result = self._type(words[:opened] + ["result"], line)
            return Type("", [], name, call=(dataclasses.replace(result, name=""),
                                            self._arguments(words[closed + 2 : -1], line)))
        array = ""
        if "[" in words:
            array = " ".join(words[words.index("[") + 1 : words.index("]")])
            words = words[: words.index("[")]
        words = list(words)
        name = ""
        base = 2 if words[0] in ("enum", "struct") or words[:1] == ["const"] and words[1] in ("enum", "struct") else 1
        if re.fullmatch(r"\w+", words[-1]) and words[-1] != "const" and len([w for w in words if w not in ("*", "const")]) > base:
            name = words.pop()
        constant, levels, kinds, pending = False, [], [], False
        for word in words:
            if word == "*":
                levels.append(pending or constant if not levels else pending)
                constant, pending = False, False
            elif word == "const":
                if levels:
                    pending = True
                else:
                    constant = True
            elif re.fullmatch(r"\w+", word):
                kinds.append(word)
            else:
                self.fail(line, f"cannot read the type `{' '.join(words)}`")
        return Type(" ".join(kinds), levels, name, array)

    def _struct(self, tokens, name, made):
        if [t.text for t in tokens[-3:]] != ["}", name, ";"]:
            self.fail(made["line"], f"struct {name} does not end in `}} {name};`")
        fields = []
        for words, comment in entries(tokens[4:-3], ";"):
            fields += [(type_, comment) for type_ in self._fields(words, made["line"])]
        self.declarations.append(Declaration("struct", name, arguments=fields, **made))

    def _fields(self, words, line):
        """`const char *a, b[4]` is two fields."""
        first, *others = split(words)
        made = self._type(first, line)
        base = [w for w in first if w == "const" or w in made.words.split()]
        return [made] + [self._type(base + one, line) for one in others]

    def _enum(self, tokens, made):
        opened = next(at for at, token in enumerate(tokens) if token.text == "{")
        values = []
        for words, comment in entries(tokens[opened + 1 : -2], ","):
            values += self._enum_value(words, comment, made["line"])
        self.declarations.append(Declaration("enum", tokens[1].text if opened == 2 else "", values=values, **made))

    def _enum_value(self, words, comment, line):
        """`NAME = 3`, or `WEFT_LIST(WEFT_ENUM) WEFT_LAST`, whose rows a macro lists."""
        if words[1:2] != ["("]:
            return [Value(words[0], " ".join(words[2:]), comment)]
        if words[0] not in self.macros or words[2] not in self.macros:
            self.fail(line, f"the macros {words[0]} and {words[2]} are not defined before")
        names, shape, _ = self.macros[words[2]]
        prefix, number = re.fullmatch(r"(\w+)##\w+ = (\w+),", shape).groups()
        made = []
        for row, beside in self.macros[words[0]][2]:
            known = dict(zip(names.split(", "), (one.strip() for one in row.split(","))))
            made.append(Value(prefix + known["name"], known[number], plain(beside), known["text"].strip('"')))
        return made + (self._enum_value(words[4:], comment, line) if words[4:] else [])


def entries(tokens, end):
    """The words and the comment of each entry of a struct or an enum.  A comment that begins in the line of an
    entry belongs to that entry, or to all entries of that line; any other to the next entry."""
    made, words, above, depth, lines = [], [], "", 0, []
    for index, token in enumerate(tokens):
        if token.kind == "comment":
            if index and tokens[index - 1].line == token.line and (lines or words):
                for number, line in enumerate(lines):
                    if line == token.line:
                        made[number][1] = (made[number][1] + " " + plain(token.text)).strip()
                if words:
                    above = plain(token.text)
            else:
                above = plain(token.text)
            continue
        depth += (token.text == "(") - (token.text == ")")
        if token.text == end and depth == 0:
            made.append([words, above])
            lines.append(token.line)
            words, above = [], ""
        else:
            words.append(token.text)
    return made + ([[words, above]] if words else [])


def split(words):
    """Split at the commas outside of parentheses."""
    parts, depth = [[]], 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts
