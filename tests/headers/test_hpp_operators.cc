/* Operators at work through weft.hpp: kernels that are lambdas and functions, and the gradients
 * of a call. */
#include <string>
#include <weft/parallel.hpp>

#include <stdio.h>

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #claim, weft_last_error());    \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static_assert(!std::is_copy_constructible<weft::op_backward>::value, "");

static weft_status negative(const weft_op_run &run)
{
    for (int64_t i = 0; i < run.outputs[0].shard->elements; i++)
        static_cast<float *>(run.outputs[0].memory)[i] *= -1;
    return WEFT_OK;
}

/* Errors name the functions of C that do the work. */
static int refuse(const weft::context &context, const weft::tensor &a)
{
    weft_op_call call = weft::sized<weft_op_call>();
    call.name = "no_such";
    weft::result<std::vector<weft::tensor>> none = weft::apply(context, call, {a}, negative);
    CHECK(none.code() == WEFT_ERR_NOT_FOUND);
    CHECK(std::string(none.error()).find("weft_op_apply: ") == 0);
    CHECK(weft::op_backward::create(call).code() == WEFT_ERR_NOT_FOUND);
    return 0;
}

/* c = a * b, and the gradients of a and b. */
int main()
{
    weft_init_options alone = weft::sized<weft_init_options>();
    alone.size = 1;
    weft::context context = weft::context::init(&alone).value();
    weft::mesh mesh = weft::mesh::parse("1").value();
    weft::spec spec = weft::spec::parse(mesh, "f32[4] S(0)").value();
    weft::tensor a = weft::tensor::create(context, spec).value();
    weft::tensor b = weft::tensor::create(context, spec).value();
    weft::tensor g = weft::tensor::create(context, spec).value();
    CHECK(a.fill(2) && b.fill(3) && g.fill(5));
    int calls = 0;
    auto multiply = [&calls](const weft_op_run &run) {
        calls++;
        for (int64_t i = 0; i < run.outputs[0].shard->elements; i++)
            static_cast<float *>(run.outputs[0].memory)[i] =
                static_cast<const float *>(run.inputs[0].memory)[i] *
                static_cast<const float *>(run.inputs[1].memory)[i];
        return WEFT_OK;
    };
    const weft_spec *specs[] = {spec.get(), spec.get()};
    weft_op_call mul = weft::sized<weft_op_call>();
    mul.name = "mul";
    mul.inputs = specs;
    mul.input_count = 2;
    std::vector<weft::tensor> c = weft::apply(context, mul, {a, b}, multiply).value();
    CHECK(calls == 1 && c.size() == 1 && c[0].as<float>()[3] == 6);
    weft_op_call negate = mul;
    negate.name = "neg_";
    CHECK(weft::apply(context, negate, {c[0]}, negative) && c[0].as<float>()[3] == -6);
    weft::op_backward backward = weft::op_backward::create(mul).value();
    CHECK(backward.info()->calls == 2 && backward.info()->local == 1);
    CHECK(backward.spec(*backward.gradient(1)) == spec && !backward.gradient(2));
    std::vector<weft::tensor> slopes = backward.apply(context, {a, b, c[0]}, {g}, multiply).value();
    CHECK(calls == 3 && slopes[0].as<float>()[0] == 15 && slopes[1].as<float>()[0] == 10);
    weft_op_call loss = weft::sized<weft_op_call>();
    weft_op_attr sum = {};
    sum.name = "reduction";
    sum.kind = WEFT_ATTR_TEXT;
    sum.text = "sum";
    loss.name = "cross_entropy";
    loss.attr_size = sizeof(weft_op_attr);
    loss.attrs = &sum;
    loss.attr_count = 1;
    weft::tensor x =
        weft::tensor::create(context, weft::spec::parse(mesh, "f32[4,3] S(1)").value()).value();
    weft::tensor t =
        weft::tensor::create(context, weft::spec::parse(mesh, "i64[4] R").value()).value();
    std::string phases;
    auto note = [&phases](const weft_op_run &run) {
        phases += std::string(run.name).substr(std::string("cross_entropy.").size()) + " ";
        return WEFT_OK;
    };
    CHECK(weft::apply_phases(context, loss, {x, t}, note).value().size() == 2);
    CHECK(phases == "max terms finish total ");
    sum.text = "mean";
    CHECK(weft::apply_phases(context, loss, {x, t}, note).value().size() == 3);
    loss.name = "mul";
    CHECK(weft::apply_phases(context, loss, {a, b}, note).code() == WEFT_ERR_UNSUPPORTED);
    return refuse(context, a);
}
