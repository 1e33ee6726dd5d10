#!/usr/bin/env python3
"""What a call costs in Python beyond C.  Usage: PYTHONPATH=BUILD/python calls.py

One rank moves small arrays, so nearly all time is that of the binding.  The figures include the time of C.
"""
import resource
import subprocess
import sys
import time

import numpy as np

import weft

ROUNDS = 7


def best(function, calls):
    """Nanoseconds per call, the least of several rounds.  The time of this thread, which other programs do not lengthen."""
    times = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(calls):
            function()
        times.append((time.thread_time_ns() - begin) / calls)
    return min(times)


def bound_move(context, count):
    source, target = weft.spec("f32[16] S(0)", "1"), weft.spec("f32[16] R", "1")
    move = weft.Move(context, [source] * count, [target] * count)
    inputs = [np.ones(16, np.float32) for _ in range(count)]
    outputs = [np.empty(16, np.float32) for _ in range(count)]
    fixed = move.fix(inputs, outputs)
    return best(lambda: move(inputs, outputs), 20000), best(fixed, 20000)


def redistribute(context, shape):
    x, y = np.ones(16, np.float32), np.empty(16, np.float32)
    return best(lambda: weft.redistribute(x, "1", "S(0)", "R", shape, out=y, context=context), 20000)


def message(context):
    """A send to this rank itself and its receive, in a group."""
    comm, x, y = weft.Comm(context), np.ones(16, np.float32), np.empty(16, np.float32)

    def exchange():
        comm.group_begin()
        comm.send(x, 0)
        comm.receive(y, 0)
        comm.group_end()

    def group():
        comm.group_begin()
        comm.group_end()

    return best(exchange, 20000) - best(group, 20000)


def collective(context):
    comm, x, y = weft.Comm(context), np.ones(16, np.float32), np.empty(16, np.float32)
    return best(lambda: comm.all_reduce(x, y), 20000), best(lambda: comm.all_gather_v(x, y, [16]), 20000)


def tensor(context):
    spec = weft.spec("f32[16] S(0)", "1")
    return best(lambda: weft.Tensor(context, spec), 20000)


def copy(context):
    """From a tensor to an array, and back."""
    x = weft.Tensor(context, weft.spec("f32[16] S(0)", "1"))
    x.fill(1)
    array = np.empty(16, np.float32)
    return best(lambda: x.to_host(array), 20000), best(lambda: x.from_host(array), 20000)


def import_ms():
    program = "import time; t = time.perf_counter(); import weft; print((time.perf_counter() - t) * 1e3)"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            for _ in range(ROUNDS)]  # fmt: skip
    return min(float(run.stdout) for run in runs)


def growth(context, calls):
    """KiB that a number of calls adds to the peak of memory."""
    x, y = np.ones(16, np.float32), np.empty(16, np.float32)
    for _ in range(1000):
        weft.redistribute(x, "1", "S(0)", "R", (16,), out=y, context=context)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(calls):
        weft.redistribute(x, "1", "S(0)", "R", (16,), out=y, context=context)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def main():
    with weft.Context("gloo-cpu") as context:
        empty = best(lambda: None, 100000)
        (one, one_fixed), (nine, nine_fixed) = bound_move(context, 1), bound_move(context, 9)
        print(f"a call of an empty function         {empty:8.0f} ns")
        print(f"bound move of 1 tensor              {one - empty:8.0f} ns, with C")
        print(f"each further tensor                 {(nine - one) / 8:8.0f} ns, with C")
        print(f"fixed move of 1 tensor              {one_fixed - empty:8.0f} ns, with C")
        print(f"each further tensor                 {(nine_fixed - one_fixed) / 8:8.0f} ns, with C")
        print(f"weft.redistribute with shape        {redistribute(context, (16,)) - empty:8.0f} ns, with C")
        print(f"weft.redistribute without shape     {redistribute(context, None) - empty:8.0f} ns, with C")
        print(f"a send and its receive              {message(context):8.0f} ns, with C")
        reduce, gather = collective(context)
        print(f"all_reduce                          {reduce - empty:8.0f} ns, with C")
        print(f"all_gather_v                        {gather - empty:8.0f} ns, with C")
        print(f"weft.Tensor, made and deleted       {tensor(context) - empty:8.0f} ns, with C")
        to_host, from_host = copy(context)
        print(f"to_host                             {to_host - empty:8.0f} ns, with C")
        print(f"from_host                           {from_host - empty:8.0f} ns, with C")
        print(f"a property, context.rank            {best(lambda: context.rank, 100000) - empty:8.0f} ns, with C")
        print(f"10^6 calls add                      {growth(context, 10**6):8d} KiB")
    print(f"import weft                         {import_ms():8.1f} ms")


if __name__ == "__main__":
    main()
