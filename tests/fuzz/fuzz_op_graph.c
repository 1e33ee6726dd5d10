/* Any text is a graph or is refused.  A graph is checked or refused, and prints as text and as
 * JSON. */
#include "fuzz.h"

#include "base/base.h"
#include "weft/graph.h"
#include "weft/ops.h"

#include <stdlib.h>
#include <string.h>

static char *text_of(const weft_graph *graph,
                     weft_status (*print)(const weft_graph *, char *, size_t, size_t *))
{
    size_t length = 0;
    char *text;

    FUZZ_ASSERT(print(graph, NULL, 0, &length) == WEFT_OK);
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL && print(graph, text, length + 1, NULL) == WEFT_OK);
    return text;
}

static void check_graph(weft_graph *graph, uint32_t flags)
{
    weft_graph_options options = {.struct_size = sizeof options, .flags = flags};
    weft_graph_info info = {.struct_size = sizeof info};
    struct wf_json_tree tree;
    char *text, *json;

    if (weft_graph_check(graph, &options) != WEFT_OK) {
        FUZZ_ASSERT(strstr(weft_last_error(), "line") != NULL);
        return;
    }
    text = text_of(graph, weft_graph_print);
    json = text_of(graph, weft_graph_json_print);
    FUZZ_ASSERT(weft_graph_get(graph, &info) == WEFT_OK);
    FUZZ_ASSERT(wf_json_read("it", json, &tree) == WEFT_OK);
    FUZZ_ASSERT(wf_json_find(tree.root, "lines")->count == info.lines);
    FUZZ_ASSERT(flags != 0 || info.refused == 0);
    wf_json_free(&tree);
    free(text);
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);

    for (uint32_t flags = 0; flags <= WEFT_GRAPH_STRICT; flags++) {
        weft_graph *graph = NULL;
        if (weft_graph_parse(text, NULL, &graph) == WEFT_OK)
            check_graph(graph, flags);
        else
            FUZZ_ASSERT(weft_last_error()[0] != '\0');
        weft_graph_release(&graph);
    }
    weft_op_cache_clear();
    free(text);
    return 0;
}
