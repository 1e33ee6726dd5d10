/* Any environment, one variable per line, gives a rank in a world and a rendezvous address, or is
 * refused with an error. */
#include "fuzz.h"

#include "rendezvous/launch.h"
#include "weft/status.h"

#include <string.h>

static void check_address(const struct wf_address *address)
{
    struct wf_address again;
    char text[WF_ADDRESS_TEXT];

    wf_address_print(address, text);
    if (address->is_unix) return;
    FUZZ_ASSERT(wf_address_parse("the text", text, -1, &again) == WEFT_OK);
    FUZZ_ASSERT(strcmp(again.host, address->host) == 0 && again.port == address->port);
}

static void check_launch(const struct wf_launch *launch, const char *rendezvous)
{
    struct wf_address address = {0};
    struct wf_job_key key;

    FUZZ_ASSERT(launch->size > 0 && launch->rank >= 0 && launch->rank < launch->size);
    FUZZ_ASSERT(launch->local_rank >= -1 && launch->local_rank < launch->size);
    if (wf_launch_rendezvous(launch, rendezvous, "the setting", "a token of the test", &address,
                             &key) == WEFT_OK)
        check_address(&address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size), *rest = text;
    char *entries[65] = {0};
    struct wf_launch launch;
    struct wf_environment environment = {.entries = entries};

    for (size_t i = 0; i < 64 && rest != NULL; i++)
        entries[i] = strsep(&rest, "\n");
    if (wf_launch_read(environment, &launch) == WEFT_OK)
        check_launch(&launch, wf_environment_get(environment, "WEFT_RENDEZVOUS"));
    else
        FUZZ_ASSERT(weft_last_error()[0] != '\0');
    free(text);
    return 0;
}
