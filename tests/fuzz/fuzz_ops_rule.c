/* Any text is a list of rules or is refused.  Rules print as text that reads back to the same text,
 * and a rule can be applied to small tensors or refuses them. */
#include "fuzz.h"

#include "base/base.h"
#include "weft/ops.h"

#include <string.h>

/* Register TEXT and apply its first operator to tensors of several shapes. */
static void apply_rules(const char *text)
{
    static const char *const specs[] = {"f32[4,6] S(0)", "f32[6,4] R", "i64[4] S(0)", "f32[] R"};
    weft_op_attr attrs[] = {{.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1},
                            {.name = "dims", .kind = WEFT_ATTR_INT, .integer = 0}};
    weft_spec *inputs[WF_COUNT(specs)] = {NULL};
    weft_mesh *mesh = NULL;
    char name[64];
    size_t length = strcspn(text, " (:");

    if (length == 0 || length >= sizeof name || weft_op_replace(text) != WEFT_OK) return;
    memcpy(name, text, length);
    name[length] = '\0';
    FUZZ_ASSERT(weft_mesh_parse("2", &mesh) == WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(specs); i++)
        FUZZ_ASSERT(weft_spec_parse(mesh, specs[i], &inputs[i]) == WEFT_OK);
    for (uint32_t count = 0; count <= WF_COUNT(specs); count++) {
        weft_op_call call = {.struct_size = sizeof call,
                             .name = name,
                             .inputs = (const weft_spec *const *)inputs,
                             .input_count = count,
                             .attr_count = WF_COUNT(attrs),
                             .attrs = attrs,
                             .mesh = mesh};
        weft_op_choice *choice = NULL;
        weft_status status = weft_op_check(&call, NULL, &choice);
        FUZZ_ASSERT((status == WEFT_OK) == (choice != NULL));
        FUZZ_ASSERT(status == WEFT_OK || weft_last_error()[0] != '\0');
        weft_op_choice_release(&choice);
    }
    for (size_t i = 0; i < WF_COUNT(specs); i++)
        weft_spec_release(&inputs[i]);
    weft_mesh_release(&mesh);
    (void)!weft_op_remove(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size), *once, *twice;
    size_t length = 0, again = 0;

    if (weft_op_rules_print(text, NULL, 0, &length) == WEFT_OK) {
        once = malloc(length + 1);
        twice = malloc(length + 1);
        FUZZ_ASSERT(once != NULL && twice != NULL);
        FUZZ_ASSERT(weft_op_rules_print(text, once, length + 1, NULL) == WEFT_OK);
        FUZZ_ASSERT(weft_op_rules_print(once, twice, length + 1, &again) == WEFT_OK);
        FUZZ_ASSERT(length == again && strcmp(once, twice) == 0);
        if (strchr(once, '\n') == NULL) apply_rules(once);
        free(once);
        free(twice);
    } else {
        FUZZ_ASSERT(weft_last_error()[0] != '\0');
    }
    weft_op_cache_clear();
    free(text);
    return 0;
}
