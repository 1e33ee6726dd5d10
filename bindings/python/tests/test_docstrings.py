"""Docstrings that the build makes of C's contracts speak of Python."""

import inspect
import re

import weft
from weft import _weft

# What only C has: names of statuses, results behind pointers, sizes of structs, ownership.
WORDS_OF_C = re.compile(
    r"WEFT_ERR_|WEFT_OK|WEFT_IN_PROGRESS|\*[A-Z_]{2,}|struct_size|\bNULL\b|\bBorrowed\b|caller releases|`buffer`|\bfor \(int")


def docstrings():
    """(place, text) of each class, member and function of the extension."""
    for name, thing in vars(_weft).items():
        if isinstance(thing, type):
            yield name, thing.__doc__
            yield from ((f"{name}.{member}", value.__doc__) for member, value in vars(thing).items() if not member.startswith("_"))
        elif callable(thing):
            yield name, thing.__doc__


DOCSTRINGS = [(place, text) for place, text in docstrings() if text]


def test_no_docstring_has_words_of_c():
    assert len(DOCSTRINGS) > 400
    found = {place: WORDS_OF_C.search(text) for place, text in DOCSTRINGS}
    assert {place: match[0] for place, match in found.items() if match} == {}


def test_exceptions_and_members_that_docstrings_name_exist():
    missing = set()
    for place, text in DOCSTRINGS:
        for name in re.findall(r"\bweft\.((?:ops\.)?\w+(?:\.\w+)?)", text):
            thing = weft
            for part in name.split("."):
                thing = getattr(thing, part, None)
            if thing is None:
                missing.add((place, name))
        for name in re.findall(r"\b(?<!\.)[A-Z]\w+Error\b", text):
            missing.add((place, name))  # without `weft.`
    assert missing == set()


def test_lines_are_short_and_sentences_begin_and_end():
    generated = [(place, text) for place, text in DOCSTRINGS if not re.match(r"(?:op|checkpoint|attention)_|Shard|clip_", place)]
    assert [place for place, text in generated if max(map(len, text.splitlines())) > 100 and place not in BY_HAND] == []
    assert [place for place, text in generated if not text.rstrip().endswith((".", ")")) and place not in BY_HAND] == []


BY_HAND = {"Context", "Move", "Symm", "Recording.stop", "Symm.memory", "Tensor.local"}


def test_an_error_has_the_name_of_its_exception():
    assert "weft.NotFoundError: `self` has no such axis" in weft.Mesh.find_axis.__doc__
    assert "weft.OutOfMemoryError: a rank has no memory" in weft.Experts.route.__doc__
    assert "weft.SystemCallError: a file cannot be written" in _weft.Context.dump.__doc__


def test_what_c_writes_is_the_result():
    assert _weft.Checkpoint.find.__doc__.startswith("Return the number of the tensor `name`.")
    assert _weft.Plan.info.__doc__ == "The properties of `self`."
    assert _weft.Spec.run.__doc__.splitlines()[3].startswith("None if the shard has no index")
    assert "Returns (`received_max`, `received_total`)." in _weft.Plan.measure.__doc__.replace("\n", " ")


def test_classes_by_hand_have_signatures():
    assert str(inspect.signature(weft.Move)) == "(context, sources, targets)"
    assert str(inspect.signature(weft.Move.fix)) == "(self, /, sources, targets)"
    assert str(inspect.signature(weft.describe)) == "(array, /)"


def test_a_docstring_says_what_it_compares_with():
    assert [place for place, text in DOCSTRINGS if re.match(r"The same(?:,| for | with )", text)] == []
    assert _weft.Context.save_begin.__doc__.startswith("As weft.Context.save, while the caller goes on")
