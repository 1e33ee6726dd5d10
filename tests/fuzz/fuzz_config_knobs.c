/* Any environment - one NAME=value per line - is either refused with words that name a knob, or
 * read into a struct whose numbers are in range; printing it never fails. */
#include "fuzz.h"

#include "config/config.h"
#include "weft/status.h"

#include <string.h>

enum { MOST_LINES = 64 };

static void check_config(const struct wf_config *config)
{
    FUZZ_ASSERT(config->backend != NULL && config->backend[0] != '\0');
    FUZZ_ASSERT(config->log_level >= WF_ERROR && config->log_level <= WF_DEBUG);
    FUZZ_ASSERT(config->timeout_ns > 0);
    FUZZ_ASSERT(config->plugin_path == NULL || config->plugin_path[0] != '\0');
}

static void check_prints(struct wf_environment environment)
{
    struct wf_text text = {0};
    struct wf_text json = {0};

    wf_config_print(environment, &text);
    wf_config_print_json(environment, &json);
    FUZZ_ASSERT(wf_text_status(&text) == WEFT_OK && wf_text_status(&json) == WEFT_OK);
    for (size_t i = 0; i < wf_knob_count; i++)
        FUZZ_ASSERT(strstr(text.data, wf_knobs[i].name) != NULL);
    wf_text_free(&text);
    wf_text_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    char *lines[MOST_LINES + 1] = {0};
    struct wf_environment environment = {lines, size > 0 && data[0] == '#'};
    struct wf_config *config = NULL;
    int64_t live = wf_mem_live();
    size_t count = 0;

    for (char *line = strtok(text, "\n"); line != NULL && count < MOST_LINES;
         line = strtok(NULL, "\n"))
        lines[count++] = line;
    if (wf_config_parse(environment, &config) != WEFT_OK) {
        FUZZ_ASSERT(strncmp(weft_last_error(), "WEFT_", 5) == 0);
    } else {
        check_config(config);
        (void)wf_config_digest(config);
        wf_config_release(&config);
    }
    if (size % 4 == 0) check_prints(environment); /* slow, so not for every input */
    FUZZ_ASSERT(wf_mem_live() == live);
    free(text);
    return 0;
}
