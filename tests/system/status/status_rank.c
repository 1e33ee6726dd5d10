/* status_rank.c - one rank of a job for `weft status`:
 *
 *     status_rank loop FOLDER      all ranks reduce until FOLDER/end exists
 *     status_rank behind FOLDER    after three collectives rank 1 waits for FOLDER/end outside weft
 *     status_rank receive FOLDER   after three collectives rank 1 receives what rank 2 sends later
 *     status_rank threads FOLDER   as behind, with four ranks as threads
 *     status_rank split FOLDER     three collectives on halves of the world, a barrier, and one
 *                                  more on the second half, for which rank 3 is late
 *     status_rank create FOLDER    collective creations and releases, before each of which rank 1
 *                                  waits for FOLDER/NAME; weft_comm_create is one of ranks 0 and 1
 *
 * Each rank writes its process's number to FOLDER/pid.RANK when it has begun. */
#include <weft/weft.h>
#include <weft/symm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            return try_status;                                                                     \
        }                                                                                          \
    } while (0)

enum { COUNT = 262144 };

static const char *scenario, *folder;

static bool exists(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void report(int32_t rank)
{
    char path[512], final[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/new.%d", folder, (int)rank);
    snprintf(final, sizeof final, "%s/pid.%d", folder, (int)rank);
    file = fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename(path, final);
}

static weft_status reduce(weft_comm *comm, float *memory)
{
    TRY(weft_all_reduce(comm, memory, memory, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, NULL));
    return WEFT_OK;
}

static weft_status loop(weft_context *context, float *memory)
{
    bool ends = false;

    while (!ends) {
        int32_t mine = weft_rank(context) == 0 && exists("end"), all = 0;

        TRY(reduce(weft_world(context), memory));
        TRY(weft_all_reduce(weft_world(context), &mine, &all, 1, WEFT_DTYPE_I32, WEFT_REDUCE_MAX,
                            NULL));
        ends = all != 0;
    }
    return WEFT_OK;
}

static weft_status receive(weft_context *context, float *memory)
{
    weft_comm *world = weft_world(context);

    if (weft_rank(context) == 1) TRY(weft_receive(world, memory, 16, WEFT_DTYPE_F32, 2, 0, NULL));
    if (weft_rank(context) == 2) {
        while (!exists("end"))
            usleep(10000);
        TRY(weft_send(world, memory, 16, WEFT_DTYPE_F32, 1, 0, NULL));
    }
    return WEFT_OK;
}

static weft_status split(weft_context *context, float *memory)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .name = "halves"};
    weft_comm *half;

    TRY(weft_comm_split(weft_world(context), weft_rank(context) / 2, 0, &options, &half));
    for (int i = 0; i < 3; i++)
        TRY(reduce(half, memory));
    TRY(weft_barrier(weft_world(context), NULL));
    TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    while (weft_rank(context) != 2 && !exists("end"))
        usleep(10000);
    if (weft_rank(context) >= 2) TRY(reduce(half, memory));
    weft_comm_release(&half);
    return WEFT_OK;
}

/* Rank 1 is late for the call that is called NAME. */
static void be_late(weft_context *context, const char *name)
{
    while (weft_rank(context) == 1 && !exists(name) && !exists("end"))
        usleep(10000);
}

static weft_status create(weft_context *context)
{
    weft_comm *world = weft_world(context), *part = NULL, *pair = NULL, *along;
    int32_t ranks[] = {0, 1};
    weft_mesh *mesh;
    weft_symm *symm;

    TRY(weft_barrier(world, NULL));
    be_late(context, "split");
    TRY(weft_comm_split(world, weft_rank(context) % 2, 0, NULL, &part));
    be_late(context, "create");
    TRY(weft_comm_create(world, 2, ranks, NULL, &pair));
    while (weft_rank(context) >= 2 && !exists("create") && !exists("end"))
        usleep(10000);
    be_late(context, "along");
    TRY(weft_mesh_parse("dp=2,tp=2", &mesh));
    TRY(weft_comm_along(world, mesh, "dp", NULL, &along));
    be_late(context, "symm");
    TRY(weft_symm_create(world, 4096, NULL, &symm));
    be_late(context, "release");
    weft_symm_release(&symm);
    weft_mesh_release(&mesh);
    weft_comm_release(&pair);
    weft_comm_release(&part);
    return WEFT_OK;
}

static weft_status work(weft_context *context, float *memory)
{
    if (strcmp(scenario, "loop") == 0) return loop(context, memory);
    if (strcmp(scenario, "split") == 0) return split(context, memory);
    if (strcmp(scenario, "create") == 0) return create(context);
    for (int i = 0; i < 3; i++)
        TRY(reduce(weft_world(context), memory));
    if (strcmp(scenario, "receive") == 0)
        TRY(receive(context, memory));
    else
        while (weft_rank(context) == 1 && !exists("end"))
            usleep(10000);
    return reduce(weft_world(context), memory);
}

static weft_status run_rank(void *argument)
{
    weft_context *context;
    void *memory;

    (void)argument;
    TRY(weft_init(NULL, &context));
    TRY(weft_alloc(context, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, COUNT * sizeof(float));
    report(weft_rank(context));
    TRY(work(context, memory));
    TRY(weft_free(context, memory));
    weft_context_release(&context);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    scenario = argv[1];
    folder = argv[2];
    if (strcmp(scenario, "threads") == 0)
        return weft_threads_run(4, run_rank, NULL) == WEFT_OK ? 0 : 1;
    return run_rank(NULL) == WEFT_OK ? 0 : 1;
}
