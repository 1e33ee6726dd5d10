#!/usr/bin/env python3
"""No circle of calls through more than three files of a library, of the tool, of the kit, of a plugin or of the Python
extension; and no circle of includes among their files.

Reads the sources, so it needs no build.  File A calls file B if A names a function that B defines and
other files can see; taking its address counts.  What an inline function of a header names counts for
the files that use it.  Tables of callbacks, such as wf_modules, are data: they are the way for a lower
module to reach a higher one.

A circle is a largest set of files in which every file reaches every other one through calls.
`circles.py NAME...` checks some of the programs below; `circles.py --self-test` checks this script.
"""
import collections
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_CIRCLE = 3
GPU = ("plugins/gpu", "plugins/common")
# What is compiled into one library or program: folders, and what of them is not in it.
PROGRAMS = {
    "core": (("core",), ()),
    "files": (("files",), ()),
    "parallel": (("parallel",), ()),
    "feed": (("feed",), ()),
    "kit": (("kit",), ()),
    "bindings": (("bindings",), ()),
    "cli": (("cli",), ()),
    "gloo-cpu": (("plugins/gloo-cpu", "plugins/common"), ()),
    "nccl": ((*GPU, "plugins/xccl", "plugins/nccl"), ("plugins/gpu/hip",)),
    "rccl": ((*GPU, "plugins/xccl", "plugins/rccl"), ("plugins/gpu/cuda", "plugins/gpu/comm/gpu_symm.c")),
    "nvshmem": ((*GPU, "plugins/nvshmem"), ("plugins/gpu/hip",)),
}
PUBLIC = ("core", "core/include", "files/include", "parallel/include", "feed/include")  # headers that programs include
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*$", re.M | re.S)
NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
WORD = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
# A function's name where a struct's tag stands is the struct's.
TAG = re.compile(r"\b(?:struct|union|enum)\s+\w+")

Function = collections.namedtuple("Function", "name shared words")


def code_of(path):
    text = COMMENT_OR_TEXT.sub(" ", path.read_text())
    return TAG.sub(" ", DIRECTIVE.sub("", text))


def functions_of(text):
    """Functions of TEXT: clang-format puts the braces of their bodies in column one."""
    lines, head = text.split("\n"), []
    open_at = None
    for number, line in enumerate(lines):
        if open_at is not None:
            if line.startswith("}"):
                signature = " ".join(head)
                match = NAME.search(signature)
                if match:
                    yield Function(match.group(1), not re.search(r"\bstatic\b", signature),
                                   set(WORD.findall("\n".join(lines[open_at:number]))))
                open_at, head = None, []
        elif line.rstrip() == "{":
            open_at = number
        elif line.strip() and not line.rstrip().endswith((";", "}")):
            head = head + [line] if line.startswith((" ", "\t")) or head else [line]
        else:
            head = []


def sources_of(folders, without=(), root=ROOT):
    """The C files of FOLDERS of ROOT, without some files or folders."""
    left_out = [root / name for name in without]
    for folder in folders:
        for path in sorted((root / folder).rglob("*.[ch]")):
            if path.parent.name == "outside":
                continue  # functions that have another body in libweft
            if not any(path == other or other in path.parents for other in left_out):
                yield path


def read_sources(paths, root=ROOT):
    """({shared function: file that defines it}, {file: words}, {inline function: words})"""
    home, words, inline = {}, {}, {}
    for path in paths:
        name = str(path.relative_to(root))
        text = code_of(path)
        if path.suffix == ".h":
            inline.update({f.name: f.words for f in functions_of(text)})
            continue
        own = list(functions_of(text))
        home.update({f.name: name for f in own if f.shared})
        words[name] = set(WORD.findall(text)) - {f.name for f in own}
    return home, words, inline


def include_graph(paths, root=ROOT):
    """{file: {file it includes: as it is written}}; a header is sought as compilers do, then in all folders."""
    paths = list(paths)
    places = sorted({path.parent for path in paths} | {root / name for name in PUBLIC})
    graph = {}
    for path in paths:
        found = graph.setdefault(str(path.relative_to(root)), {})
        for header in INCLUDE.findall(path.read_text()):
            target = next((place / header for place in (path.parent, *places) if (place / header).is_file()), None)
            if target is not None:
                found[str(target.resolve().relative_to(root))] = header
    for targets in list(graph.values()):
        for target in targets:
            graph.setdefault(target, {})
    return graph


def words_with_inline(start, inline):
    """START and what the inline functions in it name, in turn."""
    found, left = set(start), [w for w in start if w in inline]
    while left:
        new = inline[left.pop()] - found
        found |= new
        left += [w for w in new if w in inline]
    return found


def call_graph(paths, root=ROOT):
    """{file: {file it calls: one function}}"""
    home, words, inline = read_sources(paths, root)
    graph = {name: {} for name in words}
    for name, start in words.items():
        for word in sorted(words_with_inline(start, inline)):
            if home.get(word, name) != name:
                graph[name].setdefault(home[word], word)
    return graph


def reachable(graph, start):
    found, left = set(), [start]
    while left:
        for target in graph[left.pop()]:
            if target not in found:
                found.add(target)
                left.append(target)
    return found


def circles(graph):
    """Sets of files that reach each other, largest first."""
    reach = {name: reachable(graph, name) for name in graph}
    sets = {frozenset(other for other in reach[name] if name in reach[other])
            for name in graph if name in reach[name]}
    return sorted(sets, key=lambda files: (-len(files), sorted(files)))


def describe(files, graph):
    lines = [f"circle of {len(files)} files: {', '.join(sorted(files))}"]
    for name in sorted(files):
        for target in sorted(set(graph[name]) & files):
            lines.append(f"    {name} -> {target}: {graph[name][target]}")
    return "\n".join(lines)


def check(program):
    paths = list(sources_of(*PROGRAMS[program]))
    graph, includes = call_graph(paths), include_graph(paths)
    found, rings = circles(graph), circles(includes)
    bad = [files for files in found if len(files) > MAX_CIRCLE]
    for files in bad:
        print(describe(files, graph))
    for files in rings:
        print("includes: " + describe(files, includes))
    if not bad and not rings:
        largest = max((len(files) for files in found), default=1)
        print(f"circles: {program}: {len(graph)} files, {sum(map(len, graph.values()))} edges, largest circle "
              f"{largest}, at most {MAX_CIRCLE}")
    return 1 if bad or rings else 0


# ---- self-test: a ring of four files, with one thing at a time that breaks it ----

HEADER = "static inline int call_d(void)\n{\n    return d();\n}\n"
RING = {
    "a.c": 'int a(void)\n{\n    return b(); /* not c() */\n}\n',
    "b.c": "static int help(int x)\n{\n    return c() + x;\n}\n\nint b(void)\n{\n    return help(1);\n}\n",
    "c.c": '#include "in.h"\n\nint c(int (*)(void),\n      int y)\n{\n    return call_d();\n}\n',
    "d.c": "static int (*const table[])(void) = {a};\n\nint d(void)\n{\n    return table[0]();\n}\n",
    "in.h": HEADER,
}
BREAKS = {
    "comment": ("a.c", "return b();", "return 0; // b()\n"),
    "text": ("a.c", "return b();", 'return "b()"[0];'),
    "field": ("a.c", "return b();", "return x->b();"),
    "struct": ("a.c", "return b();", "return sizeof(struct b);"),
    "static": ("b.c", "return c() + x;", "return x;"),
    "inline": ("in.h", "d()", "0"),
    "address": ("d.c", "{a}", "{0}"),
    "own": ("c.c", "int c(", "static int call_d(void)\n{\n    return 0;\n}\n\nint c("),
}


def circle_sizes(files, graph_of=call_graph):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in files.items():
            (root / name).write_text(text)
        return [len(found) for found in circles(graph_of(list(sources_of((".",), root=root)), root))]


def self_test():
    sizes = circle_sizes(RING)
    if sizes != [4]:
        print(f"circles: a ring of four files is seen as {sizes}")
        return 1
    for what, (name, old, new) in BREAKS.items():
        assert old in RING[name], what
        sizes = circle_sizes({**RING, name: RING[name].replace(old, new)})
        if sizes:
            print(f"circles: a ring broken by {what} is seen as {sizes}")
            return 1
    headers = {"x.h": '#include "y.h"\n', "y.h": '# include "x.h"\n', "z.c": '#include "x.h"\n'}
    for text, want in (('# include "x.h"\n', [2]), ("#include <x.h>\n", [])):
        sizes = circle_sizes({**headers, "y.h": text}, include_graph)
        if sizes != want:
            print(f"circles: headers that include each other by {text.strip()} are seen as {sizes}")
            return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if self_test() != 0:
        return 1
    return max(map(check, sys.argv[1:] or PROGRAMS))


if __name__ == "__main__":
    sys.exit(main())
