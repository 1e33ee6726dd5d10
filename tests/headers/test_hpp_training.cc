/* test_hpp_training.cc - the training systems of weft.hpp: one step on one rank. */
#include <weft/parallel.hpp>

#include <stdio.h>
#include <stdlib.h>

#include "check.hpp"

static void test_step()
{
    weft::context ctx = weft::context::init().value();
    weft::mesh mesh = weft::mesh::parse("dp=1").value();
    weft::spec whole = weft::spec::parse(mesh, "f32[2,3] R").value();
    weft::spec rows = weft::fsdp_shard_spec(whole, "dp", 0).value();
    weft::tensor stored = weft::tensor::create(ctx, rows).value();
    weft::fsdp fsdp = weft::fsdp::create(ctx, mesh, "dp").value();
    weft_fsdp_param param = {stored.get(), nullptr, nullptr, false, nullptr, nullptr};
    weft::fsdp_group group = weft::fsdp_group::create(fsdp, 1, &param).value();

    CHECK(stored.fill(3) && group.prefetch_set(WEFT_FSDP_FORWARD, 0, nullptr));
    CHECK(!group.parameter(0));
    CHECK(group.unshard_begin(WEFT_FSDP_FORWARD) && group.unshard_end());
    CHECK(ctx.wait() && group.parameter(0).as<float>()[5] == 3);
    CHECK(group.reshard_to(1) && group.reshard() && group.rebind(0, stored));
    weft::tensor gradient = group.gradient_create(0).value();
    CHECK(gradient.spec() == group.gradient_spec(0) && gradient.fill(2));
    weft_tensor *gradients[] = {gradient.get()};
    CHECK(group.reduce_begin(gradients) && group.info()->reducing && group.reduce_end());
    CHECK(ctx.wait() && group.gradient(0).as<float>()[5] == 2);
    weft_tensor *reduced[] = {group.gradient(0).get()};
    CHECK(weft::clip_gradient_norm(ctx, 1, reduced, 0.0) && group.gradient(0).as<float>()[5] == 0);
    CHECK(weft::clip_gradient_value(ctx, 1, reduced, 1.0) && group.gradients_clear());
    CHECK(!group.gradient(0));
}

int main()
{
    test_step();
    puts("weft.hpp: training works");
    return 0;
}
