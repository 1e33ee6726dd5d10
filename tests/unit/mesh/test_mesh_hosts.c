#include "support/layout.h"
#include "support/suite.h"

TEST(hosts_are_counted)
{
    static const struct {
        const char *mesh;
        int32_t hosts;
    } cases[] = {
        {"2x4", 1},
        {"2x4/4", 2},
        {"2x4/8", 1},
        {"2x4/3", 3},
        {"2x4@2-9/4", 3},
        {"4@0-48:16/8", 4},
        {"4@0-6:2/4", 2},
        {"1@9/4", 1},
        {"2x2@0-1,16-17/8", 2},
        {"1024x1024/8", 131072},
        {"2x2@9,0,4,1/4", 3},
        {"2x2@9,0,4,1", 1},
        {"3x2@0-1,8-9,16-17/4", 3},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_mesh) *mesh = mesh_of(cases[i].mesh);
        ck_assert_msg(weft_mesh_hosts(mesh) == cases[i].hosts, "%s: %d", cases[i].mesh,
                      weft_mesh_hosts(mesh));
    }
}

TEST(a_slice_tells_what_an_axis_spans)
{
    weft_mesh *mesh = mesh_of("dp=4,tp=8/8"), *slice;

    ck_assert_int_eq(weft_mesh_devices_per_host(mesh), 8);
    ck_assert_int_eq(weft_mesh_host_of(mesh, 17), 2);
    ck_assert_int_eq(weft_mesh_host_of(mesh, 800), 100);
    ck_assert_int_eq(weft_mesh_host_of(mesh, -1), 0);
    ck_assert_int_eq(weft_mesh_slice(mesh, "tp", 9, &slice), WEFT_OK);
    ck_assert_int_eq(weft_mesh_hosts(slice), 1);
    weft_mesh_release(&slice);
    ck_assert_int_eq(weft_mesh_slice(mesh, "dp", 9, &slice), WEFT_OK);
    ck_assert_int_eq(weft_mesh_hosts(slice), 4);
    weft_mesh_release(&slice);
    weft_mesh_release(&mesh);
}
