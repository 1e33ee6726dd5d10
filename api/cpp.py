#!/usr/bin/env python3
"""Write the C++ header of a library: cpp.py DESCRIPTION.json LIBRARY OUT TEMPLATE [TEMPLATE OF A LIBRARY BELOW...]

The first TEMPLATE is C++ with the members that a person wrote, and marks where generated text goes:

    /* @forward */    declarations of all classes
    /* @members */    in a class: its generated members
    /* @classes */    the handles that have no class in the template
    /* @functions */  members whose arguments or results are classes that come later, and free functions

A C function that the template calls is written by hand.  Every other function of the description becomes a member or
a free function by the rules of docs/api.md.  A function for which the rules have no answer fails the build.  The header
includes those of the libraries below, whose classes are whole: functions of LIBRARY that take them first are free ones."""
import functools
import pathlib
import re
import sys

import bound
from cpp_members import KEYWORDS, Member, Unmapped
from cpp_text import class_head, comment, declaration, definition, inline_definition, sentence

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
CLASS = re.compile(r"^class (\w+)(?: *:[^;{]*|\s*)\{\n(.*?)^\};", re.S | re.M)
OF_HANDLES = {"get", "out", "reset", "detach", "add_reference", "status", "result"}  # handle.hpp


class Template:
    """The text that a person wrote: its classes, and the C functions that it calls."""

    def __init__(self, path, functions):
        path = path.resolve()
        self.name = str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)
        self.text = path.read_text(encoding="utf-8")
        code = COMMENT.sub("", self.text)
        self.called = {name for name in re.findall(r"\bweft_\w+", code) if name in functions}
        found = list(CLASS.finditer(self.text))
        self.classes = {one[1]: one[2] for one in found}  # name: what is in its braces
        marked = self.text.find("/* @classes */")
        self.before = {one[1] for one in found if one.start() < marked}

    @functools.lru_cache(maxsize=None)
    def names(self, owner):
        """The functions that a person declared in the class OWNER, or in the namespace if it is empty."""
        text = self.classes[owner] if owner else CLASS.sub("", self.text)
        text = COMMENT.sub("", re.sub(r"#.*", "", text))
        indent = "    " if owner else ""
        return frozenset(re.findall(rf"^{indent}(?:[^\s{{}}#][^(\n]*?[ *&])?(\w+)\(", text, re.M))


class Header:
    def __init__(self, description, library, template, below):
        self.all = description
        self.functions, self.handles = description["functions"], description["handles"]
        self.library, self.template = library, template
        self.problems = []
        self.members = {}  # of each class, and of "" for free functions
        own = [handle for handle, one in self.handles.items() if one["library"] == library]
        self.generated = [handle[5:] for handle in own if handle[5:] not in template.classes]
        self.below = {name for one in below for name in one.classes}
        self.below |= {handle[5:] for handle in self.handles if handle not in own}

    def is_ref(self, handle):
        return handle[5:] + "_ref" in self.below | set(self.template.classes)

    def owns(self, handle):
        return self.handles[handle]["library"] == self.library

    def build(self):
        classes = self.below | set(self.template.classes) | set(self.generated)
        lifetime = {one.get(what) for one in self.handles.values() for what in ("release", "retain")}
        for handle in self.generated:
            self._check_release("weft_" + handle)
        for name, function in self.functions.items():
            if function["library"] != self.library or name in self.template.called or name in lifetime:
                continue
            try:
                member = Member(self, name, function)
                self._check_name(member, classes)
                self.members.setdefault(member.owner, []).append(member)
            except Unmapped as problem:
                self.problems.append(f"{function['header']}: {name}: {problem}.  Write a function that calls {name} by hand, "
                                     f"in {self.template.name}")

    def _check_release(self, handle):
        release = self.handles[handle].get("release")
        if not release:
            self.problems.append(f"{self.handles[handle]['header']}: {handle} has no function that releases it.  "
                                 f"Write the class {handle[5:]} by hand, in {self.template.name}")
        elif len(self.functions[release]["arguments"]) != 1:
            self.problems.append(f"{self.handles[handle]['header']}: {release} has more arguments than the handle.  "
                                 f"Write the class {handle[5:]} by hand, in {self.template.name}")

    def _check_name(self, member, classes):
        """Raise Unmapped unless C++ permits the name and no other function has it."""
        name, owner = member.name, member.owner
        scope = f"weft::{owner}" if owner else "weft"
        if name in KEYWORDS:
            raise Unmapped(f"`{name}` is a keyword of C++")
        if owner and (name in OF_HANDLES or name == owner) or not owner and name in classes:
            raise Unmapped(f"{scope}::{name} has another meaning")
        if any(other.name == name for other in self.members.get(owner, ())):
            other = next(other for other in self.members[owner] if other.name == name)
            raise Unmapped(f"{scope}::{name} is {other.c_name} already")
        if owner in self.template.classes or not owner:
            by_hand = self.template.names(owner)
            if owner and owner + "_ref" in self.template.classes:
                by_hand |= self.template.names(owner + "_ref")
            if name in by_hand:
                raise Unmapped(f"{scope}::{name} exists, written by hand")
            if owner and "/* @members */" not in self.template.classes[owner]:
                raise Unmapped(f"the class {owner} has no mark @members")

    # ---- text ----

    def order(self):
        """The generated classes: each after those that its members use, as far as there is such an order."""
        made, open_ = [], set()

        def place(name):
            if name in open_ or name in made:
                return
            open_.add(name)
            for member in self.members.get(name, ()):
                for used in sorted(member.uses):
                    if used in self.generated:
                        place(used)
            made.append(name)

        for name in self.generated:
            place(name)
        return made

    def class_text(self, name, known, later):
        handle = f"weft_{name}"
        one = self.handles[handle]
        kind, base = "Move-only.", f"detail::unique<detail::ref<{handle}>, {handle}, {one.get('release')}>"
        if "retain" in one:
            kind, base = "Shared.", f"detail::shared<{handle}, {one['retain']}, {one.get('release')}>"
        text = sentence(one["text"])
        about = f"{kind}  {handle} ({one['header']})" + (f": {text}" if text else ".")
        using = "shared" if "retain" in one else "unique"
        members = self.member_text(name, known | {name}, later)
        return "\n".join([*comment(about, ""), *class_head(name, base), "{", "public:", f"    using {using}::{using};",
                          *(["", members] if members else []), "};"])

    def member_text(self, name, known, later):
        """The members of a class.  KNOWN classes are complete; a member that uses another one goes to LATER."""
        lines = []
        for member in self.members.get(name, ()):
            lines += comment(member.about, "    ")
            if member.uses <= known:
                lines += definition(member, "    ")
            else:
                self._check_defaults(member, known)
                lines += declaration(member, "    ", ";")
                later.append(member)
        return "\n".join(lines)

    def _check_defaults(self, member, known):
        """A default `{}` needs the whole class."""
        for one in member.parameters:
            if one.default == "{}" and one.class_ not in known:
                self.problems.append(f"{member.function['header']}: {member.c_name}: by default, an argument is an empty {one.class_}, "
                                     f"a class that comes after {member.owner}.  Put it before {member.owner}, in {self.template.name}")

    def text(self):
        later, known = [], set(self.below)

        def fill(found):
            known.add(found[1])
            members = self.member_text(found[1], set(known), later)
            return re.sub(r"\n*    /\* @members \*/", lambda _: "\n\n" + members if members else "", found[0])

        out = CLASS.sub(fill, self.template.text)
        known = self.below | self.template.before
        classes = []
        for name in self.order():
            classes.append(self.class_text(name, known, later))
            known.add(name)
        forward = sorted(set(self.template.classes) | set(self.generated))
        functions = ["\n".join(inline_definition(member)) for member in later]
        functions += ["\n".join(comment(member.about, "") + inline_definition(member)) for member in self.members.get("", ())]
        for mark, text in (("forward", "\n".join(f"class {name};" for name in forward)),
                           ("classes", "\n\n".join(classes)), ("functions", "\n\n".join(functions))):
            out = out.replace(f"/* @{mark} */", text)
        return out


def main():
    description, library, out, *templates = sys.argv[1:]
    known, out = bound.read(pathlib.Path(description)), pathlib.Path(out)
    template, *below = (Template(pathlib.Path(one), known["functions"]) for one in templates)
    made = Header(known, library, template, below)
    made.build()
    text = made.text()
    if made.problems:
        sys.exit("\n".join(made.problems))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
