/* Any environment, one NAME=value per line, is either refused with an error that names a knob, or
 * read into a struct whose numbers are in range.  Every variable can be listed. */
#include "fuzz.h"

#include "config/config.h"
#include "weft/status.h"

#include <string.h>

enum { MAX_LINES = 64 };

static void check_config(const struct wf_config *config)
{
    FUZZ_ASSERT(config->backend != NULL && config->backend[0] != '\0');
    FUZZ_ASSERT(config->log_level >= WF_LOG_ERROR && config->log_level <= WF_LOG_DEBUG);
    FUZZ_ASSERT(config->timeout_ns > 0);
    FUZZ_ASSERT(config->plugin_path == NULL || config->plugin_path[0] != '\0');
}

static void check_variables(struct wf_environment environment)
{
    weft_variable_info variable;
    size_t count = 0;

    for (; wf_variable_find(environment, count, &variable); count++) {
        FUZZ_ASSERT((count < wf_knob_count) == (variable.type != NULL));
        FUZZ_ASSERT(strncmp(variable.name, "WEFT_", 5) == 0);
        FUZZ_ASSERT(variable.source != NULL);
    }
    FUZZ_ASSERT(count >= wf_knob_count && count <= wf_knob_count + MAX_LINES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    char *lines[MAX_LINES + 1] = {0};
    struct wf_environment environment = {lines, size > 0 && data[0] == '#'};
    struct wf_config *config = NULL;
    int64_t live = wf_mem_live();
    size_t count = 0;

    for (char *line = strtok(text, "\n"); line != NULL && count < MAX_LINES;
         line = strtok(NULL, "\n"))
        lines[count++] = line;
    if (wf_config_parse(environment, &config) != WEFT_OK) {
        FUZZ_ASSERT(strncmp(weft_last_error(), "WEFT_", 5) == 0);
    } else {
        check_config(config);
        (void)wf_config_digest(config);
        wf_config_release(&config);
    }
    check_variables(environment);
    FUZZ_ASSERT(wf_mem_live() == live);
    free(text);
    return 0;
}
