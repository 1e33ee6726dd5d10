#!/usr/bin/env python3
"""Write the mechanical part of the Python extension: python.py DESCRIPTION.json REACH.txt BY_HAND.pyi FOLDER PACKAGE

FOLDER gets the tables of the handles, enums and structs, and a file per public header with the members that its functions
become.  PACKAGE gets _weft.pyi, the hints of BY_HAND.pyi, which a person writes, and of the generated members; _generated.py, which
names what `import weft` offers as it is; and _names.py, by which errors name things as Python does.
A function that needs a person's decision is an error, unless REACH.txt says where it is written by hand or why Python
does not have it."""
import functools
import pathlib
import sys

import bound
import docstrings
import members
import reach
import stubs
import values

LIMIT = 12  # CALL_ARGUMENTS, and OPTION_NAME
PLACES = ("CONTEXT", "ARRAY", "HOST", "STREAM")  # kinds that set_places of call.c sets
QUICK = {"weft_mesh", "weft_spec"}
MADE = {"BOOL": "PyBool_FromLong", "I32": "PyLong_FromLong", "I64": "PyLong_FromLongLong", "U32": "PyLong_FromUnsignedLong",
        "U64": "PyLong_FromUnsignedLongLong", "SIZE": "PyLong_FromSize_t", "F64": "PyFloat_FromDouble"}  # objects of results
SHARD_FACTS = {"memory": ".data = one->memory",
               "shard": ".dims = one->shard->dims, .shape = one->shard->shape, .offset = one->shard->offset",
               "strides": ".strides = one->strides",
               "spec": ".spec = one->spec, .dtype = weft_spec_dtype(one->spec)", "is_written": ".is_read_only = !one->is_written"}


def fail(problems):
    sys.exit("\n".join(problems))


class Generator:
    def __init__(self, description, decided):
        self.api, self.reach = description, decided
        fields = {name: match["name"] for name, match in decided.lines().items() if "." in name}
        self.maker = values.Maker(description, {name for name, other in fields.items() if not other}, fields)
        self.members = {}  # header -> list of (member, rows, result)
        self.counters = set()
        self.problems = []

    def collect(self):
        lines = self.reach.lines()
        structural = {one.get(word) for one in self.api["handles"].values() for word in ("release", "retain")}
        for name, one in self.api["functions"].items():
            match = lines.get(name)
            if match and not match["name"]:
                continue  # by hand, or left out
            if name in structural:
                continue
            wanted = self.reach.handle_of(match["class"], self.api["handles"]) if match and match["class"] else ""
            member = members.member_of(name, one, wanted)
            member.name = match["name"] if match else values.python_name(member.name)
            member.public = match["public"] or "" if match else ""
            try:
                self.add(member)
            except values.Undecided as reason:
                self.problems.append(
                    f"{one['header']}: {name}: {reason}; write it by hand in bindings/python/src and state its place in "
                    f"bindings/python/reach.txt (`{name} = weft.PLACE`), or why Python does not have it (`{name} - REASON`)")
        for struct, direction in self.reach.structs:
            self.maker.record(struct, direction if direction == "call" else direction == "out", skip=True)
        known = set(self.api["functions"])
        known |= {f"{struct}.{field['name']}" for struct, one in self.api["structs"].items() for field in one["fields"]}
        self.problems += [f"reach.txt: {name} is in no header" for name in lines if name not in known]
        for handle in self.api["handles"]:
            made = constructor(self, handle)
            if made:
                made.kind, made.name = "constructor", self.reach.class_name(handle)
        self.check_names()
        if self.problems:
            fail(self.problems)

    def add(self, member):
        one = member.one
        rows = self.maker.rows(member.function, one, member.self_index)
        result = self.maker.result(one)
        if member.kind in ("str", "hash") and self.reach.is_by_hand(member.handle):
            raise values.Undecided("its class is written by hand")
        if one["variadic"]:
            raise values.Undecided("it takes any number of arguments")
        if len(rows) > LIMIT:
            raise values.Undecided(f"it has more than {LIMIT} arguments")
        self.counters |= {row.count for row in rows + ([result] if result else []) if row.count}
        self.members.setdefault(one["header"], []).append((member, rows, result))

    def check_names(self):
        seen = {}
        for entries in self.members.values():
            for member, _, _ in entries:
                key = (member.handle, member.name)
                if key in seen:
                    self.problems.append(f"{member.function} and {seen[key]} are both {self.place(member)}; "
                                         f"write `{member.function} as NAME` in reach.txt")
                seen[key] = member.function

    def place(self, member):
        """Where users find it."""
        if member.public or member.kind == "constructor":
            return member.public or self.reach.place(member.handle)
        return f"{self.reach.place(member.handle)}.{member.name}" if member.handle else f"weft.{member.name}"

    # ---- C ----

    def used_handles(self):
        """Those with a class in Python."""
        rows = [row for entries in self.members.values() for _, rows, result in entries for row in rows + ([result] if result else [])]
        rows += [row for record in self.maker.records.values() for row in record]
        used = {row.handle for row in rows} | set(filter(self.reach.is_by_hand, self.reach.classes))
        return [handle for handle in self.api["handles"] if handle in used]

    def classes_h(self):
        lines = ["/* classes.h - the handles, enums and structs that members use.  api/python.py writes it. */",
                 "#ifndef WEFT_PYTHON_CLASSES_H", "#define WEFT_PYTHON_CLASSES_H", "", '#include "callback.h"', ""]
        lines += [f"extern const struct handle_class class_{handle};" for handle in self.used_handles()]
        lines += [f"extern const struct members {name};" for name in self.all_members()]
        lines += [f"extern const struct function function_{made.function};" for made in map(functools.partial(constructor, self), self.api["handles"]) if made]
        lines += [f"extern const struct choices choices_{enum};" for enum in sorted(self.maker.enums)]
        lines += [f"extern const struct record record_{record};" for record in sorted(self.maker.records)]
        lines += [f"extern const struct callback callback_{name};\n{self.trampoline_head(name)};" for name in sorted(self.maker.callbacks)]
        lines += [f"int32_t {values.c_counter(counter)}(const void *raw);" for counter in sorted(self.counters)]
        lines += [f"int {self.adder(header, what)}(PyObject *module);" for header in self.headers() for what in ("types", "members")]
        return "\n".join(lines + ["", "#endif", ""])

    def headers(self):
        return sorted(self.api["headers"])

    def handles_of(self, header):
        """The handles that the header declares."""
        return [handle for handle in self.used_handles() if self.api["handles"][handle]["header"] == header]

    def owners_of(self, header):
        """The handles that get members from the file of the header; "": the module."""
        return sorted({member.handle for member, _, _ in self.members.get(header, [])} | set(self.handles_of(header)))

    def all_members(self):
        """The names of all struct members."""
        return [self.members_name(handle, header) for header in self.headers() for handle in self.owners_of(header) if handle]

    @staticmethod
    def members_name(handle, header):
        return f"members_{handle.removeprefix('weft_')}_of_{header.removesuffix('.h')}"

    @staticmethod
    def adder(header, what):
        return f"add_{what}_of_{header.removesuffix('.h')}"

    def classes_c(self):
        lines = ["/* classes.c - see classes.h. */", '#include "classes.h"', "", "#include <stddef.h>", ""]
        for handle in self.used_handles():
            lines += self.class_of(handle)
        lines += ["const struct handle_class *const handle_classes[] = {",
                  *[f"    &class_{handle}," for handle in self.used_handles()], "    NULL};", ""]
        lines += ["const struct members *const all_members[] = {", *[f"    &{name}," for name in self.all_members()], "    NULL};", ""]
        for counter in sorted(self.counters):
            function, _, field = counter.removeprefix("count_of_").partition("->")
            answer = f"((const {function} *)raw)->{field}" if field else f"{function}(raw)"
            lines += [f"int32_t {values.c_counter(counter)}(const void *raw)", "{", f"    return (int32_t){answer};", "}", ""]
        for enum in sorted(self.maker.enums):
            lines += self.choices_of(enum)
        for struct in sorted(self.maker.shards):
            lines += self.shard_of(struct)
        for key in sorted(self.maker.records):
            lines += self.record_of(key)
        for name in sorted(self.maker.callbacks):
            lines += self.callback_of(name)
        lines += ["int members_add(PyObject *module)", "{"]
        lines += [f"    if ({self.adder(header, what)}(module) < 0) return -1;" for what in ("types", "members") for header in self.headers()]
        return "\n".join(lines + ["    return 0;", "}", ""])

    def class_of(self, handle):
        facts, field = self.api["handles"][handle], handle.removeprefix("weft_")
        release, retain = facts.get("release"), facts.get("retain")
        lines = []
        if release:
            lines += [f"static void release_{field}(void *raw)", "{", f"    {handle} *{field} = raw;", "",
                      f"    {release}(&{field});", "}", ""]
        if retain:
            lines += [f"static void *retain_{field}(const void *raw)", "{", f"    return {retain}(raw);", "}", ""]
        lines.append(f'const struct handle_class class_{handle} = {{"{self.reach.class_name(handle)}", &binding.{field}, '
                     f'{f"release_{field}" if release else "NULL"}, {f"retain_{field}" if retain else "NULL"}, '
                     f"{str(self.reach.is_by_hand(handle)).lower()}}};")
        return lines + [""]

    def choices_of(self, enum):
        pairs = choices(self.api, enum)
        return [f"static const char *const texts_{enum}[] = {{{', '.join(c_string(text) for text, _ in pairs)}}};",
                f"static const int32_t values_{enum}[] = {{{', '.join(str(value) for _, value in pairs)}}};",
                f"static PyObject *objects_{enum}[{len(pairs)}];",
                f"const struct choices choices_{enum} = {{{len(pairs)}, texts_{enum}, values_{enum}, objects_{enum}}};", ""]

    def shard_of(self, struct):
        """What makes a weft.Shard of a struct: None without a layout."""
        names = [field["name"] for field in self.api["structs"][struct]["fields"]]
        return [f"static PyObject *make_{struct}(const void *memory, PyObject *frame)", "{", f"    const {struct} *one = memory;", "",
                "    if (one->spec == NULL) Py_RETURN_NONE;",
                f"    return frame_shard(frame, &(struct shard_facts){{{', '.join(SHARD_FACTS[name] for name in names if name in SHARD_FACTS)}}});",
                "}", ""]

    def trampoline_head(self, name):
        one = self.maker.callbacks[name]
        arguments = "".join(f", {type_}{'' if type_.endswith('*') else ' '}a{number}" for number, type_ in enumerate(one.types))
        return f"{one.returns} trampoline_{name}(void *user{arguments})"

    def callback_of(self, name):
        """The trampoline of a callback, and its table."""
        one = self.maker.callbacks[name]
        given = [f"{{.{values.MEMBERS.get(row.kind, 'constant')} = a{number}}}" for number, row in enumerate(one.rows)]
        call = f"callback_run(&callback_{name}, user, values, {f'a{len(one.rows)}' if one.result else 'NULL'})"
        call = {"weft_status": f"return {call}", "bool": f"return {call} == WEFT_OK", "void": f"(void){call}"}[one.returns]
        result = [f"static const struct value_type result_{name} = {one.result.c_text()};"] if one.result else []
        return [self.trampoline_head(name), "{", f"    const union value values[] = {{{', '.join(given) or '{0}'}}};", "", f"    {call};", "}", "",
                f"static const struct value_type given_{name}[] = {{{', '.join(row.c_text() for row in one.rows) or '{0}'}}};", *result,
                f'const struct callback callback_{name} = {{"{one.name}", (void (*)(void))trampoline_{name}, given_{name}, '
                f"{f'&result_{name}' if one.result else 'NULL'}, {len(one.rows)}, {one.slot}, {str(one.returns == 'bool').lower()}}};", ""]

    def record_of(self, key):
        struct = key.rsplit("_", 1)[0]
        if key.endswith("_shard"):
            return [f"const struct record record_{key} = {{.size = sizeof({struct}), .make = make_{struct}}};", ""]
        rows, sized = self.maker.records[key], self.api["structs"][struct]["sized"]
        size_bytes = 4 if sized and self.api["structs"][struct]["fields"][0]["type"] == "uint32_t" else 8
        return [f"static const struct value_type fields_{key}[] = {{", *[f"    {row.c_text()}," for row in rows], "};",
                f"static PyObject *keys_{key}[{len(rows)}];",
                f"const struct record record_{key} = {{sizeof({struct}), {str(sized).lower()}, {size_bytes}, {len(rows)}, fields_{key}, "
                f"keys_{key}, NULL}};",
                ""]

    def file_of(self, header):
        lines = [f"/* {header.removesuffix('.h')}.c - the functions of {header} as members.  api/python.py writes it. */",
                 '#include "classes.h"', "", "#include <stddef.h>", ""]
        entries = self.members.get(header, [])
        for member, rows, result in entries:
            if member.kind != "hash":
                lines += self.function_of(member, rows, result)
        handles = self.handles_of(header)
        types, adds = [], []
        for handle in self.owners_of(header):
            field = handle.removeprefix("weft_") or "module"
            lines += self.tables_of(handle, [entry for entry in entries if entry[0].handle == handle])
            if handle:
                lines += [f"const struct members {self.members_name(handle, header)} = {{&binding.{field}, {field}_methods, {field}_properties}};", ""]
            if handle in handles and not self.reach.is_by_hand(handle):
                lines += self.type_of(handle)
                types.append(f"    if (type_add(module, &{field}_spec, &binding.{field}) < 0) return -1;")
            elif handle:
                adds.append(f"    if (type_extend(binding.{field}, {field}_methods, {field}_properties) < 0) return -1;")
            else:
                adds.append("    if (PyModule_AddFunctions(module, module_methods) < 0) return -1;")
        for what, calls in (("types", types), ("members", adds)):
            lines += [f"int {self.adder(header, what)}(PyObject *module)", "{", "    (void)module;", *calls, "    return 0;", "}", ""]
        return "\n".join(lines)

    def names_of(self, member, rows):
        """The names of all arguments and options."""
        return " ".join(name for group in stubs.stated(self, member, rows) for name, _, _ in group)

    @staticmethod
    def answers(member, rows, result):
        """Is it a property that asks C for one value, which cannot fail?"""
        return member.kind == "property" and result and len(rows) == 1 and result.kind != "LIST"

    def getter_of(self, member, rows, result):
        """The getter of such a property."""
        name = member.function
        call = f"{name}(raw)"
        made = MADE.get(result.kind) if not result.is_absent else None
        lines = [] if made else [f"static const struct value_type result_{name} = {result.c_text()};", ""]
        lines += [f"static PyObject *get_{name}(PyObject *self, void *closure)", "{",
                  f"    void *raw = open_handle(self, &class_{rows[0].handle});",
                  *([] if made else ["    union value value;"]), "", "    (void)closure;", "    if (raw == NULL) return NULL;"]
        if made:
            return lines + [f"    return {made}({call});", "}", ""]
        target = f"value.{values.MEMBERS.get(result.kind, 'constant')}"
        return lines + [f"    {target} = {'(int32_t)' if result.kind == 'ENUM' else ''}{call};",
                        f"    return value_make(&result_{name}, &value, self);", "}", ""]

    def function_of(self, member, rows, result):
        if self.answers(member, rows, result):
            return self.getter_of(member, rows, result)
        name = member.function
        shown = f"{self.reach.class_name(member.handle)}.{member.name}" if member.kind == "class method" else member.name
        if member.public:
            shown = member.public.removeprefix("weft.")
        arguments = [self.argument_text(index, row) for index, row in enumerate(rows)]
        call = f"{name}({', '.join(arguments)})"
        lines = []
        for row in rows:
            if row.measure:
                key, calls = row.measure
                calls = [f"(uint64_t){function}({', '.join(self.argument_text(index, rows[index]) for index in given)})"
                         for function, given in calls]
                lines += [f"static uint64_t measure_{key}(const union value *values)", "{", f"    return {' + '.join(calls)};", "}", ""]
        if rows or result:
            lines += [f"static const struct value_type arguments_{name}[] = {{",
                      *[f"    {row.c_text()}," for row in rows + ([result] if result else [])], "};", ""]
        lines += [f"static weft_status call_{name}(union value *values)", "{"]
        if not rows and not result:
            lines.append("    (void)values;")
        if result:
            target = "values[%d].%s" % (len(rows), values.MEMBERS.get(result.kind, "constant"))
            lines += [f"    {target} = {'(int32_t)' if result.kind == 'ENUM' else ''}{call};", "    return WEFT_OK;"]
        elif member.one["returns"]["kind"] == "nothing":
            lines += [f"    {call};", "    return WEFT_OK;"]
        else:
            lines.append(f"    return {call};")
        tests = "WEFT_IN_PROGRESS" in member.one["text"] and not any(row.is_out and row.kind != "UNUSED" for row in rows) \
            and member.one["returns"]["kind"] == "status"
        refused = values.refused(member.one, result)
        waits = not result and member.kind not in ("str", "property") and not self.is_quick(rows)
        keeps = any(row.is_out and self.has_handle(row) for row in rows) or result and self.has_handle(result)
        flags = [f".{flag} = true" for flag, is_set in (("returns", result), ("keeps", keeps), ("tests", tests)) if is_set]
        flags += [f".waits = {1 if self.may_agree(rows) else 2}"] if waits else []
        flags += [f".refuses = true, .refused = {refused}"] if refused is not None else []
        stated = [index for group in range(2) for index in stubs.positions(member, rows, group)]
        stated += [LIMIT] if stubs.has_option_name(self, rows) else []
        stated += stubs.positions(member, rows, 2)
        sets = self.sets_of(rows, stated)
        lines += ["}", "", f"static const int8_t stated_{name}[] = {{{', '.join(map(str, [*stated, -1]))}}};",
                  f"{'' if member.kind == 'constructor' else 'static '}const struct function function_{name} = {{",
                  f'    "{shown}", {c_text(self.names_of(member, rows), 4)}, call_{name}, {f"arguments_{name}" if rows or result else "NULL"}, stated_{name}, {len(rows)}, '
                  f"{member.self_index}, {next((index for index, row in enumerate(rows) if row.kind == 'BUFFER'), -1)},",
                  "    " + ", ".join([f".{key} = {value:#x}" for key, value in sets.items() if value] + flags) + "};", ""]
        if member.kind in ("method", "class method", "function"):
            lines += [f"static PyObject *member_{name}(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)", "{"]
            for row in rows:
                if row.kind == "HOST":  # a hot call
                    lines += ["    if (count == 1 && names == NULL)",
                              f"        return host_copy(self, args[0], {str(row.is_pointer).lower()}, call_{name});"]
            lines += [f"    return call_function(&function_{name}, self, args, count, names);", "}", ""]
        return lines

    @staticmethod
    def sets_of(rows, stated):
        """The sets of arguments of struct function."""
        def bits(chosen):
            return sum(1 << index for index, row in enumerate(rows) if chosen(index, row))

        def is_filled(row):  # it is a struct of the caller
            return row.kind == "RECORD" and not row.is_pointer
        return {
            "required": bits(lambda index, row: index in stated and not row.is_optional),
            "presets": bits(lambda _, row: row.kind == "ELEMENT" or row.kind == "TIMEOUT" and not row.is_out
                            or row.kind == "RECORD" and not (row.is_out and row.is_pointer)),
            "counted": bits(lambda _, row: (row.count or row.measure) and row.kind not in PLACES),
            "places": bits(lambda _, row: row.kind in PLACES),
            "outs": bits(lambda _, row: row.is_out and row.kind != "UNUSED" and not is_filled(row)),
            "results": bits(lambda _, row: row.is_out and row.kind not in ("UNUSED", "COUNT"))}

    def has_handle(self, row):
        """May the object of a result be a handle, or have one?"""
        return bool(row.handle) or bool(row.record) and any(map(self.has_handle, self.maker.records[row.record]))

    def may_agree(self, rows):
        """Is it collective only if the option `agree` is given?  Otherwise it does not wait."""
        return any(row.kind == "RECORD" and any(field.name == "agree" for field in self.maker.records[row.record]) for row in rows)

    @staticmethod
    def is_quick(rows):
        """Does it compute on layouts alone, which takes less time than giving the GIL up?"""
        return {row.handle for row in rows} - {""} <= QUICK and any(row.handle for row in rows) and \
            all(row.kind not in ("CALLBACK", "PATH", "TIMEOUT", *PLACES) for row in rows)

    @staticmethod
    def argument_text(index, row):
        if row.is_out or row.kind in ("HANDLE", "CONTEXT", "STREAM", "TEXT", "AXES", "PATH", "LIST", "RECORD", "ADDRESS", "BUFFER", "ARRAY",
                                      "HOST", "STATE"):
            return f"values[{index}].pointer"
        if row.kind == "CALLBACK":
            trampoline = f"trampoline_{row.callback}"
            return f"values[{row.of}].pointer != NULL ? {trampoline} : NULL" if row.is_optional else trampoline
        if row.kind == "UNUSED":
            return f"values[{index}].{'size' if '*' not in row.c_type else 'pointer'}"
        if row.kind in ("ENUM", "DTYPE"):
            return f"({row.c_type})values[{index}].i32"
        if row.kind == "COUNT":
            return f"values[{index}].{values.MEMBERS[row.element]}"
        return f"values[{index}].{values.MEMBERS[row.kind]}"

    def can_close(self, handle):
        """Has it one owner, who may end it while its other objects live?  Not if it lends handles that end with it, or if
        calls that are written by hand may use it in another thread, as streams."""
        if handle in ("", "weft_stream") or self.reach.is_by_hand(handle) or self.api["handles"][handle].get("retain"):
            return False
        return not any(row.is_out and row.handle and not row.is_owned and not self.api["handles"][row.handle].get("retain")
                       and row.handle != "weft_context" for entries in self.members.values() for member, rows, result in entries
                       if member.handle == handle for row in rows + ([result] if result else []))

    def tables_of(self, handle, entries):
        field = handle.removeprefix("weft_") or "module"
        unique = self.can_close(handle)
        lines = []
        if unique:
            lines += [f"static PyObject *{field}_close(PyObject *self, PyObject *unused)", "{", "    (void)unused;",
                      f"    return handle_close(self, &class_{handle});", "}", "",
                      f"static PyObject *{field}_exit(PyObject *self, PyObject *args)", "{", "    (void)args;",
                      f"    return handle_close(self, &class_{handle});", "}", ""]
        lines.append(f"static PyMethodDef {field}_methods[] = {{")
        for member, rows, result in entries:
            if member.kind in ("method", "class method", "function"):
                flags = " | METH_CLASS" if member.kind == "class method" else ""
                lines += [f'    {{"{member.name}", VECTOR(member_{member.function}){flags},',
                          f"     {c_text(stubs.docstring(self, member, rows, result), 5)}}},"]
        if unique:
            lines += [f'    {{"close", {field}_close, METH_NOARGS, "close($self, /)\\n--\\n\\nRelease what the object has now, not when it is deleted.  Later calls of it raise RuntimeError."}},',
                      '    {"__enter__", handle_enter, METH_NOARGS, NULL},',
                      f'    {{"__exit__", {field}_exit, METH_VARARGS, NULL}},']
        lines += ["    {0}};", ""]
        if handle:
            infos = [(member, rows) for member, rows, result in entries if member.name == "info"]
            for member, rows in infos:
                lines += self.field_getter_of(member, rows)
            fields = [(member, rows, row) for member, rows in infos for row in self.info_fields(handle, entries, rows)]
            lines.append(f"static PyGetSetDef {field}_properties[] = {{")
            lines += [f'    {{"{row.name}", get_field_of_{member.function}, NULL,\n     {c_text(stubs.field_doc(self, member, row), 5)}, '
                      f"(void *){self.maker.records[rows[-1].record].index(row)}}}," for member, rows, row in fields]
            for member, rows, result in entries:
                if member.kind == "property":
                    answers = self.answers(member, rows, result)
                    getter, closure = (f"get_{member.function}", "NULL") if answers else ("call_property", f"(void *)&function_{member.function}")
                    lines += [f'    {{"{member.name}", {getter}, NULL,',
                              f"     {c_text(docstrings.contract(self, member, rows, result), 5)}, {closure}}},"]
            lines += ["    {0}};", ""]
        return lines

    @staticmethod
    def field_getter_of(member, rows):
        """The getter of a field, whose number is the closure, of the struct that a property fills."""
        record = f"record_{rows[1].record}"
        return [f"static PyObject *get_field_of_{member.function}(PyObject *self, void *closure)", "{",
                f"    {rows[1].record.removesuffix('_out')} info = {{0}};", f"    void *raw = open_handle(self, &class_{rows[0].handle});", "",
                f"    record_begin(&{record}, (char *)&info);", f"    if (raw == NULL || check({member.function}(raw, &info)) < 0) return NULL;",
                f"    return field_make(&{record}, &{record}.fields[(uintptr_t)closure], (const char *)&info, self);", "}", ""]

    def info_fields(self, handle, entries, rows):
        """The fields of an object's information that are properties too."""
        taken = {member.name for other in self.members.values() for member, _, _ in other if member.handle == handle}
        record = self.maker.records[rows[-1].record]
        taken |= {name.split(".")[1] for name in self.maker.left_out if name.startswith(rows[-1].record.removesuffix("_out") + ".")}
        return [row for row in record if row.name and row.kind != "UNUSED" and row.name not in taken]

    def type_of(self, handle):
        field, name = handle.removeprefix("weft_"), self.reach.class_name(handle)
        mine = {member.kind: member for entries in self.members.values() for member, _, _ in entries
                if member.handle == handle and member.kind in ("str", "hash")}
        slots = [f"{{Py_tp_dealloc, {field}_dealloc}}", "{Py_tp_repr, handle_repr}", f"{{Py_tp_methods, {field}_methods}}", f"{{Py_tp_getset, {field}_properties}}",
                 f"{{Py_tp_doc, {c_text(stubs.class_doc(self, handle), 4)}}}"]
        lines = [f"static void {field}_dealloc(PyObject *self)", "{", f"    handle_dealloc(self, &class_{handle});", "}", ""]
        if "str" in mine:
            lines += [f"static PyObject *{field}_str(PyObject *self)", "{",
                      f"    return call_function(&function_{mine['str'].function}, self, NULL, 0, NULL);", "}", ""]
            slots.append(f"{{Py_tp_str, {field}_str}}")
        if "hash" in mine:
            lines += [f"static Py_hash_t {field}_hash(PyObject *self)", "{",
                      f"    Py_hash_t hash = (Py_hash_t){mine['hash'].function}(((handle_object *)self)->raw);", "",
                      "    return hash == -1 ? -2 : hash;", "}", ""]
            slots += [f"{{Py_tp_hash, {field}_hash}}", "{Py_tp_richcompare, handle_compare}"]
        new = constructor(self, handle)
        if new:
            lines += [f"static PyObject *{field}_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)", "{",
                      f"    return call_new(&function_{new.function}, type, args, kwargs);", "}", ""]
            slots.append(f"{{Py_tp_new, {field}_new}}")
        flags = "Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE" + ("" if new else " | Py_TPFLAGS_DISALLOW_INSTANTIATION")
        if self.keeps_callbacks(handle):
            flags += " | Py_TPFLAGS_HAVE_GC"
            slots.append("{Py_tp_traverse, handle_traverse}")
        return lines + [f"static PyType_Slot {field}_slots[] = {{", *[f"    {slot}," for slot in slots], "    {0, NULL}};",
                        f'static PyType_Spec {field}_spec = {{"weft.{name}", sizeof(handle_object), 0, {flags}, {field}_slots}};', ""]

    def keeps_callbacks(self, handle):
        """Does it call functions of Python, which may refer to it, while it lives?"""
        def has_callback(row):
            return row.kind == "CALLBACK" or not row.is_out and bool(row.record) and any(map(has_callback, self.maker.records[row.record]))
        return any(row.is_out and row.handle == handle and any(map(has_callback, rows))
                   for entries in self.members.values() for _, rows, _ in entries for row in rows)

    def binding_h(self):
        """The types of the handles, for struct binding."""
        fields = ", *".join(handle.removeprefix("weft_") for handle in self.used_handles())
        return ("/* handle_types.h - a type per handle.  api/python.py writes it. */\n"
                f"#define HANDLE_TYPES PyTypeObject *{fields};\n")


def constructor(generator, handle):
    """The member that also makes Class(...); None: the class cannot be called."""
    found = {member.name: member for entries in generator.members.values() for member, _, _ in entries
             if member.handle == handle and member.kind in ("class method", "constructor")}
    for name in (generator.reach.class_name(handle), *members.CONSTRUCTORS):
        if name in found:
            return found[name]
    return None


def choices(api, enum):
    """(text, value) of each value of an enum, without the number of its values."""
    entries = [value for value in api["enums"][enum]["values"] if not value["name"].endswith("_COUNT")]
    if any("prints" in value for value in entries):
        entries = [value for value in entries if "prints" in value]  # without the number of values
    words = [value["name"].split("_") for value in entries]
    common = 0
    while len(entries) > 1 and all(len(each) > common + 1 and each[common] == words[0][common] for each in words):
        common += 1
    if len(entries) == 1:
        parts = enum.upper().split("_")
        while common < len(parts) and common + 1 < len(words[0]) and parts[common] == words[0][common]:
            common += 1
    return [(value.get("prints") or "_".join(each[common:]).lower() or value["name"].lower(), value["value"])
            for value, each in zip(entries, words)]


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def c_text(text, indent):
    """A C literal in lines of at most 90 characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    pieces, line = [], ""
    for word in escaped.replace("\n", "\\n ").split(" "):
        if len(line) + len(word) > 80:
            pieces.append(line)
            line = ""
        line += word + ("" if word.endswith("\\n") else " ")
    pieces.append(line.rstrip(" "))
    return ("\n" + " " * indent).join(f'"{piece}"' for piece in pieces)


def main():
    description, decided, by_hand, folder, package = map(pathlib.Path, sys.argv[1:])
    generator = Generator(bound.read(description), reach.read(decided))
    generator.collect()
    folder.mkdir(parents=True, exist_ok=True)
    written = {"classes.h": generator.classes_h(), "classes.c": generator.classes_c(), "handle_types.h": generator.binding_h()}
    for header in generator.headers():
        written[header.removesuffix(".h") + ".c"] = generator.file_of(header)
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    (package / "_weft.pyi").write_text(stubs.stub(generator, by_hand.read_text(encoding="utf-8")), encoding="utf-8")
    (package / "_generated.py").write_text(stubs.exports(generator), encoding="utf-8")
    (package / "_names.py").write_text(docstrings.names(generator), encoding="utf-8")


if __name__ == "__main__":
    main()
