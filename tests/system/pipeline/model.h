/* model.h - a model whose stages hash what they get, so that any wrong, late or lost byte changes
 * the gradients of weights; and random pipelines of it. */
#ifndef WEFT_TESTS_PIPELINE_MODEL_H
#define WEFT_TESTS_PIPELINE_MODEL_H

#include "support/random.h"
#include "weft/parallel.h"

enum { MOST_STAGES = 16, MOST_MICROBATCHES = 24, MOST_TENSORS = 20, RUNS = 2 };

/* One rank's part of the model, or all of it. */
struct model {
    uint64_t seed;
    int32_t stages;
    uint64_t gradient[MOST_STAGES]; /* sum over microbatches */
    int32_t forwards[MOST_STAGES], inputs[MOST_STAGES], weights[MOST_STAGES];
    int32_t lasts[MOST_STAGES];          /* calls that are the last of their kind */
    bool gathered[MOST_STAGES], sharded; /* SHARDED: UNSHARD must come before a computation */
    int32_t reduced[MOST_STAGES];
    int32_t pairs; /* that the callback `overlap` took */
    weft_context *context;
    weft_mesh *mesh;                            /* of the pipeline, for `shapes` */
    weft_pipeline_tensor learned[MOST_TENSORS]; /* of the last call of `shapes` */
    weft_pipeline_values stated;                /* those of LEARNED */
};

/* The callbacks of a pipeline; USER is a struct model. */
weft_status model_forward(void *user, const weft_pipeline_call *call);
weft_status model_backward(void *user, const weft_pipeline_call *call);
weft_status model_overlap(void *user, const weft_pipeline_call *first,
                          const weft_pipeline_call *second);
weft_status model_unshard(void *user, const weft_pipeline_call *call);
weft_status model_reshard(void *user, const weft_pipeline_call *call);
weft_status model_reduce(void *user, const weft_pipeline_call *call);
/* What STAGE of the model with SEED passes on, in TENSORS, which has room for MOST_TENSORS.  The
 * layouts are on MESH.  The caller frees them. */
weft_pipeline_values model_values(const weft_mesh *mesh, uint64_t seed, int32_t stage,
                                  weft_pipeline_tensor *tensors);
/* A value of one tensor, with the layout that TEXT states on MESH.  The caller frees it. */
weft_pipeline_values one_value(const weft_mesh *mesh, const char *text,
                               weft_pipeline_tensor *tensor);
/* Release the layouts of VALUES, which then has no tensors. */
void free_values(weft_pipeline_values *values);
/* Create the mesh of the ranks of COMM, in their order, with one axis; NULL: there is no memory. */
weft_mesh *mesh_of(const weft_comm *comm);

/* One random pipeline, the same on all ranks. */
struct drawn {
    char name[16];
    char text[16384]; /* of a schedule "csv" */
    int32_t ranks, chunks, microbatches;
    uint32_t flags; /* enum weft_lower */
    uint64_t seed;
    double loss_scale;
    bool lowers, learns, overlaps, has_stream;
    weft_schedule *schedule;
    int32_t stages;
    struct model serial; /* gradients by one loop over microbatches and stages */
};

extern struct drawn drawn;

/* Draw a pipeline of RANKS ranks, with schedule number KIND of weft_schedule_known, or, if there is
 * none, with stages on random ranks and actions in a random order.  The caller releases
 * drawn.schedule. */
void draw_pipeline(struct random *r, int32_t ranks, uint32_t kind);
/* The pipeline as text, for failures. */
const char *drawn_text(void);
/* Run the pipeline on this rank of COMM, RUNS times, and compare with the serial model. */
weft_status run_drawn(weft_comm *comm);

/* As weft_pipeline_create for the ranks of COMM, in their order, and SCHEDULE. */
static inline weft_status create_pipeline(weft_comm *comm, const weft_schedule *schedule,
                                          const weft_pipeline_options *options, weft_pipeline **out)
{
    weft_pipeline_options given = *options;
    weft_mesh *mesh = mesh_of(comm);
    weft_status status;

    given.schedule = schedule;
    status = mesh != NULL ? weft_pipeline_create(weft_comm_context(comm), mesh, "0", &given, out)
                          : WEFT_ERR_NO_MEMORY;
    weft_mesh_release(&mesh);
    return status;
}

#endif
