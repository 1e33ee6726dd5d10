/* Random chains of rules, written in random layouts, and undone: every bit comes back. */
#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

enum { CASES = 100, MOST_RULES = 5, MOST_BYTES = 4 << 20 };

static const char *const dtypes[] = {"U8", "BF16", "F32", "C64"};
static const size_t units[] = {1, 2, 4, 8};

static unsigned char *original, *got, *box;

/* The tensor x, as the rules so far have made it. */
struct chain {
    int32_t dims, first_dims;
    int64_t shape[WEFT_MAX_DIMS], first_shape[WEFT_MAX_DIMS];
    size_t unit, count;
    char there[MOST_RULES][300], back[MOST_RULES][300];
    char join[MOST_RULES][300]; /* after `back`, unless it is empty */
};

static int64_t elements_of(const struct chain *c)
{
    int64_t count = 1;

    for (int32_t d = 0; d < c->dims; d++)
        count *= c->shape[d];
    return count;
}

static void add_sizes(char *text, int32_t dims, const int64_t *sizes)
{
    for (int32_t d = 0; d < dims; d++)
        sprintf(text + strlen(text), ", %lld", (long long)sizes[d]);
    strcat(text, ")\n");
}

static void add_transpose(struct random *r, struct chain *c, char *there, char *back)
{
    int64_t order[WEFT_MAX_DIMS], inverse[WEFT_MAX_DIMS], shape[WEFT_MAX_DIMS];

    for (int32_t d = 0; d < c->dims; d++)
        order[d] = d;
    for (int32_t d = c->dims - 1; d > 0; d--) {
        int32_t other = random_in(r, 0, d);
        int64_t kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    memcpy(shape, c->shape, sizeof shape);
    for (int32_t d = 0; d < c->dims; d++) {
        inverse[order[d]] = d;
        c->shape[d] = shape[order[d]];
    }
    strcpy(there, "x = transpose(x");
    strcpy(back, "x = transpose(x");
    add_sizes(there, c->dims, order);
    add_sizes(back, c->dims, inverse);
}

static void add_reshape(struct random *r, struct chain *c, char *there, char *back)
{
    int64_t left = elements_of(c), shape[WEFT_MAX_DIMS];
    int32_t dims = 0;

    while (left > 1 && dims < 4) {
        int64_t factor = random_in(r, 2, 9);
        if (left % factor != 0) factor = left;
        shape[dims++] = factor;
        left /= factor;
    }
    if (left > 1 || dims == 0) shape[dims++] = left;
    strcpy(there, "x = reshape(x");
    strcpy(back, "x = reshape(x");
    add_sizes(there, dims, shape);
    add_sizes(back, c->dims, c->shape);
    c->dims = dims;
    memcpy(c->shape, shape, (size_t)dims * sizeof *shape);
}

static void add_rotation(struct random *r, struct chain *c, char *there, char *back)
{
    int32_t d = random_in(r, 0, c->dims - 1);
    long long n = c->shape[d], cut = random_in(r, 0, (int32_t)n);

    sprintf(there, "x = cat%d(slice%d(x, %lld:%lld), slice%d(x, 0:%lld))\n", d, d, cut, n, d, cut);
    sprintf(back, "x = cat%d(slice%d(x, %lld:%lld), slice%d(x, 0:%lld))\n", d, d, n - cut, n, d,
            n - cut);
}

static void add_padding(struct random *r, struct chain *c, char *there, char *back)
{
    int32_t d = random_in(r, 0, c->dims - 1);
    long long n = c->shape[d];

    c->shape[d] += random_in(r, 0, 3);
    sprintf(there, "x = pad%d(x, %lld)\n", d, (long long)c->shape[d]);
    sprintf(back, "x = slice%d(x, 0:%lld)\n? x : drop\n", d, n);
}

/* Two halves whose rows alternate, in blocks. */
static bool add_interleave(struct random *r, struct chain *c, char *there, char *back)
{
    int32_t d = random_in(r, 0, c->dims - 1);
    long long n = c->shape[d], half = n / 2, block = random_in(r, 1, 3);

    if (n % (2 * block) != 0 || n == 0) return false;
    sprintf(there, "x = interleave%d(slice%d(x, 0:%lld), slice%d(x, %lld:%lld), %lld)\n", d, d,
            half, d, half, n, block);
    sprintf(back, "y.{a,b} = deinterleave%d(x, %lld)\n", d, block);
    sprintf(c->join[c->count], "x = cat%d(y.{a,b})\n", d);
    return true;
}

static bool add_stack(struct random *r, struct chain *c, char *there, char *back)
{
    int32_t from = random_in(r, 0, c->dims - 1), to = random_in(r, 0, c->dims - 1);
    int64_t size = c->shape[from];

    if (size > 50 || size == 0) return false;
    sprintf(there, "x = stack%d(unstack%d(x))\n", to, from);
    sprintf(back, "x = stack%d(unstack%d(x))\n", from, to);
    memmove(&c->shape[from], &c->shape[from + 1], (size_t)(c->dims - 1 - from) * sizeof *c->shape);
    memmove(&c->shape[to + 1], &c->shape[to], (size_t)(c->dims - 1 - to) * sizeof *c->shape);
    c->shape[to] = size;
    return true;
}

static bool add_heads(struct random *r, struct chain *c, char *there, char *back)
{
    long long heads = random_in(r, 1, 3);

    if (c->shape[0] % (2 * heads) != 0 || c->dims > 5) return false;
    sprintf(there, "x = permute_heads(x, %lld)\n", heads);
    sprintf(back, "x = unpermute_heads(x, %lld)\n", heads);
    return true;
}

static void draw_chain(struct random *r, struct chain *c)
{
    int32_t wanted = random_in(r, 1, MOST_RULES);

    c->dims = random_in(r, 1, 3);
    for (int32_t d = 0; d < c->dims; d++)
        c->shape[d] = random_chance(r, 20) ? 0 : random_in(r, 1, 12);
    if (random_chance(r, 4)) c->shape[c->dims - 1] *= random_in(r, 500, 3000);
    c->first_dims = c->dims;
    memcpy(c->first_shape, c->shape, sizeof c->first_shape);
    c->count = 0;
    for (int tries = 0; (int32_t)c->count < wanted && tries < 100; tries++) {
        char *there = c->there[c->count], *back = c->back[c->count];
        bool made = c->dims > 0;
        c->join[c->count][0] = '\0';
        switch (made ? random_in(r, 0, 6) : -1) {
        case 0:
            add_transpose(r, c, there, back);
            break;
        case 1:
            add_reshape(r, c, there, back);
            break;
        case 2:
            add_rotation(r, c, there, back);
            break;
        case 3:
            add_padding(r, c, there, back);
            break;
        case 4:
            made = add_interleave(r, c, there, back);
            break;
        case 5:
            made = add_stack(r, c, there, back);
            break;
        default:
            made = add_heads(r, c, there, back);
            break;
        }
        if (made) c->count++;
    }
}

/* Map IN by TEXT. */
static weft_checkpoint *map(const weft_checkpoint *in, const char *text)
{
    weft_checkpoint *out = NULL;
    weft_checkpoint_rules *rules = NULL;

    OK(weft_checkpoint_rules_parse(text, NULL, &rules));
    ck_assert_msg(weft_checkpoint_map(in, rules, &out) == WEFT_OK, "%s: %s", text,
                  weft_last_error());
    weft_checkpoint_rules_release(&rules);
    return out;
}

/* Read parts of x, and compare them with the whole. */
static void check_boxes(struct random *r, const weft_checkpoint *in, const struct chain *c)
{
    int64_t whole[WEFT_MAX_DIMS], start[WEFT_MAX_DIMS], size[WEFT_MAX_DIMS];

    OK(weft_checkpoint_read(in, 0, NULL, NULL, got));
    for (int i = 0; i < 3; i++) {
        int64_t count = 1;
        for (int32_t d = 0; d < c->dims; d++) {
            start[d] = random_in(r, 0, (int32_t)c->shape[d]);
            size[d] = random_in(r, 0, (int32_t)(c->shape[d] - start[d]));
            count *= size[d];
        }
        OK(weft_checkpoint_read(in, 0, start, size, box));
        wf_row_major(c->dims, c->shape, whole);
        for (int64_t k = 0; k < count; k++) {
            int64_t left = k, at = 0;
            for (int32_t d = c->dims - 1; d >= 0; d--) {
                at += (start[d] + left % size[d]) * whole[d];
                left /= size[d];
            }
            ck_assert_msg(memcmp(box + (size_t)k * c->unit, got + (size_t)at * c->unit, c->unit) ==
                              0,
                          "element %lld of a box", (long long)k);
        }
    }
}

/* Write IN for three ranks, split along a random dimension. */
static weft_checkpoint *write_ranks(struct random *r, const weft_checkpoint *in,
                                    const struct chain *c)
{
    weft_reshard_options options = {.struct_size = sizeof options, .replace = true, .jobs = 2};
    const char *path = folder_path(&folder, "ranks");
    weft_checkpoint *out = NULL;
    weft_layout_file *layout = NULL;
    weft_reshard *plan = NULL;
    char text[60];

    snprintf(text, sizeof text, "mesh tp=3\n* S(%d)\n", random_in(r, 0, c->dims - 1));
    OK(weft_layout_file_parse(text, NULL, &layout));
    options.layout = layout;
    OK(weft_reshard_create(in, path, &options, &plan));
    OK(weft_reshard_run(plan));
    weft_reshard_release(&plan);
    weft_layout_file_release(&layout);
    OK(weft_checkpoint_open(path, &out));
    return out;
}

static void write_original(struct random *r, const struct chain *c, const char *dtype)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_entry entry = {"x", dtype, c->first_dims, c->first_shape, NULL};
    weft_checkpoint_writer *writer = NULL;
    size_t bytes = c->unit;

    for (int32_t d = 0; d < c->first_dims; d++)
        bytes *= (size_t)c->first_shape[d];
    for (size_t i = 0; i < bytes; i++)
        original[i] = (unsigned char)random_in(r, 0, 255);
    OK(weft_checkpoint_writer_create(folder_path(&folder, "x.safetensors"), 1, &entry,
                                     sizeof(entry), &options, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, original));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

static void run_case(struct random *r)
{
    weft_checkpoint *stages[3 * MOST_RULES + 2] = {NULL};
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    size_t kind = (size_t)random_in(r, 0, 3), at = 0;
    struct chain c = {.unit = units[kind]};

    do
        draw_chain(r, &c);
    while (elements_of(&c) * 8 >= MOST_BYTES);
    write_original(r, &c, dtypes[kind]);
    OK(weft_checkpoint_open(folder_path(&folder, "x.safetensors"), &stages[0]));
    for (size_t i = 0; i < c.count; i++, at++)
        stages[at + 1] = map(stages[at], c.there[i]);
    check_boxes(r, stages[at], &c);
    stages[at + 1] = write_ranks(r, stages[at], &c);
    at++;
    for (size_t i = c.count; i-- > 0;) {
        stages[at + 1] = map(stages[at], c.back[i]);
        at++;
        if (c.join[i][0] == '\0') continue;
        stages[at + 1] = map(stages[at], c.join[i]);
        at++;
    }
    OK(weft_checkpoint_tensor_get(stages[at], 0, &info));
    OK(weft_checkpoint_read(stages[at], 0, NULL, NULL, got));
    for (size_t i = 0; i < c.count && memcmp(got, original, info.bytes) != 0; i++)
        fprintf(stderr, "%s%s", c.there[i], c.back[i]);
    ck_assert_mem_eq(got, original, info.bytes);
    ck_assert_int_eq(info.dims, c.first_dims);
    for (size_t i = at + 1; i-- > 0;)
        weft_checkpoint_close(&stages[i]);
}

TEST(what_rules_do_rules_undo)
{
    struct random r = random_begin("test_file_rules_random");
    int count = test_cases(CASES);

    original = calloc(1, MOST_BYTES);
    got = calloc(1, MOST_BYTES);
    box = calloc(1, MOST_BYTES);
    ck_assert(original != NULL && got != NULL && box != NULL);
    for (int i = 0; i < count; i++)
        run_case(&r);
    free(original);
    free(got);
    free(box);
}
