/* call_suite.h - every public function with its pointer arguments, and valid objects for a call. */
#ifndef WEFT_TESTS_CALL_SUITE_H
#define WEFT_TESTS_CALL_SUITE_H

#include "weft/extend.h"
#include "weft/feed.h"
#include "weft/file.h"
#include "weft/parallel.h"
#include "weft/weft.h"
#include "weft/recorder.h"
#include "weft/symm.h"
#include "weft/trace.h"

#define MAX_POINTERS 9
#define SLOT_BYTES   4096
#define UNTOUCHED    0xa5

enum role {
    ROLE_INPUT,
    ROLE_LIST,     /* an array of pointers */
    ROLE_RESULT,   /* written on success */
    ROLE_RELEASED, /* a pointer to an object that the call releases */
    ROLE_OPTIONS,  /* struct_size is a size_t; in structs of the ABI a uint32_t */
    ROLE_ABI_OPTIONS,
    ROLE_INFO,
    ROLE_ABI_INFO
};

enum returns { RETURNS_NOTHING, RETURNS_STATUS, RETURNS_POINTER, RETURNS_NUMBER };

struct pointer {
    const char *name, *type; /* of a struct with struct_size */
    enum role role;
    bool is_optional;
    size_t bytes; /* of that struct */
};

struct answer {
    weft_status status;
    const void *pointer;
    int64_t number;
};

/* One valid object of each kind, on a communicator of one rank of gloo-cpu. */
extern const weft_dependent_calls dependent_calls; /* which do nothing */

struct world {
    weft_context *context;
    weft_comm *comm;
    weft_mesh *mesh, *second_mesh, *named_mesh, *pair;
    weft_spec *spec, *shards, *replicas;
    weft_plan *plan, *batch, *stepping;
    weft_bound *bound, *batch_bound;
    weft_symm *symm;
    weft_stream *stream;
    weft_work *work;
    weft_cost_table *costs;
    weft_backends *backends;
    weft_rendezvous *rendezvous;
    weft_threads *threads;
    weft_op_choice *op_choice;
    weft_op_list *op_list;
    weft_op_backward *op_backward;
    weft_op_operand op_operand;
    weft_checkpoint *checkpoint;
    weft_checkpoint_writer *writer;
    weft_layout_file *layout;
    weft_checkpoint_rules *rules;
    weft_reshard *reshard;
    weft_saving *saving;
    weft_publisher *publisher;
    weft_subscriber *subscriber;
    weft_answers *answers;
    weft_dependent *dependent;
    const char *tensor_names[1];
    weft_object object;
    weft_open_record open_record;
    weft_fsdp *fsdp;
    weft_fsdp_group *group, *groups[1];
    weft_fsdp_param params[1];
    weft_tensor *gradients[1];
    weft_schedule *schedule, *lone_schedule;
    weft_timeline *timeline;
    weft_pipeline *pipeline;
    weft_schedule_action action;
    weft_reorder_node nodes[3];
    weft_reorder *reorder;
    weft_cp_plan *cp_plan;
    weft_cp *cp;
    weft_styles *styles;
    weft_graph *graph, *unchecked_graph, *spare_graph;
    weft_prediction *prediction;
    weft_model *model;
    weft_experts *experts;
    weft_routing *routing;
    weft_overlap *overlap;
    weft_tensor *tokens, *received;
    weft_tensor *attended[9]; /* as in weft_cp_tensors */
    weft_checkpoint_entry entries[1];
    char checkpoint_path[64];
    weft_checkpoint *indexed; /* with an index that lists nothing, and the file of a tensor */
    weft_observation *observation;
    weft_tensor *tensor, *second_tensor, *integers;
    weft_tensor *tensors[1], *second_tensors[1], *pair_of_tensors[2];
    weft_random random;
    weft_dl_versioned versioned;
    weft_record record;
    weft_record_counts *begun, *counted; /* `counted` has ended */
    weft_recorders *recorders;
    weft_recorder *recorder; /* the context's */
    char recorder_path[512];
    void *buffer, *target, *spare; /* device memory */
    weft_placement placements[8];
    const weft_spec *specs[4];
    const void *sources[4];
    void *targets[4];
    const void *const *batch_sources[4];
    void *const *batch_targets[4];
    const char *names[2];
    weft_move_item items[1];
    int64_t sizes64[8], zeros64[8];
    int32_t sizes32[8], zeros32[8];
    uint64_t counts[8], offsets[8];
    char costs_text[8192];
    _Alignas(16) unsigned char slots[MAX_POINTERS][SLOT_BYTES];
};

struct function {
    const char *name;
    enum returns returns;
    weft_status valid; /* returned if all arguments are valid */
    int64_t nothing;   /* returned without the object, or -1 */
    int pointers;
    struct pointer pointer[MAX_POINTERS];
    void (*fill)(struct world *, uintptr_t *); /* valid pointers */
    void (*call)(const uintptr_t *, struct answer *);
};

/* api.c, which generate.py writes. */
extern const struct function functions[];
extern const size_t function_count;

/* call_driver.c: what the cases of a function use. */
extern const struct function *function;
extern struct world world;
/* True if the case that begins here was not run by an earlier child. */
bool begin_case(const char *format, ...) WEFT_PRINTF(1, 2);
void expect(bool holds, const char *what);
void fill(uintptr_t *p);
struct answer call(const uintptr_t *p);
/* Results that have an address were not written, from the end of struct_size on. */
void expect_untouched(const uintptr_t *p);
/* The program's: the cases of `function`. */
void test_function(void);

/* call_world.c: the objects, and arguments in slot AT. */
void make_world(struct world *w);
void prepare_call(struct world *w, const char *name);
void *result(struct world *w, int at);
void *released(struct world *w, int at, void *object);
uint64_t next_version(void); /* for a publication: larger than all before */
void *options(struct world *w, int at, size_t bytes);
void *rendezvous_options(struct world *w, int at);
void *collective_args(struct world *w, int at);
void *op_call(struct world *w, int at);
void *cp_options(struct world *w, int at);
void *pipeline_options(struct world *w, int at);
void *cost_step(struct world *w, int at);
void *experts_options(struct world *w, int at);
void *overlap_options(struct world *w, int at);
void *cp_tensors(struct world *w, int at);
void *info(struct world *w, int at, size_t bytes, enum role role);
weft_record_counts *begun_counts(struct world *w);
weft_graph *new_graph(struct world *w); /* without a check */
void *ordered_memory(struct world *w);
/* A parameter that is in no group. */
const weft_fsdp_param *new_params(struct world *w);
/* The group, in STATE, with or without a reduction that has begun. */
weft_fsdp_group *group_in(struct world *w, enum weft_fsdp_state state, bool reducing);
weft_status rank_main(void *argument);
weft_status op_kernel(void *user, const weft_op_run *run);
bool tensor_keeper(void *user, weft_tensor *tensor);
weft_status cp_kernel(void *user, const weft_cp_call *call);
weft_status overlap_rows(void *user, const weft_overlap_rows *rows);
weft_status op_rows(void *user, const weft_op_query *query, char *text, size_t size);

#endif
