/* replay.c - runs a fuzz target without a fuzzer: each file of its corpus, then mutations of them.
 *
 * usage: fuzz_NAME CORPUS [MUTATIONS [SEED]]
 *
 * Mutations come from the seed of support/seed.h, so a failure can be repeated; the input that a
 * target died of is printed too, as a line for tests/data/known.txt. */
#include "fuzz.h"

#include "support/seed.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4096, MAX_FILES = 1024 };

struct input {
    uint8_t bytes[LONGEST];
    size_t size;
};

static struct input corpus[MAX_FILES];
static size_t corpus_count;
static struct input current;
static uint64_t random_state;

static const char *target; /* the program's name */

static void print_current(void)
{
    fprintf(stderr, "the target died of these %zu bytes:\nfuzz %s ", current.size, target);
    for (size_t i = 0; i < current.size; i++)
        fprintf(stderr, "\\x%02x", current.bytes[i]);
    fprintf(stderr, "\n");
}

static void on_signal(int number)
{
    print_current();
    signal(number, SIG_DFL);
    raise(number);
}

/* The callback of the sanitizers; absent from builds without them. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t below(size_t limit)
{
    return limit == 0 ? 0 : (size_t)(next_random() % limit);
}

static void run_current(void)
{
    /* A copy of exactly this size, so that a sanitizer detects a read past the end. */
    uint8_t *copy = malloc(current.size != 0 ? current.size : 1);

    if (copy == NULL) abort();
    memcpy(copy, current.bytes, current.size);
    LLVMFuzzerTestOneInput(copy, current.size);
    free(copy);
}

static void insert(size_t at, uint8_t byte)
{
    if (current.size == LONGEST) return;
    memmove(current.bytes + at + 1, current.bytes + at, current.size - at);
    current.bytes[at] = byte;
    current.size++;
}

static void erase(size_t at, size_t count)
{
    memmove(current.bytes + at, current.bytes + at + count, current.size - at - count);
    current.size -= count;
}

/* The tail of another input after the head of this one. */
static void splice(const struct input *other)
{
    size_t keep = below(current.size + 1), from = below(other->size + 1);
    size_t count = other->size - from;

    if (count > LONGEST - keep) count = LONGEST - keep;
    memcpy(current.bytes + keep, other->bytes + from, count);
    current.size = keep + count;
}

static void mutate(void)
{
    static const char telling[] = "0123456789-^,:=()[]xSRP \"\\/\n\0\xff";
    size_t at = below(current.size);

    switch (below(6)) {
    case 0:
        if (current.size > 0) current.bytes[at] ^= (uint8_t)(1 << below(8));
        break;
    case 1:
        insert(below(current.size + 1), (uint8_t)next_random());
        break;
    case 2:
        insert(below(current.size + 1), (uint8_t)telling[below(sizeof telling)]);
        break;
    case 3:
        if (current.size > 0) erase(at, 1 + below(current.size - at));
        break;
    case 4:
        if (current.size > 0) insert(below(current.size + 1), current.bytes[at]);
        break;
    default:
        if (corpus_count > 0) splice(&corpus[below(corpus_count)]);
        break;
    }
}

static void read_input(const char *folder, const char *name)
{
    char path[4096];
    FILE *file;

    if (corpus_count == MAX_FILES) return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    corpus[corpus_count].size = fread(corpus[corpus_count].bytes, 1, LONGEST, file);
    corpus_count++;
    fclose(file);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void read_corpus(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, alphasort);

    if (count <= 0) {
        fprintf(stderr, "%s: no inputs there\n", folder);
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < count; i++) {
        read_input(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    unsigned long mutations;

    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: %s CORPUS [MUTATIONS [SEED]]\n", argv[0]);
        return EXIT_FAILURE;
    }
    target = slash != NULL ? slash + 1 : argv[0];
    signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(print_current);
    else
        signal(SIGSEGV, on_signal);
    read_corpus(argv[1]);
    for (size_t i = 0; i < corpus_count; i++) {
        current = corpus[i];
        run_current();
    }
    if (argc > 3) setenv("WEFT_TEST_SEED", argv[3], 1);
    test_seed_begin(target);
    random_state = test_state(0);
    mutations = argc > 2 ? strtoul(argv[2], NULL, 10) : (unsigned long)test_cases(20000);
    for (unsigned long i = 0; i < mutations; i++) {
        if (i % 8 == 0) current = corpus[below(corpus_count)]; /* eight mutations each */
        mutate();
        run_current();
    }
    return EXIT_SUCCESS;
}
