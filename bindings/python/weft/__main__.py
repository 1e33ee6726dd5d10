"""python -m weft, and the script weft: the command-line tool."""

import os
import pathlib
import sys


def main() -> None:
    """Replace this process by the tool, which lies in the package."""
    tool = pathlib.Path(__file__).parent / "bin" / "weft"
    os.execv(tool, ["weft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
