#!/usr/bin/env python3
"""Write the manual pages of section 3, one per public function: man.py OUT DESCRIPTION.json EXAMPLES

OUT is a folder; pages in it that are of no function are removed.  The build installs it (api/CMakeLists.txt)."""
import pathlib
import re
import sys

import contract


def escaped(text):
    """Text as roff prints it: no line of it is a request, and a hyphen is a minus, which can be searched."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def body(text):
    """Paragraphs; indented lines are as they stand."""
    made = []
    for line in text.split("\n"):
        if not line.strip():
            made.append(".PP")
        elif line.startswith("  "):
            made += [".nf", escaped(line), ".fi"]
        else:
            made.append(escaped(line))
    return "\n".join(made).replace(".fi\n.nf\n", "")


def summary(text):
    """The first sentence, for whatis."""
    first = re.split(r"(?<=[a-z0-9)A-Z])[.:;](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
    return first or "property"


def structs(one, api):
    """The names of the structs that the function ONE takes or writes, in the order of its arguments."""
    words = (word for argument in one["arguments"] for word in re.findall(r"\bweft_\w+", argument["type"]))
    return list(dict.fromkeys(word for word in words if word in api["structs"]))


def meaning(struct, field, api):
    """The comment of a field; "as in weft_load_options" becomes what that says."""
    text = contract.MARK.sub("", field["text"]).strip()
    other = re.match(r"as in (weft_\w+)(.*)", text, re.S)
    for same in api["structs"].get(other.group(1), {"fields": []})["fields"] if other else []:
        if other.group(1) != struct and same["name"] == field["name"] and same["text"]:
            said = meaning(other.group(1), same, api)
            return said if said.endswith(other.group(2)) else said + other.group(2)
    if field["name"] == "struct_size" and not text:
        return f"sizeof({struct})"
    return text


def described(struct, api):
    """The section about a struct."""
    one = api["structs"][struct]
    made = [f".SH STRUCT {struct.upper()}"] + ([body(one["text"])] if one["text"] else [])
    for field in one["fields"]:
        made += [".TP", f".B {escaped(contract.declared(field['type'], field['name']))}",
                 escaped(" ".join(meaning(struct, field, api).split())) or r"\&"]
    return made


def page(name, api, examples):
    one = api["functions"][name]
    text, errors = contract.split(one["text"])
    made = [f'.TH {name.upper()} 3 "" "weft {api["version"]}" "weft\'s functions"', ".SH NAME",
            f"{name} \\- {escaped(summary(text or one['section']))}", ".SH SYNOPSIS", ".nf", f"#include <weft/{one['header']}>",
            "", escaped(contract.signature(name, one, 78)), ".fi", ".PP",
            f"Link with {escaped('-l' + one['library'])}, or with pkg\\-config: {escaped(contract.LIBRARIES[one['library']])}.",
            ".SH DESCRIPTION", body(text or one["section"])]
    if one["arguments"]:
        made += [".SH ARGUMENTS"]
        for argument in one["arguments"]:
            made += [".TP", f".B {argument['name'].upper()}",
                     escaped(", ".join(word for word in (argument["type"], contract.facts(argument)) if word))]
    if errors:
        made += [".SH ERRORS"]
        for names, said in errors:
            made += [".TP", f".B {names}", body(said).replace(".PP", ".IP")]
    for struct in structs(one, api):
        made += described(struct, api)
    for other, said in contract.quoted(name, api):
        made += [f".SH CONTRACT OF {other.upper()}", body(said)]
    made += [".SH ATTRIBUTES", f"Library: {escaped(one['library'])}.", f"Tier: {escaped(contract.tier(one))}.",
             "Threads: " + ("any number of threads at once." if one["any_thread"] else f"one at a time; see the first comment of {one['header']}.")]
    if name in examples:
        made += [".SH EXAMPLES", "Programs of the folder examples that call it:", escaped(", ".join(examples[name])) + "."]
    first, near = contract.related(name, api)
    if first or near:
        made += [".SH SEE ALSO", ",\n".join(f".BR {other} (3)" for other in [*first, *near][:12]).replace(" (3),", " (3),")]
    return "\n".join(made) + "\n"


def main():
    out, description, folder = sys.argv[1:]
    api, examples = contract.load(description), contract.callers(folder)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for path in out.glob("*.3"):
        if path.stem not in api["functions"]:
            path.unlink()
    for name in api["functions"]:
        (out / f"{name}.3").write_text(page(name, api, examples), encoding="utf-8")
    print(f"{len(api['functions'])} manual pages")


if __name__ == "__main__":
    main()
