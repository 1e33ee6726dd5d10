/* Any text is a graph or is refused.  A graph is checked or refused, and prints as text and as
 * JSON. */
#include "fuzz.h"

#include "graph/graph.h"

#include <string.h>

static void check_graph(struct graph *graph, bool strict)
{
    struct wf_text text = {0}, json = {0};
    struct wf_json_tree tree;

    if (graph_check(graph, NULL, strict) != WEFT_OK) {
        FUZZ_ASSERT(strstr(weft_last_error(), "line") != NULL);
        return;
    }
    FUZZ_ASSERT(graph_add_text(graph, &text) == WEFT_OK);
    FUZZ_ASSERT(graph_add_json(graph, &json) == WEFT_OK);
    FUZZ_ASSERT(wf_json_read("it", json.data, &tree) == WEFT_OK);
    FUZZ_ASSERT(wf_json_find(tree.root, "lines")->count == graph->line_count);
    FUZZ_ASSERT(strict || graph->refused == 0);
    wf_json_free(&tree);
    wf_text_free(&text);
    wf_text_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    struct graph graph;

    for (int strict = 0; strict < 2; strict++) {
        if (graph_read(text, NULL, &graph) == WEFT_OK)
            check_graph(&graph, strict != 0);
        else
            FUZZ_ASSERT(weft_last_error()[0] != '\0');
        graph_free(&graph);
    }
    weft_op_cache_clear();
    free(text);
    return 0;
}
