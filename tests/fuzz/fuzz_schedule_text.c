/* Any text is a schedule or is refused; a schedule prints as text that reads back to an equal one,
 * is lowered if it has compute actions only, and has a timeline. */
#include "fuzz.h"

#include "weft/schedule.h"

#include <string.h>

static weft_schedule_info info_of(const weft_schedule *schedule)
{
    weft_schedule_info info = {.struct_size = sizeof info};

    FUZZ_ASSERT(weft_schedule_get(schedule, &info) == WEFT_OK);
    return info;
}

/* The text with waits is an equal schedule. */
static void check_waits(const weft_schedule *schedule)
{
    weft_schedule *again = NULL;
    size_t length;
    char *text;

    FUZZ_ASSERT(weft_schedule_print(schedule, WEFT_SCHEDULE_PRINT_WAITS, NULL, 0, &length) ==
                WEFT_OK);
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL && weft_schedule_print(schedule, WEFT_SCHEDULE_PRINT_WAITS, text,
                                                    length + 1, NULL) == WEFT_OK);
    FUZZ_ASSERT(weft_schedule_parse(text, &again) == WEFT_OK);
    FUZZ_ASSERT(info_of(again).digest == info_of(schedule).digest);
    weft_schedule_release(&again);
    free(text);
}

static void check_schedule(const weft_schedule *schedule)
{
    weft_schedule *again = NULL, *lowered = NULL;
    weft_timeline *timeline = NULL;
    size_t length;
    char *text;

    FUZZ_ASSERT(weft_schedule_print(schedule, 0, NULL, 0, &length) == WEFT_OK);
    text = malloc(length + 1);
    FUZZ_ASSERT(text != NULL &&
                weft_schedule_print(schedule, 0, text, length + 1, NULL) == WEFT_OK);
    FUZZ_ASSERT(weft_schedule_parse(text, &again) == WEFT_OK);
    FUZZ_ASSERT(info_of(again).digest == info_of(schedule).digest);
    FUZZ_ASSERT(weft_timeline_create(again, NULL, &timeline) == WEFT_OK);
    check_waits(schedule);
    if (strpbrk(text, "SRU") == NULL) /* compute only */
        FUZZ_ASSERT(weft_schedule_lower(again, (uint32_t)length % 16, &lowered) == WEFT_OK);
    weft_timeline_release(&timeline);
    weft_schedule_release(&lowered);
    weft_schedule_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    weft_schedule *schedule = NULL;

    if (weft_schedule_parse(text, &schedule) == WEFT_OK) {
        check_schedule(schedule);
        weft_schedule_release(&schedule);
    } else {
        FUZZ_ASSERT(schedule == NULL && weft_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
