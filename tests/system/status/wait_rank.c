/* wait_rank.c - one rank of a job of four whose rank 1 is late for calls of libweft, libweft_file
 * and libweft_parallel that wait for all ranks:
 *
 *     wait_rank CALL FOLDER         rank 1 is late for CALL, until FOLDER/end exists
 *     wait_rank CALL FOLDER skip    rank 1 skips CALL, and calls weft_barrier
 *     wait_rank move FOLDER differ  rank 1 moves to another layout than the others
 *
 * Each rank writes its process's number to FOLDER/pid.RANK before that call. */
#include <weft/weft.h>
#include <weft/file.h>
#include <weft/parallel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static const char *call, *folder;
static bool skips, differs;
static weft_context *context;

/* The other ranks go on to CALL; rank 1 waits outside weft, or goes elsewhere. */
static void be_late(const char *name)
{
    char path[512], final[512];
    FILE *file;

    if (strcmp(name, call) != 0) return;
    snprintf(path, sizeof path, "%s/new.%d", folder, (int)weft_rank(context));
    snprintf(final, sizeof final, "%s/pid.%d", folder, (int)weft_rank(context));
    file = fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename(path, final);
    if (skips && weft_rank(context) == 1)
        exit(weft_barrier(weft_world(context), NULL) == WEFT_OK ? 0 : 1);
    snprintf(path, sizeof path, "%s/end", folder);
    while (weft_rank(context) == 1 && !differs && access(path, F_OK) != 0)
        usleep(10000);
}

static int move(const weft_mesh *mesh, weft_tensor *rows)
{
    weft_tensor *moved = NULL;
    weft_spec *columns = NULL;

    TRY(weft_spec_parse(mesh,
                        differs && weft_rank(context) == 1 ? "f32[8,8] S(1),R" : "f32[8,8] R,S(1)",
                        &columns));
    be_late("move");
    TRY(weft_tensor_move(rows, columns, NULL, NULL, &moved));
    weft_tensor_release(&moved);
    weft_spec_release(&columns);
    return 0;
}

static int shard(const weft_mesh *mesh, weft_tensor *rows)
{
    weft_fsdp_param param = {.tensor = rows};
    weft_fsdp *fsdp = NULL;
    weft_fsdp_group *group = NULL;
    weft_tensor *gradient = NULL;

    TRY(weft_fsdp_create(context, mesh, "dp", NULL, &fsdp));
    be_late("group");
    TRY(weft_fsdp_group_create(fsdp, 1, &param, sizeof param, NULL, &group));
    TRY(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    TRY(weft_fsdp_unshard_end(group));
    TRY(weft_fsdp_gradient_create(group, 0, &gradient));
    be_late("reduce");
    TRY(weft_fsdp_reduce_begin(group, &gradient, 0));
    TRY(weft_fsdp_reduce_end(group));
    weft_tensor_release(&gradient);
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    return 0;
}

static int save(weft_tensor *rows)
{
    weft_save_options options = {.struct_size = sizeof options, .replace = true};
    weft_saving *saving = NULL;
    weft_checkpoint *checkpoint = NULL;
    char path[512];

    snprintf(path, sizeof path, "%s/checkpoint", folder);
    be_late("save");
    TRY(weft_save_begin(context, path, 1, &rows, &options, &saving));
    TRY(weft_saving_wait(saving, WEFT_FOREVER));
    weft_saving_release(&saving);
    TRY(weft_checkpoint_open(path, &checkpoint));
    be_late("load");
    TRY(weft_load_into(context, checkpoint, 1, &rows, NULL));
    weft_checkpoint_close(&checkpoint);
    return 0;
}

static int reduce_on_dp(const weft_mesh *mesh)
{
    weft_comm *dp = NULL;
    float one = 1;

    TRY(weft_comm_along(weft_world(context), mesh, "dp", NULL, &dp));
    be_late("dp");
    TRY(weft_all_reduce(dp, &one, &one, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    weft_comm_release(&dp);
    TRY(weft_barrier(weft_world(context), NULL));
    return 0;
}

int main(int argc, char **argv)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "rows"};
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    weft_tensor *rows = NULL;
    double norm;

    if (argc != 3 && argc != 4) return 2;
    skips = argc == 4 && strcmp(argv[3], "skip") == 0;
    differs = argc == 4 && strcmp(argv[3], "differ") == 0;
    call = argv[1];
    folder = argv[2];
    TRY(weft_init(NULL, &context));
    TRY(weft_mesh_parse("dp=2,tp=2", &mesh));
    TRY(weft_spec_parse(mesh, "f32[8,8] S(0),R", &spec));
    TRY(weft_tensor_create(context, spec, &options, &rows));
    TRY(weft_tensor_fill(rows, 1, NULL));
    TRY(weft_barrier(weft_world(context), NULL));
    if (move(mesh, rows) != 0 || shard(mesh, rows) != 0 || save(rows) != 0 ||
        reduce_on_dp(mesh) != 0)
        return 1;
    be_late("clip");
    TRY(weft_clip_gradient_norm_wait(context, 1, &rows, 1, NULL, NULL, &norm));
    weft_tensor_release(&rows);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    weft_context_release(&context);
    return 0;
}
