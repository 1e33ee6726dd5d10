#!/usr/bin/env python3
"""What changes a fingerprint, and what does not."""
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("fingerprints", ROOT / "ci/fingerprints.py")
fingerprints = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fingerprints)

HEADER = fingerprints.HEADER.read_text()


def changed(old, new):
    """The tables whose fingerprints change when OLD, which is there, becomes NEW."""
    assert old in HEADER, old
    before = fingerprints.fingerprints(HEADER)
    after = fingerprints.fingerprints(HEADER.replace(old, new, 1))
    return [table for table in fingerprints.TABLES if before[table][0] != after[table][0]]


class Fingerprints(unittest.TestCase):
    def test_comments_spacing_and_message_texts_do_not_count(self):
        self.assertEqual(changed("/* The caller owns", "/* The CALLER owns"), [])
        self.assertEqual(changed("void (*close)(void *device);", "void  (*close)(void* device);"), [])
        self.assertEqual(changed('"out of memory"', '"no memory"'), [])

    def test_a_changed_type_counts_where_it_is_used(self):
        self.assertEqual(changed("(*fence)(void *window, void *stream)",
                                 "(*fence)(void *window, uint64_t stream)"), ["symm"])
        self.assertEqual(changed("int32_t root;", "uint32_t root;"), ["comm"])
        self.assertEqual(changed("int64_t source_offset, target_offset;",
                                 "int32_t source_offset, target_offset;"), ["kernel"])

    def test_exchanged_parameters_of_one_type_count(self):
        self.assertEqual(changed("(*event_elapsed)(void *device, void *from, void *to,",
                                 "(*event_elapsed)(void *device, void *to, void *from,"), ["device"])

    def test_exchanged_functions_count(self):
        one = "    weft_status (*fence)(void *window, void *stream);\n"
        two = "    weft_status (*quiet)(void *window, void *stream);\n"
        self.assertEqual(changed(one + two, two + one), ["symm"])

    def test_constants_and_enums_count_though_they_are_no_types(self):
        self.assertEqual(changed("WEFT_MAX_DIMS 8", "WEFT_MAX_DIMS 9"), ["kernel"])
        self.assertEqual(changed("WEFT_FOREVER  INT64_C(-1)", "WEFT_FOREVER  INT64_C(-2)"),
                         ["device", "comm", "symm"])
        self.assertEqual(changed("WEFT_SIGNAL_ADD = 1", "WEFT_SIGNAL_ADD = 2"), ["symm"])
        self.assertEqual(changed("X(ALL_REDUCE, 0,", "X(ALL_REDUCE, 14,"), ["comm"])
        self.assertEqual(changed("X(ERR_PEER, -7,", "X(ERR_PEER, -70,"),
                         ["device", "comm", "symm", "kernel"])

    def test_the_host_and_the_descriptor_count_for_the_device_table(self):
        self.assertEqual(changed("void (*log)(int32_t level, const char *text);",
                                 "void (*log)(int32_t level, const char *file, const char *text);"),
                         ["device"])
        self.assertEqual(changed("uint32_t host_minor_needed;", "uint64_t host_minor_needed;"),
                         ["device"])

    def test_versions_and_fingerprints_themselves_do_not_count(self):
        self.assertEqual(changed("WEFT_ABI_MINOR 0u", "WEFT_ABI_MINOR 1u"), [])
        self.assertEqual(changed("WEFT_COMM_SIGNATURE   UINT64_C(0x",
                                 "WEFT_COMM_SIGNATURE   UINT64_C(0xa"), [])

    def test_an_enum_that_no_table_reaches_is_an_error(self):
        with self.assertRaises(SystemExit):
            changed("enum weft_feature {", "enum weft_lost { WEFT_LOST };\nenum weft_feature {")


if __name__ == "__main__":
    unittest.main()
