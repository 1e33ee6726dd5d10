#!/usr/bin/env python3
"""test_description.py API_FOLDER DESCRIPTION.json FOLDER - what the description of the public API says.

It is compared with the symbols of the libraries in FOLDER, and made from small headers with one mistake each."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

folder, description_path, libraries = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(folder))
import contract  # noqa: E402
import describe  # noqa: E402
import headers  # noqa: E402

CORE = folder.parent / "core/include/weft"
DESCRIPTION = json.loads(description_path.read_text(encoding="utf-8"))

PREAMBLE = """/* small.h - a header of a test. */
typedef struct weft_box weft_box;
"""


def described(text):
    """The description of PREAMBLE and TEXT."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "small.h"
        path.write_text(PREAMBLE + text, encoding="utf-8")
        return describe.describe([path])


def arguments(function):
    return {argument["name"]: argument for argument in DESCRIPTION["functions"][function]["arguments"]}


class TheWholeApi(unittest.TestCase):
    def test_it_has_exactly_the_functions_that_the_libraries_export(self):
        for library in ("weft", "weft_file", "weft_parallel", "weft_feed"):
            lines = subprocess.run(["nm", "-D", "--defined-only", str(libraries / f"lib{library}.so")], check=True,
                                   capture_output=True, text=True)
            exported = {line.split()[-1].split("@")[0] for line in lines.stdout.splitlines() if line.split()[-2] in "TW"}
            self.assertEqual({name for name, one in DESCRIPTION["functions"].items() if one["library"] == library}, exported)

    def test_every_handle_can_be_released(self):
        # A borrowed communicator has a release too; these handles are only ever borrowed.
        without = {name for name, handle in DESCRIPTION["handles"].items() if "release" not in handle}
        self.assertEqual(without, set())

    def test_every_function_has_a_contract(self):
        self.assertEqual([name for name, one in DESCRIPTION["functions"].items() if not one["text"] and not one["section"]], [])

    def test_every_type_of_an_argument_is_described(self):
        known = set(DESCRIPTION["structs"]) | set(DESCRIPTION["handles"]) | set(DESCRIPTION["callbacks"])
        for name, one in DESCRIPTION["functions"].items():
            for argument in one["arguments"]:
                words = argument["type"].replace("const", "").replace("*", "").split()
                if words and words[-1].startswith("weft_") and words[0] != "enum" and "(" not in argument["type"]:
                    self.assertIn(words[-1], known | {"weft_status"}, name)
                elif words[:1] == ["enum"]:
                    self.assertIn(words[1], DESCRIPTION["enums"], name)

    def test_directions(self):
        move = arguments("weft_tensor_move")
        self.assertEqual((move["tensor"]["direction"], move["out"]["direction"], move["out"]["owned"]), ("in", "out", True))
        self.assertEqual(arguments("weft_tensor_release")["tensor"]["direction"], "released")
        self.assertEqual(arguments("weft_mesh_print")["text"]["kind"], "buffer")

    def test_what_may_be_null(self):
        create = arguments("weft_mesh_create")
        self.assertFalse(create["sizes"]["nullable"])
        self.assertTrue(create["options"]["nullable"])
        self.assertTrue(arguments("weft_all_reduce")["stream"]["nullable"])
        self.assertEqual(arguments("weft_mesh_print")["text"]["null_if"], "SIZE is 0")
        self.assertEqual(arguments("weft_dump")["prefix"]["null_if"], "WEFT_DUMP is set")
        self.assertTrue(arguments("weft_mesh_unflatten")["names"]["nullable"])

    def test_counts(self):
        self.assertEqual(arguments("weft_mesh_create")["sizes"]["count"], {"argument": "axes"})
        self.assertEqual(arguments("weft_mesh_rank")["coord"]["count"], {"function": "weft_mesh_axes", "of": "mesh"})
        self.assertEqual(arguments("weft_shape_parse")["shape"]["count"], {"constant": "WEFT_MAX_DIMS"})
        self.assertEqual(arguments("weft_style_layouts")["out"]["count"], {"constant": "WEFT_STYLE_LAYOUTS"})  # of an enum
        self.assertEqual(arguments("weft_op_apply")["inputs"]["count"], {"field": "input_count", "of": "call"})
        self.assertEqual(arguments("weft_owners_balance")["out"]["count"], {"argument": "count"})
        self.assertEqual(arguments("weft_style_layouts")["out"]["kind"], "handles")

    def test_borrowed_results(self):
        self.assertFalse(arguments("weft_comm_along")["out"]["owned"])
        self.assertFalse(DESCRIPTION["functions"]["weft_tensor_spec"]["returns"]["owned"])
        self.assertTrue(DESCRIPTION["functions"]["weft_mesh_retain"]["returns"]["owned"])

    def test_values_of_enums(self):
        values = {value["name"]: value for value in DESCRIPTION["enums"]["weft_dtype"]["values"]}
        self.assertEqual((values["WEFT_DTYPE_BF16"]["value"], values["WEFT_DTYPE_BF16"]["prints"]), (10, "bf16"))
        self.assertEqual(values["WEFT_DTYPE_COUNT"]["value"], 17)
        formats = [value.get("prints") for value in DESCRIPTION["enums"]["weft_file_format"]["values"]]
        self.assertEqual(formats, [None, "safetensors", "huggingface", "ranks", "dcp-safetensors", "dcp", "npy"])

    def test_threads(self):
        self.assertTrue(DESCRIPTION["functions"]["weft_mesh_size"]["any_thread"])  # by its header
        self.assertTrue(DESCRIPTION["functions"]["weft_comm_abort"]["any_thread"])  # by its contract
        self.assertFalse(DESCRIPTION["functions"]["weft_barrier"]["any_thread"])

    def test_symmetric_memory_records_and_libraries_above_are_a_preview(self):
        functions = DESCRIPTION["functions"].values()
        self.assertEqual({one["tier"] for one in functions if one["library"] != "weft"}, {"preview"})
        preview = {one["header"] for one in functions if one["tier"] == "preview" and one["library"] == "weft"}
        stable = {one["header"] for one in functions if one["tier"] == "stable"}
        self.assertEqual(preview, {"symm.h", "trace.h", "recorder.h", "extend.h"})
        self.assertEqual(preview & stable, {"extend.h"})  # its records are those of trace.h

    def test_the_header_of_the_library_includes_the_stable_headers(self):
        included = set(re.findall(r'#include "(\w+\.h)"', (CORE / "weft.h").read_text(encoding="utf-8")))
        stable = {one["header"] for one in DESCRIPTION["functions"].values() if one["tier"] == "stable"}
        self.assertEqual(included, stable - {"extend.h"})  # which is for libraries on top of weft


class Pages(unittest.TestCase):
    def test_an_error_has_only_what_is_about_it(self):
        text, errors = contract.split("Open BOXES.  WEFT_ERR_INVALID: a box is open; the text names it.  The error text is one line.  "
                                      "The caller releases *OUT.  WEFT_ERR_SYSTEM: it is nailed.  Other errors: as weft_box_look.  "
                                      "[BOXES: COUNT entries]  [any thread]")
        self.assertEqual(text, "Open BOXES.  The caller releases *OUT.")
        self.assertEqual(errors, [("WEFT_ERR_INVALID", "a box is open; the text names it.  The error text is one line."),
                                  ("WEFT_ERR_SYSTEM", "it is nailed."), ("Other errors", "as weft_box_look.")])

    def test_no_error_ends_with_a_heading(self):
        for name, one in DESCRIPTION["functions"].items():
            for names, said in contract.split(one["text"])[1]:
                self.assertFalse(said.endswith(":"), f"{name}: {names}: {said}")


class Mistakes(unittest.TestCase):
    def problem(self, text):
        made = described(text)
        self.assertEqual(len(made.problems), 1, made.problems)
        return made.problems[0]

    def test_a_complete_contract(self):
        made = described("/* Open BOXES. [BOXES: COUNT entries] The caller releases *OUT. */\n"
                         "WEFT_API weft_status weft_box_open(size_t count, weft_box *const *boxes, weft_box **out);\n")
        self.assertEqual(made.problems, [])

    def test_a_marker_makes_a_function_a_preview(self):
        made = described("/* Close one. */\nWEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_box_shut(weft_box *box);\n"
                         "/* Look at one. */\nWEFT_API WEFT_NODISCARD weft_status weft_box_look(weft_box *box);\n")
        self.assertEqual({name: one["tier"] for name, one in made.functions.items()},
                         {"weft_box_shut": "preview", "weft_box_look": "stable"})

    def test_a_count_is_missing(self):
        self.assertIn("small.h:4: weft_box_sum: `const int64_t * values`: say how many entries it has: write `[VALUES: COUNT",
                      self.problem("/* Add VALUES. */\nWEFT_API int64_t weft_box_sum(const int64_t *values);\n"))

    def test_a_count_of_results_is_missing(self):
        self.assertIn("weft_box_sizes: `int32_t * out`: say how many entries it has: write `[OUT: COUNT",
                      self.problem("/* Set OUT[i] to the size of box i. */\nWEFT_API void weft_box_sizes(int32_t *out);\n"))

    def test_an_owner_is_missing(self):
        self.assertIn("say who owns it: write `The caller releases *OUT.`",
                      self.problem("/* Make one. */\nWEFT_API weft_status weft_box_create(weft_box **out);\n"))

    def test_an_unknown_type(self):
        self.assertIn("`weft_unknown` is not declared in a header",
                      self.problem("/* Look at THING. */\nWEFT_API int32_t weft_box_look(weft_unknown *thing);\n"))

    def test_a_declaration_that_is_not_read(self):
        with self.assertRaisesRegex(headers.Unreadable, "small.h:3: cannot read `int variable"):
            described("int variable;\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
