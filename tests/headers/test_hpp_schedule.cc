/* test_hpp_schedule.cc - schedules through weft.hpp. */
#include <weft/weft.hpp>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, weft_last_error());                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main()
{
    CHECK(!weft::schedule::create("no such schedule", 2, 0, 4));
    weft::schedule zbv = weft::schedule::create("zbv", 2, 0, 4).value();
    weft::timeline times = weft::timeline::create(zbv.lower(WEFT_LOWER_REDUCE).value()).value();
    CHECK(zbv.info()->stages == 4 && zbv.rank_of(3) == 0 && times.rank(1)->busy == 24);
    CHECK(weft::schedule::parse(zbv.text()->c_str())->info()->digest == zbv.info()->digest);
    CHECK(times.schedule().info()->lowered && times.info()->peak == 4 && !times.json()->empty());
    CHECK(zbv.actions(0)->second == 24 && zbv.actions(0)->first[0].kind == WEFT_ACTION_F);
    weft::schedule copy = zbv;
    CHECK(copy.get() == zbv.get());
    return 0;
}
