/* agree.c - the ranks that create an object together compare what they pass. */
#include "arguments.h"

#include <string.h>

void wf_field_add(struct wf_text *fields, const char *name, const char *format, ...)
{
    va_list args;

    wf_text_add(fields, "%s\t", name);
    va_start(args, format);
    wf_text_addv(fields, format, args);
    va_end(args);
    wf_text_char(fields, '\n');
}

/* What one rank passed: fields, and behind them its abilities. */
struct passed {
    int32_t rank;
    size_t length; /* of the fields */
    const char *fields;
};

static bool read_passed(const weft_answers *answers, int32_t index, const weft_mesh *mesh,
                        struct passed *out, uint32_t *abilities)
{
    size_t bytes = weft_answers_bytes(answers, index);

    out->rank = mesh != NULL ? weft_mesh_rank_at(mesh, index) : index;
    if (bytes < sizeof *abilities) return false;
    out->fields = weft_answers_data(answers, index);
    out->length = bytes - sizeof *abilities;
    memcpy(abilities, out->fields + out->length, sizeof *abilities);
    return true;
}

/* The value of the field whose line begins at AT, and the length of its name in *NAME. */
static const char *value_at(const struct passed *passed, size_t at, int *name, int *length)
{
    const char *line = passed->fields + at, *tab = memchr(line, '\t', passed->length - at);
    const char *end =
        tab != NULL ? memchr(tab, '\n', passed->length - (size_t)(tab - passed->fields)) : NULL;

    *name = *length = 0;
    if (end == NULL) return "";
    *name = (int)(tab - line);
    *length = (int)(end - tab - 1);
    return tab + 1;
}

/* Name the first field that differs. */
static weft_status refuse(const weft_comm *comm, const char *function, const struct passed *first,
                          const struct passed *other)
{
    const char *values[2];
    int names[2], lengths[2];
    size_t line = 0;

    for (size_t i = 0; i < first->length && i < other->length; i++) {
        if (first->fields[i] != other->fields[i]) break;
        if (first->fields[i] == '\n') line = i + 1;
    }
    values[0] = value_at(first, line, &names[0], &lengths[0]);
    values[1] = value_at(other, line, &names[1], &lengths[1]);
    return wf_fail(WEFT_ERR_MISMATCH, "%s: ranks %d and %d of %s differ in %.*s: %.*s and %.*s",
                   function, first->rank, other->rank, weft_comm_name(comm), names[0],
                   first->fields + line, lengths[0], values[0], lengths[1], values[1]);
}

/* All ranks compare with the first one, so that all have the same error. */
static weft_status compare(const weft_comm *comm, const weft_mesh *mesh, const char *function,
                           const weft_answers *answers, uint32_t *abilities)
{
    int32_t count = mesh != NULL ? weft_mesh_size(mesh) : weft_comm_size(comm);
    struct passed first = {0}, other = {0};

    for (int32_t i = 0; i < count; i++) {
        uint32_t theirs;

        if (!read_passed(answers, i, mesh, &other, &theirs))
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d of %s sent no options", function,
                           other.rank, weft_comm_name(comm));
        if (i == 0) first = other;
        if (other.length != first.length || memcmp(other.fields, first.fields, first.length) != 0)
            return refuse(comm, function, &first, &other);
        *abilities &= theirs;
    }
    return WEFT_OK;
}

weft_status wf_agree_on_fields(weft_comm *comm, const weft_mesh *mesh, const char *function,
                               weft_status status, struct wf_text *fields, uint32_t *abilities)
{
    const weft_agree_options options = {.struct_size = sizeof options, .mesh = mesh};
    uint32_t mine = abilities != NULL ? *abilities : 0;
    weft_answers *answers = NULL;

    wf_text_append(fields, (const char *)&mine, sizeof mine);
    if (status == WEFT_OK) status = wf_text_status(fields);
    status = weft_agree(comm, function, status, fields->data, fields->length, &options, &answers);
    wf_text_free(fields);
    if (answers == NULL) return status;
    status = compare(comm, mesh, function, answers, &mine);
    if (abilities != NULL) *abilities = mine;
    weft_answers_release(&answers);
    return status;
}
