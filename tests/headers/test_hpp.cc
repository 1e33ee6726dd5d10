/* test_hpp.cc - weft.hpp, compiled with and without exceptions, on one rank and on two threads.
 *
 * Every release that the header calls is counted, so that each handle is known to release its
 * object once.  Sanitizers check the rest. */
#include "counted.hpp"

#include <string.h>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
                    weft_last_error());                                                            \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ---- what compiles and what does not ---- */

template <class T> constexpr bool is_move_only()
{
    return std::is_nothrow_move_constructible<T>::value &&
           std::is_nothrow_move_assignable<T>::value && !std::is_copy_constructible<T>::value &&
           !std::is_copy_assignable<T>::value;
}
template <class T> constexpr bool is_shared()
{
    return std::is_nothrow_move_constructible<T>::value &&
           std::is_nothrow_copy_constructible<T>::value && std::is_copy_assignable<T>::value;
}
static_assert(is_move_only<weft::context>() && is_move_only<weft::comm>(), "");
static_assert(is_move_only<weft::stream>() && is_move_only<weft::memory>(), "");
static_assert(is_move_only<weft::work>() && is_move_only<weft::bound>(), "");
static_assert(is_move_only<weft::symm>() && is_move_only<weft::op_list>(), "");
static_assert(is_move_only<weft::threads>() && is_move_only<weft::backends>(), "");
static_assert(is_move_only<weft::rendezvous>() && is_move_only<weft::observation>(), "");
static_assert(is_move_only<weft::recorders>() && is_move_only<weft::recorder>(), "");
static_assert(is_shared<weft::mesh>() && is_shared<weft::spec>(), "");
static_assert(is_shared<weft::plan>() && is_shared<weft::cost_table>(), "");
static_assert(is_shared<weft::tensor>(), "");

/* A borrowed handle is made of an lvalue, not of a temporary. */
static_assert(std::is_convertible<weft::comm &, weft::comm_ref>::value, "");
static_assert(!std::is_constructible<weft::comm_ref, weft::comm>::value, "");
static_assert(!std::is_assignable<weft::comm_ref &, weft::comm>::value, "");
static_assert(!std::is_constructible<weft::context_ref, weft::context>::value, "");
static_assert(!std::is_constructible<weft::stream_ref, weft::stream>::value, "");
/* A C pointer does not become an owner silently. */
static_assert(!std::is_convertible<weft_mesh *, weft::mesh>::value, "");
static_assert(!std::is_convertible<weft_comm *, weft::comm>::value, "");
static_assert(std::is_convertible<weft_comm *, weft::comm_ref>::value, "");

static_assert(sizeof(weft::status) == sizeof(weft_status), "");
static_assert(std::is_trivially_copyable<weft::status>::value, "");
static_assert(sizeof(weft::mesh) == sizeof(void *) && sizeof(weft::bound) == sizeof(void *), "");
static_assert(std::is_trivially_copyable<weft::stream_ref>::value, "");

struct half {
    uint16_t bits;
};
template <> struct weft::dtype_traits<half> {
    static constexpr weft_dtype value = WEFT_DTYPE_BF16;
};
static_assert(weft::dtype_of<float>() == WEFT_DTYPE_F32, "");
static_assert(weft::dtype_of<const double>() == WEFT_DTYPE_F64, "");
static_assert(weft::dtype_of<bool>() == WEFT_DTYPE_BOOL, "");
static_assert(weft::dtype_of<int8_t>() == WEFT_DTYPE_I8, "");
static_assert(weft::dtype_of<uint8_t>() == WEFT_DTYPE_U8, "");
static_assert(weft::dtype_of<int16_t>() == WEFT_DTYPE_I16, "");
static_assert(weft::dtype_of<uint16_t>() == WEFT_DTYPE_U16, "");
static_assert(weft::dtype_of<int32_t>() == WEFT_DTYPE_I32, "");
static_assert(weft::dtype_of<uint32_t>() == WEFT_DTYPE_U32, "");
static_assert(weft::dtype_of<int64_t>() == WEFT_DTYPE_I64, "");
static_assert(weft::dtype_of<unsigned long long>() == WEFT_DTYPE_U64, "");
static_assert(weft::dtype_of<half>() == WEFT_DTYPE_BF16, "");

/* Compiled by tests that expect an error. */
#if defined(DISCARDED_STATUS)
void discard(weft::comm_ref comm)
{
    comm.barrier();
}
#elif defined(DISCARDED_RESULT)
void discard()
{
    weft::mesh::parse("2x2");
}
#endif

/* ---- without ranks ---- */

static void test_shared()
{
    int before = released<weft_mesh>, kept = retained<weft_mesh>;
    {
        weft::mesh mesh = weft::mesh::parse("dp=2,tp=2").value();
        weft::mesh copy = mesh, empty;

        CHECK(mesh && copy && !empty && mesh == copy && mesh != empty);
        CHECK(retained<weft_mesh> == kept + 1);
        copy = *&copy; /* itself */
        CHECK(copy == mesh);
        empty = std::move(copy);
        CHECK(!copy && empty == mesh);
        CHECK(copy.size() == 0 && copy.text().code() == WEFT_ERR_INVALID);

        weft::spec spec = weft::spec::parse(mesh, "f32[4,6] S(0),R").value();
        CHECK(spec.mesh() == mesh && spec.dtype() == WEFT_DTYPE_F32 && spec.elements() == 24);
        CHECK(spec.shard(3).shape[0] == 2 && spec.shard_bytes(3) == 48);
        CHECK(spec.with("R,R")->text().value() == "f32[4,6] R,R");
        CHECK(spec.with("R,R")->with(WEFT_DTYPE_F64).value().dtype() == WEFT_DTYPE_F64);
        CHECK(spec.with("S(0),R").value() == spec);
        weft_placement places[2] = {};
        places[0].kind = WEFT_PLACE_SHARD;
        const int64_t sizes[] = {3, 6, 3, 6, 1, 6, 1, 6};
        CHECK(weft::spec::from_shards(mesh, WEFT_DTYPE_F32, 2, places, sizes)->text().value() ==
              "f32[4,6] G(0;3,1),R");
        const weft_spec *inputs[] = {spec.get(), spec.get()};
        weft_op_call add = weft::sized<weft_op_call>();
        add.name = "add";
        add.inputs = inputs;
        add.input_count = 2;
        weft::op_choice choice = weft::op_choice::check(add).value(), same = choice;
        CHECK(choice.output(0) == spec && same.input(1) == spec && !choice.move(0));
        CHECK(choice.info()->local == 1 && choice.gradient(0) == spec);
        CHECK(weft::op_list::create(add)->count() > 1);
        CHECK(mesh.slice("tp", 3)->rank_at(0) == 2 && mesh.flatten()->axes() == 1);
        CHECK(mesh.find_axis("tp").value() == 1 && mesh.text().value() == "dp=2,tp=2");

        weft_mesh *raw = copy.detach();
        CHECK(raw == nullptr);
        raw = mesh.detach();
        CHECK(!mesh && weft_mesh_size(raw) == 4);
        mesh = weft::retain<weft::mesh>(raw);
        weft::mesh(raw).reset(); /* takes ownership, and releases */
        CHECK(mesh.size() == 4);
        CHECK(weft_mesh_parse("3", mesh.out()) == WEFT_OK && mesh.size() == 3);
    }
    /* One release for each reference that was added, and one for each mesh that was created:
     * parse twice, slice, flatten. */
    CHECK(released<weft_mesh> - before == retained<weft_mesh> - kept + 4);
}

static void test_errors()
{
    weft::result<weft::mesh> bad = weft::mesh::parse("2x");
    std::string text = bad.error();

    CHECK(!bad && !bad.ok() && bad.code() == WEFT_ERR_PARSE && !bad.value());
    CHECK(text == weft_last_error() && !text.empty());
    CHECK(!weft::cost_table::open("no such table"));
    CHECK(text == bad.error() && text != weft_last_error()); /* the text of a result is kept */
    CHECK(!bad.to_status() && bad.to_status().code() == WEFT_ERR_PARSE);

    weft::result<weft::mesh> good = weft::mesh::parse("2");
    CHECK(good && strcmp(good.error(), "") == 0 && good->size() == 2 && (*good).size() == 2);
    weft::mesh taken = std::move(good).value();
    CHECK(taken && !good.value());
    weft::result<weft::mesh> moved = std::move(bad);
    CHECK(text == moved.error());

    CHECK(weft::status(WEFT_OK) && weft::status(WEFT_IN_PROGRESS).in_progress());
    CHECK(!weft::status(WEFT_IN_PROGRESS));
    CHECK(strcmp(weft::status(WEFT_IN_PROGRESS).error(), "not finished yet") == 0);

    weft::spec none;
    CHECK(weft::plan::create(none, none).code() == WEFT_ERR_INVALID);
    CHECK(weft::comm_ref().barrier().code() == WEFT_ERR_INVALID);
    CHECK(weft::bound().redistribute(nullptr, nullptr).code() == WEFT_ERR_INVALID);
    weft_plan_options options = weft::sized<weft_plan_options>();
    CHECK(options.struct_size == sizeof options && options.costs == nullptr);
#if defined(__cpp_exceptions)
    try {
        weft::mesh::parse("2x").or_throw();
        CHECK(false);
    } catch (const weft::exception &thrown) {
        CHECK(thrown.code() == WEFT_ERR_PARSE && text == thrown.what());
    }
    CHECK(weft::mesh::parse("2x3").or_throw().size() == 6);
    weft::status(WEFT_OK).or_throw();
#endif
}

static void test_plans()
{
    int before = released<weft_plan>;
    {
        weft::mesh mesh = weft::mesh::parse("2").value();
        weft::spec from = weft::spec::parse(mesh, "i32[4] S(0)").value();
        weft::spec to = from.with("R").value();
        weft::plan plan = weft::plan::create(from, to).value(), again = plan;
        int32_t a[2] = {1, 2}, b[2] = {3, 4}, out[2][4];
        const void *const sources[] = {a, b}, *const *source = sources;
        void *const targets[] = {out[0], out[1]}, *const *target = targets;

        CHECK(plan.get() == again.get() && plan.info()->steps == 1);
        CHECK(plan.step_info(0)->kind == WEFT_STEP_ALL_GATHER);
        CHECK(plan.step_info(1).code() == WEFT_ERR_INVALID);
        CHECK(plan.tensor_info(0)->to == to.get());
        CHECK(strcmp(plan.costs().name(), "h100") == 0);
        CHECK(plan.text()->find("all-gather") != std::string::npos);
        CHECK(plan.json_text()->front() == '{');
        CHECK(plan.simulate(&source, &target));
        for (int i = 0; i < 8; i++)
            CHECK(out[i / 4][i % 4] == i % 4 + 1);
    }
    CHECK(released<weft_plan> == before + 2);
}

/* ---- on ranks ---- */

static weft::result<weft::context> join_checked()
{
    weft::result<weft::context> ctx = weft::context::init();

    if (!ctx) return ctx.to_status();
    CHECK(ctx->world().size() == ctx->size() && ctx->world().rank() == ctx->rank());
    CHECK(ctx->world().context().get() == ctx->get());
    return ctx;
}

/* A matrix whose rows are split becomes one whose columns are split. */
static void move_values(weft::context_ref ctx, weft::comm_ref comm)
{
    weft::mesh mesh = weft::mesh::create(1, std::vector<int32_t>{comm.size()}.data()).value();
    weft::spec from = weft::spec::parse(mesh, "i32[5,4] S(0)").value();
    weft::spec to = from.with("S(1)").value();
    weft_plan_options options = weft::sized<weft_plan_options>();
    weft::cost_table costs = ctx.costs();
    options.costs = costs.get();
    weft::plan plan = weft::plan::create(from, to, &options).value();
    weft::bound bound = plan.bind(comm).value(), moved = std::move(bound);
    weft_shard have = from.shard(comm.rank()), want = to.shard(comm.rank());
    weft::memory source = ctx.alloc(from.shard_bytes(comm.rank())).value();
    weft::memory target = ctx.alloc(to.shard_bytes(comm.rank())).value();
    weft::stream stream = ctx.create_stream().value();
    weft::work work;
    bool whole = comm.get() == ctx.world().get(); /* moves have the ranks of the world */

    for (int64_t i = 0; i < have.elements; i++)
        source.as<int32_t>()[i] = static_cast<int32_t>(have.offset[0] * 4 + i);
    CHECK(!bound && moved && moved.scratch() < 4096);
    CHECK(plan.scratch(comm).value() == moved.scratch());
    for (int round = 0; round < (whole ? 5 : 3);
         round++) { /* each record releases the one before it */
        weft_move_item item = {"matrix", from.get(), source.data(), to.get(), target.data()};
        CHECK(ctx.memory_fill(target.data(), 0xff, target.bytes(), stream));
        if (round < 3)
            CHECK(moved.redistribute(source.data(), target.data(), stream, &work));
        else
            CHECK(ctx.move(1, &item, nullptr, stream, &work));
        CHECK(work && work.wait() && work.test() && stream.wait());
        for (int64_t i = 0; i < want.shape[0]; i++)
            for (int64_t j = 0; j < want.shape[1]; j++)
                CHECK(target.as<int32_t>()[i * want.shape[1] + j] == i * 4 + want.offset[1] + j);
    }
    CHECK(ctx.plan(from, to).value().get() == ctx.plan(from, to).value().get());
    CHECK(!whole || (ctx.move_info().value().bound == 1 && ctx.move_clear()));
    weft::memory other = std::move(source);
    CHECK(!source && source.bytes() == 0 && other.bytes() == from.shard_bytes(comm.rank()));
    CHECK(other.free() && !other && other.free());
    weft::stream second = std::move(stream);
    CHECK(!stream && second && second.record() && ctx.wait(second));
}

static void test_collectives(weft::comm_ref comm)
{
    float one[2] = {1, 2}, all[2] = {0, 0};
    int64_t mine = comm.rank() + 7, every[2] = {-1, -1};
    half sum[1] = {{0x3f80}}; /* 1 in bf16 */

    CHECK(comm.all_reduce(one, all, 2, WEFT_REDUCE_SUM));
    CHECK(all[0] == static_cast<float>(comm.size()) && all[1] == 2 * all[0]);
    CHECK(comm.all_reduce(sum, sum, 1, WEFT_REDUCE_SUM));
    CHECK(sum[0].bits == (comm.size() == 1 ? 0x3f80 : 0x4000));
    CHECK(comm.all_gather(&mine, every, 1));
    for (int i = 0; i < comm.size(); i++)
        CHECK(every[i] == i + 7);
    CHECK(comm.gather(&mine, comm.rank() == 0 ? every : nullptr, 1, 0));
    CHECK(comm.broadcast(comm.rank() == 0 ? &mine : nullptr, every, 1, 0) && every[0] == 7);
    CHECK(comm.broadcast(&mine, every, 1, 5).code() == WEFT_ERR_INVALID);
    CHECK(comm.async_error());
    if (comm.size() == 2) {
        int32_t peer = 1 - comm.rank();

        CHECK(comm.group_begin());
        CHECK(comm.send(&mine, 1, peer) && comm.receive(every, 1, peer));
        CHECK(comm.group_end() && every[0] == peer + 7);
    }
    CHECK(comm.barrier());
}

static void test_observation(weft::context_ref context)
{
    int barriers = 0, before = released<weft_observation>;
    weft_observer observer = {};

    observer.struct_size = sizeof observer;
    observer.user = &barriers;
    observer.submitted = [](void *user, const weft_record *record) {
        if (record->operation == WEFT_RECORD_BARRIER) ++*static_cast<int *>(user);
    };
    {
        weft::observation observation = context.observe(observer).value();
        CHECK(observation && context.world().barrier());
    }
    CHECK(barriers == 1 && released<weft_observation> >= before + 1);
    CHECK(!weft::context_ref().observe(observer));
}

static void test_symm(weft::comm_ref comm)
{
    weft::symm symm = weft::symm::create(comm, 64).value();
    int32_t right = (comm.rank() + 1) % comm.size(), value = 100 + comm.rank();

    CHECK(symm.comm().get() == comm.get() && symm.bytes() == 64);
    CHECK(symm.put_signal_to(&value, right, 8, sizeof value, 0, 1, WEFT_SIGNAL_SET));
    CHECK(symm.wait_from((comm.rank() + comm.size() - 1) % comm.size(), 0, WEFT_COMPARE_EQ, 1));
    memcpy(&value, static_cast<char *>(symm.local()) + 8, sizeof value);
    CHECK(value == 100 + (comm.rank() + comm.size() - 1) % comm.size());
    CHECK(symm.barrier());
}

static weft::status run_rank()
{
    weft::result<weft::context> joined = join_checked();
    if (!joined) return joined.to_status();
    weft::context ctx = std::move(*joined);
    weft::comm_ref world = ctx.world();

    CHECK(!*joined && joined->rank() == -1 && ctx.size() == world.size());
    move_values(ctx, world);
    test_collectives(world);
    test_symm(world);
    test_observation(ctx);

    weft::mesh mesh = weft::mesh::parse(world.size() == 1 ? "dp=1,tp=1" : "dp=1,tp=2").value();
    weft::comm_ref tp = world.along(mesh, "tp").value(); /* borrowed: the world releases it */
    CHECK(tp.size() == world.size() && world.along(mesh, "tp")->get() == tp.get());
    CHECK(world.along(mesh, "pp").code() == WEFT_ERR_NOT_FOUND);

    weft::comm alone = world.split(world.rank(), 0).value();
    CHECK(alone.size() == 1 && alone.world_rank(0) == world.rank());
    move_values(ctx, alone);
    weft::result<weft::comm> none = world.split(WEFT_NO_COLOR, 0);
    CHECK(none && !none.value());
    return WEFT_OK;
}

/* Ranks that end in the order of destruction release every object once. */
static void test_ranks(int32_t size)
{
    int contexts = released<weft_context>, comms = released<weft_comm>;
    int bound = released<weft_bound>, works = released<weft_work>;
    int streams = released<weft_stream>, memory = released<void>, symm = released<weft_symm>;

    if (size == 1)
        CHECK(run_rank());
    else
        CHECK(weft::threads_run(size, run_rank));
    CHECK(released<weft_context> == contexts + size);
    CHECK(released<weft_comm> == comms + size);      /* split; neither the world nor tp */
    CHECK(released<weft_bound> == bound + 2 * size); /* on the world and on a part of it */
    CHECK(released<weft_work> == works + 10 * size); /* five rounds, three rounds, a record each */
    CHECK(released<weft_stream> == streams + 2 * size);
    CHECK(released<void> == memory + 4 * size);
    CHECK(released<weft_symm> == symm + size);
}

/* A context that is released first: its objects refuse calls, and their release is safe. */
static void test_wrong_order()
{
    weft::context ctx = weft::context::init().value();
    weft::memory memory = ctx.alloc(64).value();
    weft::stream stream = ctx.create_stream().value();
    weft::work work = stream.record().value();
    weft::comm comm = ctx.world().split(0, 0).value();

    ctx.reset();
    CHECK(!ctx && comm.barrier().code() == WEFT_ERR_INVALID);
    CHECK(work.wait().code() == WEFT_ERR_INVALID && memory.free().code() == WEFT_ERR_INVALID);
    CHECK(stream.wait().code() == WEFT_ERR_INVALID);
}

static void test_threads()
{
    int calls[2] = {0, 0};
    weft::status failed = weft::threads_run(2, [&calls]() -> weft::status {
        weft::result<weft::context> ctx = weft::context::init();
        if (!ctx) return ctx.to_status();
        calls[ctx->rank()]++;
        return ctx->rank() == 1 ? weft_fail(WEFT_ERR_SYSTEM, "rank one stops") : WEFT_OK;
    });

    CHECK(failed.code() == WEFT_ERR_SYSTEM && strstr(failed.error(), "rank one stops") != nullptr);
    CHECK(calls[0] == 1 && calls[1] == 1);
#if defined(__cpp_exceptions)
    const auto thrower = []() -> weft_status {
        weft::context ctx = weft::context::init().or_throw();
        if (ctx.rank() == 0) weft::mesh::parse("2x").or_throw();
        return WEFT_OK;
    };
    CHECK(weft::threads_run(2, thrower).code() == WEFT_ERR_PARSE);
    CHECK(weft::threads_run(1, []() -> weft_status { throw 1; }).code() == WEFT_ERR_ABORTED);
#endif
}

static void test_others()
{
    weft::backends backends = weft::backends::create().value();
    size_t chosen = backends.choose(WEFT_BACKEND_ROLE_COMM).value();
    weft_rendezvous_options options = weft::sized<weft_rendezvous_options>();

    CHECK(chosen < backends.count() && strcmp(backends.info(chosen)->name, "gloo-cpu") == 0);
    CHECK(backends.info(backends.count()).code() == WEFT_ERR_INVALID);
    options.size = 2;
    weft::rendezvous rendezvous = weft::rendezvous::open(options).value();
    CHECK(strchr(rendezvous.address(), ':') != nullptr && strlen(rendezvous.token()) >= 16);
    weft::threads threads = weft::threads::create(1).value();
    weft_init_options join = weft::sized<weft_init_options>();
    join.threads = threads.get();
    weft::context ctx = weft::context::init(&join).value();
    CHECK(ctx.size() == 1 && ctx.device_info()->features != 0 && ctx.plugin() != nullptr);
    CHECK(ctx.alloc(8, WEFT_MEMORY_HOST).code() == WEFT_ERR_INVALID);
}

static void test_recorders()
{
    weft::context ctx = weft::context::init().value();
    weft::recorders recorders = weft::recorders::create().value();
    size_t found = 0;

    for (size_t i = 0; i < recorders.count(); i++) {
        weft_recorder_info info = recorders.at(i).info().value();

        if (info.pid != getpid()) continue;
        weft::recorder recorder = weft::recorder::open(info.path).value();
        CHECK(recorder.refresh() && recorder.info()->rank == 0 && !recorder.record(0) &&
              !*recorder.text(0));
        CHECK(recorder.comm_count() == 1 && strcmp(recorder.comm_info(0)->name, "world") == 0);
        found++;
    }
    CHECK(found == 1 && !recorders.at(recorders.count()));
    CHECK(weft::recorder::open("/no/such/recorder").code() == WEFT_ERR_NOT_FOUND);
}

int main()
{
    test_shared();
    test_errors();
    test_plans();
    test_ranks(1);
    test_ranks(2);
    test_wrong_order();
    test_threads();
    test_others();
    test_recorders();
    puts("weft.hpp: all checks passed");
    return 0;
}
