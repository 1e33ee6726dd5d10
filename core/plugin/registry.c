/* registry.c - finds and checks all candidates, and adds each decision to the trace. */
#include "plugin.h"

#include "config/config.h"

#include <stdio.h>
#include <string.h>

/* The state of one search. */
struct finder {
    const struct wf_find_input *input;
    weft_backends *backends;
};

/* ---- growing the lists ---- */

weft_status wf_backends_note(weft_backends *backends, size_t candidate, const char *format, ...)
{
    size_t bytes = (backends->line_count + 1) * sizeof *backends->lines;
    struct wf_trace_line *grown = wf_realloc(backends->lines, bytes);
    struct wf_text text = {0};
    va_list args;

    if (grown == NULL) return wf_fail_memory(bytes);
    backends->lines = grown;
    grown[backends->line_count].candidate = candidate;
    va_start(args, format);
    wf_text_addv(&text, format, args);
    va_end(args);
    WF_TRY(wf_text_take(&text, &grown[backends->line_count].text));
    backends->line_count++;
    return WEFT_OK;
}

/* NAME and FILE are copied.  FILE is NULL if no file was found. */
static weft_status add_candidate(weft_backends *backends, const char *name, size_t name_length,
                                 const char *file, size_t *index)
{
    size_t bytes = (backends->candidate_count + 1) * sizeof *backends->candidates;
    struct wf_candidate *grown = wf_realloc(backends->candidates, bytes);
    struct wf_candidate added = {0};

    if (grown == NULL) return wf_fail_memory(bytes);
    backends->candidates = grown;
    added.name = wf_strndup(name, name_length);
    if (added.name == NULL) return wf_fail_memory(name_length + 1);
    added.file = file != NULL ? wf_strdup(file) : NULL;
    if (file != NULL && added.file == NULL) {
        wf_free(added.name);
        return wf_fail_memory(strlen(file) + 1);
    }
    *index = backends->candidate_count;
    backends->candidates[backends->candidate_count++] = added;
    return WEFT_OK;
}

/* Keep the verdict on a candidate and add it to the trace, with the file named once. */
static weft_status conclude(weft_backends *backends, size_t index, uint32_t reason,
                            const char *text)
{
    struct wf_candidate *candidate = &backends->candidates[index];
    const char *who = candidate->file != NULL ? candidate->file : candidate->name;
    bool listed = strncmp(text, who, strlen(who)) == 0;

    candidate->reason = reason;
    candidate->reason_text = wf_strdup(text);
    if (candidate->reason_text == NULL) return wf_fail_memory(strlen(text) + 1);
    return wf_backends_note(backends, index, "%s%s%s: %s", listed ? "" : who, listed ? "" : ": ",
                            weft_backend_reason_text(reason), text);
}

/* ---- judging one candidate ---- */

static enum weft_backend_reason reason_of_probe(weft_status status)
{
    switch (status) {
    case WEFT_ERR_NO_LIBRARY:
        return WEFT_BACKEND_REASON_LIBRARY_MISSING;
    case WEFT_ERR_OLD_LIBRARY:
        return WEFT_BACKEND_REASON_LIBRARY_TOO_OLD;
    case WEFT_ERR_NO_DEVICE:
        return WEFT_BACKEND_REASON_NO_DEVICE;
    default:
        return WEFT_BACKEND_REASON_PROBE_FAILED;
    }
}

/* Probe the plugin on this machine, and keep the verdict. */
static weft_status probe(weft_backends *backends, size_t index)
{
    struct wf_candidate *candidate = &backends->candidates[index];
    weft_probe answer = {.struct_size = sizeof answer};
    weft_status status;
    char text[2048];

    (void)wf_fail(WEFT_OK, "%s",
                  ""); /* clear the last error, so that an old text is not taken for the plugin's */
    wf_environment_lock();
    status = candidate->loaded->tables.device.probe(&answer);
    wf_environment_unlock();
    if (status != WEFT_OK) {
        const char *words = weft_last_error();
        snprintf(text, sizeof text, "%s", words[0] != '\0' ? words : weft_status_text(status));
        return conclude(backends, index, (uint32_t)reason_of_probe(status), text);
    }
    answer.library[sizeof answer.library - 1] = '\0';
    candidate->score = answer.score;
    candidate->device_count = answer.device_count;
    memcpy(candidate->library, answer.library, sizeof candidate->library);
    snprintf(text, sizeof text, "%u device%s, score %d%s%s%s", answer.device_count,
             WF_PLURAL(answer.device_count), answer.score,
             answer.score <= 0 ? ", so auto does not choose it" : "",
             answer.library[0] != '\0' ? ", with " : "", answer.library);
    return conclude(backends, index, WEFT_BACKEND_REASON_USABLE, text);
}

/* The earlier candidate of the same name, or WF_NO_CANDIDATE. */
static size_t find_earlier(const weft_backends *backends, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(backends->candidates[i].name, backends->candidates[index].name) == 0) return i;
    return WF_NO_CANDIDATE;
}

/* Load the candidate's file, take over the plugin's own name, probe. */
static weft_status judge_file(struct finder *finder, size_t index)
{
    weft_backends *backends = finder->backends;
    struct wf_candidate *candidate = &backends->candidates[index];
    struct wf_verdict verdict = {0};
    char *name;

    WF_TRY(wf_load(candidate->file, finder->input->own_file, finder->input->secure,
                   &candidate->loaded, &verdict));
    if (candidate->loaded == NULL) return conclude(backends, index, verdict.reason, verdict.text);
    name = wf_strdup(candidate->loaded->tables.plugin.name);
    if (name == NULL) return wf_fail_memory(strlen(candidate->loaded->tables.plugin.name) + 1);
    wf_free(candidate->name);
    candidate->name = name;
    return probe(backends, index);
}

/* Check a file that was found in a directory.  A file that the choice excludes is not opened. */
static weft_status judge_found(struct finder *finder, size_t index)
{
    weft_backends *backends = finder->backends;
    const struct wf_candidate *candidate = &backends->candidates[index];
    size_t earlier = find_earlier(backends, index);
    char text[2048];

    if (earlier != WF_NO_CANDIDATE) {
        snprintf(text, sizeof text, "%s comes first", backends->candidates[earlier].file);
        return conclude(backends, index, WEFT_BACKEND_REASON_SHADOWED, text);
    }
    if (wf_choice_find(&backends->choice, WF_CHOOSE_EXCLUDE, candidate->name) != NULL) {
        snprintf(text, sizeof text, "%s is \"%s\", which excludes it", backends->origin,
                 backends->wanted);
        return conclude(backends, index, WEFT_BACKEND_REASON_EXCLUDED, text);
    }
    if (wf_choice_find(&backends->choice, WF_CHOOSE_AUTO, NULL) == NULL &&
        wf_choice_find(&backends->choice, WF_CHOOSE_NAME, candidate->name) == NULL) {
        snprintf(text, sizeof text, "%s is \"%s\", which does not name it", backends->origin,
                 backends->wanted);
        return conclude(backends, index, WEFT_BACKEND_REASON_EXCLUDED, text);
    }
    return judge_file(finder, index);
}

/* ---- the three sources of candidates ---- */

/* Paths that the choice names. */
static weft_status judge_paths(struct finder *finder)
{
    weft_backends *backends = finder->backends;

    for (size_t i = 0; i < backends->choice.count; i++) {
        const struct wf_choice_item *item = &backends->choice.items[i];
        const char *base, *name;
        size_t index, length;

        if (item->kind != WF_CHOOSE_PATH) continue;
        base = strrchr(item->text, '/') + 1;
        if (!wf_plugin_file_name(base, &name, &length)) {
            name = base;
            length = strlen(base);
        }
        WF_TRY(add_candidate(backends, name, length, item->text, &index));
        backends->candidates[index].path_item = item;
        if (finder->input->secure && finder->input->backend_from_environment)
            WF_TRY(conclude(backends, index, WEFT_BACKEND_REASON_NOT_TRUSTED,
                            "WEFT_BACKEND names a file, but this program has more privileges than "
                            "its user (setuid); use a plugin name"));
        else
            WF_TRY(judge_file(finder, index));
    }
    return WEFT_OK;
}

static weft_status judge_directory(struct finder *finder, const struct wf_directory *directory)
{
    weft_backends *backends = finder->backends;
    weft_status status;
    char **files = NULL;
    size_t count = 0;

    if (directory->refused != NULL)
        return wf_backends_note(backends, WF_NO_CANDIDATE, "directory %s (%s): not searched: %s",
                                directory->path, directory->origin, directory->refused);
    status = wf_search_files(directory->path, &files, &count);
    if (status == WEFT_ERR_NOT_FOUND || status == WEFT_ERR_SYSTEM)
        return wf_backends_note(backends, WF_NO_CANDIDATE, "directory %s (%s): %s", directory->path,
                                directory->origin, weft_last_error());
    WF_TRY(status);
    status = wf_backends_note(backends, WF_NO_CANDIDATE, "directory %s (%s): %zu plugin file%s",
                              directory->path, directory->origin, count, WF_PLURAL(count));
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        struct wf_text path = {0};
        size_t index = 0, length = 0;
        const char *name = NULL;

        (void)wf_plugin_file_name(files[i], &name, &length);
        wf_text_add(&path, "%s/%s", directory->path, files[i]);
        status = wf_text_status(&path);
        if (status == WEFT_OK) status = add_candidate(backends, name, length, path.data, &index);
        wf_text_free(&path);
        if (status == WEFT_OK) status = judge_found(finder, index);
    }
    wf_search_files_free(files, count);
    return status;
}

/* Names found so far, in order, each once. */
static void list_known(const weft_backends *backends, struct wf_text *out)
{
    size_t listed = 0;

    for (size_t i = 0; i < backends->candidate_count; i++)
        if (backends->candidates[i].file != NULL && find_earlier(backends, i) == WF_NO_CANDIDATE)
            wf_text_add(out, "%s%s", listed++ > 0 ? ", " : "", backends->candidates[i].name);
    if (listed == 0) wf_text_add(out, "none");
}

/* The known plugin that NAME is like, or whose name it begins ("gloo": gloo-cpu); NULL: none. */
static const char *nearest_known(const weft_backends *backends, const char *name)
{
    const char *names[64] = {NULL};
    size_t count = 0;
    int nearest;

    for (size_t i = 0; i < backends->candidate_count && count < WF_COUNT(names); i++)
        if (backends->candidates[i].file != NULL) names[count++] = backends->candidates[i].name;
    nearest = wf_nearest(name, names, count);
    for (size_t i = 0; nearest < 0 && name[0] != 0 && i < count; i++)
        if (strncmp(names[i], name, strlen(name)) == 0) nearest = (int)i;
    return nearest >= 0 ? names[nearest] : NULL;
}

static weft_status conclude_missing(weft_backends *backends, const char *name)
{
    const char *nearest = nearest_known(backends, name);
    struct wf_text text = {0};
    size_t searched = 0, index = 0;
    weft_status status;

    wf_text_add(&text, "libweft_plugin_%s.so is not in ", name);
    for (size_t i = 0; i < backends->directories.count; i++)
        if (backends->directories.items[i].refused == NULL)
            wf_text_add(&text, "%s%s", searched++ > 0 ? ", " : "",
                        backends->directories.items[i].path);
    wf_text_add(&text, "%sknown plugins: ", searched > 0 ? "; " : "any directory; ");
    list_known(backends, &text);
    if (nearest != NULL) wf_text_add(&text, "; did you mean %s?", nearest);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = add_candidate(backends, name, strlen(name), NULL, &index);
    if (status == WEFT_OK)
        status = conclude(backends, index, WEFT_BACKEND_REASON_NOT_FOUND, text.data);
    wf_text_free(&text);
    return status;
}

/* Add candidates for names of the choice without a file. */
static weft_status judge_missing(weft_backends *backends)
{
    size_t found = backends->candidate_count;

    for (size_t i = 0; i < backends->choice.count; i++) {
        const struct wf_choice_item *item = &backends->choice.items[i];
        bool exists = item->kind != WF_CHOOSE_NAME;

        for (size_t j = 0; j < found && !exists; j++)
            exists = strcmp(backends->candidates[j].name, item->text) == 0;
        if (!exists) WF_TRY(conclude_missing(backends, item->text));
    }
    return WEFT_OK;
}

/* ---- the search ---- */

static weft_status note_serving(weft_backends *backends, enum weft_backend_role role,
                                const char *what)
{
    size_t index = wf_backends_pick(backends, role);

    if (index == WF_NO_CANDIDATE)
        return wf_backends_note(backends, WF_NO_CANDIDATE, "%s: no plugin serves", what);
    return wf_backends_note(backends, index, "%s: %s serves", what,
                            backends->candidates[index].name);
}

static weft_status search(struct finder *finder)
{
    const struct wf_find_input *input = finder->input;
    weft_backends *backends = finder->backends;
    weft_status status;

    backends->wanted = wf_strdup(input->backend);
    if (backends->wanted == NULL) return wf_fail_memory(strlen(input->backend) + 1);
    status = wf_choice_parse(input->backend, &backends->choice);
    if (status != WEFT_OK) return wf_fail_context(status, "%s", input->backend_origin);
    WF_TRY(wf_search_directories(input->plugin_path_option, input->plugin_path_variable,
                                 input->own_file, &backends->directories));
    WF_TRY(wf_backends_note(backends, WF_NO_CANDIDATE, "%s is \"%s\"", backends->origin,
                            backends->wanted));
    WF_TRY(judge_paths(finder));
    for (size_t i = 0; i < backends->directories.count; i++)
        WF_TRY(judge_directory(finder, &backends->directories.items[i]));
    WF_TRY(judge_missing(backends));
    WF_TRY(note_serving(backends, WEFT_BACKEND_ROLE_COMM, "communication"));
    return note_serving(backends, WEFT_BACKEND_ROLE_SYMM, "symmetric memory");
}

weft_status wf_backends_find_in(const struct wf_find_input *input, weft_backends **out)
{
    weft_backends *backends = wf_calloc(1, sizeof *backends);
    weft_status status;

    if (backends == NULL) return wf_fail_memory(sizeof *backends);
    backends->origin = input->backend_origin;
    status = search(&(struct finder){input, backends});
    if (status != WEFT_OK) {
        weft_backends_release(&backends);
        return status;
    }
    *out = backends;
    return WEFT_OK;
}

weft_status weft_backends_create(const weft_backend_options *options, weft_backends **out)
{
    weft_backend_options given = {0};
    struct wf_config *config = NULL;
    char *own_file = NULL;
    weft_status status;

    if (out == NULL) return wf_fail(WEFT_ERR_INVALID, "weft_backends_create: out is NULL");
    WF_TRY(wf_options_read("weft_backend_options", options, &given, sizeof given));
    WF_TRY(wf_config_read(&config));
    status = wf_search_own_file(&own_file);
    if (status == WEFT_OK) {
        struct wf_find_input input = {
            .backend = given.backend != NULL ? given.backend : config->backend,
            .backend_origin = given.backend != NULL ? "the backend option" : "WEFT_BACKEND",
            .backend_from_environment = given.backend == NULL,
            .plugin_path_option = given.plugin_path,
            .plugin_path_variable = config->plugin_path,
            .own_file = own_file,
            .secure = wf_environment().secure,
        };
        status = wf_backends_find_in(&input, out);
    }
    wf_free(own_file);
    wf_config_release(&config);
    return status;
}
