/* variable.c - one variable of weft, by name. */
#include "common/cli.h"

#include <string.h>

const char *cli_variable(const char *name)
{
    weft_variable_info variable = {.struct_size = sizeof variable};

    for (size_t i = 0; weft_variable_get(i, &variable) == WEFT_OK; i++)
        if (strcmp(variable.name, name) == 0)
            return strcmp(variable.source, "environment") == 0 ? variable.value : NULL;
    return NULL;
}
