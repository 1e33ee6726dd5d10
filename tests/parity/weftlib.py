"""The functions of weft/ops.h that the parity test calls, through ctypes."""
import ctypes as c

P, TEXT = c.c_void_p, c.c_char_p
KINDS = {"bool": 0, "i8": 1, "u8": 2, "i32": 5, "i64": 7, "f16": 9, "bf16": 10, "f32": 11, "f64": 12,
         "f8e4m3": 13, "c64": 15, "c128": 16}  # fmt: skip


class Attr(c.Structure):
    _fields_ = [("name", TEXT), ("kind", c.c_uint32), ("count", c.c_uint32), ("integer", c.c_int64),
                ("real", c.c_double), ("list", c.POINTER(c.c_int64)), ("text", TEXT)]  # fmt: skip


class Tensor(c.Structure):
    _fields_ = [("dtype", c.c_uint32), ("dims", c.c_int32), ("shape", c.c_int64 * 8)]


class Call(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", TEXT), ("inputs", c.POINTER(P)),
                ("input_count", c.c_uint32), ("attr_count", c.c_uint32), ("attrs", c.POINTER(Attr)),
                ("outputs", c.POINTER(Tensor)), ("output_count", c.c_uint32), ("zero", c.c_uint32),
                ("mesh", P)]  # fmt: skip


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("flags", c.c_uint32), ("element", c.c_uint32),
                ("costs", P), ("memory_limit", c.c_uint64), ("fixed_inputs", P),
                ("fixed_outputs", P), ("allow", P), ("argument", P)]  # fmt: skip


class Info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("rule", TEXT), ("inputs", c.c_uint32),
                ("outputs", c.c_uint32), ("moves", c.c_uint32), ("local", c.c_uint32),
                ("cost_ns", c.c_uint64)]  # fmt: skip


class PlanOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("minimize", c.c_uint32), ("planner", c.c_uint32),
                ("memory_limit", c.c_uint64), ("costs", P), ("without", c.c_uint32)]  # fmt: skip


class PlanInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("from_", P), ("to", P), ("steps", c.c_uint32),
                ("cost_ns", c.c_uint64)]  # fmt: skip


class Refused(Exception):
    """The text of weft_last_error."""


class Weft:
    """Calls on meshes of one process; costs are those of PyTorch's DTensor."""

    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.weft_last_error.restype = TEXT
        for name in ("input", "output"):
            getattr(self.lib, "weft_op_choice_" + name).restype = P
        self.lib.weft_op_list_choice.restype = P
        self.meshes, self.specs = {}, {}
        self.costs = self.make("weft_cost_table_find", b"dtensor")

    def make(self, function, *arguments):
        out = P()
        if getattr(self.lib, function)(*arguments, c.byref(out)) != 0:
            raise Refused(self.lib.weft_last_error().decode())
        return out

    def mesh(self, shape):
        text = "x".join(map(str, shape))
        if text not in self.meshes:
            self.meshes[text] = self.make("weft_mesh_parse", text.encode())
        return self.meshes[text]

    def spec(self, mesh, shape, dtype, placements):
        key = (mesh.value, f"{dtype}[{','.join(map(str, shape))}] {placements}")
        if key not in self.specs:
            self.specs[key] = self.make("weft_spec_parse", mesh, key[1].encode())
        return self.specs[key]

    def placements(self, spec):
        if not spec:
            return None
        buffer = c.create_string_buffer(512)
        self.lib.weft_spec_print(P(spec), buffer, c.c_size_t(512), None)
        return buffer.value.decode().split("] ", 1)[1]

    def answer(self, choice):
        """[inputs], [outputs], moves, is local, cost"""
        info = Info(c.sizeof(Info))
        self.lib.weft_op_choice_get(choice, c.byref(info))
        return ([self.placements(self.lib.weft_op_choice_input(choice, i)) for i in range(info.inputs)],
                [self.placements(self.lib.weft_op_choice_output(choice, i)) for i in range(info.outputs)],
                info.moves, bool(info.local), info.cost_ns)  # fmt: skip

    def options(self):
        return Options(struct_size=c.sizeof(Options), costs=self.costs)

    def run(self, function, call):
        choice = self.make(function, c.byref(call), c.byref(self.options()))
        answer = self.answer(choice)
        self.lib.weft_op_choice_release(c.byref(choice))
        return answer

    def strategies(self, call):
        """The set of (inputs, outputs)."""
        many = self.make("weft_op_list_create", c.byref(call), c.byref(self.options()))
        found = set()
        for i in range(self.lib.weft_op_list_count(many)):
            one = self.answer(P(self.lib.weft_op_list_choice(many, c.c_uint32(i))))
            found.add((tuple(one[0]), tuple(one[1])))
        self.lib.weft_op_list_release(c.byref(many))
        return found

    def move_cost(self, source, target):
        options = PlanOptions(struct_size=c.sizeof(PlanOptions), costs=self.costs)
        plan = self.make("weft_plan_create", source, target, c.byref(options))
        info = PlanInfo(struct_size=c.sizeof(PlanInfo))
        self.lib.weft_plan_get(plan, c.byref(info))
        self.lib.weft_plan_release(c.byref(plan))
        return info.cost_ns


def call_of(name, mesh, inputs, attrs, outputs):
    """A weft_op_call, which keeps what it points to alive."""
    pointers = (P * max(1, len(inputs)))(*[i.value if i else None for i in inputs])
    table = (Attr * max(1, len(attrs)))()
    keep = [pointers, table]
    for at, (key, value) in enumerate(attrs.items()):
        table[at].name = key.encode()
        if isinstance(value, (bool, int)):
            table[at].integer = int(value)
        elif isinstance(value, float):
            table[at].kind, table[at].real = 1, value
        elif isinstance(value, str):
            table[at].kind, table[at].text = 3, value.encode()
        else:
            numbers = (c.c_int64 * max(1, len(value)))(*value)
            keep.append(numbers)
            table[at].kind, table[at].count, table[at].list = 2, len(value), numbers
    call = Call(c.sizeof(Call), name.encode(), pointers, len(inputs), len(attrs), table, None, 0, 0, mesh)
    if outputs:
        tensors = (Tensor * len(outputs))()
        for at, (shape, dtype) in enumerate(outputs):
            tensors[at] = Tensor(KINDS[dtype], len(shape), (c.c_int64 * 8)(*shape))
        keep.append(tensors)
        call.outputs, call.output_count = tensors, len(outputs)
    call.keep = keep
    return call
