/* call_world.c - the objects that calls take. */
#include "call_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static void make_arrays(struct world *w)
{
    for (int i = 0; i < 8; i++) {
        w->sizes64[i] = 4;
        w->sizes32[i] = 1;
        w->counts[i] = 4;
    }
    for (int i = 0; i < 4; i++) {
        w->specs[i] = w->spec;
        w->sources[i] = w->buffer;
        w->targets[i] = (char *)w->target + 64 * i;
        w->batch_sources[i] = w->sources;
        w->batch_targets[i] = w->targets;
    }
    w->names[0] = w->names[1] = "axis";
    w->items[0] = (weft_move_item){"a tensor", w->spec, w->buffer, w->spec, w->target};
}

static void write_file(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) exit(2);
}

/* A checkpoint whose index does not list the tensor of its file BYTES; the files are removed at
 * once. */
static void make_indexed(struct world *w, const char *folder, const char *bytes, size_t count)
{
    static const char index[] = "{\"weight_map\":{}}";
    char paths[2][64];

    snprintf(paths[0], sizeof paths[0], "%s/model.safetensors.index.json", folder);
    snprintf(paths[1], sizeof paths[1], "%s/t.safetensors", folder);
    write_file(paths[0], index, sizeof index - 1);
    write_file(paths[1], bytes, count);
    MUST(weft_checkpoint_open(folder, &w->indexed));
    unlink(paths[0]);
    unlink(paths[1]);
}

/* A checkpoint with the tensor t, in a file without a name; and one that is being written, whose
 * file and folder are removed at once. */
static void make_checkpoints(struct world *w)
{
    static const char header[] = "{\"__metadata__\":{\"a\":\"b\"},\"t\":{\"dtype\":\"F32\","
                                 "\"shape\":[4],\"data_offsets\":[0,16]}}";
    char bytes[8 + sizeof header - 1 + 16] = {(char)(sizeof header - 1)},
                                       folder[] = "/tmp/weft-api-XXXXXX";
    char path[64];
    int fd = memfd_create("checkpoint", MFD_CLOEXEC);

    memcpy(bytes + 8, header, sizeof header - 1);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes ||
        mkdtemp(folder) == NULL)
        exit(2);
    snprintf(w->checkpoint_path, sizeof w->checkpoint_path, "/proc/self/fd/%d", fd);
    MUST(weft_checkpoint_open(w->checkpoint_path, &w->checkpoint));
    w->entries[0] = (weft_checkpoint_entry){"t", "F32", 1, w->sizes64, NULL};
    snprintf(path, sizeof path, "%s/t.safetensors", folder);
    MUST(weft_checkpoint_writer_create(path, 1, w->entries, sizeof *w->entries, NULL, &w->writer));
    snprintf(path, sizeof path, "%s/t.safetensors.weft-partial", folder);
    unlink(path);
    make_indexed(w, folder, bytes, sizeof bytes);
    rmdir(folder);
    MUST(weft_checkpoint_rules_parse("* = *", NULL, &w->rules));
    MUST(weft_layout_file_parse("mesh 1\n* R\n", NULL, &w->layout));
    MUST(weft_reshard_create(w->checkpoint, "/proc/none/x", NULL, &w->reshard));
}

/* The operations of a barrier. */
static void make_counts(struct world *w)
{
    MUST(weft_record_counts_create(w->context, &w->counted));
    MUST(weft_barrier(w->comm, NULL));
    MUST(weft_record_counts_end(w->counted));
}

/* The recorder of the context, which this process has just made. */
static void open_recorder(struct world *w)
{
    weft_recorder_info info = {.struct_size = sizeof info};

    MUST(weft_recorders_create(&w->recorders));
    for (size_t i = 0; i < weft_recorders_count(w->recorders); i++) {
        MUST(weft_recorder_get(weft_recorders_at(w->recorders, i), &info));
        if (info.pid == getpid() && info.alive)
            snprintf(w->recorder_path, sizeof w->recorder_path, "%s", info.path);
    }
    MUST(weft_recorder_open(w->recorder_path, &w->recorder));
}

static void make_tensors(struct world *w)
{
    weft_tensor_options named = {.struct_size = sizeof named, .name = "t"};
    weft_spec *spec;

    MUST(weft_tensor_create(w->context, w->spec, &named, &w->tensor));
    MUST(weft_tensor_create(w->context, w->spec, NULL, &w->second_tensor));
    MUST(weft_spec_with_dtype(w->spec, WEFT_DTYPE_I32, &spec));
    MUST(weft_tensor_create(w->context, spec, NULL, &w->integers));
    weft_spec_release(&spec);
    MUST(weft_spec_parse(w->mesh, "f32[4,1] R", &spec));
    MUST(weft_tensor_create(w->context, spec, NULL, &w->tokens));
    MUST(weft_tensor_create(w->context, spec, NULL, &w->received));
    weft_spec_release(&spec);
    for (int i = 0; i < 9; i++) {
        MUST(weft_spec_parse(w->mesh, i == 4 ? "f32[1,1,4] R" : "f32[1,1,4,1] R", &spec));
        MUST(weft_tensor_create(w->context, spec, NULL, &w->attended[i]));
        weft_spec_release(&spec);
    }
    w->versioned = (weft_dl_versioned){.version = {1, 0}};
    w->versioned.tensor = (weft_dl_tensor){.data = w->buffer,
                                           .device = {WEFT_DL_CPU, 0},
                                           .ndim = 1,
                                           .dtype = {2, 32, 1}, /* f32 */
                                           .shape = w->sizes64};
    w->tensors[0] = w->tensor;
    w->second_tensors[0] = w->second_tensor;
}

static void make_groups(struct world *w)
{
    weft_fsdp_param param = {.tensor = w->tensor};

    MUST(weft_fsdp_create(w->context, w->mesh, "0", NULL, &w->fsdp));
    MUST(weft_fsdp_group_create(w->fsdp, 1, &param, sizeof param, NULL, &w->group));
    MUST(weft_fsdp_gradient_create(w->group, 0, &w->gradients[0]));
    w->groups[0] = w->group;
}

/* A checkpoint of one tensor, which is removed at once. */
static void make_saving(struct world *w)
{
    char folder[] = "/tmp/weft-api-XXXXXX", path[64];

    if (mkdtemp(folder) == NULL) exit(2);
    snprintf(path, sizeof path, "%s/t.safetensors", folder);
    MUST(weft_save_begin(w->context, path, 1, w->tensors, NULL, &w->saving));
    MUST(weft_saving_wait(w->saving, WEFT_FOREVER));
    unlink(path);
    rmdir(folder);
}

uint64_t next_version(void)
{
    static uint64_t version;

    return ++version;
}

/* A feed of one tensor, which the job itself serves. */
static void make_feed(struct world *w)
{
    static const char token[] = "a token of a test";
    uint64_t version;

    MUST(weft_publisher_open(w->context, "api", token, 1, w->tensors, NULL, &w->publisher));
    MUST(weft_publisher_publish(w->publisher, next_version(), NULL));
    MUST(weft_subscriber_open(w->context, weft_publisher_address(w->publisher), "api", token, 1,
                              w->tensors, NULL, &w->subscriber));
    MUST(weft_subscriber_stage(w->subscriber, WEFT_NEWEST, &version));
    MUST(weft_subscriber_commit(w->subscriber, NULL));
}

const weft_dependent_calls dependent_calls = {.struct_size = sizeof dependent_calls};

/* What a library on top of weft has. */
static void make_library(struct world *w)
{
    weft_object_begin(&w->object, "my_cache");
    weft_record_begin(w->comm, WEFT_RECORD_LOAD, "my_call", &w->open_record);
    MUST(weft_agree(w->comm, "my_call", WEFT_OK, NULL, 0, NULL, &w->answers));
    MUST(weft_dependent_create(w->comm, &dependent_calls, w, &w->dependent));
    w->tensor_names[0] = "t";
}

/* A collective and compute beside it. */
static void make_nodes(struct world *w)
{
    static const int32_t first[] = {0};

    w->nodes[0] = (weft_reorder_node){.kind = WEFT_REORDER_NODE_START, .time = 5};
    w->nodes[1] = (weft_reorder_node){
        .kind = WEFT_REORDER_NODE_WAIT, .comm = -1, .input_count = 1, .inputs = first};
    w->nodes[2] = (weft_reorder_node){.comm = -1, .time = 5};
    MUST(weft_reorder_create(3, w->nodes, sizeof *w->nodes, NULL, &w->reorder));
}

static void make_graphs(struct world *w)
{
    MUST(weft_styles_parse("mesh 1\n* 0 R\n", NULL, &w->styles));
    MUST(weft_graph_parse("input x f32[4]\n", w->styles, &w->graph));
    MUST(weft_graph_check(w->graph, NULL));
    MUST(weft_graph_parse("input x f32[4]\n", w->styles, &w->spare_graph));
    MUST(weft_prediction_create(w->graph, NULL, &w->prediction));
    MUST(weft_model_parse("model gpt layers=2 hidden=8 heads=2 vocabulary=9", &w->model));
}

void make_world(struct world *w)
{
    weft_rendezvous_options serve = {.struct_size = sizeof serve, .size = 1};
    size_t length;

    MUST(weft_init(NULL, &w->context));
    MUST(weft_comm_split(weft_world(w->context), 0, 0, NULL, &w->comm));
    MUST(weft_observe(w->context, &(weft_observer){.struct_size = sizeof(weft_observer)},
                      &w->observation));
    MUST(weft_mesh_parse("1", &w->mesh));
    MUST(weft_mesh_parse("1", &w->second_mesh));
    MUST(weft_mesh_parse("dp=1", &w->named_mesh));
    MUST(weft_mesh_parse("2", &w->pair));
    MUST(weft_spec_parse(w->mesh, "f32[4] R", &w->spec));
    MUST(weft_alloc(w->context, 4096, WEFT_MEMORY_DEVICE, &w->buffer));
    MUST(weft_alloc(w->context, 4096, WEFT_MEMORY_DEVICE, &w->target));
    MUST(weft_alloc(w->context, 4096, WEFT_MEMORY_DEVICE, &w->spare));
    memset(w->buffer, 0, 4096);
    make_arrays(w);
    MUST(weft_plan_create(w->spec, w->spec, NULL, &w->plan));
    MUST(weft_plan_create_batch(1, w->specs, w->specs, NULL, &w->batch));
    MUST(weft_spec_parse(w->pair, "f32[4] S(0)", &w->shards));
    MUST(weft_spec_parse(w->pair, "f32[4] R", &w->replicas));
    MUST(weft_plan_create(w->shards, w->replicas, NULL, &w->stepping));
    MUST(weft_plan_bind(w->plan, w->comm, NULL, &w->bound));
    MUST(weft_plan_bind(w->batch, w->comm, NULL, &w->batch_bound));
    MUST(weft_symm_create(w->comm, 4096, NULL, &w->symm));
    MUST(weft_stream_create(w->context, &w->stream));
    MUST(weft_work_record(w->context, w->stream, &w->work));
    MUST(weft_context_wait(w->context, w->stream, WEFT_FOREVER));
    MUST(weft_cost_table_open("cpu", &w->costs));
    MUST(weft_cost_table_print(w->costs, w->costs_text, sizeof w->costs_text, &length));
    MUST(weft_backends_create(NULL, &w->backends));
    MUST(weft_threads_create(1, &w->threads));
    MUST(weft_rendezvous_open(&serve, &w->rendezvous));
    make_tensors(w);
    make_saving(w);
    make_feed(w);
    make_library(w);
    make_groups(w);
    make_nodes(w);
    MUST(weft_schedule_create("1f1b", 2, 0, 4, &w->schedule));
    MUST(weft_timeline_create(w->schedule, NULL, &w->timeline));
    MUST(weft_schedule_create("looped-bfs", 1, 2, 2, &w->lone_schedule));
    MUST(weft_pipeline_create(w->context, w->mesh, "0", pipeline_options(w, 0), &w->pipeline));
    make_checkpoints(w);
    open_recorder(w);
    make_counts(w);
    MUST(weft_op_check(op_call(w, 0), NULL, &w->op_choice));
    MUST(weft_op_list_create(op_call(w, 0), NULL, &w->op_list));
    MUST(weft_op_backward_create(op_call(w, 0), NULL, &w->op_backward));
    w->pair_of_tensors[0] = w->pair_of_tensors[1] = w->tensor;
    MUST(weft_cp_plan_create(w->mesh, "0", cp_options(w, 0), &w->cp_plan));
    make_graphs(w);
    MUST(weft_cp_create(w->context, w->mesh, "0", cp_options(w, 0), &w->cp));
    MUST(weft_experts_create(w->context, w->mesh, "0", experts_options(w, 0), &w->experts));
    MUST(weft_experts_route(w->experts, 1, w->sizes64, NULL, NULL, &w->routing));
    MUST(weft_overlap_create(w->context, w->mesh, "0", overlap_options(w, 0), &w->overlap));
}

void prepare_call(struct world *w, const char *name)
{
    /* A message to the rank itself needs a receive, and an end needs a begin. */
    if (strcmp(name, "weft_send") == 0 || strcmp(name, "weft_receive") == 0 ||
        strcmp(name, "weft_group_end") == 0)
        MUST(weft_group_begin(w->comm));
}

void *result(struct world *w, int at)
{
    return memset(w->slots[at], UNTOUCHED, SLOT_BYTES);
}

void *released(struct world *w, int at, void *object)
{
    return memcpy(result(w, at), &object, sizeof object);
}

void *options(struct world *w, int at, size_t bytes)
{
    memset(w->slots[at], 0, SLOT_BYTES);
    return memcpy(w->slots[at], &bytes, sizeof bytes);
}

void *rendezvous_options(struct world *w, int at)
{
    weft_rendezvous_options *serve = options(w, at, sizeof *serve);

    serve->size = 1;
    return serve;
}

void *collective_args(struct world *w, int at)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_F32,
                                 .root = -1,
                                 .send = w->buffer,
                                 .recv = w->target,
                                 .count = 4};

    return memcpy(options(w, at, 0), &args, sizeof args);
}

void *op_call(struct world *w, int at)
{
    weft_op_call call = {
        .struct_size = sizeof call, .name = "exp", .inputs = w->specs, .input_count = 1};

    return memcpy(options(w, at, 0), &call, sizeof call);
}

void *cp_options(struct world *w, int at)
{
    weft_cp_options given = {.struct_size = sizeof given,
                             .length = 4,
                             .batch = 1,
                             .heads = 1,
                             .depth = 1,
                             .dtype = WEFT_DTYPE_F32};

    return memcpy(options(w, at, 0), &given, sizeof given);
}

static weft_status pipeline_call(void *user, const weft_pipeline_call *call)
{
    (void)user, (void)call;
    return WEFT_OK;
}

void *pipeline_options(struct world *w, int at)
{
    static const weft_pipeline_values values;
    weft_pipeline_options given = {.struct_size = sizeof given,
                                   .values = &values,
                                   .value_count = 1,
                                   .value_size = sizeof values};

    given.schedule = w->lone_schedule;
    given.forward = given.backward = pipeline_call;
    return memcpy(options(w, at, 0), &given, sizeof given);
}

void *cost_step(struct world *w, int at)
{
    weft_cost_step step = {.struct_size = sizeof step, .ranks = 1};

    return memcpy(options(w, at, 0), &step, sizeof step);
}

void *experts_options(struct world *w, int at)
{
    weft_experts_options experts = {.struct_size = sizeof experts, .experts = 1};

    return memcpy(options(w, at, 0), &experts, sizeof experts);
}

void *overlap_options(struct world *w, int at)
{
    weft_overlap_options overlap = {.struct_size = sizeof overlap, .bytes = 16};

    return memcpy(options(w, at, 0), &overlap, sizeof overlap);
}

void *cp_tensors(struct world *w, int at)
{
    weft_tensor *const *t = w->attended;
    weft_cp_tensors tensors = {sizeof tensors, t[0], t[1], t[2], t[3],
                               t[4],           t[5], t[6], t[7], t[8]};

    return memcpy(options(w, at, 0), &tensors, sizeof tensors);
}

weft_record_counts *begun_counts(struct world *w)
{
    weft_record_counts_release(&w->begun);
    MUST(weft_record_counts_create(w->context, &w->begun));
    return w->begun;
}

weft_graph *new_graph(struct world *w)
{
    weft_graph_release(&w->unchecked_graph);
    MUST(weft_graph_parse("input x f32[4]\n", w->styles, &w->unchecked_graph));
    return w->unchecked_graph;
}

void *ordered_memory(struct world *w)
{
    void *memory = NULL;

    MUST(weft_alloc_on(w->context, 64, NULL, &memory));
    return memory;
}

const weft_fsdp_param *new_params(struct world *w)
{
    MUST(weft_tensor_create(w->context, w->spec, NULL, &w->params[0].tensor));
    return w->params;
}

weft_fsdp_group *group_in(struct world *w, enum weft_fsdp_state state, bool reducing)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    MUST(weft_fsdp_reshard(w->group));
    MUST(weft_fsdp_group_get(w->group, &info));
    if (info.reducing) MUST(weft_fsdp_reduce_end(w->group));
    if (state >= WEFT_FSDP_GATHERING) MUST(weft_fsdp_unshard_begin(w->group, WEFT_FSDP_FORWARD));
    if (state == WEFT_FSDP_GATHERED) MUST(weft_fsdp_unshard_end(w->group));
    if (reducing) MUST(weft_fsdp_reduce_begin(w->group, w->gradients, WEFT_FSDP_KEEP));
    return w->group;
}

void *info(struct world *w, int at, size_t bytes, enum role role)
{
    uint32_t narrow = (uint32_t)bytes;

    return role == ROLE_ABI_INFO ? memcpy(result(w, at), &narrow, sizeof narrow)
                                 : memcpy(result(w, at), &bytes, sizeof bytes);
}

weft_status rank_main(void *argument)
{
    (void)argument;
    return WEFT_OK;
}

bool tensor_keeper(void *user, weft_tensor *tensor)
{
    (void)user;
    (void)tensor;
    return false;
}

weft_status op_kernel(void *user, const weft_op_run *run)
{
    (void)user;
    (void)run;
    return WEFT_OK;
}

weft_status overlap_rows(void *user, const weft_overlap_rows *rows)
{
    (void)user;
    (void)rows;
    return WEFT_OK;
}

weft_status cp_kernel(void *user, const weft_cp_call *call)
{
    (void)user;
    (void)call;
    return WEFT_OK;
}

weft_status op_rows(void *user, const weft_op_query *query, char *text, size_t size)
{
    (void)user, (void)query, (void)text, (void)size;
    return WEFT_OK;
}
