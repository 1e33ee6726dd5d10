/* Checkpoints go from layout to layout, and every element arrives. */
#include "checkpoint/file.h"
#include "checkpoint/reshard/reshard.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

enum { TENSORS = 6, MOST = 24 << 20 };

static const struct {
    const char *name, *dtype;
    int32_t dims;
    int64_t shape[3];
} tensors[TENSORS] = {{"layers.0.q_proj.weight", "BF16", 2, {96, 64}},
                      {"layers.0.o_proj.weight", "BF16", 2, {64, 96}},
                      {"layers.0.norm.weight", "F32", 1, {64}},
                      {"layers.0.experts", "F8_E4M3", 3, {5, 7, 9}},
                      {"scale", "F64", 0, {0}},
                      {"empty", "I32", 2, {0, 4}}};

static unsigned char elements[TENSORS][96 * 64 * 2], got[96 * 64 * 2];

static void write_source(const char *path)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    struct random r = random_begin("test_file_reshard");
    weft_checkpoint_entry entries[TENSORS];
    weft_checkpoint_writer *writer = NULL;

    for (int i = 0; i < TENSORS; i++) {
        entries[i] = (weft_checkpoint_entry){tensors[i].name, tensors[i].dtype, tensors[i].dims,
                                             tensors[i].shape, NULL};
        for (size_t k = 0; k < sizeof elements[i]; k++)
            elements[i][k] = (unsigned char)random_in(&r, 0, 255);
    }
    OK(weft_checkpoint_writer_create(path, TENSORS, entries, sizeof *entries, &options, &writer));
    for (size_t i = 0; i < TENSORS; i++)
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements[i]));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

static void check_elements(const char *path)
{
    weft_checkpoint *in = NULL;

    OK(weft_checkpoint_open(path, &in));
    for (int i = 0; i < TENSORS; i++) {
        weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
        size_t index = tensor_index(in, tensors[i].name);
        OK(weft_checkpoint_tensor_get(in, index, &info));
        OK(weft_checkpoint_read(in, index, NULL, NULL, got));
        ck_assert_msg(memcmp(got, elements[i], info.bytes) == 0, "%s: %s", path, info.name);
    }
    weft_checkpoint_close(&in);
}

/* Reshard FROM to TO with the layout TEXT, or to whole tensors. */
static void reshard(const char *from, const char *to, const char *text, int32_t jobs)
{
    weft_reshard_options options = {
        .struct_size = sizeof options, .jobs = jobs, .replace = true, .file_bytes = 3000};
    weft_reshard_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = NULL;
    weft_layout_file *layout = NULL;
    weft_reshard *plan = NULL;

    if (text != NULL) OK(weft_layout_file_parse(text, NULL, &layout));
    options.layout = layout;
    OK(weft_checkpoint_open(folder_path(&folder, from), &in));
    OK(weft_reshard_create(in, folder_path(&folder, to), &options, &plan));
    OK(weft_reshard_get(plan, &info));
    ck_assert_int_eq(info.jobs, jobs);
    ck_assert_uint_eq(info.tensors, TENSORS);
    ck_assert_uint_ge(info.written, info.read);
    OK(weft_reshard_run(plan));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
    weft_layout_file_release(&layout);
    check_elements(folder_path(&folder, to));
}

TEST(layouts_change_and_elements_stay)
{
    write_source(folder_path(&folder, "hf"));
    reshard("hf", "tp2", "mesh tp=2\n*.q_proj.* S(0)\n*.o_proj.* S(1)\n*.experts S(0)\n* R\n", 1);
    reshard("tp2", "tp4", "mesh tp=4\n*.q_proj.* S(0)\n*.o_proj.* S(1)\n*.experts S(2)\n* R\n", 3);
    reshard("tp4", "tp3",
            "mesh dp=2,tp=3\n*.q_proj.* R,SS(0,2)\n*.o_proj.* S(0),S(0)\n*.experts S(1),S(2)\n"
            "* R,R\n",
            2);
    reshard("tp3", "back", NULL, 2);
    reshard("back", "hf2", NULL, 1);
}

TEST(metadata_are_kept)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = NULL;
    const char *key, *value;

    write_source(folder_path(&folder, "m"));
    reshard("m", "m4", "mesh tp=4\n* R\n", 1);
    OK(weft_checkpoint_open(folder_path(&folder, "m4"), &in));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_eq(info.metadata, 1);
    OK(weft_checkpoint_metadata_get(in, 0, &key, &value));
    ck_assert_str_eq(key, "format");
    ck_assert_str_eq(value, "pt");
    weft_checkpoint_close(&in);
}

TEST(plans_are_refused_before_anything_is_written)
{
    weft_reshard_options options = {.struct_size = sizeof options};
    weft_checkpoint *in = NULL;
    weft_layout_file *layout = NULL;
    weft_reshard *plan = NULL;
    const char *path = folder_path(&folder, "refused");

    write_source(folder_path(&folder, "p"));
    OK(weft_checkpoint_open(folder_path(&folder, "p"), &in));
    OK(weft_layout_file_parse("mesh 2\nlayers.* S(1)\n", NULL, &layout));
    options.layout = layout;
    REFUSED(weft_reshard_create(in, path, &options, &plan), WEFT_ERR_NOT_FOUND, "\"empty\"");
    weft_layout_file_release(&layout);
    OK(weft_layout_file_parse("mesh 2\nlayers.* S(1)\n* R\n", NULL, &layout));
    options.layout = layout;
    REFUSED(weft_reshard_create(in, path, &options, &plan), WEFT_ERR_INVALID,
            "tensor \"layers.0.norm.weight\"");
    options.layout = NULL;
    options.memory = 1000;
    REFUSED(weft_reshard_create(in, path, &options, &plan), WEFT_ERR_INVALID,
            "memory is 1000 bytes; at least 8388608 are needed");
    options.memory = 0;
    options.jobs = -1;
    REFUSED(weft_reshard_create(in, path, &options, &plan), WEFT_ERR_INVALID,
            "weft_reshard_options.jobs is -1");
    options.jobs = 0;
    options.format = 77;
    REFUSED(weft_reshard_create(in, path, &options, &plan), WEFT_ERR_INVALID,
            "weft does not write format 77 (unknown)");
    ck_assert(!path_exists(path));
    weft_layout_file_release(&layout);
    weft_checkpoint_close(&in);
}

static bool stop(void *user, uint64_t done, uint64_t total)
{
    ck_assert_uint_le(done, total);
    ++*(int *)user;
    return false;
}

/* A tensor of 24 MiB, whose rows do not fit a buffer. */
static weft_checkpoint *open_large(void)
{
    static const int64_t shape[] = {3, 1, 2, 4 << 20};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_entry entry = {"large", "U8", 4, shape, NULL};
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint *in = NULL;
    char *bytes = malloc(MOST);

    for (size_t i = 0; i < MOST; i++)
        bytes[i] = (char)(i * 2654435761U >> 13);
    OK(weft_checkpoint_writer_create(folder_path(&folder, "large.safetensors"), 1, &entry,
                                     sizeof(entry), &options, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, bytes));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    free(bytes);
    OK(weft_checkpoint_open(folder_path(&folder, "large.safetensors"), &in));
    return in;
}

TEST(large_tensors_are_cut_into_steps)
{
    weft_reshard_options options = {.struct_size = sizeof options, .memory = 8 << 20, .jobs = 4};
    weft_reshard_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = open_large();
    weft_reshard *plan = NULL;
    char *first, *second;
    size_t sizes[2];

    options.format = WEFT_FILE_SAFETENSORS;
    OK(weft_reshard_create(in, folder_path(&folder, "copy.safetensors"), &options, &plan));
    OK(weft_reshard_get(plan, &info));
    ck_assert_uint_le(info.memory, 8 << 20);
    ck_assert_uint_ge(info.steps, 24);
    OK(weft_reshard_run(plan));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
    first = read_whole(folder_path(&folder, "large.safetensors"), &sizes[0]);
    second = read_whole(folder_path(&folder, "copy.safetensors"), &sizes[1]);
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_int_eq(memcmp(first, second, sizes[0]), 0);
    free(first);
    free(second);
}

TEST(progress_can_stop_it)
{
    int calls = 0;
    weft_reshard_options options = {.struct_size = sizeof options,
                                    .memory = 8 << 20,
                                    .jobs = 1,
                                    .progress = stop,
                                    .user = &calls};
    weft_checkpoint *in = open_large();
    weft_reshard *plan = NULL;

    OK(weft_reshard_create(in, folder_path(&folder, "stopped"), &options, &plan));
    REFUSED(weft_reshard_run(plan), WEFT_ERR_ABORTED, "resharding was stopped");
    ck_assert_int_eq(calls, 1);
    ck_assert(!path_exists(folder_path(&folder, "stopped")));
    ck_assert(!path_exists(folder_path(&folder, "stopped.weft-partial")));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
}

/* ---- numbers ---- */

/* What the callback heard. */
struct heard {
    uint64_t done, total;
    bool go_on;
};

static bool hear(void *user, uint64_t done, uint64_t total)
{
    struct heard *heard = user;

    ck_assert_uint_le(done, total);
    heard->done = done;
    heard->total = total;
    return heard->go_on;
}

/* 32 MiB of F32. */
static weft_checkpoint *open_wide(void)
{
    static const int64_t shape[] = {128, 64 << 10};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_entry entry = {"wide", "F32", 2, shape, NULL};
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint *in = NULL;
    char *bytes = calloc(1, 32 << 20);

    OK(weft_checkpoint_writer_create(folder_path(&folder, "wide.safetensors"), 1, &entry,
                                     sizeof(entry), &options, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, bytes));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    free(bytes);
    OK(weft_checkpoint_open(folder_path(&folder, "wide.safetensors"), &in));
    return in;
}

/* F32 becomes BF16 with three replicas, and is padded by a quarter: 32 MiB are read, and
 * 3 * (16 + 4) MiB are written, in a run that stops and one that continues it. */
TEST(numbers_are_those_of_files)
{
    struct heard heard = {.go_on = false};
    weft_reshard_options options = {.struct_size = sizeof options,
                                    .memory = 8 << 20,
                                    .keep = true,
                                    .resume = true,
                                    .progress = hear,
                                    .user = &heard};
    weft_reshard_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = open_wide(), *mapped = NULL;
    weft_reshard *plan = NULL;
    OWNED(weft_layout_file) *layout = NULL;
    OWNED(weft_checkpoint_rules) *rules = NULL;
    uint64_t kept;

    OK(weft_checkpoint_rules_parse("* = pad0(*, 160)\n* : cast bf16\n", NULL, &rules));
    OK(weft_checkpoint_map(in, rules, &mapped));
    OK(weft_layout_file_parse("mesh dp=3,tp=2\n* R,S(0)\n", NULL, &layout));
    options.layout = layout;
    OK(weft_reshard_create(mapped, folder_path(&folder, "narrow"), &options, &plan));
    OK(weft_reshard_get(plan, &info));
    ck_assert_uint_eq(info.read, 32 << 20);
    ck_assert_uint_eq(info.written, 60 << 20);
    ck_assert_uint_eq(info.steps, 5); /* of 4 MiB */
    REFUSED(weft_reshard_run(plan), WEFT_ERR_ABORTED, "resharding was stopped");
    ck_assert_uint_eq(heard.total, info.written);
    ck_assert_uint_eq(heard.done % (12 << 20), 0);
    OK(weft_reshard_get(plan, &info));
    kept = info.kept;
    weft_reshard_release(&plan);
    heard.go_on = true;
    OK(weft_reshard_create(mapped, folder_path(&folder, "narrow"), &options, &plan));
    OK(weft_reshard_run(plan));
    OK(weft_reshard_get(plan, &info));
    ck_assert_uint_eq(info.resumed, kept * (12 << 20));
    ck_assert_uint_eq(heard.total, info.written);
    weft_reshard_release(&plan);
    weft_checkpoint_close(&mapped);
    weft_checkpoint_close(&in);
}

TEST(progress_hears_of_the_last_byte)
{
    static const int64_t shape[] = {4};
    struct heard heard = {.go_on = true};
    weft_checkpoint_entry entry = {"small", "U8", 1, shape, NULL};
    weft_reshard_options options = {
        .struct_size = sizeof options, .jobs = 1, .progress = hear, .user = &heard};
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint *in = NULL;
    weft_reshard *plan = NULL;

    OK(weft_checkpoint_writer_create(folder_path(&folder, "small.npy"), 1, &entry, sizeof(entry),
                                     NULL, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "abcd"));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    OK(weft_checkpoint_open(folder_path(&folder, "small.npy"), &in));
    for (int i = 0; i < 20; i++) { /* the job often ends before the caller waits for it */
        char name[32];

        snprintf(name, sizeof name, "small-%d.safetensors", i);
        heard.done = heard.total = 0;
        OK(weft_reshard_create(in, folder_path(&folder, name), &options, &plan));
        OK(weft_reshard_run(plan));
        weft_reshard_release(&plan);
        ck_assert_uint_eq(heard.done, 4);
        ck_assert_uint_eq(heard.total, 4);
    }
    heard.go_on = false;
    OK(weft_reshard_create(in, folder_path(&folder, "no.safetensors"), &options, &plan));
    REFUSED(weft_reshard_run(plan), WEFT_ERR_ABORTED, "resharding was stopped");
    ck_assert(!path_exists(folder_path(&folder, "no.safetensors")));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
}

/* ---- several processes, here as threads ---- */

enum { PARTS = 3 };

static struct {
    pthread_mutex_t guard;
    pthread_barrier_t barrier;
    uint64_t sums[4096];
} shared = {.guard = PTHREAD_MUTEX_INITIALIZER};

/* Each of COUNT values becomes its sum over all threads. */
static weft_status combine(void *user, size_t count, uint64_t *values)
{
    (void)user;
    ck_assert_uint_le(count, 4096);
    if (pthread_barrier_wait(&shared.barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        memset(shared.sums, 0, sizeof shared.sums);
    pthread_barrier_wait(&shared.barrier);
    pthread_mutex_lock(&shared.guard);
    for (size_t i = 0; i < count; i++)
        shared.sums[i] += values[i];
    pthread_mutex_unlock(&shared.guard);
    pthread_barrier_wait(&shared.barrier);
    memcpy(values, shared.sums, count * sizeof *values);
    return WEFT_OK;
}

struct part {
    const char *from, *to;
    int32_t number;
    weft_status status;
    char error[300];
};

static void *run_part(void *argument)
{
    struct part *part = argument;
    weft_reshard_options options = {.struct_size = sizeof options,
                                    .jobs = 1,
                                    .checksums = true,
                                    .part = part->number,
                                    .parts = PARTS,
                                    .combine = combine};
    weft_checkpoint *in = NULL;
    weft_reshard *plan = NULL;

    part->status = weft_checkpoint_open(part->from, &in);
    if (part->status == WEFT_OK) part->status = weft_reshard_create(in, part->to, &options, &plan);
    if (part->status == WEFT_OK) part->status = weft_reshard_run(plan);
    snprintf(part->error, sizeof part->error, "%s", weft_last_error());
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
    return NULL;
}

static void run_parts(struct part *parts, const char *from, const char *to)
{
    pthread_t threads[PARTS];

    pthread_barrier_init(&shared.barrier, NULL, PARTS);
    for (int32_t i = 0; i < PARTS; i++) {
        parts[i] = (struct part){.from = from, .to = to, .number = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
    }
    for (int32_t i = 0; i < PARTS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&shared.barrier);
}

TEST(processes_divide_the_work)
{
    char from[300], to[300];
    struct part parts[PARTS];

    snprintf(from, sizeof from, "%s", folder_path(&folder, "divided"));
    snprintf(to, sizeof to, "%s", folder_path(&folder, "joined"));
    write_source(from);
    run_parts(parts, from, to);
    for (int32_t i = 0; i < PARTS; i++)
        ck_assert_msg(parts[i].status == WEFT_OK, "%s", parts[i].error);
    check_elements(to);
    ck_assert(path_exists(folder_path(&folder, "joined/weft.json")));
    run_parts(parts, from, to); /* it exists now: all get the error of the first */
    for (int32_t i = 0; i < PARTS; i++) {
        ck_assert_int_eq(parts[i].status, WEFT_ERR_INVALID);
        ck_assert_msg(strstr(parts[i].error, "process 0 of 3: ") != NULL &&
                          strstr(parts[i].error, "exists already") != NULL,
                      "%s", parts[i].error);
    }
}

TEST(parts_are_numbered)
{
    weft_reshard_options options = {.struct_size = sizeof options, .part = 1};
    weft_checkpoint *in = NULL;
    weft_reshard *plan = NULL;

    write_source(folder_path(&folder, "numbered"));
    OK(weft_checkpoint_open(folder_path(&folder, "numbered"), &in));
    REFUSED(weft_reshard_create(in, "x", &options, &plan), WEFT_ERR_INVALID,
            "weft_reshard_options.part is 1 of 1");
    options.parts = 2;
    REFUSED(weft_reshard_create(in, "x", &options, &plan), WEFT_ERR_INVALID, "need `combine`");
    weft_checkpoint_close(&in);
}

TEST(a_source_that_changes_stops_it)
{
    weft_checkpoint *in = open_large();
    weft_reshard *plan = NULL;

    OK(weft_reshard_create(in, folder_path(&folder, "changed"), NULL, &plan));
    ck_assert_int_eq(truncate(folder_path(&folder, "large.safetensors"), 1 << 20), 0);
    REFUSED(weft_reshard_run(plan), WEFT_ERR_SYSTEM, "tensor \"large\"");
    ck_assert(!path_exists(folder_path(&folder, "changed")));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&in);
}
