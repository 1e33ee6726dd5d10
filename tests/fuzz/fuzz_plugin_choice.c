/* Any WEFT_BACKEND is either refused with an error or read into items of the text, each at most
 * once.  At least one item may serve, and auto follows all names. */
#include "fuzz.h"

#include "plugin/plugin.h"

#include <string.h>

static void check_item(const char *text, const struct wf_choice *choice, size_t i)
{
    const struct wf_choice_item *item = &choice->items[i];
    size_t length = strlen(item->text);

    FUZZ_ASSERT(wf_choice_find(choice, item->kind, item->text) == item);
    FUZZ_ASSERT(item->kind == WF_CHOOSE_AUTO || strstr(text, item->text) != NULL);
    if (item->kind == WF_CHOOSE_PATH)
        FUZZ_ASSERT(item->text[0] == '/' && length > 1 && strchr(item->text, ',') == NULL);
    else if (item->kind == WF_CHOOSE_AUTO)
        FUZZ_ASSERT(strcmp(item->text, "auto") == 0);
    else
        FUZZ_ASSERT(wf_plugin_name_valid(item->text, length));
    for (size_t j = 0; item->kind == WF_CHOOSE_AUTO && j < i; j++)
        FUZZ_ASSERT(choice->items[j].kind != WF_CHOOSE_AUTO);
    for (size_t j = i + 1; item->kind == WF_CHOOSE_AUTO && j < choice->count; j++)
        FUZZ_ASSERT(choice->items[j].kind == WF_CHOOSE_EXCLUDE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    int64_t live = wf_mem_live();
    struct wf_choice choice = {0};
    size_t positive = 0;

    if (wf_choice_parse(text, &choice) != WEFT_OK) {
        FUZZ_ASSERT(weft_last_error()[0] != '\0' && choice.items == NULL);
    } else {
        for (size_t i = 0; i < choice.count; i++) {
            check_item(text, &choice, i);
            positive += choice.items[i].kind != WF_CHOOSE_EXCLUDE;
        }
        FUZZ_ASSERT(positive > 0);
        wf_choice_free(&choice);
    }
    FUZZ_ASSERT(wf_mem_live() == live);
    free(text);
    return 0;
}
