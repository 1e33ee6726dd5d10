"""The pages of the manual about the public API, in Markdown: one per function, one per header, and an index.

`write` makes them of the description of the API (describe.py) in a folder.  ci/manual/stage.py calls it."""
import html
import pathlib
import re
import textwrap

import contract

WORD = re.compile(r"\*?[A-Za-z_]\w*(?:(?:->|\.)\w+)*(?:\[\w*\])?(?:=\w+)?")
MARKS = str.maketrans({mark: "\\" + mark for mark in "*_[]`#|"})


def dedented(text):
    """Blocks of code begin in the first column."""
    def block(found):
        return "```text\n" + textwrap.dedent(found[1]) + "```"
    return re.sub(r"```text\n(.*?)```", block, text, flags=re.S)


def capital(text):
    return text if re.match(r"\w*_", text) else text[:1].upper() + text[1:]


class Writer:
    def __init__(self, api, examples):
        self.api, self.examples, self.callers = api, pathlib.Path(examples), contract.callers(examples)
        self.types = {name: one["header"] for kind in ("structs", "enums", "handles", "callbacks") for name, one in api[kind].items()}

    def link(self, name):
        """Code, and a link if it is in the API.  All pages of the API are in one folder."""
        word = name.lstrip("*")
        if word in self.api["functions"]:
            return f"[`{name}`]({word}.md)"
        if word in self.types:
            return f"[`{name}`]({self.types[word]}.md#{word})"
        return f"`{name}`"

    def prose(self, text, arguments=(), itself=""):
        """Text of a header as Markdown: names become code and links, lines that are indented a block of code, and lines
        that begin with "- " a list, whose items may go on in indented lines."""
        made, kind = [], ""
        for line in text.split("\n"):
            before, indented = kind, line.startswith("  ") and not line.lstrip().startswith("- ")
            kind = "" if not line.strip() else "item" if line.lstrip().startswith("- ") or (indented and before == "item") else \
                "code" if indented else "text"
            if kind == "code":
                made += [] if before == "code" else ["", "```text"]
                made.append(line)
            else:
                made += ["```", ""] if before == "code" else [""] if kind == "item" and before == "text" else []
                made.append(self.line(line, arguments, itself))
        return dedented("\n".join(made + (["```"] if kind == "code" else [])))

    def line(self, line, arguments=(), itself=""):
        """What stands in backticks is code as it is."""
        parts = line.split("`")
        if len(parts) % 2 == 0:
            parts = [line]
        return "".join(f"`{part}`" if at % 2 else self.words(part, arguments, itself) for at, part in enumerate(parts))

    def words(self, line, arguments, itself):
        names = {name.upper(): name for name in arguments}
        made, at = "", 0
        for found in WORD.finditer(line):
            word = found[0]
            bare = re.match(r"\*?(\w+)", word)[1]
            star = word.startswith("*") and bare != word
            if bare in names:
                shown = f"`{word.replace(bare, names[bare], 1)}`"
            elif bare == itself:
                shown = f"`{word}`"
            elif bare.startswith("weft_"):
                shown = self.link(word) if word.lstrip("*") == bare else f"`{word}`"
            elif "_" in bare or star or "->" in word or "[" in word:
                shown = f"`{word}`"
            else:
                shown = word
            made += html.escape(line[at:found.start()], quote=False).translate(MARKS) + shown
            at = found.end()
        made += html.escape(line[at:], quote=False).translate(MARKS)
        return re.sub(r"^(\s*)\\?- ", r"\1- ", made)

    def cell(self, text, arguments=()):
        return self.line(" ".join(text.split()), arguments)

    def function(self, name):
        one = self.api["functions"][name]
        arguments = [argument["name"] for argument in one["arguments"]]
        text, errors = contract.split(one["text"])
        made = [f"# {name}", "",
                f"[{one['header']}]({one['header']}.md) · lib{one['library']} · "
                f"[{one['tier']}](../abi.md#the-librarys-abi) · {'any thread' if one['any_thread'] else 'one thread at a time'}",
                '{ .weft-facts }', "", "```c", contract.signature(name, one, 78), "```", "",
                self.prose(text or capital(one["section"]), arguments, name), ""]
        if arguments:
            made += ["## Arguments", "", "| argument | type | |", "|---|---|---|"]
            for argument in one["arguments"]:
                made.append(f"| `{argument['name']}` | {self.typed(argument['type'])} | {self.cell(contract.facts(argument), arguments)} |")
            made.append("")
        if errors:
            made += ["## Errors", ""]
            for names, said in errors:
                made += [", ".join(f"[`{word}`](../errors.md)" if word.startswith("WEFT") else word for word in re.findall(r"WEFT_\w+|Errors|Other errors", names)),
                         ":   " + self.prose(said, arguments, name).replace("\n", "\n    "), ""]
        for other, said in contract.quoted(name, self.api):
            made += [f"## Contract of {other}", "", self.prose(said, itself=other), ""]
        calls = self.callers.get(name, [])
        if calls:
            made += ["## Examples", "", *self.excerpt(name, calls[0]), ""]
            if calls[1:]:
                made += ["Also in " + ", ".join(f"[{path}](../source/examples/{path}.md)" for path in calls[1:]) + ".", ""]
        first, near = contract.related(name, self.api)
        if first or near:
            made += ["## See also", "", ", ".join(self.link(other) for other in [*first, *near]), ""]
        return "\n".join(made)

    def typed(self, type_):
        word = re.search(r"weft_\w+", type_)
        if word and word[0] in self.types:
            return f"[`{type_}`]({self.types[word[0]]}.md#{word[0]})"
        return f"`{type_}`"

    def excerpt(self, name, path):
        """The first call in a program, with the lines around it."""
        lines = (self.examples / path).read_text(encoding="utf-8").split("\n")
        at = next(number for number, line in enumerate(lines) if re.search(rf"\b{name}\(", line))
        near = lines[max(0, at - 3):at + 5]
        indent = min((len(line) - len(line.lstrip()) for line in near if line.strip()), default=0)
        return [f"[{path}](../source/examples/{path}.md), line {at + 1}:", "", "```c", *(line[indent:] for line in near), "```"]

    def header(self, name):
        header = self.api["headers"][name]
        text = header["text"].split("\n\n", 1)
        summary = re.sub(r"^\S+ - ", "", text[0])
        made = [f"# {name}", "", f"lib{header['library']} · `#include <weft/{name}>`", "{ .weft-facts }", "", self.line(capital(summary)), ""]
        made += [self.prose(text[1])] if len(text) > 1 else []
        functions = [one for one, of in self.api["functions"].items() if of["header"] == name]
        if functions:
            made += ["", "## Functions", "", "| function | |", "|---|---|"]
            made += [f"| [`{one}`]({one}.md) | {self.first(one)} |" for one in functions]
        made += self.kinds(name)
        return "\n".join(made) + "\n"

    def first(self, name):
        one = self.api["functions"][name]
        text = " ".join(contract.split(one["text"])[0].split()) or one["section"]
        sentence = re.split(r"(?<=[.;:])\s", text, maxsplit=1)[0].rstrip(":;")
        return self.cell(sentence, [argument["name"] for argument in one["arguments"]])

    def kinds(self, header):
        made = []
        for kind, title in (("handles", "Objects"), ("structs", "Structs"), ("enums", "Enums"), ("callbacks", "Callbacks")):
            ones = {name: one for name, one in self.api[kind].items() if one["header"] == header}
            made += ["", f"## {title}", ""] if ones else []
            for name, one in ones.items():
                made += ["", f"### {name} {{ #{name} }}", "", self.prose(one["text"]), ""]
                if kind == "structs":
                    made += self.table("field", [(field["name"], self.typed(field["type"]), field["text"]) for field in one["fields"]])
                elif kind == "enums":
                    made += self.table("value", [(value["name"], str(value["value"]), value["text"]) for value in one["values"]])
                elif kind == "callbacks":
                    made += ["```c", f"{one['returns']} {name}({', '.join(contract.declared(a['type'], a['name']) for a in one['arguments'])});", "```"]
        constants = [(name, f"`{one['value']}`", one["text"]) for name, one in self.api["constants"].items() if one["header"] == header]
        if constants:
            made += ["", "## Constants", "", *self.table("constant", constants)]
        return made

    def table(self, what, rows):
        return [f"| {what} | | |", "|---|---|---|", *(f"| `{name}` | {of} | {self.cell(text)} |" for name, of, text in rows)]

    def index(self):
        made = ["# Functions", "", "Every public function has a page, and a manual page of section 3: `man weft_init`.", ""]
        for library, title in (("weft", "libweft"), ("weft_file", "libweft_file: checkpoints"),
                               ("weft_parallel", "libweft_parallel: operators and training"),
                               ("weft_feed", "libweft_feed: live weights")):
            made += [f"## {title}", ""]
            for header, one in self.api["headers"].items():
                functions = [name for name, of in self.api["functions"].items() if of["header"] == header]
                if one["library"] == library:
                    summary = re.sub(r"^\S+ - ", "", one["summary"])
                    made += [f"### [{header}]({header}.md) {{ #{header} }}", "", self.line(capital(summary)), "",
                             " ".join(f"[`{name}`]({name}.md)" for name in functions), ""]
        return "\n".join(made)


def write(api, examples, out):
    """Write the pages to the folder OUT; returns their names."""
    writer, out = Writer(api, examples), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    pages = {"index": writer.index()} | {name: writer.header(name) for name in api["headers"]} | \
        {name: writer.function(name) for name in api["functions"]}
    for name, text in pages.items():
        (out / f"{name}.md").write_text(text, encoding="utf-8")
    return list(pages)
