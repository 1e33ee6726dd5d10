#!/usr/bin/env python3
"""Layouts and plans as pictures, on a laptop with simulated ranks.  Usage: pictures.py [FOLDER]

In a notebook, the last expression of a cell shows the picture: `weft.spec("f32[8,16] S(0),S(1)", "dp=2,tp=4")`.
"""
import pathlib
import sys

import weft


def main(folder="."):
    mesh = weft.mesh("dp=2,tp=4")
    layout = weft.spec("f32[8,16] S(0),S(1)", mesh)
    plan = weft.plan("bf16[4096,4096]", mesh, "S(0),R", "R,S(1)")
    for name, thing in (("layout.svg", layout), ("plan.svg", plan)):
        path = pathlib.Path(folder) / name
        path.write_text(thing._repr_svg_())
        print(f"{path} shows {str(thing).splitlines()[0]}")
    with weft.Context(simulated_ranks=8) as context:
        w = weft.Tensor(context, layout, "w")
        w.normal(42)
        with weft.counts(context) as counts:
            moved = w.move("R,S(0)")
        print(f"moved: {w.compare(moved)['equal']}; operations: {counts.result['operations']}")
        del w, moved


if __name__ == "__main__":
    main(*sys.argv[1:])
