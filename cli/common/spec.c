/* spec.c - the spec of a tensor on a command line. */
#include "common/cli.h"

#include <ctype.h>
#include <string.h>

bool cli_is_spec(const char *text)
{
    text += strspn(text, " ");
    /* dtypes, but no placements: s(0) is one that is wrong */
    return islower((unsigned char)text[0]) != 0 && text[strcspn(text, "[(")] != '(';
}

static weft_status in_option(const char *option, weft_status status)
{
    return status == WEFT_OK ? WEFT_OK : wf_fail_context(status, "--%s", option);
}

static weft_status parse_whole(const struct cli_command *command, const struct cli_args *args,
                               const char *option, const weft_mesh *mesh, weft_spec **out)
{
    static const char *const parts[] = {"shape", "dtype"};
    const char *text = cli_value(command, args, option);

    for (size_t i = 0; i < WF_COUNT(parts); i++)
        if (cli_has(command, args, parts[i]))
            return wf_fail(WEFT_ERR_INVALID, "--%s: \"%s\" is a whole spec; leave out --%s", option,
                           text, parts[i]);
    return in_option(option, weft_spec_parse(mesh, text, out));
}

static weft_status parse_placements(const struct cli_command *command, const struct cli_args *args,
                                    const char *option, const weft_mesh *mesh, weft_spec **out)
{
    const char *text = cli_value(command, args, option);
    const char *shape_text = cli_value(command, args, "shape");
    enum weft_dtype dtype;
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = 0;
    weft_status status;

    if (shape_text == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "--shape is missing; give it, or a whole spec such as \"f32[8,16] %s\"",
                       text);
    status = weft_shape_parse(shape_text, &dims, shape);
    if (status != WEFT_OK) return wf_fail_context(status, "--shape");
    WF_TRY(cli_dtype(command, args, "dtype", &dtype));
    return in_option(option, weft_spec_parse_placements(mesh, dtype, dims, shape, text, out));
}

weft_status cli_spec(const struct cli_command *command, const struct cli_args *args,
                     const char *option, const weft_mesh *mesh, weft_spec **out)
{
    return cli_is_spec(cli_value(command, args, option))
               ? parse_whole(command, args, option, mesh, out)
               : parse_placements(command, args, option, mesh, out);
}

weft_status cli_spec_of(const weft_spec *tensor, const weft_mesh *mesh, const char *option,
                        const char *text, weft_spec **out)
{
    return in_option(option, cli_is_spec(text) ? weft_spec_parse(mesh, text, out)
                                               : weft_spec_with_mesh(tensor, mesh, text, out));
}
