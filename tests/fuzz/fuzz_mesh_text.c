/* Any text is a mesh or is refused.  A mesh prints as text that reads back to the same object, and
 * every mesh derived from it is valid.  An optional second line lists axes. */
#include "fuzz.h"

#include "mesh/mesh.h"

#include <string.h>

/* Lists of millions of ranks are slow, not wrong. */
static bool lists_millions(const char *text)
{
    const char *list = strchr(text, '@');
    size_t digits = 0;

    if (list == NULL || strchr(list, ',') == NULL) return false;
    for (; *text != '\0'; text++) {
        digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
        if (digits > 4) return true;
    }
    return false;
}

static void check_text(const weft_mesh *mesh)
{
    weft_mesh *again = NULL;
    size_t length;
    char *text;

    FUZZ_ASSERT(weft_mesh_print(mesh, NULL, 0, &length) == WEFT_OK);
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL && weft_mesh_print(mesh, text, length + 1, NULL) == WEFT_OK);
    FUZZ_ASSERT(strlen(text) == length);
    FUZZ_ASSERT(weft_mesh_parse(text, &again) == WEFT_OK && again == mesh);
    weft_mesh_release(&again);
    free(text);
}

static void check_places(const weft_mesh *mesh)
{
    int32_t size = weft_mesh_size(mesh);
    const int32_t places[] = {0, size / 3, size / 2, size - 1};

    for (size_t i = 0; i < WF_COUNT(places); i++) {
        int32_t coord[WEFT_MAX_AXES], rank = weft_mesh_rank_at(mesh, places[i]), back = -1;
        FUZZ_ASSERT(rank >= 0 && weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK);
        FUZZ_ASSERT(weft_mesh_rank(mesh, coord, &back) == WEFT_OK && back == rank);
    }
    FUZZ_ASSERT(weft_mesh_rank_at(mesh, size) == -1);
}

static void check_derived(const weft_mesh *mesh, const char *axes)
{
    weft_mesh *out = NULL;

    if (weft_mesh_slice(mesh, axes, weft_mesh_rank_at(mesh, weft_mesh_size(mesh) - 1), &out) ==
        WEFT_OK) {
        check_places(out);
        if (weft_mesh_size(out) <= 4096) check_text(out);
        weft_mesh_release(&out);
    }
    if (weft_mesh_flatten(mesh, axes, NULL, &out) == WEFT_OK) {
        FUZZ_ASSERT(weft_mesh_size(out) == weft_mesh_size(mesh));
        check_places(out);
        if (weft_mesh_size(out) <= 4096) check_text(out);
        weft_mesh_release(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size), *axes = strchr(text, '\n');
    weft_mesh *mesh = NULL;

    if (axes != NULL) *axes++ = '\0';
    if (!lists_millions(text)) {
        if (weft_mesh_parse(text, &mesh) == WEFT_OK) {
            check_text(mesh);
            check_places(mesh);
            check_derived(mesh, axes != NULL ? axes : "0");
        } else {
            FUZZ_ASSERT(mesh == NULL && weft_last_error()[0] != '\0');
        }
        weft_mesh_release(&mesh);
    }
    FUZZ_ASSERT(wf_mem_live() == 0);
    free(text);
    return 0;
}
