"""The contracts of C in the words of Python: docstrings of the generated members.

Names of arguments are in capitals in C, and `so` here.  What only C has goes: ownership, NULL handles, sizes of structs,
buffers.  A status is an exception, what a function writes is its result, and functions, classes and constants have the
names or values of Python."""
import functools
import re
import textwrap

import values
from contract import SAME, same
from python_texts import TEXTS

EXCEPTIONS = {"NO_MEMORY": "OutOfMemoryError", "SYSTEM": "SystemCallError"}  # that are not called as their status
INNER = ("weft_alloc", "weft_free", "weft_memory_copy", "weft_memory_fill", "weft_fail", "weft_dtype_bytes")  # used inside of other calls
NUMBERS = {"UINT32_MAX": "2**32 - 1", "UINT64_MAX": "2**64 - 1", "SIZE_MAX": "2**64 - 1", "INT64_MAX": "2**63 - 1", "an int64_t": "an integer of 64 bits"}

# Phrases of C, before names are replaced, and what Python says instead.
PHRASES = [(re.compile(pattern), new) for pattern, new in (
    # marks for the description; loops that show a call
    (r"\s*\[(?:any thread|[A-Z_, ]+: [^\[\]]+|\w+ entries)\]", ""),
    (r":? for \(int64_t .*$", "."),
    (r"\s*\((?:see )?\w+\.h\)|,? in \w+\.h\b", ""),
    (r"\s*weft_plugin\.h declares the struct\.|[;,] do not call weft_\w+", ""),
    (r"\s*STREAM NULL is the default stream\.|; an empty shard reads nothing[^.]*|NULL: WEFT_\w+_COUNT\b|, WEFT_\w+ specs\b", ""),
    # ownership
    (r"\s*(?:The caller|Callers) (?:then |still |may )?(?:releases?|closes?|frees?)[^.]*\.", ""),
    (r",? that the caller releases|[;,](?: and| otherwise)* the caller (?:releases|closes|frees) (?:\*?[A-Z_]+|them|it)\b", ""),
    (r"(?<=\.)\s*[A-Z_]+ has room for [^.;]*[.;]", ""),
    (r"\s*(?:[A-Z_]+ and the \w+ of )?(?:\*?[A-Z_]+|The \w+|They) (?:is|are) borrowed[^.]*\.", ""),
    (r"[;,] borrowed\b(?:, valid as long as [^.;]*)?", ""),
    (r"(^|[.;] ?)\s*Borrowed\b[^.;]*(?:[.;]|$)", r"\1"),
    (r"(^|[.;] ?)\s*[Vv]alid as long as [^.;]*(?:[.;]|$)", r"\1"),
    (r"\s*\*OUT keeps a reference to [A-Z_]+\.", ""),
    (r"(?:^|\s+)(?:borrowed|A constant text\.)$", ""),
    (r"(\w)(?:; a|\.? A)ll (?:of it is|arguments are) copied\.", r"\1."),
    # handles that are NULL
    (r"[;,]? ?(?:and )?(?:-1 and 0|NULL and 0|-1|0|NULL|false),? (?:and )?for NULL(?=[.;,]|$)", ""),
    (r",? and for NULL(?=[.;,])", ""),
    (r"\s*False for NULL\.", ""),
    (r"\s*Accepts NULL[^.]*\.|\s*For NULL [^.]*\.", ""),
    (r", or (?:[A-Z]+ )?is NULL(?=\.)", ""),
    (r"(?<=, )([A-Z]+) is NULL or (?=has)", r"\1 "),
    (r"NULL arguments(?:, a COUNT of 0)?(?:(?:,| and) a bad struct_size(?: or [A-Z_]+_SIZE)?)?", "Wrong arguments"),
    # structs, buffers, counts, works
    (r", whose struct_size the caller sets(?:,(?= for\b))?", ""),
    (r"\s*\b[A-Z_]+_SIZE is sizeof\(weft_\w+\)\.|, or [A-Z_]+_SIZE is another size", ""),
    (r"(?<=[A-Z])\[dims\]", ""),
    (r"[.;]?\s*(?:BUFFER, CAPACITY and LENGTH|TEXT, SIZE and NEEDED) as in [^.]*\.", "."),
    (r"\bBYTES (?=bytes\b)| of DIMS dimensions|\s*An empty shard reads nothing, whatever BYTES is\.", ""),
    (r"\bCopy BYTES\b", "Copy the bytes"),
    (r"\bthe shard is larger than BYTES\b", "the shard is larger than HOST"),
    (r"\bOPTIONS excludes\b", "OPTIONS exclude"),
    (r"\s*[A-Z_]+ may be NULL if COUNT is 0\.", ""),
    (r",? and \*COUNT to their number", ""),
    (r"\bCOUNT 0\b", "an empty list"),
    (r"\b(?:NAME_)?COUNT (?=[a-zA-Z]|`)", ""),
    (r"\s*(?:Unless )?WORK (?:is|may be) NULL[^.]*\.", ""),
    (r", and of weft_alloc and weft_alloc_on\b|, bound plans from weft_bind_options", ""),
    (r"\bthe status of the callback\b", "that of the callback"),
    (r"\bIf the status is\b", "If that is"),
    (r"\bcallback(s?)\b", r"function\1"),
    (r"\bA result of ([A-Z]+) other than WEFT_OK fails\b", r"An exception of \1 fails"),
    (r"\bAnother result than WEFT_OK fails\b", "An exception of it fails"),
    (r"[;,](?: and)? (?:[A-Z]+ )?sets the text(?: of its error)? with weft_fail\b", ""),
    (r"\bif that is the result\b", "if that is the exception"),
    (r" with USER\b,?|`user` and (?=`compute`)", ""),
    (r"[,;] and must still be released\b|[;,] likewise$", ""),
    (r"\bNot collective, local\b|(?<=[.] )Local(?=\.)|^Local(?=\.)", "Not collective"),
    (r"\s*FLAGS: enum \w+\.", ""),
    (r"\bFLAGS \(enum \w+\)", "the keywords"),
    (r"\b[a-z]+->(\w+)", r"`\1`"),
    (r"\bOPTIONS (?:is|are) copied(?:\.|; )", ""),
    # statuses
    (r"WEFT_OK, or the cause\b", "Raise the cause"),
    (r"; weft_last_error has its text", ""),
    (r"\s*Any other status is the error of the work\.", " An error of the work is raised."),
    (r"\breturns? the cause in place of WEFT_OK", "raise the cause"),
    (r"\bgets WEFT_OK\b", "succeeds"),
    (r"\bWEFT_OK: [^.]*\. (?!WEFT_IN_PROGRESS)", ""),
    (r"\bWEFT_OK if\b", "It succeeds if"),
    (r", and return what weft_stream_test would return then", ""),
    (r"\breturn(s?) (its|the|that|an) (error|cause)\b", r"raise\1 \2 \3"),
    (r"\breturned the (error|cause)\b", r"raised the \1"),
)]


class Words:
    """The names of the API in Python."""

    def __init__(self, generator):
        import python  # it imports this file
        self.generator, self.api = generator, generator.api
        self.places = {name: match["place"] for name, match in generator.reach.lines().items() if match["place"] and name not in INNER}
        for entries in generator.members.values():
            self.places |= {member.function: "str()" if member.kind == "str" else generator.place(member) for member, _, _ in entries}
        self.places |= {handle: generator.reach.place(handle) for handle in generator.used_handles()}
        self.places |= {rows[-1].record.removesuffix("_out"): generator.place(member) for entries in generator.members.values()
                        for member, rows, _ in entries if member.kind == "property" and rows and rows[-1].kind == "RECORD"}
        rows = [row for entries in generator.members.values() for _, own, _ in entries for row in own]
        rows += [row for record in generator.maker.records.values() for row in record]
        bits = {row.enum for row in rows if row.kind == "BITS"}
        self.texts = {}  # of values of enums; a bit is a keyword
        for enum, one in self.api["enums"].items():
            by_value = {value: text for text, value in python.choices(self.api, enum)}
            quote = "`" if enum in bits else '"'
            self.texts |= {value["name"]: f"{quote}{by_value[value['value']]}{quote}" for value in one["values"] if value["value"] in by_value}

    def short(self, rows, handle=""):
        """HEADS -> "heads": values of the enums of arguments, of their structs, and of what makes their handles."""
        import python
        handles = {handle, *(row.handle for row in rows)} - {""}
        makers = {id(python.constructor(self.generator, each)) for each in handles}
        rows = [*rows, *(row for entries in self.generator.members.values() for member, own, _ in entries if id(member) in makers for row in own)]
        rows += [field for row in rows if row.record for field in self.generator.maker.records[row.record]]
        enums = {row.enum for row in rows if row.enum and row.kind != "BITS"}
        return {text.upper().replace("-", "_"): f'"{text}"' for enum in enums for text, _ in python.choices(self.api, enum)}

    def replaced(self, text, rows=(), handle=""):
        """Exceptions, functions, classes and constants by their names or values in Python."""
        text = re.sub(r"\bWEFT_ERR_([A-Z_]+)\b",
                      lambda m: "weft." + EXCEPTIONS.get(m[1], m[1].title().replace("_", "") + "Error"), text)
        text = re.sub(r"\s*\((weft_\w+)\)|; see (weft_\w+)", lambda m: m[0] if (m[1] or m[2]) in self.places else "", text)
        text = re.sub(r"\bweft_\w+\b", lambda m: self.places.get(m[0], m[0]), text)
        for old, new in NUMBERS.items():
            text = text.replace(old, new)
        short = self.short(rows, handle)

        def constant(match):
            name = match[0]
            if name in self.texts:
                return self.texts[name]
            if name in self.api["constants"]:
                return number(self.api["constants"][name]["value"])
            return short.get(name, name)
        text = re.sub(r'(?<!")\b[A-Z][A-Z_0-9]+\b', constant, text)
        return re.sub(r"\bfalse\b", "False", re.sub(r"\btrue\b", "True", text.replace("NULL", "None")))


def number(text):
    """The value of a constant of C, in Python."""
    bare = re.sub(r"\bU?INT64_C\b|(?<=\d)[uUlL]+\b", "", text)
    if not re.fullmatch(r"[\s()<*+-]*(?:(?:0x[0-9a-fA-F]+|\d+)[\s()<*+-]*)+", bare):
        return text
    value = eval(bare)  # noqa: S307 - of digits and operators
    return f"2**{value.bit_length() - 1}" if value >= 2**20 and value & (value - 1) == 0 else str(value)


def plain(text):
    """The text of C in one line, without what only C has."""
    text = " ".join(text.split())
    for pattern, new in PHRASES:
        text = pattern.sub(new, text)
    return text


def results(text, rows, result, kind):
    """What a function writes is its result."""
    outs = [row for row in rows if row.is_out and row.kind not in ("UNUSED", "COUNT")]
    text = re.sub(r"^Write (.*?),? to (?:BUFFER|TEXT)\b", r"Return \1", text)
    text = re.sub(r"(,? and) write (.*?) to (?:BUFFER|TEXT)\b", r"\1 return \2", text)
    for row in outs:
        text = re.sub(rf"(?<=\.)\s*\*?{row.c_name.upper()} may be NULL\.|;\s*\*?{row.c_name.upper()} may be NULL\b", "", text)
    if len(outs) == 1:
        name = outs[0].c_name.upper()
        text = re.sub(rf"^Set \*{name} to ", "Return ", text)
        text = re.sub(rf"\bset \*{name} to ", "return ", text)
        text = re.sub(rf"^(?:Write|Copy) (.*?) to \*?{name}\b", r"Return \1", text)
        text = re.sub(rf"\bwrite (.*?) to \*{name}\b", r"return \1", text)
        text = re.sub(rf"\b([Ss])et \*{name}\b", lambda m: "Return the figures" if m[1] == "S" else "return the figures", text)
        text = re.sub(r"^Write ", "Return ", text)
        text = re.sub(rf"\b{name}\[(\w)\]", r"entry \1 of the result", text)
        text = re.sub(rf"\*{name}\b", "the result", text)
    elif outs:
        all_of_them = r",? (?:and )?".join(rf"\*{row.c_name.upper()}" for row in outs)
        text = re.sub(rf"^Set ({all_of_them}) to ", r"Return \1, ", text)
        returned = " Returns (" + ", ".join(f"`{row.name}`" for row in outs) + ")."
        before, error, after = re.match(r"(.*?)( WEFT_ERR_[A-Z_]+\b[^.]*?:|$)(.*)", text).groups()
        text = before + ("" if before.startswith("Return *") else returned) + error + after
    if result and outs and result.kind == "BOOL":
        text = re.sub(r"\b[Ff]alse if\b", "None if", text)
    if kind == "property":
        text = re.sub(r"^Return (\w)", lambda m: m[1].upper(), text)
    return text


def named(text, member, rows, fields=()):
    """Names of arguments: `so`; the object itself is `self`, and a struct of options is the keywords, with FIELDS."""
    names = {row.c_name.upper(): f"`{row.name}`" for row in fields if row.name}
    for index, row in enumerate(rows):
        name = "self" if index == member.self_index else row.name or row.c_name
        upper = row.c_name.upper()
        names[upper] = f"`{name}`"
        if index == member.self_index:
            text = re.sub(rf"\s*\b{upper} may be NULL[^.]*\.", "", text)
        elif row.kind == "RECORD" and not row.is_out:
            names[upper] = "the keywords" if row.c_name in ("options", "sizes") else f"the {name}"
            text = re.sub(rf"(;?)\s*\b{upper} may be NULL(?:\.|(; ))", lambda m: " " if m[2] else m[1] and ".", text)
            text = re.sub(rf"\b{upper}->(\w+)", r"`\1`", text)
    for one, other in (("PATH", ", or of the file at PATH"), ("PATH", ", or the file at PATH"), ("TEXT", "that TEXT describes, or ")):
        text = text if one in names else text.replace(other, "" if one == "PATH" else "of ")
    return re.sub(r"\*?\b([A-Z][A-Z_]*)\b", lambda m: names.get(m[1], m[0]), text)


def tidy(text):
    text = re.sub(r"\s+([.;,])(?!\.)", r"\1", " ".join(text.split()))
    text = re.sub(r"(?<!\.)\.(?: \.|\.(?= [A-Zw`]|$))|;\.", ".", text).strip(" ;")
    text = re.sub(r"(^|(?<=[^.]\. ))(?!weft\b|docs/|\w+_)([a-z])", lambda m: m[2].upper(), text)
    return text + ("." if text and text[-1] not in ".!?" else "")


def wrapped(text):
    """The first sentence, then the rest, then a line for each error."""
    first, *errors = re.split(r"(?<=\.) (?=(?:weft\.\w+|Index)Error\b[^.]*?:)", text)
    sentence, *rest = re.split(r"(?<=[^.]\.) ", first, maxsplit=1)
    parts = [fill(sentence), fill(" ".join(rest)), "\n".join(map(fill, errors))]
    return "\n\n".join(part for part in parts if part)


def fill(text):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


@functools.cache
def words_of(generator):
    return Words(generator)


def figures(generator, text, rows):
    """A struct says more than `the figures`."""
    if not re.match(r"The figures\b", text):
        return text
    about = generator.api["structs"].get(rows[-1].record.removesuffix("_out"), {}).get("text")
    if about:
        return plain(about)
    names = [row.name for row in generator.maker.records[rows[-1].record] if row.name and row.kind not in ("UNUSED", "COUNT")]
    return re.sub(r"^The figures[^.]*\.", f"A dictionary of {', '.join(f'`{name}`' for name in names)}.", text)


def contract(generator, member, rows, result):
    """The docstring of a member."""
    if member.function in TEXTS:
        return wrapped(tidy(words_of(generator).replaced(named(TEXTS[member.function], member, rows), rows, member.handle)))
    text = plain(member.one["text"])
    text = SAME.sub(lambda _: f"As {same(member.function, generator.api)}, ", text, count=1) if SAME.match(text) else text
    if values.refused(member.one, result) is not None:
        text = values.REFUSED.sub("", text) + " IndexError: " + values.REFUSED.search(text)[2] + "."
    if result and result.is_absent:
        text = values.ABSENT.sub("None: ", text)
    if "WEFT_IN_PROGRESS" in text:
        text = text.replace("WEFT_OK", "True").replace("WEFT_IN_PROGRESS", "False")
    text = figures(generator, results(text, rows, result, member.kind), rows)
    if any(row.kind == "TIMEOUT" and row.name for row in rows):
        before_errors = re.search(r" WEFT_ERR_[A-Z_]+\b[^.()]*?:|$", text).start()
        text = f"{text[:before_errors]} TIMEOUT_NS is in seconds; None: no limit.{text[before_errors:]}"
    fields = [field for row in rows if row.record and not row.is_out for field in generator.maker.records[row.record]]
    text = words_of(generator).replaced(named(text, member, rows, fields), rows, member.handle).strip(" .;")
    if not text or (member.kind == "property" and re.match(r'""|None|\d', text)):
        text = f"The {member.name.replace('_', ' ')}; {text}"
    return wrapped(tidy(text))


def field(generator, member, row, text):
    """The docstring of a property that is a field of a struct."""
    words = words_of(generator)
    known = TEXTS.get(f"{member.one['arguments'][-1]['type'].split(' ')[0]}.{row.c_name}")
    if known is not None:
        return wrapped(tidy(known))
    text = plain(text).removeprefix(f"{row.c_name}: ")
    if row.is_absent:
        text = values.ABSENT.sub("None: ", text)
    if row.enum:
        known = ", ".join(words.texts[value["name"]] for value in words.api["enums"][row.enum]["values"] if value["name"] in words.texts)
        text = re.sub(r"\b(?:bits of )?enum weft_\w+", 'Such as "f32"' if row.enum == "weft_dtype" else f"One of {known}", text)
    name = row.name.replace("_", " ")
    text = re.sub(r"^ns\b", "nanoseconds", re.sub(r"^1: ", "Whether ", text))
    text = words.replaced(text, [row], member.handle).strip(" .;")
    if re.match(r"(?:of|from|for|by|that|in|as) ", text):
        text = f"{'bytes' if name.startswith('bytes ') and text.startswith('of ') else name} {text}"
    elif re.match(r'""|None|\d|"|[a-z]+$', text) or not text:
        text = f"The {name}; {text}"
    return wrapped(tidy(text))


def described(generator, text):
    """The docstring of a class, from the text of its handle."""
    return wrapped(tidy(words_of(generator).replaced(plain(text))))


def check_texts(generator):
    """Texts for what is in no header."""
    known = set(generator.api["functions"])
    known |= {f"{struct}.{field['name']}" for struct, one in generator.api["structs"].items() for field in one["fields"]}
    return [f"python_texts.py: {name} is in no header" for name in TEXTS if name not in known]


def names(generator):
    """The module by which errors name things as Python does: functions, fields of structs, and constants of C."""
    words = words_of(generator)
    found = {name: place for name, place in words.places.items() if place.startswith("weft.") and not place.startswith("weft._")}
    found |= words.texts
    fields = {f"{struct}.{field['name']}": generator.maker.renamed.get(f"{struct}.{field['name']}") or values.python_name(field["name"])
              for struct, one in generator.api["structs"].items() for field in one["fields"]}
    found |= {name: other for name, other in fields.items() if name.partition(".")[2] != other}
    rows = "".join(f"    {name!r}: {text!r},\n" for name, text in sorted(found.items()))
    return f'"""Names of C, and what Python says (api/docstrings.py).  Other fields of structs are arguments of the same name."""\n\nNAMES = {{\n{rows}}}\n'
