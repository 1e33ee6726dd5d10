"""Read bindings/python/reach.txt: what of the API a person has decided for Python.

    [classes]                            handles whose class has another name than the usual,
    weft_cost_table = CostTable
    weft_tensor = Tensor by hand         whose class is written by hand in C,
    weft_mesh = Mesh in _layouts         or that a subclass in weft/_layouts.py replaces (weft._weft.use),
    weft_symm = Symm by hand in _device  or both
    [structs]                            that files by hand read or make with the generated tables, which leave out the
    weft_cp_call call                    fields that need a person's decision; `call`: as a callback gets them
    [mesh.h]                             a section per header
    weft_mesh_create = weft.Mesh         written by hand, at this place; `through X`: it calls X instead
    weft_log_to - WEFT_LOG sets it       not in Python, and why
    weft_mesh_coord_of as coordinate     generated, under this name,
    weft_stream_wait_work as Work.hold   or as a member of another class, that of one of its arguments,
    weft_op_check as _op_check for weft.ops.check    or as a private member, which this place of the package calls
    weft_plan_info.steps as step_count   the field has this name,
    weft_plan_info.steps - REASON        the field is no property of its own, or no option, and why"""
import dataclasses
import re
import sys

LINE = re.compile(r"(?P<function>weft_\w+(?:\.\w+)?) "
                  r"(?:= (?P<place>[\w.]+)(?: through (?P<through>.+))?|- (?P<reason>.+)|as (?:(?P<class>\w+)\.)?(?P<name>\w+)(?: for (?P<public>[\w.]+))?)")
CLASS = re.compile(r"(?P<handle>weft_\w+) = (?P<name>\w+)(?: (?P<where>by hand|(?:by hand )?in \w+))?")
STRUCT = re.compile(r"(?P<struct>weft_\w+) (?P<direction>in|out|call)")


@dataclasses.dataclass
class Reach:
    classes: dict  # handle -> (name, where the class is written)
    sections: dict  # header -> list of matches of LINE
    structs: list  # (struct, "in" or "out")

    def lines(self):
        return {match["function"]: match for matches in self.sections.values() for match in matches}

    def class_name(self, handle):
        usual = "".join(word.capitalize() for word in handle.removeprefix("weft_").split("_"))
        return self.classes.get(handle, (usual, ""))[0]

    def handle_of(self, name, handles):
        return next(handle for handle in handles if self.class_name(handle) == name)

    def is_by_hand(self, handle):
        return self.classes.get(handle, ("", ""))[1].startswith("by hand")

    def module(self, handle):
        """The module of the subclass; "": there is none."""
        return self.classes.get(handle, ("", ""))[1].removeprefix("by hand").strip().removeprefix("in ")

    def place(self, handle):
        """The class as users write it: classes of modules without `_` are there only."""
        name, module = self.class_name(handle), self.module(handle) or "_"
        return f"weft.{name}" if module.startswith("_") else f"weft.{module}.{name}"

    def hint(self, handle, is_out):
        """The class in hints.  Arguments may be of a base class that is written by hand."""
        name, module = self.class_name(handle), self.module(handle)
        return f"weft.{module}.{name}" if module and (is_out or not self.is_by_hand(handle)) else name


def read(path):
    found = Reach({}, {}, [])
    current = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("[") and line.endswith("]"):
            current = line[1:-1]
            if current not in ("classes", "structs"):
                found.sections.setdefault(current, [])
        elif line and not line.startswith("#"):
            match = {"classes": CLASS, "structs": STRUCT}.get(current, LINE).fullmatch(line)
            if match is None or not current:
                sys.exit(f"{path.name}:{number}: cannot read `{line}`; api/reach.py lists the forms of lines")
            if current == "classes":
                found.classes[match["handle"]] = (match["name"], match["where"] or "")
            elif current == "structs":
                found.structs.append((match["struct"], match["direction"]))
            else:
                found.sections[current].append(match)
    return found
