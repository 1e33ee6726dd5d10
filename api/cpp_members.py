"""How a C function becomes C++: its class, its name, its parameters, its result and the call.  docs/api.md has the rules."""
import re

from cpp_text import sentence

KEYWORDS = set("""alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default
    delete do double else enum explicit export extern false float for friend goto if inline int long mutable namespace
    new noexcept not nullptr operator or private protected public register return short signed sizeof static struct
    switch template this throw true try typedef typeid typename union unsigned using virtual void volatile while
    xor""".split())
DEFAULTS = {"flags": "0", "timeout_ns": "WEFT_FOREVER"}
SINGLE = ("handle", "number", "enum", "text", "memory", "struct")


class Unmapped(Exception):
    """A function for which the rules have no answer."""


class Parameter:
    def __init__(self, type_, name, default="", class_=""):
        self.text = type_ + ("" if type_[-1] in "*&" else " ") + name
        self.default = default
        self.class_ = class_  # of a handle


def target(type_):
    """What TYPE points to: "const char *" of "const char **"."""
    return re.sub(r"(?<!\*) ?\*$|\*$", "", type_)


def handle_of(type_):
    return re.sub(r"\bconst\b|[* ]", "", type_)


def shared_words(function, handle):
    """How many words the names have in common: weft_fsdp_group_create and weft_fsdp_group have two."""
    count = 0
    for one, other in zip(function.split("_")[1:], handle.split("_")[1:]):
        if one != other:
            break
        count += 1
    return count


class Member:
    """c_name, about: of the C function.  owner: the class, or "".  name, result, static, parameters: of the C++ function.
    call: (function, arguments, what is around the call).  uses: the classes that the body needs."""

    def __init__(self, header, c_name, function):
        self.header, self.c_name, self.function = header, c_name, function
        self.arguments = function["arguments"]
        self.uses = set()
        contract = sentence(function["text"])
        self.about = f"{c_name}: {contract}" if contract else c_name
        self._refuse()
        self._find_owner()
        self._find_result()
        self._find_parameters()
        self.uses.discard(self.owner)

    def _refuse(self):
        if self.function["variadic"]:
            raise Unmapped("it takes any number of arguments")
        for one in self.arguments:
            if one["kind"] == "callback":
                raise Unmapped(f"the argument `{one['name']}` is a callback")
            if one["direction"] == "released":
                raise Unmapped(f"it releases `{one['name']}`")

    def _plain(self, type_):
        """The C++ spelling of a C type.  A function with the name of an enum hides it."""
        return re.sub(r"enum (\w+)", lambda found: found[0] if found[1] in self.header.functions else found[1], type_)

    # ---- the class and the name ----

    def _find_owner(self):
        """The handle that is taken first or that is created: the one whose name is in the name of the function."""
        first = next((one for one in self.arguments if one["kind"] == "handle" and one["direction"] == "in" and
                      (not one["nullable"] or one.get("null_if"))), None)
        created = next((one for one in self.arguments if one["kind"] == "handle" and one["direction"] == "out" and
                        one["owned"] and not one["nullable"]), None)
        taken = shared_words(self.c_name, handle_of(first["type"])) if first else 0
        made = shared_words(self.c_name, handle_of(created["type"])) if created else 0
        self.static = bool(created) and (made > taken or not first)
        self.self = None if self.static else first
        owner = created if self.static else first
        if owner and not self.header.owns(handle_of(owner["type"])):  # a class of a library below is whole
            owner = self.self = None
            self.static, made, taken = False, 0, 0
        self.owner = self._class(handle_of(owner["type"]), not self.static) if owner else ""
        self.name = "_".join(self._words(made if self.static else taken))

    def _words(self, skip):
        """The words of the name: `print` becomes `text` at the end, `get` of an _info struct becomes `info`."""
        words = self.c_name.split("_")[1:][skip:]
        if words and words[-1] == "get":
            words.pop()
            if self.arguments and re.search(r"_info \*$", self.arguments[-1]["type"]):
                words.append("info")
        if "print" in words and any(one["kind"] == "buffer" for one in self.arguments):
            words.remove("print")
            words.append("text")
        if not words:
            raise Unmapped("nothing is left of its name without the handle's name")
        return words

    def _class(self, handle, borrowed=True):
        name = handle[5:]
        if borrowed and self.header.is_ref(handle):
            name += "_ref"
        return name

    def _use(self, name):
        self.uses.add(name)
        return f"weft::{name}"

    # ---- the result and the call ----

    def _find_result(self):
        """Set result, call and the arguments that C++ does not see."""
        returned = self.function["returns"]
        self.hidden, around, head = [], "", self.c_name
        if any(one["kind"] == "buffer" for one in self.arguments):
            self.result, head = self._text(returned)
        elif self._single_out() and returned["kind"] in ("status", "nothing"):
            self.result, head = self._value(self.arguments[-1], returned["kind"])
        elif returned["kind"] == "handle":
            self.result, around = self._borrowed(returned)
        else:
            self.result = {"status": "status", "nothing": "void"}.get(returned["kind"]) or self._plain(returned["type"])
        passed = [self.c_name] if head != self.c_name else []
        shown = [one for one in self.arguments if one not in self.hidden]
        self.call = (head, passed + [self._passed(one) for one in shown], around)

    def _text(self, returned):
        names = [one["name"] for one in self.arguments]
        at = [one["kind"] for one in self.arguments].index("buffer")
        self.hidden = self.arguments[at:]
        if returned["kind"] == "status" and names[at + 1:] == ["size", "needed"]:
            return "result<std::string>", "detail::print"
        raise Unmapped(f"`{names[at]}` is not followed by `size` and `needed` at the end")

    def _single_out(self):
        outs = [one for one in self.arguments if one["direction"] == "out" and not one["nullable"]]
        return len(outs) == 1 and outs[0] is self.arguments[-1] and outs[0]["kind"] in SINGLE

    def _value(self, out, returned):
        """The last argument, where the function writes its result."""
        self.hidden = [out]
        if out["kind"] == "handle":
            handle = handle_of(out["type"])
            if returned == "nothing" or not out["owned"] and not self.header.is_ref(handle):
                raise Unmapped(f"it lends a {handle}, and there is no class {handle[5:]}_ref")
            type_ = self._use(self._class(handle, not out["owned"]))
            return f"result<{type_}>", f"detail::make<{type_}>"
        type_ = target(self._plain(out["type"]))
        if returned == "nothing":
            return type_, f"detail::value<{type_}>"
        sized = self.header.all["structs"].get(type_, {}).get("sized") and out["kind"] == "struct"
        return f"result<{type_}>", f"detail::{'describe' if sized else 'ask'}<{type_}>"

    def _borrowed(self, returned):
        handle = handle_of(returned["type"])
        if "retain" in self.header.handles[handle]:
            type_ = self._use(handle[5:])
            return type_, f"retain<{type_}>("
        if not self.header.is_ref(handle) or returned["type"].startswith("const"):
            raise Unmapped(f"it lends a {handle}, which is not shared, and there is no class {handle[5:]}_ref")
        return self._use(handle[5:] + "_ref"), ""

    # ---- the parameters ----

    def _find_parameters(self):
        self.parameters = []
        trailing = True
        for one in reversed(self.arguments):
            if one in self.hidden or one is self.self or "sizeof" in one:
                continue
            made = self._parameter(one)
            trailing = trailing and bool(made.default)
            if not trailing:
                made.default = ""
            self.parameters.insert(0, made)

    @staticmethod
    def _named(one):
        return one["name"] + ("_" if one["name"] in KEYWORDS else "")

    def _parameter(self, one):
        name, type_, kind = self._named(one), self._plain(one["type"]), one["kind"]
        if kind == "handle":
            nullable = one["nullable"] and not one.get("null_if")
            return self._handle_parameter(one, name, nullable)
        if self._by_reference(one):
            return Parameter(target(type_) + ("" if target(type_)[-1] == "*" else " ") + "&", name)
        if kind in ("number", "enum") and "nullable" not in one:
            return Parameter(type_, name, DEFAULTS.get(name, "") if kind == "number" else "")
        absent = one.get("nullable") and kind != "memory" and not (one["direction"] == "out" and one.get("null_if"))
        return Parameter(type_, name, "nullptr" if absent else "")

    def _handle_parameter(self, one, name, nullable):
        handle = handle_of(one["type"])
        if one["direction"] == "out":
            if not one["owned"]:
                raise Unmapped(f"it lends `{name}`, and that is not its last argument")
            type_ = self._use(handle[5:])
            return Parameter(f"{type_} *", name, "nullptr") if nullable else Parameter(f"{type_} &", name)
        class_ = self._class(handle)
        type_ = self._use(class_)
        return Parameter(type_ if self.header.is_ref(handle) else f"const {type_} &", name, "{}" if nullable else "", class_)

    @staticmethod
    def _by_reference(one):
        """A struct, or a place for a result, that is always there."""
        if one.get("nullable", True):
            return False
        return one["kind"] == "struct" and one["direction"] != "out" or one["direction"] == "out" and one["kind"] in SINGLE

    def _passed(self, one):
        name = self._named(one)
        if one is self.self:
            return "raw_"
        if "sizeof" in one:
            return f"sizeof({one['sizeof']})"
        if one["kind"] == "handle":
            if one["direction"] == "in":
                return f"{name}.get()"
            nullable = one.get("nullable", False) and not one.get("null_if")
            return f"{name} != nullptr ? {name}->out() : nullptr" if nullable else f"{name}.out()"
        return f"&{name}" if self._by_reference(one) else name

