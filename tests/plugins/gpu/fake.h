/* fake.h - a GPU plugin without a GPU, which records the calls on it. */
#ifndef WEFT_TESTS_XCCL_FAKE_H
#define WEFT_TESTS_XCCL_FAKE_H

#include "comm/gpu_comm.h"

struct gpu_comm {
    struct gpu_device *device;
    int32_t rank, size;
    uint32_t flags;
    int64_t timeout_ns;
    int32_t *world_ranks;
    uint64_t *host_ids;
    char name[16];
    bool is_ready;
    pthread_mutex_t lock;
    char error_text[128];
    gpu_look *look;
    _Atomic weft_status error;
    struct gpu_group group;
};

struct gpu_window {
    struct gpu_comm *comm;
    uint64_t bytes;
    uint32_t signals, number;
    void **buffers;
    uint64_t **pads;
    void *device_copy;
    struct gpu_waits waits;
};

enum { FAKE_MAX = 64, FAKE_RANKS = 4 };

extern struct fake {
    int scopes;            /* entered and not left */
    int looks;             /* number of times that the communicator was looked at */
    bool supports_nothing; /* gpu_op_supported refuses */
    weft_status run_gives; /* result of gpu_ops_run */
    struct gpu_op ran[FAKE_MAX];
    uint64_t ran_counts[FAKE_MAX][FAKE_RANKS]; /* send_counts, or recv_counts, at that time */
    size_t runs, ran_count; /* number of gpu_ops_run calls, and of their operations */
    const void *copied_from;
    void *copied_to;
    uint64_t copied_bytes;
    enum gpu_kernel kernel; /* last launched, with SIGNAL */
    struct wk_signal_args signal;
    int waits;             /* recorded */
    long allocations_left; /* until memory is exhausted; negative: no limit */
    char said[1024];       /* text of the last failure */
} fake;

/* Reset everything.  This rank is rank 1 of 4, which are ranks 10 to 13 of the world. */
struct gpu_comm *fake_begin(void); /* to be ended by gpu_comm_free */
/* Memory that the plugin does not take for plain host memory. */
void *fake_memory(size_t offset);

#endif
