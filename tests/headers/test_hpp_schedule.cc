/* test_hpp_schedule.cc - schedules through weft.hpp. */
#include <weft/parallel.hpp>

#include <stdio.h>
#include <stdlib.h>

#include "check.hpp"

int main()
{
    CHECK(!weft::schedule::create("no such schedule", 2, 0, 4));
    weft::schedule zbv = weft::schedule::create("zbv", 2, 0, 4).value();
    weft::timeline times = weft::timeline::create(zbv.lower(WEFT_LOWER_REDUCE).value()).value();
    CHECK(zbv.info()->stages == 4 && zbv.rank_of(3) == 0 && times.rank_info(1)->busy == 24);
    CHECK(weft::schedule::parse(zbv.text()->c_str())->info()->digest == zbv.info()->digest);
    CHECK(zbv.text(WEFT_SCHEDULE_PRINT_WAITS).value() == zbv.text().value());
    CHECK(times.schedule().info()->lowered && times.info()->peak == 4 &&
          !times.json_text()->empty());
    CHECK(zbv.actions(0)->second == 24 && zbv.actions(0)->first[0].kind == WEFT_SCHEDULE_ACTION_F);
    weft::schedule copy = zbv;
    CHECK(copy.get() == zbv.get());

    const int32_t first[1] = {0};
    weft_reorder_node nodes[3] = {};
    nodes[0].kind = WEFT_REORDER_NODE_START;
    nodes[1].kind = WEFT_REORDER_NODE_WAIT;
    nodes[1].inputs = first;
    nodes[1].input_count = 1;
    nodes[1].comm = nodes[2].comm = -1;
    nodes[0].time = nodes[2].time = 5;
    CHECK(!weft::reorder::create(1, nodes));
    weft::reorder order = weft::reorder::create(3, nodes).value();
    CHECK(order.info()->exposed_before == 5 && order.info()->exposed_after == 0);
    CHECK(order.at(1) == 2 && order.at(3) == -1 && order.collective_info(0)->moves_down == 1);
    return 0;
}
