/* checkpoints.c - see checkpoints.h. */
#include "common/checkpoints.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Refuse MESH, which replaces OWN, if both name their axes and the names differ: the placements of
 * a layout are for its axes. */
static weft_status check_names(const char *layout, const weft_mesh *own, const weft_mesh *mesh)
{
    struct wf_text advice = {0};

    for (int32_t a = 0; a < weft_mesh_axes(own) && a < weft_mesh_axes(mesh); a++) {
        const char *name = weft_mesh_axis_name(own, a), *other = weft_mesh_axis_name(mesh, a);

        if (name[0] == '\0' || other[0] == '\0' || strcmp(name, other) == 0) continue;
        for (int32_t i = 0; i < weft_mesh_axes(own); i++)
            wf_text_add(&advice, "%s%s=%d", i > 0 ? "," : "", weft_mesh_axis_name(own, i),
                        weft_mesh_axis_size(mesh, i));
        return wf_fail_text(WEFT_ERR_INVALID, &advice,
                            "axis %d of the layout %s is %s, not %s; use --mesh %s", a, layout,
                            name, other, advice.data);
    }
    return WEFT_OK;
}

/* Open the layout NAME, with MESH instead of its own. */
static weft_status open_with(const char *name, const weft_mesh *mesh, weft_layout_file **out)
{
    weft_layout_file *layout = NULL, *own = NULL;
    weft_status status = weft_layout_file_open(name, mesh, &layout);

    /* A layout without a mesh cannot be opened alone, and names no axes. */
    if (status == WEFT_OK && weft_layout_file_open(name, NULL, &own) == WEFT_OK) {
        status = check_names(name, weft_layout_file_mesh(own), mesh);
        weft_layout_file_release(&own);
    }
    if (status == WEFT_OK)
        *out = layout;
    else
        weft_layout_file_release(&layout);
    return status;
}

weft_status cli_layout_open(const struct cli_command *command, const struct cli_args *args,
                            weft_layout_file **out)
{
    const char *name = cli_value(command, args, "layout");
    weft_mesh *mesh = NULL;
    weft_status status;

    *out = NULL;
    if (name == NULL && cli_has(command, args, "mesh"))
        return wf_fail(WEFT_ERR_INVALID, "--mesh replaces the mesh of a layout; give --layout too");
    if (name == NULL) return WEFT_OK;
    status = cli_mesh(command, args, "mesh", &mesh);
    if (status == WEFT_OK)
        status = mesh != NULL ? open_with(name, mesh, out) : weft_layout_file_open(name, NULL, out);
    weft_mesh_release(&mesh);
    return status;
}

/* Open the rules NAME.  Of several files, one that has none of the VALUES does without them; *TAKEN
 * becomes true where one has them. */
static weft_status open_rules(const char *name, const char *values, bool several, bool *taken,
                              weft_checkpoint_rules **out)
{
    weft_status status = weft_checkpoint_rules_open(name, values, out);

    *taken = *taken || status == WEFT_OK;
    if (several && values != NULL && status == WEFT_ERR_INVALID)
        status = weft_checkpoint_rules_open(name, NULL, out);
    return status;
}

static weft_status open_list(char *names, const char *values, struct cli_rules *out)
{
    bool several = strchr(names, ',') != NULL, taken = false;
    char *rest = NULL;

    for (char *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (out->count == CLI_RULES_MOST)
            return wf_fail(WEFT_ERR_INVALID, "--rules takes at most %d files", CLI_RULES_MOST);
        WF_TRY(open_rules(name, values, several, &taken, &out->list[out->count]));
        out->count++;
    }
    if (out->count == 0) return wf_fail(WEFT_ERR_INVALID, "--rules names no file");
    if (values != NULL && !taken)
        return wf_fail(WEFT_ERR_INVALID,
                       "none of the files of --rules has all values of --set %s, each in a line "
                       "\"let\"",
                       values);
    return WEFT_OK;
}

weft_status cli_rules_open(const struct cli_command *command, const struct cli_args *args,
                           struct cli_rules *out)
{
    const char *names = cli_value(command, args, "rules"),
               *values = cli_value(command, args, "set");
    weft_status status;
    char *copy;

    *out = (struct cli_rules){.count = 0};
    if (names == NULL && values != NULL)
        return wf_fail(WEFT_ERR_INVALID, "--set gives values to rules; give --rules too");
    if (names == NULL) return WEFT_OK;
    if (strchr(names, ',') == NULL || access(names, F_OK) == 0) { /* a name may have a comma */
        out->count = 1;
        return weft_checkpoint_rules_open(names, values, &out->list[0]);
    }
    copy = strdup(names);
    if (copy == NULL) return wf_fail_memory(strlen(names) + 1);
    status = open_list(copy, values, out);
    free(copy);
    return status;
}

void cli_rules_close(struct cli_rules *rules)
{
    for (int32_t i = 0; i < CLI_RULES_MOST; i++)
        weft_checkpoint_rules_release(&rules->list[i]);
}

weft_status cli_checkpoint_open(const char *path, const struct cli_rules *rules,
                                struct cli_checkpoint *out, const weft_checkpoint **used)
{
    weft_status status;

    *out = (struct cli_checkpoint){.missing = false};
    status = weft_checkpoint_open(path, &out->files);
    out->missing = status == WEFT_ERR_NOT_FOUND && access(path, F_OK) != 0;
    if (status != WEFT_OK) return status;
    *used = out->files;
    for (int32_t i = 0; rules != NULL && i < rules->count; i++) {
        WF_TRY(weft_checkpoint_map(*used, rules->list[i], &out->mapped[i]));
        *used = out->mapped[i];
    }
    return WEFT_OK;
}

int cli_checkpoint_fail(const struct cli_command *command, const struct cli_checkpoint *checkpoint,
                        weft_status status)
{
    int exit_code = cli_fail(command, status);

    return checkpoint->missing ? CLI_ENVIRONMENT : exit_code;
}

void cli_checkpoint_close(struct cli_checkpoint *checkpoint)
{
    for (int32_t i = CLI_RULES_MOST; i-- > 0;)
        weft_checkpoint_close(&checkpoint->mapped[i]);
    weft_checkpoint_close(&checkpoint->files);
}
