/* arguments.c - see arguments.h. */
#include "arguments.h"

#include "gpt.h"

#include <string.h>

static const char usage[] = "usage: gpt [MESH | --mesh MESH [--sp] | --schedule NAME [--chunks V] "
                            "[--microbatches M] [MESH]]\n"
                            "           [--steps N] [--times FILE [--for MESH]]\n"
                            "           [--layers N] [--width N] [--heads N] [--length N] "
                            "[--vocabulary N] [--batch N] [--bf16]\n"
                            "           [--keep RANKS] [--clip-value X]\n";

static void refuse(const char *text, const char *reason)
{
    fprintf(stderr, "%s %s\n%s", text, reason, usage);
    exit(EXIT_FAILURE);
}

static int32_t number_of(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*end != '\0' || value < 1 || value > 1 << 20)
        refuse(text, "is not a number from 1 to 1048576");
    return (int32_t)value;
}

static double limit_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value > 0)) refuse(text, "is not a number above 0");
    return value;
}

/* Take the option NAME with its VALUE; false: there is no such option. */
static bool take(struct arguments *given, const char *name, const char *value)
{
    const struct {
        const char *name, **out;
    } texts[] = {{"--schedule", &given->schedule},
                 {"--mesh", &given->mesh},
                 {"--times", &given->times},
                 {"--for", &given->target}};
    const struct {
        const char *name;
        int32_t *out;
    } numbers[] = {{"--chunks", &given->chunks},         {"--microbatches", &given->microbatches},
                   {"--steps", &given->steps},           {"--layers", &given->sizes.layers},
                   {"--width", &given->sizes.width},     {"--heads", &given->sizes.heads},
                   {"--length", &given->sizes.length},   {"--vocabulary", &given->sizes.letters},
                   {"--batch", &given->sizes.sequences}, {"--keep", &given->keep}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(name, texts[i].name) == 0) {
            if (value == NULL) refuse(name, "needs a value");
            *texts[i].out = value;
            return true;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            if (value == NULL) refuse(name, "needs a value");
            *numbers[i].out = number_of(value);
            return true;
        }
    if (strcmp(name, "--clip-value") != 0) return false;
    if (value == NULL) refuse(name, "needs a value");
    given->clip_value = limit_of(value);
    return true;
}

struct arguments arguments_of(int argc, char **argv)
{
    /* Sizes that most numbers of ranks do not divide. */
    struct arguments given = {
        .steps = STEPS,
        .sizes = {
            .layers = 2, .width = 30, .heads = 6, .length = 16, .letters = 29, .sequences = 12}};
    const char *wrong;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        }
        if (strcmp(argv[i], "--sp") == 0)
            given.is_split = true;
        else if (strcmp(argv[i], "--bf16") == 0)
            given.is_bf16 = true;
        else if (take(&given, argv[i], argv[i + 1]))
            given.is_parallel |= strcmp(argv[i++], "--mesh") == 0;
        else if (argv[i][0] == '-' || given.mesh != NULL)
            refuse(argv[i], "is not known");
        else
            given.mesh = argv[i];
    }
    if (given.keep > 0 && given.schedule != NULL) refuse("--keep", "is not for pipelines");
    if (given.keep == 1) refuse("--keep 1", "would leave nothing to gather");
    wrong = sizes_set(given.sizes);
    if (wrong != NULL) refuse("sizes:", wrong);
    return given;
}
