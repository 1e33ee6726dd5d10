/* test_hpp_trace.cc - counters, dumps and recorders through weft.hpp, on one rank. */
#include <weft/weft.hpp>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.hpp"

static void check_recorder(weft::recorder_ref recorder)
{
    const weft_record *newest = recorder.record(recorder.info()->newest);

    CHECK(newest != nullptr && recorder.record_text(*newest).value() == "barrier world");
}

int main()
{
    weft::context ctx = weft::context::init().value();
    weft::record_counts counts = weft::record_counts::create(ctx).value();
    size_t found = 0;

    CHECK(weft_barrier(ctx.world().get(), nullptr) == WEFT_OK);
    CHECK(counts.operations(WEFT_RECORD_BARRIER) == 0 && counts.end() && !counts.end());
    CHECK(counts.operations(WEFT_RECORD_BARRIER) == 1 && counts.info()->failed == 0);
    CHECK(counts.axes_count() == 1 && counts.axes_info(0)->operations == 1);
    CHECK(ctx.dump("/no/such/folder/dump").code() == WEFT_ERR_SYSTEM);
    CHECK(ctx.create_stream().value().set_name("copies"));

    weft::recorders recorders = weft::recorders::create().value();
    CHECK(recorders.folder_count() > 0 && recorders.folder(0) != nullptr);
    for (size_t i = 0; i < recorders.count(); i++)
        if (recorders.at(i).info()->pid == getpid()) {
            check_recorder(recorders.at(i));
            found++;
        }
    CHECK(found == 1);
    ctx.abort();
    CHECK(weft_barrier(ctx.world().get(), nullptr) == WEFT_ERR_ABORTED);
    return 0;
}
