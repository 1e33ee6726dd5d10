/* test_hpp_forms.cc - one call of each form of generated function in weft.hpp, and the functions
 * with callbacks that are written by hand. */
#include <weft/parallel.hpp>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.hpp"

static void test_layouts()
{
    int32_t sizes[] = {2, 2}, coord[2] = {}, dims = 0, owners[3] = {-1, -1, -1};
    weft::mesh mesh = weft::mesh::create(2, sizes).value(); /* options left out */
    weft::spec rows = weft::spec::parse(mesh, "f32[8,6] S(0),R").value();
    int64_t shape[WEFT_MAX_DIMS] = {};
    uint64_t bytes[] = {3, 2, 1}, most = 0, total = 0;
    weft_index_run run;

    CHECK(mesh.coord_of(3, coord) && coord[0] == 1 && coord[1] == 1); /* an array */
    CHECK(mesh.unflatten(0, 2, sizes).code() == WEFT_ERR_INVALID);
    CHECK(mesh.rank(coord).value() == 3);                               /* a number */
    CHECK(rows.shard(2).shape[0] == 4);                                 /* no status */
    CHECK(rows.run(2, 0, 0, run) && run.start == 4 && run.length == 4); /* a struct beside bool */
    CHECK(rows.mesh() == mesh && rows.dtype() == WEFT_DTYPE_F32);       /* a shared object */
    CHECK(weft::shape_parse("4x5", dims, shape) && dims == 2 && shape[1] == 5);
    CHECK(weft::owners_balance(3, bytes, 2, owners) && owners[0] == 0 && owners[2] == 1);

    weft::plan plan = weft::plan::create(rows, rows.with("R,R").value()).value();
    CHECK(plan.measure(most, total) && total >= most && most > 0); /* two numbers */
    CHECK(plan.json_text()->find("runner_up") != std::string::npos);
    CHECK(plan.json_text(plan.create_runner_up().value())->front() == '{');
    const char *text = "mesh dp=2\n* S(0)\n";
    weft::mesh whole = mesh.flatten().value();
    CHECK(weft::layout_file::parse(text)->mesh().size() == 2); /* the mesh left out */
    CHECK(weft::layout_file::parse(text, whole)->mesh() == whole);
}

static void test_free_functions()
{
    CHECK(strcmp(weft::version(), weft_version()) == 0 && weft::dtype_bytes(WEFT_DTYPE_F64) == 8);
    CHECK(weft::dtype_parse("bf16").value() == WEFT_DTYPE_BF16);
    CHECK(!weft::dtype_parse("f33") && strstr(weft::last_error(), "f33") != nullptr);
    CHECK(weft::variable_info(0)->name != nullptr && weft::op_names_text()->size() > 100);
    CHECK(weft::op_text("mul")->find("mul") != std::string::npos);
}

static weft_status no_rows(void *, const weft_op_query *, char *text, size_t)
{
    text[0] = '\0';
    return WEFT_OK;
}

static void count_line(void *lines, enum weft_log_level, const char *)
{
    ++*static_cast<int *>(lines);
}

static void test_callbacks()
{
    int lines = 0;

    weft::context ctx = weft::context::init().value();
    weft::log_set_level(WEFT_LOG_WARNING);
    weft::log_to(count_line, &lines);
    weft::comm(ctx.world().get()).reset(); /* not the caller's to release: weft warns */
    weft::log_to(nullptr);
    CHECK(weft::log_level() == WEFT_LOG_WARNING && lines == 1);

    CHECK(ctx.world().barrier());
    CHECK(ctx.world().report_text()->find("barrier") != std::string::npos);
    CHECK(weft::op_use_register("no_rows", no_rows) && weft::op_use_remove("no_rows"));
    CHECK(ctx.pointer_info(&lines)->kind == WEFT_MEMORY_HOST);
}

int main()
{
    test_layouts();
    test_free_functions();
    test_callbacks();
    return 0;
}
