"""A public function that is added to a header is reached from Python; one that needs a decision is named."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

import weft

ROOT = pathlib.Path(__file__).parents[3]

DECLARED = """
typedef struct weft_sample_options {
    size_t struct_size;
    const char *label; /* NULL: none */
    int32_t times;
    double share;
} weft_sample_options;

/* Set *SUM to NUMBER and the length of TEXT and of the label, so many times.  OPTIONS may be NULL.  *OUT is MESH.  The
 * caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_sample(const weft_mesh *mesh, int32_t number, const char *text,
                                                     const weft_sample_options *options, uint64_t *sum,
                                                     weft_mesh **out);

/* What a visitor gets. */
typedef struct weft_sample_place {
    size_t struct_size;
    int32_t axis;
    const char *name; /* of the axis */
} weft_sample_place;

/* Call VISIT with USER for each axis, until it returns another status than WEFT_OK. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_visit(const weft_mesh *mesh,
                                                    weft_status (*visit)(void *user, int32_t size,
                                                                         const weft_sample_place *place),
                                                    void *user);
/* Call END with USER. */
WEFT_API void weft_mesh_finish(const weft_mesh *mesh, void (*end)(void *user), void *user);
/* How many numbers weft_mesh_add takes. */
WEFT_API uint32_t weft_mesh_least(const weft_mesh *mesh, int32_t more);
/* Set *SUM to the sum of NUMBERS.  [NUMBERS: weft_mesh_axes(MESH) + weft_mesh_least(MESH, MORE) entries] */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_add(const weft_mesh *mesh, int32_t more, const int64_t *numbers, int64_t *sum);
"""

DEFINED = """
#include <weft/weft.h>
#include <string.h>
weft_status weft_mesh_sample(const weft_mesh *mesh, int32_t number, const char *text, const weft_sample_options *options,
                             uint64_t *sum, weft_mesh **out)
{
    uint64_t one = (uint64_t)number + strlen(text) + (options->label != NULL ? strlen(options->label) : 0);

    *sum = one * (uint64_t)(options->times + 1);
    *out = weft_mesh_retain(mesh);
    return number == 13 ? WEFT_ERR_INVALID : WEFT_OK;
}

weft_status weft_mesh_visit(const weft_mesh *mesh,
                            weft_status (*visit)(void *user, int32_t size, const weft_sample_place *place), void *user)
{
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++) {
        weft_sample_place place = {sizeof place, i, weft_mesh_axis_name(mesh, i)};
        weft_status status = visit(user, weft_mesh_axis_size(mesh, i), &place);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

void weft_mesh_finish(const weft_mesh *mesh, void (*end)(void *user), void *user)
{
    (void)mesh;
    end(user);
}

uint32_t weft_mesh_least(const weft_mesh *mesh, int32_t more)
{
    (void)mesh;
    return (uint32_t)more;
}

weft_status weft_mesh_add(const weft_mesh *mesh, int32_t more, const int64_t *numbers, int64_t *sum)
{
    *sum = 0;
    for (int32_t i = 0; i < weft_mesh_axes(mesh) + more; i++)
        *sum += numbers[i];
    return WEFT_OK;
}
"""

PROGRAM = """
import weft
mesh = weft.mesh("dp=2,tp=4")
assert mesh.sample(2, "four") == (6, mesh)
assert mesh.sample(text="four", number=2, label="two", times=1) == (18, mesh)
assert isinstance(mesh.sample(1, "")[1], weft.Mesh)
assert weft.Mesh.sample.__text_signature__ == "($self, number, text, *, label=None, times=0, share=0.0)"
assert weft.Mesh.sample.__doc__.startswith("Set `sum` to `number`")
for wrong in (lambda: mesh.sample("2", "four"), lambda: mesh.sample(2), lambda: mesh.sample(2, "four", lable="x")):
    try:
        wrong()
    except TypeError:
        continue
    raise SystemExit("accepted")
seen = []
mesh.visit(lambda size, place: seen.append((size, place)))
assert seen == [(2, {"axis": 0, "name": "dp"}), (4, {"axis": 1, "name": "tp"})], seen
mesh.finish(lambda: seen.clear())
assert seen == [] and mesh.add(1, [1, 2, 3]) == 6
def fail(*given):
    seen.append(given)
    raise KeyError("visited")
for call in (mesh.visit, mesh.finish):
    try:
        call(fail)
    except KeyError as error:
        assert error.args == ("visited",) and len(seen) == 1
        seen.clear()
    else:
        raise SystemExit("no exception")
for wrong, kind in ((lambda: mesh.visit(3), TypeError), (lambda: mesh.visit(None), TypeError), (lambda: mesh.add(1, [1, 2]), ValueError)):
    try:
        wrong()
    except kind:
        continue
    raise SystemExit("accepted")
try:
    mesh.sample(13, "")
except weft.InvalidError:
    print("reached")
"""


def generate(folder, declared):
    """Add a declaration to mesh.h; the headers in FOLDER, and what the generator says."""
    include = folder / "include/weft"
    for headers in ROOT.glob("*/include/weft"):
        shutil.copytree(headers, include, dirs_exist_ok=True)
    text = (include / "mesh.h").read_text()
    (include / "mesh.h").write_text(text.replace("typedef struct weft_mesh weft_mesh;\n", f"typedef struct weft_mesh weft_mesh;\n{declared}"))
    headers = sorted(map(str, include.glob("*.h")))
    subprocess.run([sys.executable, ROOT / "api/describe.py", folder / "api.json", "0", *headers], check=True)
    (folder / "weft").mkdir()
    return subprocess.run(
        [sys.executable, ROOT / "api/python.py", folder / "api.json", ROOT / "bindings/python/reach.txt",
         ROOT / "bindings/python/by_hand.pyi", folder / "members", folder / "weft"],
        capture_output=True, text=True, check=False)  # fmt: skip


def libraries():
    """The libraries of the package under test; a wheel has them with their versions only."""
    package = pathlib.Path(weft._weft.__file__).parent
    found = [sorted(folder.glob("libweft*.so*")) for folder in (package / "lib", package.parents[1] / "lib")]
    return next(files for files in found if files)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.skipif(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists(), reason="there is no Python.h")
def test_a_new_function_is_reached_without_another_edit(tmp_path):
    done = generate(tmp_path, DECLARED)
    assert done.returncode == 0, done.stderr
    assert "def sample(self, number: int, text: str, *, label: str | None = None" in (tmp_path / "weft/_weft.pyi").read_text()
    (tmp_path / "sample.c").write_text(DEFINED)
    sources = [*(ROOT / "bindings/python/src").glob("*.c"), *(tmp_path / "members").glob("*.c"), tmp_path / "sample.c"]
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O0", "-w", "-fno-strict-aliasing", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030b0000",
         f'-DWEFT_VERSION_STRING="{weft.__version__}"', f"-I{tmp_path}/include", f"-I{ROOT}/bindings/python/src",
         f"-I{tmp_path}/members", f"-I{sysconfig.get_path('include')}", *sources, "-o", tmp_path / "weft/_weft.abi3.so",
         *libraries(), f"-Wl,-rpath,{libraries()[0].parent}"],
        check=True)  # fmt: skip
    for module in (ROOT / "bindings/python/weft").iterdir():
        if not (tmp_path / "weft" / module.name).exists():
            (tmp_path / "weft" / module.name).symlink_to(module)
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
                         check=False)  # fmt: skip
    assert ran.stdout == "reached\n", ran.stderr


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ("/* Call FUNCTION. */\nWEFT_API void weft_mesh_each(const weft_mesh *mesh, void (*function)(void *user, void *data), void *user);\n",
         "`function` is a callback"),
        ("/* Read SOURCE. */\nWEFT_API void weft_mesh_read(const weft_mesh *mesh, const void *source);\n", "`source` is a memory"),
    ],
)  # fmt: skip
def test_a_function_that_needs_a_decision_fails_the_build(tmp_path, declared, reason):
    done = generate(tmp_path, declared)
    assert done.returncode == 1
    assert "mesh.h: weft_mesh_" in done.stderr and reason in done.stderr and "bindings/python/reach.txt" in done.stderr


def test_the_generator_is_fast(tmp_path):
    begin = os.times()
    assert generate(tmp_path, "").returncode == 0
    used = os.times()
    assert used.children_user - begin.children_user < 2  # seconds of processor time


class Closing:
    """A number that closes an object when it is read."""

    def __init__(self, target):
        self.target = target

    def __index__(self):
        self.target.close()
        return 0

    def __float__(self):
        self.target.close()
        return 0.0


def test_arguments_cannot_close_what_the_call_uses():
    """A later argument runs code of the caller when the handles are read already."""
    context = weft.Context("gloo-cpu", simulated_ranks=2)
    fsdp = weft.FSDP(context, weft.mesh("2"), 0)
    group = fsdp.group([weft.Tensor(context, weft.spec("f32[4] S(0)", "2"))])
    with pytest.raises(RuntimeError, match="a call of the FSDPGroup is running"):
        weft._weft.FSDPGroup.parameter(group, Closing(group))
    group.close()
    fsdp.close()
    with pytest.raises(RuntimeError, match="a call that uses it is running"):
        context._clip_gradient_value([], Closing(context))
    context.close()


def test_lists_are_read_once():
    """A sequence whose items differ between reads, and one that can be read only once."""

    class Changing(list):
        def __getitem__(self, index):
            return "no tensor"

    context = weft.Context("gloo-cpu", simulated_ranks=2)
    tensors = [weft.Tensor(context, weft.spec("f32[4] S(0)", "2")) for _ in range(2)]
    weft.move_into(Changing(tensors[:1]), iter(tensors[1:]))
    del tensors
    context.close()
