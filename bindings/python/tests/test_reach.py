"""The functions of C are where `ci/checks/python.py --page` says."""

import importlib.util
import pathlib

import pytest

import weft
import weft.ops  # noqa: F401

CHECK = pathlib.Path(__file__).parents[3] / "ci/checks/python.py"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_python", CHECK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_places_exist(check):
    missing = []
    for functions in check.places(check.generated()).values():
        for name, place, reason in functions:
            assert bool(place) != bool(reason), name
            found = weft
            for part in (place or "weft").split(".")[1:]:
                found = getattr(found, part, missing)
            if found is missing:
                missing.append(place)
    assert not missing


def test_wrong_lines_are_found(check, tmp_path):
    path = tmp_path / "reach.txt"
    lines = check.REACH.read_text()
    assert list(check.problems(check.generated())) == []
    path.write_text(lines.replace("[move.h]\n", "[move.h]\nweft_move = weft.redistribute\n"))
    assert list(check.problems(check.generated(path))) == ["[move.h] lists weft_move twice"] * 2
    path.write_text(lines.replace("[move.h]\n", "[move.h]\nweft_mesh_size - it is known\n"))
    assert "[move.h] lists weft_mesh_size, which is in mesh.h" in list(check.problems(check.generated(path)))
    path.write_text(lines + "weft_mesh_new = weft.Mesh\n")
    with pytest.raises(SystemExit, match="weft_mesh_new is in no header"):
        check.generated(path)
    path.write_text("weft_mesh_parse weft.Mesh\n")
    with pytest.raises(SystemExit, match="cannot read"):
        check.generated(path)
