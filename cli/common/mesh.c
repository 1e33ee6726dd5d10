/* mesh.c - the mesh of a command line. */
#include "common/cli.h"

#include <string.h>

/* The value of --ranks; 0: the command line has none. */
static weft_status read_ranks(const struct cli_command *command, const struct cli_args *args,
                              int32_t *out)
{
    const char *text = cli_value(command, args, "ranks");
    struct wf_scan scan = {text, 0};
    int64_t ranks = 0;

    if (text != NULL && (wf_scan_int(&scan, "a number", &ranks) != WEFT_OK || !wf_scan_end(&scan) ||
                         ranks < 1 || ranks > INT32_MAX))
        return wf_fail(WEFT_ERR_INVALID, "--ranks is \"%s\"; expected a number from 1 to %d", text,
                       INT32_MAX);
    *out = (int32_t)ranks;
    return WEFT_OK;
}

static weft_status check_ranks(const weft_mesh *mesh, int32_t ranks)
{
    int32_t size = weft_mesh_size(mesh), last = 0;

    for (int32_t i = 0; i < size; i++)
        last = weft_mesh_rank_at(mesh, i) > last ? weft_mesh_rank_at(mesh, i) : last;
    if (last < ranks) return WEFT_OK;
    if (last == size - 1)
        return wf_fail(WEFT_ERR_INVALID, "the mesh has %d ranks, so --ranks %d is too few", size,
                       ranks);
    return wf_fail(WEFT_ERR_INVALID, "the mesh has ranks up to %d, so --ranks %d is too few", last,
                   ranks);
}

weft_status cli_mesh(const struct cli_command *command, const struct cli_args *args,
                     const char *option, weft_mesh **out)
{
    const char *text = cli_value(command, args, option);
    weft_mesh *mesh = NULL;
    weft_status status;
    int32_t ranks = 0;

    *out = NULL;
    WF_TRY(read_ranks(command, args, &ranks));
    if (text == NULL && ranks > 0)
        return wf_fail(WEFT_ERR_INVALID, "--ranks is for the mesh; give --%s too", option);
    if (text == NULL) return WEFT_OK;
    if (ranks == 0 && strchr(text, '*') != NULL)
        return wf_fail(WEFT_ERR_PARSE,
                       "--%s is \"%s\"; a size * needs the number of ranks: give it with -n, as in "
                       "-n 8",
                       option, text);
    status = ranks > 0 ? weft_mesh_parse_for(text, ranks, &mesh) : weft_mesh_parse(text, &mesh);
    if (status == WEFT_OK && ranks > 0) status = check_ranks(mesh, ranks);
    if (status != WEFT_OK) {
        weft_mesh_release(&mesh);
        return wf_fail_context(status, "--%s", option);
    }
    *out = mesh;
    return WEFT_OK;
}
