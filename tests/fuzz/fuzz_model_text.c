/* Any text is a model or is refused.  A model prints as a line that reads back, and its graph is
 * written or refused. */
#include "fuzz.h"

#include "weft/graph.h"
#include "weft/model.h"

#include <stdlib.h>
#include <string.h>

static void check_line(const weft_model *model)
{
    char line[1024], again[1024];
    weft_model *same = NULL;

    FUZZ_ASSERT(weft_model_print(model, line, sizeof line, NULL) == WEFT_OK);
    FUZZ_ASSERT(weft_model_parse(line, &same) == WEFT_OK);
    FUZZ_ASSERT(weft_model_print(same, again, sizeof again, NULL) == WEFT_OK);
    FUZZ_ASSERT(strcmp(line, again) == 0);
    weft_model_release(&same);
}

static void check_graph(const weft_model *model)
{
    weft_model_graph_options options = {.struct_size = sizeof options, .recompute = "needed"};
    weft_graph *graph = NULL;
    size_t length = 0;
    char *text;

    if (weft_model_graph_print(model, &options, NULL, 0, &length) != WEFT_OK) return;
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL);
    FUZZ_ASSERT(weft_model_graph_print(model, &options, text, length + 1, NULL) == WEFT_OK);
    FUZZ_ASSERT(weft_graph_parse(text, NULL, &graph) == WEFT_OK);
    weft_graph_release(&graph);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    weft_model *model = NULL;

    if (weft_model_parse(text, &model) == WEFT_OK) {
        FUZZ_ASSERT(weft_model_is_text(text));
        check_line(model);
        check_graph(model);
        weft_model_release(&model);
    } else {
        FUZZ_ASSERT(weft_last_error()[0] != '\0');
    }
    FUZZ_ASSERT(model == NULL);
    free(text);
    return 0;
}
