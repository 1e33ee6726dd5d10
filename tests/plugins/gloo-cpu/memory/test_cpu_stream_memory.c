/* Memory in stream order. */
#include "cpu_comm.h"
#include "ranks.h"

#include "support/suite.h"

enum { BYTES = 3 << 20 };

/* Peers read such memory directly, and a freed block serves the next request. */
static void use_stream_memory(struct rank *rank)
{
    const weft_device_table *table = rank->plugin->device;
    struct cpu_device *device = rank->device;
    void *stream = NULL, *first = NULL, *second = NULL;

    RANK_OK(table->stream_create(device, &stream));
    RANK_OK(table->allocate_on(device, BYTES, stream, &first));
    RANK_CHECK(cpu_heap_holds(&device->heap, first, BYTES));
    RANK_OK(table->free_on(device, first, stream));
    RANK_OK(table->stream_wait(device, stream, WEFT_FOREVER));
    RANK_OK(table->allocate_on(device, BYTES, stream, &second));
    RANK_CHECK(second == first);
    RANK_OK(table->free_on(device, second, stream));
    RANK_OK(table->stream_wait(device, stream, WEFT_FOREVER));
    table->stream_destroy(device, stream);
}

TEST(memory_in_stream_order_is_shared)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {.size = 2,
                                        .threads = threads != 0,
                                        .timeout_ns = INT64_C(300000000000),
                                        .body = use_stream_memory};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}
