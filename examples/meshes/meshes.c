/* meshes.c - the meshes of one model: a stage of a pipeline, its data-parallel ranks, its hosts.
 *
 *     ./meshes
 *
 * 32 ranks on hosts with 8 devices train a model with two stages.  In each stage, copies of the
 * model ("dp") have shards of parameters ("fsdp") and of matrices ("tp").  The program plans: it
 * communicates with nobody and needs no device. */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* On how many hosts are the ranks that share AXES with RANK? */
static int hosts_along(const weft_mesh *mesh, const char *axes, int rank)
{
    weft_mesh *group;
    int hosts;

    MUST(weft_mesh_slice(mesh, axes, rank, &group));
    hosts = weft_mesh_hosts(group);
    weft_mesh_release(&group);
    return hosts;
}

static void print_mesh(const char *what, const weft_mesh *mesh)
{
    char text[256];

    MUST(weft_mesh_print(mesh, text, sizeof text, NULL));
    printf("%-28s %s\n", what, text);
}

/* The gradient of a matrix whose rows are split along "tp", after the step that gathers its shards
 * along "fsdp". */
static void print_gradient(const weft_mesh *stage)
{
    weft_spec *stored, *gathered, *slope, *reduced;
    char text[256];

    MUST(weft_spec_parse(stage, "bf16[4096,1024] R,S(1),S(0)", &stored));
    MUST(weft_spec_with(stored, "R,R,S(0)", &gathered));
    MUST(weft_spec_dual(gathered, &slope)); /* what each rank's data gives */
    MUST(weft_spec_gradient_of_move(stored, slope, &reduced));
    MUST(weft_spec_print(slope, text, sizeof text, NULL));
    printf("%-28s %s\n", "the gradient when gathered", text);
    MUST(weft_spec_print(reduced, text, sizeof text, NULL));
    printf("%-28s %s\n", "its way back to the shard", text);
    weft_spec_release(&stored);
    weft_spec_release(&gathered);
    weft_spec_release(&slope);
    weft_spec_release(&reduced);
}

/* The elements that each rank of STAGE has of a vocabulary, whose rows do not divide evenly: the
 * counts and offsets of weft_all_gather_v. */
static void print_counts(const weft_mesh *stage)
{
    int32_t ranks[16];
    uint64_t counts[16], offsets[16];
    weft_spec *words;

    for (int i = 0; i < 16; i++)
        ranks[i] = weft_mesh_rank_at(stage, i);
    MUST(weft_spec_parse(stage, "bf16[50257,64] S(0),S(0),S(0)", &words));
    MUST(weft_spec_counts(words, 16, ranks, counts, offsets));
    printf("%-28s %llu, on the last %llu\n", "words' elements on a rank",
           (unsigned long long)counts[0], (unsigned long long)counts[15]);
    weft_spec_release(&words);
}

/* The layout of a batch, if the ranks along "data" have read different numbers of sequences. */
static void print_batch(const weft_mesh *data)
{
    static const int64_t read[] = {16, 16, 15, 16, 16, 12, 16, 16};
    int64_t shapes[16 * 2]; /* of the shards of all ranks, "tp" innermost */
    weft_spec *batch;
    char text[256];

    for (int i = 0; i < 16; i++) {
        shapes[i * 2] = read[i / 2];
        shapes[i * 2 + 1] = 1024;
    }
    MUST(weft_spec_parse_shards(data, WEFT_DTYPE_I32, "S(0),R", 2, 32, shapes, &batch));
    MUST(weft_spec_print(batch, text, sizeof text, NULL));
    printf("%-28s %s\n", "the batch", text);
    weft_spec_release(&batch);
}

/* The mesh of the ranks of DATA in which as many of them share shards of parameters as have room on
 * one host beside the SHARING ranks that share matrices.  The caller releases it. */
static weft_mesh *keep_shards_on_a_host(const weft_mesh *data, int sharing)
{
    static const char *const names[] = {"dp", "fsdp"};
    int shards = weft_mesh_devices_per_host(data) / sharing;
    const int32_t sizes[] = {weft_mesh_axis_size(data, 0) / shards, shards};
    weft_mesh *made;

    MUST(weft_mesh_unflatten(data, 0, 2, sizes, names, &made));
    return made;
}

int main(void)
{
    static const char *const names[] = {"pp", "dp", "fsdp", "tp"};
    static const int32_t sizes[] = {2, 2, 4, 2};
    const int rank = 21;
    weft_mesh_options options = {
        .struct_size = sizeof options, .names = names, .devices_per_host = 8};
    weft_mesh *job, *stage, *data, *across, *line, *again;
    bool is_stage;

    MUST(weft_mesh_create(4, sizes, &options, &job));
    MUST(weft_mesh_slice(job, "dp,fsdp,tp", rank, &stage));   /* the ranks of this rank's stage */
    MUST(weft_mesh_flatten(stage, "dp,fsdp", "data", &data)); /* batches are split along "data" */
    MUST(weft_mesh_slice(job, "pp", rank, &line));            /* its neighbours in the pipeline */
    MUST(weft_mesh_concatenate(job, line, stage, &across));   /* both again, as one mesh */
    again = keep_shards_on_a_host(data, sizes[3]);
    is_stage = weft_mesh_hash(again) == weft_mesh_hash(stage); /* ranks and axes are the same */

    print_mesh("the job", job);
    print_mesh("the stage of rank 21", stage);
    print_mesh("batches are split along", data);
    print_mesh("its neighbours", line);
    print_mesh("shards within a host", again);
    printf("%-28s %s\n", "these are the stage's axes", is_stage ? "yes" : "no");
    printf("%-28s %d\n", "hosts of the job", weft_mesh_hosts(job));
    printf("%-28s %d\n", "the host of rank 21", weft_mesh_host_of(job, rank));
    for (int axis = 0; axis < weft_mesh_axes(job); axis++)
        printf("hosts along %-16s %d\n", names[axis], hosts_along(job, names[axis], rank));
    print_gradient(stage);
    print_counts(stage);
    print_batch(data);
    if (weft_mesh_size(across) != weft_mesh_size(job) || hosts_along(job, "tp", rank) != 1 ||
        hosts_along(job, "fsdp", rank) != 1 || !is_stage)
        return EXIT_FAILURE;

    weft_mesh_release(&again);
    weft_mesh_release(&across);
    weft_mesh_release(&line);
    weft_mesh_release(&data);
    weft_mesh_release(&stage);
    weft_mesh_release(&job);
    return EXIT_SUCCESS;
}
