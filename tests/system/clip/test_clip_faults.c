/* Clipping when a communicator has failed, and while the stream is busy. */
#include "../tensor/holds.h"
#include "comm/comm.h"
#include "support/suite.h"
#include "weft/clip.h"
#include "weft/launch.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* ---- memory ---- */

TEST_ON_RANKS(2, a_stage_that_fails_leaves_no_memory)
{
    weft_clip_options options = {.struct_size = sizeof options};
    weft_memory_info before = {.struct_size = sizeof before}, after = before;
    OWNED(weft_context) *context = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    OWNED(weft_spec) *spec = NULL;
    weft_tensor *tensor = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_mesh_parse("dp=2", &mesh));
    WF_TRY(weft_spec_parse(mesh, "f32[6] S(0)", &spec));
    WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
    WF_TRY(weft_tensor_fill(tensor, 2, NULL));
    WF_TRY(weft_clip_gradient_norm(context, 1, &tensor, 1, NULL, NULL, NULL, NULL));
    WF_TRY(weft_comm_split(weft_world(context), 0, 0, NULL, &options.stages));
    WF_TRY(weft_memory_get(context, &before));
    weft_comm_abort(options.stages);
    FAILS(weft_clip_gradient_norm(context, 1, &tensor, 1, &options, NULL, NULL, NULL),
          WEFT_ERR_ABORTED, "aborted");
    WF_TRY(weft_memory_get(context, &after));
    HOLDS(after.bytes == before.bytes);
    weft_comm_release(&options.stages);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    weft_comm_abort(weft_world(context));
    FAILS(weft_clip_gradient_norm(context, 1, &tensor, 1, NULL, NULL, NULL, NULL), WEFT_ERR_ABORTED,
          "weft_clip_gradient_norm: ");
    HOLDS(strstr(weft_last_error(), "weft_tensors_move_into") == NULL);
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

/* ---- a busy stream ---- */

static atomic_bool may_go_on, was_late;

static void hold_the_stream(void *unused)
{
    time_t begin = time(NULL);

    (void)unused;
    while (!atomic_load(&may_go_on) && !atomic_load(&was_late)) {
        if (time(NULL) - begin > 60) atomic_store(&was_late, true);
        sched_yield();
    }
}

/* Gradients that many sets of axes split need more memory than the one before. */
TEST_ON_RANKS(1, clipping_does_not_wait_for_the_stream)
{
    static const char *const specs[] = {"f32[4] R,R,R",       "f32[4] S(0),R,R",
                                        "f32[4] R,S(0),R",    "f32[4] R,R,S(0)",
                                        "f32[4] S(0),S(0),R", "f32[4] R,S(0),S(0)"};
    OWNED(weft_context) *context = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    weft_stream *stream = NULL;
    weft_tensor *tensors[WF_COUNT(specs)] = {NULL};

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_mesh_parse("a=1,b=1,c=1", &mesh));
    WF_TRY(weft_stream_create(context, &stream));
    for (size_t i = 0; i < WF_COUNT(specs); i++) {
        OWNED(weft_spec) *spec = NULL;

        WF_TRY(weft_spec_parse(mesh, specs[i], &spec));
        WF_TRY(weft_tensor_create(context, spec, NULL, &tensors[i]));
        WF_TRY(weft_tensor_fill(tensors[i], 1, stream));
    }
    WF_TRY(context->plugin->device->stream_call(context->device, stream, hold_the_stream, NULL));
    WF_TRY(weft_clip_gradient_norm(context, 1, tensors, 1, NULL, NULL, stream, NULL));
    WF_TRY(weft_clip_gradient_norm(context, WF_COUNT(specs), tensors, 1, NULL, NULL, stream, NULL));
    atomic_store(&may_go_on, true);
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    HOLDS(!atomic_load(&was_late));
    for (size_t i = 0; i < WF_COUNT(specs); i++)
        weft_tensor_release(&tensors[i]);
    weft_stream_release(&stream);
    return WEFT_OK;
}
