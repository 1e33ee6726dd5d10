#!/usr/bin/env python3
"""How long a rank that waits takes to raise KeyboardInterrupt.  Usage: PYTHONPATH=BUILD/python interrupt.py"""
import os
import signal
import subprocess
import sys
import time

RANK = """
import sys, time, numpy as np, weft
rank = int(sys.argv[1])
world = weft.Comm(weft.init("gloo-cpu", rank=rank, size=2, rendezvous=sys.argv[2], timeout=100))
print("ready", flush=True)
if rank == 1:
    sys.stdin.readline()
else:
    try:
        world.all_reduce(np.ones(4))
    except KeyboardInterrupt:
        print(time.monotonic_ns(), flush=True)
"""

ALONE = """
import sys, time, weft
print("ready", flush=True)
try:
    weft.init("gloo-cpu", rank=1, size=2, rendezvous=sys.argv[1], token="0123456789abcdef")
except KeyboardInterrupt:
    print(time.monotonic_ns(), flush=True)
"""


def measure_init(number):
    """Seconds from the signal to the exception, in weft.init without the other rank."""
    place = f"unix:weft-interrupt-init-{os.getpid()}-{number}"
    rank = subprocess.Popen([sys.executable, "-c", ALONE, place], stdout=subprocess.PIPE, text=True)
    rank.stdout.readline()
    time.sleep(0.5)
    begin = time.monotonic_ns()
    rank.send_signal(signal.SIGINT)
    end = int(rank.stdout.readline())
    rank.communicate()
    return (end - begin) / 1e9


def measure(number):
    """Seconds from the signal to the exception."""
    place = f"unix:weft-interrupt-{os.getpid()}-{number}"
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(rank), place], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        rank.stdout.readline()
    time.sleep(0.5)
    begin = time.monotonic_ns()
    ranks[0].send_signal(signal.SIGINT)
    end = int(ranks[0].stdout.readline())
    ranks[0].communicate()
    ranks[1].communicate("\n")
    return (end - begin) / 1e9


def main():
    for name, function in (("a collective", measure), ("weft.init", measure_init)):
        times = sorted(function(number) for number in range(5))
        print(f"{name}: from the signal to KeyboardInterrupt {times[0]:.3f} s, at most {times[-1]:.3f} s")


if __name__ == "__main__":
    main()
