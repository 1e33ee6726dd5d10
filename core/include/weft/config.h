/* config.h - the environment variables that weft reads, for programs that show or check them.
 *
 *     weft_variable_info variable = {.struct_size = sizeof variable};
 *     for (size_t i = 0; weft_variable_get(i, &variable) == WEFT_OK; i++) puts(variable.name); */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One variable.  Texts are constant, unless stated. */
typedef struct weft_variable_info {
    size_t struct_size;
    const char *name;     /* "WEFT_BACKEND".  The name of an unknown variable is valid until this
                           * thread's next call of weft_variable_get */
    const char *type;     /* "text", "secret", "path", "paths", "bool", "level", "number",
                           * "seconds", "bytes"; NULL: weft does not know the variable */
    const char *fallback; /* the default, as a user would write it; NULL: the variable has no
                           * default, or is unknown */
    const char *help;     /* NULL: the variable is unknown */
    bool planning;        /* true: weft_init fails if the values of two ranks differ */
    const char *value;   /* the value in force; "(secret)" for a secret; NULL: there is no value.  A
                          * value from the environment is valid until the environment changes */
    const char *source;  /* of the value: "environment", "default" or "ignored" (the program has
                          * privileges that its user lacks) */
    const char *problem; /* why the value cannot be used, or NULL; valid until the thread's next
                          * failing call */
    const char *nearest; /* if the variable is unknown: a known one with a similar name, or NULL */
} weft_variable_info;

/* Copy the properties of variable INDEX to *OUT, whose struct_size the caller sets.  First come the
 * variables that weft knows, in the order of `weft env`.  Then come the other environment
 * variables whose names begin with WEFT_; WEFT_TEST_* are left out.  WEFT_ERR_NOT_FOUND: INDEX is
 * past the last variable.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_variable_get(size_t index, weft_variable_info *out);

#ifdef __cplusplus
}
#endif
#endif
