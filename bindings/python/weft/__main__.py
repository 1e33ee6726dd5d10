"""python -m weft: the command-line tool."""

import os
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
tool = here / "bin" / "weft"
os.execv(tool, ["weft", *sys.argv[1:]])
