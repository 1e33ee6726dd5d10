"""What of the description bindings for other languages are made of."""
import json


def of(made):
    """The description MADE without the headers that only C has."""
    c_only = {name for name, header in made["headers"].items() if header["c_only"]}
    for kind in ("functions", "handles", "structs"):
        made[kind] = {name: one for name, one in made[kind].items() if one["header"] not in c_only}
    return made


def read(path):
    """The description in the file PATH, without the headers that only C has."""
    return of(json.loads(path.read_text(encoding="utf-8")))
