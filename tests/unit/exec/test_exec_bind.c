/* The local part of binding; tests/system/redistribute tests the collective part. */
#include "support/caught.h"
#include "support/lone_rank.h"
#include "support/suite.h"

TEST(a_communicator_must_have_all_ranks)
{
    weft_spec *from = spec_of("4", "f32[8] S(0)"), *to = spec_of("2@3-4", "f32[8] R");
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    check_refused(wf_bind_check("weft_plan_bind", from, to, &lone.comm), WEFT_ERR_INVALID,
                  "have ranks up to 4 and need 5 ranks");
    lone.comm.size = 5;
    ck_assert_int_eq(wf_bind_check("weft_plan_bind", from, to, &lone.comm), WEFT_OK);
    weft_spec_release(&from);
    weft_spec_release(&to);
    lone_end(&lone);
}

#define REFUSED(call, text) check_refused(call, WEFT_ERR_INVALID, text)

/* Bindings of other languages have one type for all handles. */
TEST(objects_of_another_kind_are_refused)
{
    weft_spec *spec = spec_of("2x2", "f32[8,8] S(0),R"), *made = NULL;
    weft_mesh *mesh = weft_mesh_retain(weft_spec_mesh(spec)), *slice = NULL;
    const weft_spec *specs[1] = {spec}, *wrong[1] = {(void *)mesh};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *plan = NULL;
    int32_t number;
    char text[64];

    REFUSED(weft_spec_parse((void *)spec, "f32[4] R,R", &made),
            "weft_spec_parse: mesh is a weft_spec; expected a weft_mesh");
    REFUSED(weft_mesh_print((void *)spec, text, sizeof text, NULL), "mesh is a weft_spec");
    REFUSED(weft_mesh_slice((void *)spec, "0", 0, &slice), "mesh is a weft_spec");
    REFUSED(weft_mesh_concatenate((void *)spec, mesh, mesh, &slice), "within is a weft_spec");
    REFUSED(weft_mesh_rank((void *)spec, (int32_t[]){0, 0}, &number), "mesh is a weft_spec");
    REFUSED(weft_spec_with((void *)mesh, "R,R", &made),
            "spec is a weft_mesh; expected a weft_spec");
    REFUSED(weft_spec_with_mesh(spec, (void *)spec, "R,R", &made), "mesh is a weft_spec");
    REFUSED(weft_plan_create((void *)mesh, spec, NULL, &plan),
            "weft_plan_create: from is a weft_mesh; expected a weft_spec");
    REFUSED(weft_plan_create(spec, (void *)mesh, NULL, &plan), "to is a weft_mesh");
    REFUSED(weft_plan_create_batch(1, specs, wrong, NULL, &plan), "to is a weft_mesh");
    REFUSED(weft_plan_get((void *)mesh, &info), "weft_plan_get: plan is a weft_mesh");
    REFUSED(weft_plan_print((void *)spec, text, sizeof text, NULL), "plan is a weft_spec");
    ck_assert_int_eq(weft_plan_create(spec, spec, NULL, &plan), WEFT_OK);
    REFUSED(weft_spec_print((void *)plan, text, sizeof text, NULL), "spec is a weft_plan");
    REFUSED(weft_plan_json_print(plan, (void *)spec, NULL, 0, NULL), "runner_up is a weft_spec");
    ck_assert_int_eq(weft_mesh_size((void *)plan), 0);
    ck_assert_int_eq(weft_spec_dims((void *)mesh), 0);
    ck_assert_ptr_null(weft_plan_costs((void *)mesh));
    ck_assert_ptr_null(weft_mesh_retain((void *)plan));
    ck_assert_ptr_null(weft_spec_retain((void *)plan));
    ck_assert_ptr_null(weft_plan_retain((void *)mesh));
    weft_mesh_release(&mesh);
    weft_spec_release(&spec);
}

TEST(weft_plan_bind_refuses_another_kind)
{
    weft_mesh *mesh = NULL;
    struct lone_rank lone;
    weft_bound *bound = NULL;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(weft_mesh_parse("1", &mesh), WEFT_OK);
    REFUSED(weft_plan_bind((void *)mesh, &lone.comm, NULL, &bound),
            "weft_plan_bind: plan is a weft_mesh; expected a weft_plan");
    weft_mesh_release(&mesh);
    lone_end(&lone);
}

TEST(an_object_of_another_kind_is_not_released)
{
    weft_spec *spec = spec_of("2", "f32[8] S(0)"), *copy = spec;

    catch_begin();
    weft_mesh_release((void *)&copy);
    ck_assert_str_eq(catch_end(), "weft: warning: weft_mesh_release: the pointer is not to a "
                                  "weft_mesh; it may have been released\n");
    copy = spec;
    catch_begin();
    weft_plan_release((void *)&copy);
    ck_assert_ptr_nonnull(strstr(catch_end(), "weft_plan_release: the pointer is not to a"));
    ck_assert_int_eq(weft_spec_elements(spec), 8);
    weft_spec_release(&spec);
}

/* A move among some ranks of the world: its steps run on groups of the world, not of its team.  A
 * step has failed, and its work never ends. */
TEST(a_bound_plan_waits_for_the_work_of_its_steps)
{
    OWNED(weft_spec) *spec = spec_of("1", "f32[4] R");
    weft_bound *bound = wf_calloc(1, sizeof *bound);
    OWNED(weft_context) *context = NULL;
    weft_comm *world, team, step;
    weft_stream *stream = NULL;
    const char *text;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    team = (weft_comm){.made = world->made, .context = context, .table = world->table};
    team.handle = world->handle;
    team.owner = world;
    step = team;
    step.next_group = &team;
    wf_posts_begin(&team.posts);
    wf_posts_begin(&step.posts);
    wf_posts_begin(&team.onesided_posts);
    wf_posts_begin(&step.onesided_posts);
    world->groups = &step;
    wf_posts_add(&step, stream);
    atomic_store((atomic_int *)(void *)stream, 1);
    atomic_store(&step.cause, WEFT_ERR_PEER);
    ck_assert_ptr_nonnull(bound);
    ck_assert_int_eq(weft_plan_create(spec, spec, NULL, &bound->plan), WEFT_OK);
    bound->made = wf_made_now(WF_KIND_BOUND);
    bound->context = context;
    bound->parent = world;
    bound->team = &team;
    bound->is_cached = true;
    catch_begin();
    wf_bound_free(bound);
    text = catch_end();
    ck_assert_msg(strstr(text, "is not freed: its work is still in progress") != NULL, "%s", text);
    atomic_store((atomic_int *)(void *)stream, 0);
    world->groups = NULL;
    weft_stream_release(&stream);
}
