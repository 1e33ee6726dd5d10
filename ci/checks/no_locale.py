#!/usr/bin/env python3
"""Does weft print and read numbers without the locale of the program?

A program may call setlocale(LC_ALL, ""), after which printf and strtod use a comma for the point,
and letters depend on the language.  The library, the plugins and the bindings use kit/print.h,
wf_lower of base.h or own code instead.  The tool does not call setlocale,
so it has the locale "C".
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = {".c", ".h", ".cc", ".hpp"}
# The one place; and texts without numbers that have a point, in a file that needs only the C library.
EXEMPT = {"core/kit/print.c", "core/kit/trust.c"}
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])\'', re.S)
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
REFUSED = re.compile(
    r"\b(strto(?:d|f|ld)|atof|is(?:alpha|digit|alnum|space|upper|lower|print|punct|graph|blank|xdigit|cntrl)"
    r"|to(?:lower|upper)|strn?casecmp|strcoll|strxfrm|v(?:sn?|f|d|as)?printf)\s*\("
)
FORMATTED = re.compile(r"\b((?:sn?|f|d|as)?printf|[sf]?scanf)\s*\(")
NUMBER = re.compile(r"%[-+ #0]*(?:'[-+ #0]*[^%\n]|(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[lL]?[fFeEgGaA])")
SETLOCALE = re.compile(r"\bsetlocale\s*\(")

problems = []


def blank(match):
    """A comment or character becomes blanks; a string stays."""
    return match.group(1) or re.sub(r"[^\n]", " ", match.group(0))


def arguments(text, at):
    """The text from AT, after a parenthesis, to the matching one; strings count as such."""
    depth, end = 1, at
    while depth > 0 and end < len(text):
        found = LITERAL.match(text, end)
        if found:
            end = found.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end]


def check(path):
    name = path.relative_to(ROOT).as_posix()
    text = NOISE.sub(blank, path.read_text())
    code = LITERAL.sub(lambda m: '"' + re.sub(r"[^\n]", " ", m.group(1)) + '"', text)
    found = [(m.start(), "setlocale changes the program's numbers") for m in SETLOCALE.finditer(code)]
    if not name.startswith("cli/") and name not in EXEMPT:
        for m in REFUSED.finditer(code):
            found.append((m.start(), f"{m.group(1)} depends on the locale; use kit/print.h"))
        for m in FORMATTED.finditer(code):
            # "%" PRIu64 " a": a macro completes the conversion
            texts = "d".join(LITERAL.findall(arguments(text, m.end()))).replace("%%", "")
            if NUMBER.search(texts):
                found.append(
                    (m.start(), f"{m.group(1)} with a number depends on the locale; use kit_print")
                )
    for at, message in sorted(found):
        problems.append(f"{name}:{text.count(chr(10), 0, at) + 1}: {message}")


files = [
    path
    for folder in ("core", "files", "parallel", "feed", "plugins", "cli", "bindings")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in CODE
]
for path in files:
    check(path)
for problem in problems:
    print(problem)
if problems:
    sys.exit(1)
print(f"no_locale: {len(files)} files")
