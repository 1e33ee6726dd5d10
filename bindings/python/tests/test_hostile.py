"""Arguments whose code closes or calls what the call uses, and what objects keep."""
import gc
import sys
import weakref

import numpy as np
import pytest

import weft

SOURCE, TARGET = weft.spec("f32[4] S(0)", "1"), weft.spec("f32[4] R", "1")


class Code:
    """An array, a number, a sequence and a stream that run a function when they are read."""

    def __init__(self, value, function):
        self.value, self.function, self.errors = value, function, []

    def run(self):
        try:
            self.function()
        except (RuntimeError, BufferError) as error:
            self.errors.append(str(error))
        return self.value

    def __dlpack__(self, **options):
        return self.run().__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0

    def __index__(self):
        return self.run()

    def __len__(self):
        return len(self.value)

    def __getitem__(self, index):
        return self.run()[index]

    def __cuda_stream__(self):
        return 0, self.run()


@pytest.fixture
def context():
    with weft.Context("gloo-cpu") as made:
        yield made


def ones(count=4):
    return np.ones(count, np.float32)


@pytest.mark.parametrize("call", [
    lambda context, code: weft.Tensor.wrap(context, SOURCE, code),
    lambda context, code: weft._weft.move_array(context, code, SOURCE, TARGET, ones()),
    lambda context, code: weft._weft.move_array(context, ones(), SOURCE, TARGET, code),
])  # fmt: skip
def test_an_array_cannot_close_the_context_of_its_call(context, call):
    code = Code(ones(), context.close)
    call(context, code)
    assert "a call that uses it is running" in code.errors[0]


def test_a_stream_cannot_close_the_context_of_its_call(context):
    code = Code("none", context.close)
    with pytest.raises(TypeError):
        weft._weft.move_array(context, ones(), SOURCE, TARGET, ones(), code)
    assert "a call that uses it is running" in code.errors[0]


def test_a_move_is_not_called_by_the_code_of_its_arguments(context):
    move = weft.Move(context, [SOURCE], [TARGET])
    source, target = ones(), np.zeros(4, np.float32)
    fixed = move.fix([source], [target])
    code = Code(source, lambda: move([source], [np.zeros(4, np.float32)]))
    move([code], [target])
    assert code.errors == ["another call of the move is running"] and target.tolist() == [1] * 4
    for call in (fixed, lambda stream: move([source], [target], stream)):
        code = Code("none", fixed)
        with pytest.raises(TypeError):
            call(stream=code)
        assert code.errors == ["another call of the move is running"]
    fixed()


def test_a_fixed_move_keeps_arrays_that_only_state_an_address(context):
    class Interface:
        __cuda_array_interface__ = {"shape": (0,), "data": (0, False), "typestr": "<f4", "version": 3}

    empty = weft.spec("f32[0] R", "1")
    array = Interface()
    before = sys.getrefcount(array)
    fixed = weft.Move(context, [empty], [empty]).fix([array], [ones(0)])
    assert sys.getrefcount(array) == before + 1
    del fixed
    assert sys.getrefcount(array) == before


def test_arguments_do_not_close_files_that_are_in_use(tmp_path):
    path = tmp_path / "model.safetensors"

    def closed(call, made, value):  # either the code comes first, or it cannot close the file
        code = Code(value, made.close)
        try:
            call(made, code)
        except RuntimeError as error:
            assert "was closed" in str(error) and not code.errors
        else:
            assert "is running" in code.errors[0]
        made.close()

    for call, value in ((lambda made, code: made.write("x", code), ones()),
                        (lambda made, code: made.write("x", ones(), offset=code), [0])):
        closed(call, weft.Writer(path, [("x", "f32", (4,))]), value)
    with weft.Writer(path, [("x", "f32", (4,))]) as writer:
        writer.write("x", ones())
    for call, value in ((lambda made, code: made.read("x", out=code), ones()),
                        (lambda made, code: made.read("x", code, [4], out=ones()), [0]),
                        (lambda made, code: made.read_shard("x", code, TARGET, 0), ones()),
                        (lambda made, code: weft.reshard(made, tmp_path / "other.safetensors", jobs=code), 1)):
        closed(call, weft.Checkpoint(path), value)


def test_an_array_cannot_close_the_routing_of_its_tokens(context):
    with weft.Experts(context, weft.mesh("ep=1"), "ep", 2) as experts, experts.route([1, 1]) as routing:
        tokens = np.ones((2, 2), np.float32)
        for source, target in ((Code(tokens, routing.close), tokens.copy()), (tokens, Code(tokens.copy(), routing.close))):
            routing.dispatch(source, target)
            assert "is running" in next(code for code in (source, target) if isinstance(code, Code)).errors[0]


def test_a_version_cannot_close_the_memory_of_a_capsule(context):
    symm = weft.Symm(weft.Comm(context), 64)
    code = Code((1, 1), symm.close)
    capsule = symm.memory().__dlpack__(max_version=code)
    assert code.errors
    del capsule
    symm.close()


def test_lists_with_one_count_have_one_length(context):
    tensor = weft.Tensor(context, SOURCE)
    with pytest.raises(ValueError, match="targets has 0 entries; expected 1, as the list beside it"):
        weft.move_into([tensor], [])
    with pytest.raises(ValueError, match="targets has 1 entries; expected 0, as the list beside it"):
        weft.move_into([], [tensor])
    with pytest.raises(TypeError, match="targets must be a list of weft.Tensor, not None"):
        weft.move_into([tensor], None)


def test_arguments_and_objects_of_failed_calls_are_released(context):
    tensor, move = weft.Tensor(context, SOURCE), weft.Move(context, [SOURCE], [TARGET])
    good, bad = ones(), ones(3)

    class Boom:
        def __dlpack__(self, **options):
            raise KeyError("no capsule")

        __index__ = __cuda_stream__ = __dlpack__

    boom = Boom()
    calls = (
        lambda: move([good], [bad]), lambda: move([good], [boom]), lambda: move([good], [good], boom),
        lambda: move.fix([good], [bad]), lambda: weft.Move(context, [SOURCE], [bad]),
        lambda: weft.Move(context, [None], [TARGET]), lambda: weft._weft.move_array(context, good, SOURCE, TARGET, boom),
        lambda: weft.Tensor.wrap(context, SOURCE, bad), lambda: weft.Tensor.wrap(context, SOURCE, boom),
        lambda: weft.Tensor(context, SOURCE, boom), lambda: tensor.uniform(boom), lambda: weft.move_into([tensor], [boom]),
    )
    watched = (context, SOURCE, TARGET, tensor, move, good, bad, boom)

    def counts():
        return [sys.getrefcount(one) for one in watched]

    def run():
        for call in calls:
            with pytest.raises((KeyError, TypeError, ValueError)):
                call()

    run()
    before = counts()
    for _ in range(20):
        run()
    assert all(abs(now - then) < 10 for now, then in zip(counts(), before))


def test_an_object_that_another_thread_closes_keeps_its_context(ranks, tmp_path):
    ranks(2, f"""
        import pathlib, threading, time
        import pytest
        import weft

        context = weft.init()
        other = pathlib.Path({str(tmp_path)!r}) / "other"
        mesh = weft.mesh("tp=2")
        overlap = weft.Overlap(context, mesh, "tp", 1024)
        if context.rank == 1:
            while not other.exists():
                time.sleep(0.01)
        closing = threading.Thread(target=overlap.close, daemon=True)  # it waits for the other rank
        closing.start()
        if context.rank == 0:
            for _ in range(6000):
                try:
                    overlap.predict(weft.spec("f32[2,1] S(0)", mesh))
                except RuntimeError as error:
                    assert "was closed" in str(error)
                    break
                time.sleep(0.01)
            with pytest.raises(RuntimeError, match="a call of the Overlap is running"):
                overlap.close()
            with pytest.raises(RuntimeError, match="in use"):
                context.close()
            other.write_text("")
        closing.join()
        overlap.close()
    """)


@pytest.mark.parametrize("ends", ["collected", "closed"])
def test_a_function_that_refers_to_its_object_is_freed(context, ends):
    class Trainer:
        def __init__(self):
            schedule = weft.Schedule("gpipe", 1, 1)
            self.calls = 0
            self.pipeline = weft.Pipeline(context, weft.mesh("pp=1"), "pp", schedule, [], self.run, self.run)

        def run(self, action):
            self.calls += 1

    trainer = Trainer()
    trainer.pipeline.run()
    assert trainer.calls == 2
    if ends == "closed":
        trainer.pipeline.close()
    alive = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert alive() is None  # and the context can be closed, which the fixture does


def test_a_function_of_a_plan_of_files_that_refers_to_the_plan_is_freed(tmp_path):
    with weft.Writer(tmp_path / "one.safetensors", [("x", "f32", (4,))]) as writer:
        writer.write("x", ones())

    class Progress:
        def __call__(self, done, total):
            return True

    progress = Progress()
    progress.plan = weft._weft.Reshard(weft.Checkpoint(tmp_path / "one.safetensors"), str(tmp_path / "two"), progress=progress)
    alive = weakref.ref(progress)
    del progress
    gc.collect()
    assert alive() is None


def test_subclasses_make_objects_of_themselves(context):
    class Weights(weft.Tensor):
        def double(self):
            return 2 * self.spec.shape[0]

    class Layout(weft.Spec):
        pass

    made = Weights(context, SOURCE, "w")
    made.scale = 3  # a subclass has attributes
    wrapped = Weights.wrap(context, SOURCE, ones())
    assert type(made) is type(wrapped) is Weights and made.double() == wrapped.double() == 8 and made.name == "w"
    assert type(made.move(TARGET)) is weft.Tensor  # a result of C
    layout = Layout("f32[4] S(0)", "1")
    assert type(layout) is Layout and layout == SOURCE and hash(layout) == hash(SOURCE)


def test_a_class_in_use_keeps_the_members_that_it_replaces(ranks):
    ranks(1, """
        import weft

        class Base(weft.Spec):
            dims = property(lambda self: "mine")

            def transpose(self, *axes):
                return "mine"

        class Layout(Base):
            counts = None

        made = weft._weft.use(Layout)
        layout = Layout("f32[4,2] S(0)", "1")
        assert made is Layout and layout.dims == layout.transpose(0, 1) == "mine" and layout.counts is None
        assert layout.shape == (4, 2) and layout.dtype == "f32" and str(layout) == "f32[4,2] S(0)"
        assert type(weft.Plan(layout, layout).source) is Layout
        for wrong in (3, int, object):
            try:
                weft._weft.use(wrong)
            except TypeError:
                continue
            raise AssertionError(wrong)
        for call in (lambda: weft.Tensor.to_host(3, b""), lambda: vars(weft.Context)["rank"].__get__(layout)):
            try:
                call()
            except TypeError:
                continue
            raise AssertionError("a member of another class")
        """)


def test_a_subclass_of_communicators_is_refused(context):
    class Mine(weft.Comm):
        pass

    with pytest.raises(TypeError, match="weft makes all communicators, so Mine has no objects"):
        Mine(context)


def test_a_text_of_the_caller_is_not_what_results_are(ranks):
    ranks(1, """
        import weft

        class Name(str):
            pass

        assert type(weft.spec("f32[4] R", "1").with_(dtype=Name("f64")).dtype) is str
        """)
