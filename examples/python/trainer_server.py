#!/usr/bin/env python3
"""A trainer and a server that pass weights each step.  Usage: weft run -n 4 -- python trainer_server.py

Ranks 0 and 1 train with the weights split by rows; ranks 2 and 3 serve with the weights split by columns.  All are
ranks of one job.  The move between the two meshes is bound once; each step then only moves the data.
"""
import numpy as np

import weft

SHAPE, STEPS = (64, 48), 3


def main():
    context = weft.init()
    if context.size != 4:
        raise SystemExit("start 4 ranks: weft run -n 4 -- python trainer_server.py")
    trains = context.rank < 2
    text = f"f32[{SHAPE[0]},{SHAPE[1]}]"
    stored = weft.spec(f"{text} S(0)", "2@0,1")
    served = weft.spec(f"{text} S(1)", "2@2,3")
    move = weft.Move(context, [stored], [served])
    weights = np.zeros(stored.shard(context.rank)[0], np.float32)
    copy = np.empty(served.shard(context.rank)[0], np.float32)
    for step in range(STEPS):
        if trains:
            weights += step + 1  # one step of training
        move([weights], [copy])
        if not trains:
            assert (copy == sum(range(1, step + 2))).all()
    if context.rank == 2:
        print(f"the server has {copy.shape} of {SHAPE} after {STEPS} steps, each element {copy[0, 0]:.0f}")


if __name__ == "__main__":
    main()
