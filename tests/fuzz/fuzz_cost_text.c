/* Any text is a cost table or is refused; a table prints as text that reads back to an equal one.
 */
#include "fuzz.h"

#include "base/base.h"
#include "weft/plan.h"

#include <string.h>

static void check_text(const weft_cost_table *table)
{
    weft_cost_table *again = NULL;
    size_t length;
    char *text;

    FUZZ_ASSERT(weft_cost_table_print(table, NULL, 0, &length) == WEFT_OK);
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL && weft_cost_table_print(table, text, length + 1, NULL) == WEFT_OK);
    FUZZ_ASSERT(weft_cost_table_parse(text, &again) == WEFT_OK);
    FUZZ_ASSERT(weft_cost_table_digest(again) == weft_cost_table_digest(table));
    weft_cost_table_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    weft_cost_table *table = NULL;

    if (weft_cost_table_parse(text, &table) == WEFT_OK) {
        check_text(table);
        weft_cost_table_release(&table);
    } else {
        FUZZ_ASSERT(table == NULL && weft_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
