"""The places that bindings/python/reach.txt names exist."""

import importlib.util
import pathlib

import pytest

import weft
import weft.ops  # noqa: F401

CHECK = pathlib.Path(__file__).parents[3] / "ci/checks/python.py"


def load_check():
    spec = importlib.util.spec_from_file_location("check_python", CHECK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_places_exist():
    missing = []
    for matches in load_check().read_reach().values():
        for match in matches:
            found = weft
            for part in (match["place"] or "weft").split(".")[1:]:
                found = getattr(found, part, missing)
            if found is missing:
                missing.append(match["place"])
    assert not missing


def test_a_function_without_a_line_is_found(tmp_path):
    check = load_check()
    sections = check.read_reach()
    assert list(check.problems(sections)) == []
    dropped = sections["mesh.h"].pop()["function"]
    assert list(check.problems(sections)) == [f"[mesh.h] has no line for {dropped}"]
    (tmp_path / "reach.txt").write_text("[mesh.h]\nweft_mesh_parse - it is not there\nweft_mesh_new = weft.Mesh\n")
    found = list(check.problems({"mesh.h": check.read_reach(tmp_path / "reach.txt")["mesh.h"]}))
    assert "[mesh.h] lists weft_mesh_new, which mesh.h does not declare" in found
    assert "weft_mesh_parse is called by the extension: name its place" in found
    (tmp_path / "reach.txt").write_text("weft_mesh_parse weft.Mesh\n")
    with pytest.raises(SystemExit, match="expected"):
        check.read_reach(tmp_path / "reach.txt")
