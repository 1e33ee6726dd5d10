/* layout.h - meshes and specs for tests, from text. */
#ifndef WEFT_TESTS_LAYOUT_H
#define WEFT_TESTS_LAYOUT_H

#include "shard/shard.h"

#include <check.h>
#include <string.h>

static inline weft_mesh *mesh_of(const char *text)
{
    weft_mesh *mesh = NULL;

    ck_assert_msg(weft_mesh_parse(text, &mesh) == WEFT_OK, "%s", weft_last_error());
    return mesh;
}

static inline weft_spec *spec_of(const char *mesh_text, const char *text)
{
    weft_mesh *mesh = mesh_of(mesh_text);
    weft_spec *spec = NULL;

    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    weft_mesh_release(&mesh);
    return spec;
}

/* Check that MESH is the mesh that TEXT describes, and prints as TEXT. */
static inline void check_mesh_is(weft_mesh *mesh, const char *text)
{
    weft_mesh *want = mesh_of(text);
    char have[512];

    ck_assert_int_eq(weft_mesh_print(mesh, have, sizeof have, NULL), WEFT_OK);
    ck_assert_str_eq(have, text);
    ck_assert_ptr_eq(mesh, want);
    weft_mesh_release(&want);
}

/* Check that the last error is STATUS and contains TEXT. */
static inline void check_refused(weft_status status, weft_status want, const char *text)
{
    ck_assert_msg(status == want, "%s, not %s: %s", weft_status_name(status),
                  weft_status_name(want), weft_last_error());
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "\"%s\" is not in: %s", text,
                  weft_last_error());
}

#endif
