/* test_hpp_trace.cc - counters, dumps and rings through weft.hpp, on one rank. */
#include <weft/weft.hpp>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, weft_last_error());                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void check_ring(weft::ring_ref ring)
{
    const weft_record *newest = ring.record(ring.info()->newest);

    CHECK(newest != nullptr && ring.record_text(*newest) == "barrier world");
}

int main()
{
    weft::context ctx = weft::context::init().value();
    weft_counts counts;
    size_t found = 0;

    CHECK(ctx.begin_counts(counts));
    CHECK(weft_barrier(ctx.world().get(), nullptr) == WEFT_OK);
    CHECK(ctx.end_counts(counts) && counts.operations[WEFT_OP_BARRIER] == 1);
    CHECK(!ctx.end_counts(counts));
    CHECK(ctx.dump("/no/such/folder/dump").code() == WEFT_ERR_SYSTEM);
    CHECK(ctx.create_stream().value().set_name("copies"));

    weft::rings rings = weft::rings::create().value();
    CHECK(rings.folder(0) != nullptr);
    for (size_t i = 0; i < rings.count(); i++)
        if (rings.at(i).info()->pid == getpid()) {
            check_ring(rings.at(i));
            found++;
        }
    CHECK(found == 1);
    ctx.abort();
    CHECK(weft_barrier(ctx.world().get(), nullptr) == WEFT_ERR_ABORTED);
    return 0;
}
