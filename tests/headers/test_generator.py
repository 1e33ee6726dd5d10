#!/usr/bin/env python3
"""test_generator.py SOURCE INCLUDE CXX [LIBWEFT] - what api/cpp.py makes of functions that are new.

The functions are added to copies of the headers.  INCLUDE has the weft.hpp of the build."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, INCLUDE = map(pathlib.Path, sys.argv[1:3])
CXX, LIBRARY = sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else ""
TEMPLATE = SOURCE / "core/include/weft.hpp.in"

NEW = """
/* How to stretch a mesh. */
typedef struct weft_stretch_options {
    size_t struct_size;
    int32_t more;
} weft_stretch_options;

/* Create MESH with TIMES the ranks along the axis NAME.  OPTIONS may be NULL.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_stretch(const weft_mesh *mesh, int32_t times, const char *name,
                                                      const weft_stretch_options *options, weft_mesh **out);

/* A box of meshes. */
typedef struct weft_box weft_box;

/* Create a box that MESH fits in.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_box_create(const weft_mesh *mesh, weft_box **out);
/* Release *BOX. */
WEFT_API void weft_box_release(weft_box **box);
/* The size of BOX. */
WEFT_API int32_t weft_box_size(const weft_box *box);
/* Write the text of BOX; TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_box_print(const weft_box *box, char *text, size_t size, size_t *needed);
/* The number of boxes. */
WEFT_API uint64_t weft_boxes_count(void);
"""

PROGRAM = r"""
#include <weft/weft.hpp>
#include <string.h>

struct weft_box { int32_t size; };
static uint64_t boxes;

extern "C" {
weft_status weft_mesh_stretch(const weft_mesh *mesh, int32_t times, const char *name, const weft_stretch_options *options,
                              weft_mesh **out)
{
    int32_t size = weft_mesh_size(mesh) * times + (options != nullptr ? options->more : 0);
    return weft_mesh_parse((std::string(name) + "=" + std::to_string(size)).c_str(), out);
}
weft_status weft_box_create(const weft_mesh *mesh, weft_box **out)
{
    boxes++;
    *out = new weft_box{weft_mesh_size(mesh)};
    return WEFT_OK;
}
void weft_box_release(weft_box **box)
{
    boxes--;
    delete *box;
    *box = nullptr;
}
int32_t weft_box_size(const weft_box *box) { return box->size; }
weft_status weft_box_print(const weft_box *box, char *text, size_t size, size_t *needed)
{
    std::string whole = "box of " + std::to_string(box->size);
    if (text != nullptr && size > whole.size()) memcpy(text, whole.c_str(), whole.size() + 1);
    if (needed != nullptr) *needed = whole.size();
    return WEFT_OK;
}
uint64_t weft_boxes_count(void) { return boxes; }
}

int main()
{
    weft::mesh mesh = weft::mesh::parse("dp=2").value();
    weft_stretch_options options = weft::sized<weft_stretch_options>();
    options.more = 1;
    if (mesh.stretch(3, "dp").value().size() != 6 || mesh.stretch(3, "dp", &options).value().size() != 7) return 1;
    {
        weft::box box = weft::box::create(mesh).value(), other = std::move(box);
        if (other.size() != 2 || other.text().value() != "box of 2" || weft::boxes_count() != 1) return 2;
    }
    return weft::boxes_count() == 0 ? 0 : 3;
}
"""


class Generator(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-generator-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for headers in SOURCE.glob("*/include/weft"):  # the folder of a header says which library it is of
            shutil.copytree(headers, self.folder / headers.relative_to(SOURCE))

    def generate(self, declarations, template=TEMPLATE, seed="0"):
        """Run describe.py and cpp.py with DECLARATIONS in mesh.h; the outcome of cpp.py.  SEED: of Python's hashes."""
        include = self.folder / "core/include/weft"
        header = include / "mesh.h"
        before, end, after = header.read_text(encoding="utf-8").rpartition("#ifdef __cplusplus\n}")
        header.write_text(before + declarations + end + after, encoding="utf-8")
        description = self.folder / "weft-api.json"
        subprocess.run([sys.executable, SOURCE / "api/describe.py", description, "0.0.0", *sorted(self.folder.glob("*/include/weft/*.h"))],
                       check=True)
        return subprocess.run([sys.executable, SOURCE / "api/cpp.py", description, "weft", include / "weft.hpp", template],
                              check=False, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": seed})

    def refused(self, declarations, *words):
        made = self.generate(declarations)
        self.assertEqual(made.returncode, 1, made.stderr)
        for word in (*words, "mesh.h", "core/include/weft.hpp.in"):
            self.assertIn(word, made.stderr)
        self.assertEqual(len(made.stderr.splitlines()), 1, made.stderr)

    def test_a_program_calls_new_functions(self):
        made = self.generate(NEW)
        self.assertEqual(made.returncode, 0, made.stderr)
        (self.folder / "program.cc").write_text(PROGRAM, encoding="utf-8")
        command = [CXX, "-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-I", "core/include", "program.cc"]
        command += ["-o", "program", LIBRARY, f"-Wl,-rpath,{os.path.dirname(LIBRARY)}"] if LIBRARY else ["-fsyntax-only"]
        subprocess.run(command, cwd=self.folder, check=True)
        if LIBRARY:
            self.assertEqual(subprocess.run([self.folder / "program"], check=False).returncode, 0)

    def test_the_comment_has_the_c_name_and_the_first_sentence(self):
        self.generate(NEW)
        text = (self.folder / "core/include/weft/weft.hpp").read_text(encoding="utf-8")
        self.assertIn("    /* weft_mesh_stretch: Create MESH with TIMES the ranks along the axis NAME. */\n", text)
        self.assertIn("/* Move-only.  weft_box (mesh.h): A box of meshes. */\nclass box :", text)

    def test_the_header_of_the_build_is_what_the_sources_give(self):
        for seed in "123":
            self.assertEqual(self.generate("", seed=seed).returncode, 0)
            self.assertEqual((self.folder / "core/include/weft/weft.hpp").read_text(encoding="utf-8"),
                             (INCLUDE / "weft/weft.hpp").read_text(encoding="utf-8"))

    def test_a_callback_needs_a_function_by_hand(self):
        self.refused("""
/* Call EACH(USER, rank) for each rank of MESH. */
WEFT_API void weft_mesh_visit(const weft_mesh *mesh, void (*each)(void *user, int32_t rank), void *user);
""", "weft_mesh_visit", "`each` is a callback")

    def test_a_function_by_hand_covers_a_callback(self):
        template = self.folder / "weft.hpp.in"
        text = TEMPLATE.read_text(encoding="utf-8")
        by_hand = """    void visit(void (*each)(void *, int32_t), void *user) const { weft_mesh_visit(raw_, each, user); }\n"""
        template.write_text(text.replace("    /* Equal meshes are one object. */\n", by_hand), encoding="utf-8")
        made = self.generate("""
/* Call EACH(USER, rank) for each rank of MESH. */
WEFT_API void weft_mesh_visit(const weft_mesh *mesh, void (*each)(void *user, int32_t rank), void *user);
""", template)
        self.assertEqual(made.returncode, 0, made.stderr)

    def test_a_name_that_exists_is_refused(self):
        self.refused("""
/* Create the mesh of the ranks of CONTEXT.  The caller releases *OUT. */
WEFT_API weft_status weft_context_record(weft_context *context, weft_mesh **out);
""", "weft_context_record", "weft::context_ref::record exists, written by hand")

    def test_a_name_that_is_generated_twice_is_refused(self):
        self.refused("""
/* The rank of CONTEXT. */
WEFT_API int32_t weft_context_rank(const weft_context *context);
""", "weft_context_rank", "weft_rank", "weft::context_ref::rank")

    def test_a_keyword_is_refused(self):
        self.refused("""
/* Delete the ranks of MESH. */
WEFT_API void weft_mesh_delete(const weft_mesh *mesh);
""", "weft_mesh_delete", "`delete` is a keyword of C++")

    def test_a_lent_handle_needs_a_class(self):
        self.refused("""
/* The works of MESH; borrowed. */
WEFT_API weft_work *weft_mesh_work(const weft_mesh *mesh);
""", "weft_mesh_work", "work_ref")

    def test_a_handle_that_cannot_be_released_needs_a_class(self):
        self.refused("""
/* A sack. */
typedef struct weft_sack weft_sack;
""", "weft_sack")

    def test_a_function_of_any_number_of_arguments_is_refused(self):
        self.refused("""
/* Name MESH by FORMAT. */
WEFT_API void weft_mesh_call(const weft_mesh *mesh, const char *format, ...) WEFT_PRINTF(2, 3);
""", "weft_mesh_call", "any number of arguments")


unittest.main(argv=sys.argv[:1])
