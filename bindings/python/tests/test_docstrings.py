"""Docstrings that the build makes of C's contracts speak of Python."""

import builtins
import inspect
import math
import pydoc
import re

import pytest

import weft
import weft.ops
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
    assert len(DOCSTRINGS) > 300
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
            if not hasattr(builtins, name):
                missing.add((place, name))  # without `weft.`
    assert missing == set()


def test_lines_are_short_and_sentences_begin_and_end():
    generated = [(place, text) for place, text in DOCSTRINGS if not re.match(r"_?(?:op|checkpoint|attention)_|Shard|clip_", place)]
    assert [place for place, text in generated if max(map(len, text.splitlines())) > 100 and place not in BY_HAND] == []
    assert [place for place, text in generated if not text.rstrip().endswith((".", ")")) and place not in BY_HAND] == []


BY_HAND = {"Context", "Move", "Symm", "Recording.stop", "Symm.memory", "Tensor.local"}


def test_an_error_has_the_name_of_its_exception():
    assert "weft.NotFoundError: `self` has no such axis" in weft.Mesh.find_axis.__doc__
    assert "weft.OutOfMemoryError: a rank has no memory" in weft.Experts.route.__doc__
    assert "weft.SystemCallError: a file cannot be written" in _weft.Context._dump.__doc__
    assert weft.Mesh.rank_at.__doc__.splitlines()[-1] == "IndexError: `self` has no such position."


def test_what_c_writes_is_the_result():
    assert _weft.Checkpoint.find.__doc__.startswith("Return the number of the tensor `name`.")
    assert _weft.Plan.info.__doc__ == "The properties of `self`."
    assert _weft.Spec._run.__doc__.splitlines()[3].startswith("None if the shard has no index")
    assert "Entry i of the result, from 0 to `owners` - 1, is the owner of tensor i" in weft.owners_balance.__doc__.replace("\n", " ")
    assert "Returns (`received_max`, `received_total`)." in _weft.Plan.measure.__doc__.replace("\n", " ")


def test_classes_by_hand_have_signatures():
    assert str(inspect.signature(weft.Move)) == "(context, sources, targets)"
    assert str(inspect.signature(weft.Move.fix)) == "(self, /, sources, targets)"
    assert str(inspect.signature(weft.describe)) == "(array, /)"


def test_every_class_has_a_signature():
    public = [getattr(weft, name) for name in weft.__all__]
    made = [thing for thing in public if isinstance(thing, type) and not issubclass(thing, BaseException)]
    without = {"Routing", "FSDPGroup", "Saving", "Shard", "FixedMove", "Choice"}  # that other objects make
    assert {kind.__name__ for kind in made if not signature_of(kind)} <= without
    assert str(inspect.signature(weft.Checkpoint)) == "(path)" and str(inspect.signature(weft.Mesh)) == "(text)"
    assert str(inspect.signature(weft.Timeline)) == "(schedule, *, costs=None, memory_limit=0)"


def signature_of(kind):
    try:
        return str(inspect.signature(kind)) not in ("()", "(*args, **kwargs)", "(/, *args, **kwargs)")
    except ValueError:
        return False


def test_help_shows_the_package():
    text = pydoc.plain(pydoc.render_doc(weft))
    assert "annotations" not in dir(weft)
    for name in weft.__all__:
        assert re.search(rf"\b{name}\b", text), name
    assert text.index("redistribute ") < text.index("Tensor ") < text.index("Context, init") < text.index("CLASSES")
    public = {name for name, thing in vars(weft).items() if not name.startswith("_") and not inspect.ismodule(thing)}
    assert public == set(weft.__all__)


def test_fields_of_named_tuples_are_described():
    for kind in (weft.Action, weft.Problem, weft.ops.Run, weft.Node, weft.Reordered):
        for name in kind._fields:
            assert not getattr(kind, name).__doc__.startswith("Alias"), (kind, name)


@pytest.mark.parametrize("place", [
    "redistribute", "init", "plan", "Context", "Comm", "Tensor", "Mesh", "Spec", "Plan", "ops.apply", "load", "save", "Pipeline", "FSDP",
    "Schedule", "Checkpoint"])  # fmt: skip
def test_main_entry_points_have_an_example(place):
    thing = weft
    for part in place.split("."):
        thing = getattr(thing, part)
    assert ">>> " in thing.__doc__


def test_a_docstring_says_what_it_compares_with():
    assert [place for place, text in DOCSTRINGS if re.match(r"The same(?:,| for | with )", text)] == []
    assert _weft.Context._save_begin.__doc__.startswith("As weft.save, while the caller continues")

def test_values_that_c_tells_of_together_have_texts_of_their_own():
    for place, names in (
        (weft.FSDPGroup, ("bytes_gathered", "bytes_kept", "bytes_gradients", "bytes_sums", "bytes_peak")), (weft.Experts, ("first", "here")),
        (weft.AttentionPlan, ("work_largest", "work_total")), (weft.ops.Backward, ("inputs", "outputs")),
        (weft.Spec, ("order_to_strides", "strides_to_order")), (weft.Plan, ("peak_bytes", "scratch_bytes")),
    ):  # fmt: skip
        texts = [getattr(place, name).__doc__ for name in names]
        assert len(set(texts)) == len(names) and all(texts), (place, texts)


def test_docstrings_say_something():
    for place, text in DOCSTRINGS:
        body = text.rpartition("--\n\n")[2]
        assert not re.match(r"The figures\b|Release the object now|The tensors\.$", body), place
        assert not re.search(r"\bNone for None\b|[Ff]alse for None|\bBY_COSTS\b|this header|\bis released\b.*which frees", body, re.S), (place, body)
    assert "chunks=0" in _weft.Overlap.concurrent.__doc__
    assert "ValueError" in _weft.dtype_bytes.__doc__
    with pytest.raises(ValueError, match="dtype"):
        weft.dtype_bytes("f31")


def test_axes_have_communicators_without_arguments_that_c_refuses():
    assert list(inspect.signature(weft.Comm.along).parameters) == ["self", "mesh", "axes", "name", "timeout"]
    with weft.Context() as context:
        assert context.world.along(weft.mesh("tp=1"), "tp", timeout=3) is not None


def test_the_limit_of_a_communicator_is_in_seconds():
    with weft.Context(timeout=3) as context:
        assert context.world.timeout == 3.0
    with weft.Context(timeout=math.inf) as context:
        assert weft.Comm(context).timeout == math.inf
