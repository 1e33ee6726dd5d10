"""Allocations of Python that fail, one after the other.

The calls have no frame of Python of their own: CPython 3.11 forgets the exception where it has no memory for the frames of a
traceback.
"""

import pytest

pytest.importorskip("_testcapi")

PROGRAM = """
import gc, sys
import _testcapi
import numpy as np
import weft
from weft import _weft

context = weft.Context("gloo-cpu")
spec, target = weft.spec("f32[16] S(0)", "1"), weft.spec("f32[16] R", "1")
x, y, short, wide = (np.ones(count, kind) for count, kind in ((16, "f4"), (16, "f4"), (3, "f4"), (16, "f8")))
locked = np.ones(16, np.float32)
locked.flags.writeable = False
tensor, comm = weft.Tensor(context, spec), context.world
move = weft.Move(context, [spec], [target])
tensor.fill(1)


class Interface:
    __cuda_array_interface__ = {"shape": (16,), "data": (0, False), "typestr": "<f4", "version": 3}


class Masked(np.ndarray):
    mask = filled = None


# Each is a function, its arguments, and the exception that it raises when there is memory.
CALLS = [
    (tensor.to_host, (y,), None), (tensor.from_host, (x,), None), (tensor.from_host, (bytes(64),), None),
    (tensor.to_host, (wide,), ValueError), (tensor.from_host, (short,), ValueError), (tensor.to_host, (locked,), ValueError),
    (tensor.to_host, (3,), TypeError), (tensor.fill, ("x",), TypeError), (tensor.to_host, (y, "x"), TypeError),
    (tensor.move, (target,), None), (tensor.local, (0,), None), (tensor.text, (), None),
    (weft.Tensor, (context, spec), None), (weft.Tensor, (context, None), TypeError),
    (weft.Tensor.wrap, (context, spec, x), None), (weft.Tensor.wrap, (context, spec, short), ValueError),
    (_weft.move_array, (context, x, spec, target, y), None), (_weft.move_array, (context, short, spec, target, y), ValueError),
    (_weft.move_array, (context, x, spec, target, Interface()), ValueError), (_weft.describe, (Interface(),), None),
    (_weft.describe, (x[:3].view(Masked),), ValueError), (_weft.describe, (3,), TypeError), (_weft.describe, (x,), None),
    (move, ([x], [y]), None), (move, ([wide], [y]), ValueError), (move.fix, ([x], [y]), None), (move.fix([x], [y]), (), None),
    (_weft.Spec, (weft.mesh("1"), "f32[16] S(0)"), None), (_weft.Spec, (weft.mesh("1"), "f32[16] Z(0)"), weft.Error),
    (_weft.Plan, (spec, target), None), (_weft.Plan, (spec, 3), TypeError), (spec.shard, (0,), None),
    (comm.collective, ("all_reduce", x, y), None), (comm.collective, ("all_reduce", x, short), ValueError),
    (comm.collective, ("broadcast", x, y, "sum", 5), weft.Error), (comm.collective, ("all_zeduce", x, y), ValueError),
    (_weft.move_into, ([tensor], [tensor]), None), (_weft.move_into, ([tensor], []), ValueError),
]


def run(function, arguments, number):
    "What the call raises if allocation NUMBER fails; 0: all succeed."
    if number > 0:
        _testcapi.set_nomemory(number, number + 1)
    try:
        function(*arguments)
    except BaseException as error:
        return error
    finally:
        _testcapi.remove_mem_hooks()


def check(function, arguments, wanted):
    what = f"{function}{arguments}"
    for _ in range(3):
        error = run(function, arguments, 0)
        assert type(error) is type(None) if wanted is None else isinstance(error, wanted), (what, error)
    before = [sys.getrefcount(one) for one in arguments]
    failed, number = 1, 0
    while failed:  # until all allocations have failed, so that none is left to fail
        failed = 0
        for number in range(number + 1, number + 41):
            error = run(function, arguments, number)
            failed += isinstance(error, MemoryError)
            good = error is None if wanted is None else isinstance(error, wanted)
            assert good or isinstance(error, MemoryError), f"{what}, allocation {number}: {error!r}"
        error = None
    after = [sys.getrefcount(one) for one in arguments]
    assert all(now - then < 4 for now, then in zip(after, before)), (what, before, after)
    error = run(function, arguments, 0)
    assert error is None if wanted is None else isinstance(error, wanted), (what, error)
    return number


gc.disable()
sys.unraisablehook = lambda _: None  # of generators that end without memory
for call in CALLS:
    check(*call)
print(len(CALLS), "calls")
"""


def test_a_call_without_memory_raises_memory_error_and_keeps_nothing(ranks):
    assert "calls" in ranks(1, PROGRAM)


def test_what_a_type_is_does_not_change_where_memory_was_short(ranks):
    """A type that is first seen without memory: its mask is still refused later."""
    ranks(1, """
        import _testcapi
        import numpy as np
        from weft import _weft

        for number in range(1, 40):
            Masked = type("Masked", (np.ndarray,), {"mask": None, "filled": None})
            array = np.ones(3, np.float32).view(Masked)
            _testcapi.set_nomemory(number, number + 1)
            try:
                _weft.describe(array)
            except (MemoryError, ValueError):
                pass
            finally:
                _testcapi.remove_mem_hooks()
            try:
                found = _weft.describe(array)
            except ValueError as error:
                assert "mask" in str(error)
            else:
                raise AssertionError((number, found))
        """)
