/* test_hpp_tensor.cc - tensors through weft.hpp, on one rank. */
#include <weft/weft.hpp>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.hpp"

int main()
{
    weft::context ctx = weft::context::init().value();
    weft::mesh mesh = weft::mesh::parse("1").value();
    weft::spec rows = weft::spec::parse(mesh, "f32[2,3] S(0)").value();
    weft::spec whole = rows.with("R").value();
    weft_random random = {7, 0};
    float values[6] = {1, 2, 3, 4, 5, 6};

    CHECK(whole.dual().value() == rows.with("P").value() && rows.gradient().value() == rows);
    CHECK(rows.gradient_of_move(whole).value() == rows);
    weft::tensor drawn = weft::tensor::create(ctx, rows).value();
    CHECK(drawn.uniform(random, 0, 1) && drawn.normal(random, 0, 1) && random.offset == 2);
    CHECK(drawn.truncated_normal(random, 0, 1, -1, 1) && drawn.bernoulli(random, 1));
    CHECK(drawn.as<float>()[0] == 1 && drawn.dropout(random, 1) && drawn.as<float>()[0] == 0);
    CHECK(drawn.integers(random, 0, 9).code() == WEFT_ERR_UNSUPPORTED && random.offset == 5);
    CHECK(drawn.uniform(random, 0, 1));
    weft::tensor wrapped = weft::tensor::wrap(ctx, rows, values).value(), same = wrapped;
    CHECK(same.as<float>() == values && same.spec() == rows && strcmp(same.name(), "") == 0);
    CHECK(same.shard()->elements == 6 && same.strides()[0] == 3);
    weft::tensor moved = wrapped.move(whole).value();
    CHECK(moved.as<float>()[5] == 6 && drawn.move_into(moved));
    CHECK(moved.as<float>()[5] == drawn.as<float>()[5]);
    CHECK(moved.compare(drawn)->equal && !wrapped.compare(drawn)->equal);
    CHECK(wrapped.full().value().as<float>()[5] == 6 && moved.fill(2) && moved.as<float>()[0] == 2);
    CHECK(moved.from_host(values, sizeof values) && moved.to_host(values, sizeof values));
    CHECK(*moved.text() == "f32[2,3] R on 1, rank 0 holds [2,3] from [0,0]\n"
                           "[[1. 2. 3.]\n [4. 5. 6.]]\n");
    CHECK(weft::tensor::from_dlpack(ctx, whole, *moved.to_dlpack())->as<float>() ==
          moved.as<float>());
    CHECK(weft::tensor::from_dlpack(ctx, whole, *moved.to_dlpack_unversioned())->as<float>() ==
          moved.as<float>());
    int64_t flat = 6;
    CHECK(moved.narrow(1, 2, 1)->as<float>()[0] == 3 && moved.transpose(0, 1)->strides()[0] == 1);
    CHECK(moved.reshape(1, &flat)->shard()->shape[0] == 6);
    CHECK(*moved.full_text() == "f32[2,3] R on 1\n[[1. 2. 3.]\n [4. 5. 6.]]\n");
    CHECK(drawn.move_into(weft::tensor()).code() == WEFT_ERR_INVALID);
    weft_tensor *tensors[] = {wrapped.get(), drawn.get()};
    weft_tensor *targets[] = {drawn.get(), moved.get()};
    weft::work record;
    CHECK(weft::tensors_move_into(1, tensors, targets, nullptr, {}, &record) && record.wait());
    CHECK(drawn.as<float>()[5] == values[5] &&
          weft::tensors_move_into(1, tensors + 1, targets + 1));
    CHECK(weft::tensors_move_into(0, tensors, targets).code() == WEFT_ERR_INVALID);
    return 0;
}
