/* weft.hpp - owning C++17 handles over the C interface; header only.
 *
 *     weft::result<weft::context> ctx = weft::context::init();
 *     if (!ctx) return fail(ctx.error());
 *     weft::status done = ctx->world().all_reduce(in, out, n, WEFT_REDUCE_SUM);
 *     if (!done) return fail(done.error());
 *
 * Ownership:
 *  - A handle releases its object when it is destroyed, assigned or reset.  A default-constructed
 *    or moved-from handle is empty.  weft refuses an empty handle with WEFT_ERR_INVALID.
 *  - mesh, spec, plan, cost_table, schedule and timeline are shared: a copy adds a reference.  All
 *    other handles can only be moved.
 *  - context_ref, comm_ref and stream_ref are borrowed: they never release, and are valid as long
 *    as the object.  An owner and a C pointer convert to them; a temporary owner does not.
 *  - The explicit constructor from a C pointer takes ownership of it; retain<mesh>(pointer) adds a
 *    reference.  get() lends the C pointer, detach() gives it away.
 *  - C++ destroys variables in reverse order.  Declare the context before the objects that belong
 *    to it.  If the context is released first, they refuse every call and can still be destroyed.
 *
 * Errors: a call that creates or finds something returns a result, any other call a status.  The
 * header needs neither exceptions nor RTTI.  With exceptions, or_throw() throws a failure.  Nothing
 * else throws, except members that return a std::string if there is no memory for it.
 *
 * Every C function that creates or returns an object has a member here.  So have the calls that
 * engines repeat.  For the others, pass get() to the C function.  The C headers describe each
 * function under its C name. */
#ifndef WEFT_HPP
#define WEFT_HPP

#include "weft.h"

#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <string.h>
#if defined(__cpp_exceptions)
#include <exception>
#include <stdexcept>
#endif

namespace weft
{

/* ---- results ------------------------------------------------------------------- */

#if defined(__cpp_exceptions)
/* What or_throw() throws: the text of the error, and its status. */
class exception : public std::runtime_error
{
public:
    exception(weft_status code, const char *text) : std::runtime_error(text), code_(code) {}
    weft_status code() const noexcept { return code_; }

private:
    weft_status code_;
};
#endif

/* The status of a call.  It costs no more than a weft_status. */
class [[nodiscard]] status
{
public:
    constexpr status(weft_status code = WEFT_OK) noexcept : code_(code) {}

    constexpr bool ok() const noexcept { return code_ == WEFT_OK; }
    constexpr explicit operator bool() const noexcept { return ok(); }
    constexpr bool in_progress() const noexcept { return code_ == WEFT_IN_PROGRESS; }
    constexpr weft_status code() const noexcept { return code_; }

    /* The error text of the calling thread (weft_last_error): read it before the next call. */
    const char *error() const noexcept
    {
        return code_ < 0 ? weft_last_error() : ok() ? "" : weft_status_text(code_);
    }

#if defined(__cpp_exceptions)
    /* Throw unless the status is WEFT_OK or WEFT_IN_PROGRESS. */
    void or_throw() const
    {
        if (code_ < 0) throw exception(code_, error());
    }
#endif

private:
    weft_status code_;
};

/* A T, or the status and the text of a failure.  The text is kept: later calls do not change it.
 * Success allocates nothing. */
template <class T> class [[nodiscard]] result
{
public:
    result(T value) noexcept : value_(std::move(value)) {}

    /* A failure, with the calling thread's error text. */
    result(weft::status failed) noexcept : code_(failed.code())
    {
        if (!ok()) keep(failed.error());
    }

    bool ok() const noexcept { return code_ == WEFT_OK; }
    explicit operator bool() const noexcept { return ok(); }
    weft_status code() const noexcept { return code_; }
    weft::status to_status() const noexcept { return code_; }

    /* The error text; "" after success. */
    const char *error() const noexcept
    {
        return text_ ? text_.get() : ok() ? "" : weft_status_text(code_);
    }

    /* The value; after a failure an empty one.  Success can give an empty handle too: a rank
     * outside a new communicator gets none. */
    T &value() &noexcept { return value_; }
    const T &value() const &noexcept { return value_; }
    T value() &&noexcept { return std::move(value_); }
    T &operator*() &noexcept { return value_; }
    const T &operator*() const &noexcept { return value_; }
    T operator*() &&noexcept { return std::move(value_); }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }

#if defined(__cpp_exceptions)
    T or_throw() &&
    {
        if (!ok()) throw exception(code_, error());
        return std::move(value_);
    }
#endif

private:
    void keep(const char *text) noexcept
    {
        size_t bytes = strlen(text) + 1;

        text_.reset(new (std::nothrow) char[bytes]);
        if (text_) memcpy(text_.get(), text, bytes);
    }

    T value_{};
    weft_status code_ = WEFT_OK;
    std::unique_ptr<char[]> text_; /* null: success, or no memory for the text */
};

/* A struct of options or of information with struct_size set and all other fields zero. */
template <class T> T sized() noexcept
{
    T out{};

    out.struct_size = static_cast<decltype(out.struct_size)>(sizeof out);
    return out;
}

/* The dtype of a C++ type: bool, integers, float and double.  Specialize it for other types, such
 * as the bf16 of a vendor: template <> struct weft::dtype_traits<__nv_bfloat16> { ... }; */
template <class T> struct dtype_traits {
    static_assert(std::is_integral<T>::value && sizeof(T) <= 8,
                  "specialize weft::dtype_traits for this type");
    static constexpr bool is_signed = std::is_signed<T>::value;
    static constexpr weft_dtype value =
        std::is_same<T, bool>::value ? WEFT_DTYPE_BOOL
        : sizeof(T) == 1             ? (is_signed ? WEFT_DTYPE_I8 : WEFT_DTYPE_U8)
        : sizeof(T) == 2             ? (is_signed ? WEFT_DTYPE_I16 : WEFT_DTYPE_U16)
        : sizeof(T) == 4             ? (is_signed ? WEFT_DTYPE_I32 : WEFT_DTYPE_U32)
                                     : (is_signed ? WEFT_DTYPE_I64 : WEFT_DTYPE_U64);
};
template <> struct dtype_traits<float> {
    static constexpr weft_dtype value = WEFT_DTYPE_F32;
};
template <> struct dtype_traits<double> {
    static constexpr weft_dtype value = WEFT_DTYPE_F64;
};
template <class T> constexpr weft_dtype dtype_of() noexcept
{
    return dtype_traits<typename std::remove_cv<T>::type>::value;
}

/* ---- ownership ----------------------------------------------------------------- */

namespace detail
{

/* A pointer to a C object that is not released. */
template <class T> class ref
{
public:
    using c_type = T;

    constexpr ref() noexcept = default;
    constexpr ref(T *raw) noexcept : raw_(raw) {}
    T *get() const noexcept { return raw_; }
    explicit operator bool() const noexcept { return raw_ != nullptr; }

protected:
    T *raw_ = nullptr;
};

/* The only owner of a C object.  BASE is a ref, or a class that adds members to one. */
template <class Base, class T, void (*Release)(T **)> class unique : public Base
{
public:
    unique() noexcept = default;
    explicit unique(T *owned) noexcept : Base(owned) {}
    unique(unique &&other) noexcept : Base(other.detach()) {}
    unique(const unique &) = delete;
    unique &operator=(const unique &) = delete;
    unique &operator=(unique &&other) noexcept
    {
        if (this != &other) reset(other.detach());
        return *this;
    }
    ~unique() { reset(); }

    /* Release the object, and own OWNED instead. */
    void reset(T *owned = nullptr) noexcept
    {
        if (this->raw_ != nullptr) Release(&this->raw_);
        this->raw_ = owned;
    }
    /* Give the object to the caller, who releases it. */
    T *detach() noexcept { return std::exchange(this->raw_, nullptr); }
    /* Release the object, and return where a C function writes the next one. */
    T **out() noexcept
    {
        reset();
        return &this->raw_;
    }
};

/* One of the owners of an immutable C object with a count of references. */
template <class T, T *(*Retain)(const T *), void (*Release)(T **)>
class shared : public unique<ref<T>, T, Release>
{
    using base = unique<ref<T>, T, Release>;

public:
    using base::base;
    shared() noexcept = default;
    shared(shared &&) noexcept = default;
    shared(const shared &other) noexcept : base(Retain(other.raw_)) {}
    shared &operator=(shared &&) noexcept = default;
    shared &operator=(const shared &other) noexcept
    {
        this->reset(Retain(other.raw_)); /* the reference of OTHER keeps it, also if it is *this */
        return *this;
    }
    static T *add_reference(const T *raw) noexcept { return Retain(raw); }
};

/* Call FUNCTION with the place of its result as last argument: an object, a value, a struct that
 * begins with struct_size, or a text. */
template <class Handle, class Function, class... Arguments>
result<Handle> make(Function function, Arguments... arguments) noexcept
{
    typename Handle::c_type *raw = nullptr;
    status done = function(arguments..., &raw);

    if (!done) return done;
    return Handle(raw);
}
template <class T, class Function, class... Arguments>
result<T> ask(Function function, Arguments... arguments) noexcept
{
    T out{};
    status done = function(arguments..., &out);

    if (!done) return done;
    return out;
}
template <class T, class Function, class... Arguments>
result<T> describe(Function function, Arguments... arguments) noexcept
{
    T out = sized<T>();
    status done = function(arguments..., &out);

    if (!done) return done;
    return out;
}
template <class Function, class... Arguments>
result<std::string> print(Function function, Arguments... arguments)
{
    std::string out;
    size_t length = 0;
    status done = function(arguments..., nullptr, size_t{0}, &length);

    if (!done) return done;
    out.resize(length);
    done = function(arguments..., &out[0], length + 1, nullptr);
    if (!done) return done;
    return out;
}

/* T, where the compiler shall not deduce it. */
template <class T> struct same {
    using type = T;
};
template <class T> using same_t = typename same<T>::type;

} // namespace detail

/* A handle of the kind Handle that shares RAW: retain<weft::mesh>(weft_spec_mesh(spec)). */
template <class Handle> Handle retain(const typename Handle::c_type *raw) noexcept
{
    return Handle(Handle::add_reference(raw));
}

/* ---- meshes, specs, costs, plans ------------------------------------------------- */

/* Shared.  Ranks along named axes (mesh.h). */
class mesh : public detail::shared<weft_mesh, weft_mesh_retain, weft_mesh_release>
{
public:
    using shared::shared;

    static result<mesh> create(int32_t axes, const int32_t *sizes,
                               const weft_mesh_options *options = nullptr)
    {
        return detail::make<mesh>(weft_mesh_create, axes, sizes, options);
    }
    static result<mesh> parse(const char *text)
    {
        return detail::make<mesh>(weft_mesh_parse, text);
    }
    result<mesh> slice(const char *axes, int32_t rank) const
    {
        return detail::make<mesh>(weft_mesh_slice, raw_, axes, rank);
    }
    result<mesh> flatten(const char *axes = nullptr, const char *name = nullptr) const
    {
        return detail::make<mesh>(weft_mesh_flatten, raw_, axes, name);
    }
    result<mesh> unflatten(int32_t axis, int32_t count, const int32_t *sizes,
                           const char *const *names = nullptr) const
    {
        return detail::make<mesh>(weft_mesh_unflatten, raw_, axis, count, sizes, names);
    }
    /* The axes of FIRST, then those of SECOND; this mesh contains both. */
    result<mesh> concatenate(const mesh &first, const mesh &second) const
    {
        return detail::make<mesh>(weft_mesh_concatenate, raw_, first.raw_, second.raw_);
    }

    int32_t axes() const { return weft_mesh_axes(raw_); }
    int32_t size() const { return weft_mesh_size(raw_); }
    int32_t axis_size(int32_t axis) const { return weft_mesh_axis_size(raw_, axis); }
    const char *axis_name(int32_t axis) const { return weft_mesh_axis_name(raw_, axis); }
    int32_t rank_at(int32_t position) const { return weft_mesh_rank_at(raw_, position); }
    uint64_t hash() const { return weft_mesh_hash(raw_); }
    result<int32_t> find_axis(const char *name) const
    {
        return detail::ask<int32_t>(weft_mesh_find_axis, raw_, name);
    }
    result<int32_t> rank(const int32_t *coord) const
    {
        return detail::ask<int32_t>(weft_mesh_rank, raw_, coord);
    }
    /* COORD has one entry per axis. */
    status coord_of(int32_t rank, int32_t *coord) const
    {
        return weft_mesh_coord_of(raw_, rank, coord);
    }
    result<std::string> text() const { return detail::print(weft_mesh_print, raw_); }

    /* Equal meshes are one object. */
    friend bool operator==(const mesh &a, const mesh &b) { return a.raw_ == b.raw_; }
    friend bool operator!=(const mesh &a, const mesh &b) { return a.raw_ != b.raw_; }
};

/* Shared.  The layout of a tensor on a mesh (spec.h). */
class spec : public detail::shared<weft_spec, weft_spec_retain, weft_spec_release>
{
public:
    using shared::shared;

    static result<spec> create(const weft::mesh &mesh, weft_dtype dtype, int32_t dims,
                               const int64_t *shape, const weft_placement *placements)
    {
        return detail::make<spec>(weft_spec_create, mesh.get(), dtype, dims, shape, placements);
    }
    static result<spec> parse(const weft::mesh &mesh, const char *text)
    {
        return detail::make<spec>(weft_spec_parse, mesh.get(), text);
    }
    /* The spec whose shards have these local shapes. */
    static result<spec> from_shards(const weft::mesh &mesh, weft_dtype dtype, int32_t dims,
                                    const weft_placement *placements, const int64_t *shards)
    {
        return detail::make<spec>(weft_spec_from_shards, mesh.get(), dtype, dims, placements,
                                  shards);
    }
    /* The same tensor with other placements, on another mesh, or with another dtype. */
    result<spec> with(const char *placements) const
    {
        return detail::make<spec>(weft_spec_with, raw_, placements);
    }
    result<spec> with(const weft::mesh &mesh, const char *placements) const
    {
        return detail::make<spec>(weft_spec_with_mesh, raw_, mesh.get(), placements);
    }
    result<spec> with(weft_dtype dtype) const
    {
        return detail::make<spec>(weft_spec_with_dtype, raw_, dtype);
    }
    result<spec> order_to_strides() const
    {
        return detail::make<spec>(weft_spec_order_to_strides, raw_);
    }
    result<spec> strides_to_order() const
    {
        return detail::make<spec>(weft_spec_strides_to_order, raw_);
    }
    /* The layout of this tensor's gradient before its reduction; after it; and of the source of a
     * move whose result has a gradient of layout GRADIENT. */
    result<spec> dual() const { return detail::make<spec>(weft_spec_dual, raw_); }
    result<spec> gradient() const { return detail::make<spec>(weft_spec_gradient, raw_); }
    result<spec> gradient_of_move(const spec &gradient) const
    {
        return detail::make<spec>(weft_spec_gradient_of_move, raw_, gradient.raw_);
    }

    weft::mesh mesh() const { return retain<weft::mesh>(weft_spec_mesh(raw_)); }
    weft_dtype dtype() const { return weft_spec_dtype(raw_); }
    int32_t dims() const { return weft_spec_dims(raw_); }
    const int64_t *shape() const { return weft_spec_shape(raw_); }
    const weft_placement *placements() const { return weft_spec_placements(raw_); }
    int64_t elements() const { return weft_spec_elements(raw_); }
    uint64_t hash() const { return weft_spec_hash(raw_); }
    weft_shard shard(int32_t rank) const
    {
        weft_shard out;

        weft_spec_shard(raw_, rank, &out);
        return out;
    }
    /* Bytes of the shard of RANK, without gaps. */
    uint64_t shard_bytes(int32_t rank) const { return weft_spec_shard_bytes(raw_, rank); }
    result<std::string> text() const { return detail::print(weft_spec_print, raw_); }

    /* Equal specs are one object. */
    friend bool operator==(const spec &a, const spec &b) { return a.raw_ == b.raw_; }
    friend bool operator!=(const spec &a, const spec &b) { return a.raw_ != b.raw_; }
};

/* Shared.  What steps cost on a backend (cost.h). */
class cost_table
    : public detail::shared<weft_cost_table, weft_cost_table_retain, weft_cost_table_release>
{
public:
    using shared::shared;

    static result<cost_table> find(const char *name)
    {
        return detail::make<cost_table>(weft_cost_table_find, name);
    }
    static result<cost_table> parse(const char *text)
    {
        return detail::make<cost_table>(weft_cost_table_parse, text);
    }
    static result<cost_table> open(const char *name = nullptr)
    {
        return detail::make<cost_table>(weft_cost_table_open, name);
    }

    const char *name() const { return weft_cost_table_name(raw_); }
    uint64_t digest() const { return weft_cost_table_digest(raw_); }
    result<std::string> text() const { return detail::print(weft_cost_table_print, raw_); }
};

class comm_ref;
class bound;

/* Shared.  The steps from one layout to another (plan.h). */
class plan : public detail::shared<weft_plan, weft_plan_retain, weft_plan_release>
{
public:
    using shared::shared;

    static result<plan> create(const spec &from, const spec &to,
                               const weft_plan_options *options = nullptr)
    {
        return detail::make<plan>(weft_plan_create, from.get(), to.get(), options);
    }
    /* COUNT tensors, from FROM[i] to TO[i]. */
    static result<plan> create_batch(uint32_t count, const weft_spec *const *from,
                                     const weft_spec *const *to,
                                     const weft_plan_options *options = nullptr)
    {
        return detail::make<plan>(weft_plan_create_batch, count, from, to, options);
    }
    result<plan> runner_up(const weft_plan_options *options = nullptr) const
    {
        return detail::make<plan>(weft_plan_create_runner_up, raw_, options);
    }
    /* Prepare the plan to run on COMM.  Collective. */
    result<bound> bind(comm_ref comm, const weft_bind_options *options = nullptr) const;
    /* Bytes of scratch that bind with these arguments needs on this rank. */
    result<uint64_t> scratch(comm_ref comm, const weft_bind_options *options = nullptr) const;

    result<weft_plan_info> info() const
    {
        return detail::describe<weft_plan_info>(weft_plan_get, raw_);
    }
    result<weft_step_info> step(uint32_t index) const
    {
        return detail::describe<weft_step_info>(weft_plan_step_get, raw_, index);
    }
    result<weft_plan_tensor_info> tensor(uint32_t index) const
    {
        return detail::describe<weft_plan_tensor_info>(weft_plan_tensor_get, raw_, index);
    }
    cost_table costs() const { return retain<cost_table>(weft_plan_costs(raw_)); }
    result<std::string> text() const { return detail::print(weft_plan_print, raw_); }
    result<std::string> json(const plan &other = plan()) const
    {
        return detail::print(weft_plan_print_json, raw_, other.raw_);
    }
    /* Run the plan for every rank, on host memory. */
    status simulate(const void *const *sources, void *const *targets) const
    {
        return weft_simulate(raw_, sources, targets);
    }
};

/* Shared.  The actions of a pipeline's ranks (schedule.h). */
class schedule : public detail::shared<weft_schedule, weft_schedule_retain, weft_schedule_release>
{
public:
    using shared::shared;

    static result<schedule> create(const char *name, int32_t ranks, int32_t chunks,
                                   int32_t microbatches)
    {
        return detail::make<schedule>(weft_schedule_create, name, ranks, chunks, microbatches);
    }
    static result<schedule> parse(const char *text)
    {
        return detail::make<schedule>(weft_schedule_parse, text);
    }
    /* With sends and receives; FLAGS are of enum weft_lower. */
    result<schedule> lower(uint32_t flags = 0) const
    {
        return detail::make<schedule>(weft_schedule_lower, raw_, flags);
    }

    result<weft_schedule_info> info() const
    {
        return detail::describe<weft_schedule_info>(weft_schedule_get, raw_);
    }
    int32_t rank_of(int32_t stage) const { return weft_schedule_rank_of(raw_, stage); }
    /* The actions of RANK, and their number; valid as long as the schedule. */
    result<std::pair<const weft_action *, size_t>> actions(int32_t rank) const
    {
        std::pair<const weft_action *, size_t> out{};
        weft::status done = weft_schedule_actions(raw_, rank, &out.first, &out.second);

        if (!done) return done;
        return out;
    }
    /* As CSV. */
    result<std::string> text() const { return detail::print(weft_schedule_print, raw_); }
    /* The same with waits, for PyTorch. */
    result<std::string> text_with_waits() const
    {
        return detail::print(weft_schedule_print_waits, raw_);
    }
};

/* Shared.  A schedule with the times of its actions (schedule.h). */
class timeline : public detail::shared<weft_timeline, weft_timeline_retain, weft_timeline_release>
{
public:
    using shared::shared;

    static result<timeline> create(const weft::schedule &schedule,
                                   const weft_timeline_options *options = nullptr)
    {
        return detail::make<timeline>(weft_timeline_create, schedule.get(), options);
    }

    weft::schedule schedule() const { return retain<weft::schedule>(weft_timeline_schedule(raw_)); }
    result<weft_timeline_info> info() const
    {
        return detail::describe<weft_timeline_info>(weft_timeline_get, raw_);
    }
    result<weft_timeline_rank_info> rank(int32_t rank) const
    {
        return detail::describe<weft_timeline_rank_info>(weft_timeline_rank_get, raw_, rank);
    }
    result<std::string> json() const { return detail::print(weft_timeline_print_json, raw_); }
};

/* An order of compute and communication (reorder.h). */
class reorder : public detail::unique<detail::ref<weft_reorder>, weft_reorder, weft_reorder_release>
{
public:
    using unique::unique;

    static result<reorder> create(const weft_node *nodes, size_t count,
                                  const weft_reorder_options *options = nullptr)
    {
        return detail::make<reorder>(weft_reorder_create, nodes, count, options);
    }
    result<weft_reorder_info> info() const
    {
        return detail::describe<weft_reorder_info>(weft_reorder_get, raw_);
    }
    result<weft_collective_info> collective(uint32_t index) const
    {
        return detail::describe<weft_collective_info>(weft_reorder_collective_get, raw_, index);
    }
    /* The node that runs at POSITION; -1: there is no such position. */
    int32_t at(size_t position) const { return weft_reorder_at(raw_, position); }
};

/* Move-only.  Plans by their specs and options (plan.h). */
class plan_cache
    : public detail::unique<detail::ref<weft_plan_cache>, weft_plan_cache, weft_plan_cache_release>
{
public:
    using unique::unique;

    static result<plan_cache> create(uint32_t capacity = 0)
    {
        return detail::make<plan_cache>(weft_plan_cache_create, capacity);
    }
    result<plan> find(const spec &from, const spec &to, const weft_plan_options *options = nullptr)
    {
        return detail::make<plan>(weft_plan_cache_find, raw_, from.get(), to.get(), options);
    }
};

/* ---- operators ------------------------------------------------------------------ */

/* A strategy for one call of an operator (ops.h). */
class op_choice
    : public detail::shared<weft_op_choice, weft_op_choice_retain, weft_op_choice_release>
{
public:
    using shared::shared;

    static result<op_choice> check(const weft_op_call &call,
                                   const weft_op_options *options = nullptr)
    {
        return detail::make<op_choice>(weft_op_check, &call, options);
    }
    static result<op_choice> propose(const weft_op_call &call,
                                     const weft_op_options *options = nullptr)
    {
        return detail::make<op_choice>(weft_op_propose, &call, options);
    }
    result<weft_op_choice_info> info() const
    {
        return detail::describe<weft_op_choice_info>(weft_op_choice_get, raw_);
    }
    spec input(uint32_t index) const { return retain<spec>(weft_op_choice_input(raw_, index)); }
    spec output(uint32_t index) const { return retain<spec>(weft_op_choice_output(raw_, index)); }
    /* Empty: the input stays as it is. */
    plan move(uint32_t index) const { return retain<plan>(weft_op_choice_move(raw_, index)); }
    /* Empty: the input has no gradient. */
    spec gradient(uint32_t index) const
    {
        return retain<spec>(weft_op_choice_gradient(raw_, index));
    }
    spec output_gradient(uint32_t index) const
    {
        return retain<spec>(weft_op_choice_output_gradient(raw_, index));
    }
};

/* Move-only.  All strategies for one call. */
class op_list : public detail::unique<detail::ref<weft_op_list>, weft_op_list, weft_op_list_release>
{
public:
    using unique::unique;

    static result<op_list> create(const weft_op_call &call,
                                  const weft_op_options *options = nullptr)
    {
        return detail::make<op_list>(weft_op_list_create, &call, options);
    }
    uint32_t count() const { return weft_op_list_count(raw_); }
    op_choice choice(uint32_t index) const
    {
        return retain<op_choice>(weft_op_list_choice(raw_, index));
    }
};

/* ---- device: works, streams, memory, contexts ------------------------------------ */

/* Move-only.  Work that was posted to a stream (device.h).  Release does not wait for it. */
class work : public detail::unique<detail::ref<weft_work>, weft_work, weft_work_release>
{
public:
    using unique::unique;

    status test() const { return weft_work_test(raw_); }
    status wait(int64_t timeout_ns = WEFT_FOREVER) const
    {
        return weft_work_wait(raw_, timeout_ns);
    }
    /* Device time from this work to LATER, in nanoseconds. */
    result<int64_t> elapsed(const work &later) const
    {
        return detail::ask<int64_t>(weft_work_elapsed, raw_, later.raw_);
    }
    void *native() const { return weft_work_native(raw_); }
};

class stream;

/* Borrowed.  The stream that a call posts its work to; empty: the default stream. */
class stream_ref : public detail::ref<weft_stream>
{
public:
    using ref::ref;
    constexpr stream_ref() noexcept = default;
    stream_ref(const stream_ref &) noexcept = default;
    stream_ref &operator=(const stream_ref &) noexcept = default;
    stream_ref(stream &&) = delete;
    stream_ref &operator=(stream &&) = delete;

    /* Work that is posted later does not start before WORK is complete. */
    status wait_for(const work &work) const { return weft_stream_wait_work(raw_, work.get()); }
};

/* Move-only.  A stream and its context.  Release waits for the stream's work. */
class stream : public stream_ref
{
public:
    stream() noexcept = default;
    stream(weft_context *context, weft_stream *owned) : stream_ref(owned), context_(context) {}
    stream(stream &&other) noexcept : stream(other.context_, std::exchange(other.raw_, nullptr)) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    stream &operator=(stream &&other) noexcept
    {
        if (this == &other) return *this;
        reset();
        context_ = other.context_;
        raw_ = std::exchange(other.raw_, nullptr);
        return *this;
    }
    ~stream() { reset(); }

    void reset() noexcept
    {
        if (raw_ != nullptr) weft_stream_release(context_, &raw_);
        raw_ = nullptr;
    }
    weft_stream *detach() noexcept { return std::exchange(raw_, nullptr); }

    status test() const { return weft_stream_test(context_, raw_); }
    status wait(int64_t timeout_ns = WEFT_FOREVER) const
    {
        return weft_stream_wait(context_, raw_, timeout_ns);
    }
    result<work> record() const { return detail::make<work>(weft_work_record, context_, raw_); }
    void *native() const { return weft_stream_native(context_, raw_); }
    status set_name(const char *name) const { return weft_stream_set_name(context_, raw_, name); }

private:
    weft_context *context_ = nullptr;
};

/* Move-only.  Memory of weft_alloc, and its context.  All work that uses the memory must be
 * complete when it is freed.  Symmetric memory that contains it (symm) must be released before:
 * until then free() fails, and the destructor leaves the memory allocated. */
class memory
{
public:
    memory() noexcept = default;
    memory(weft_context *context, void *owned, uint64_t bytes)
        : context_(context), data_(owned), bytes_(bytes)
    {
    }
    memory(memory &&other) noexcept
        : context_(other.context_), data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0))
    {
    }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    memory &operator=(memory &&other) noexcept
    {
        if (this == &other) return *this;
        reset();
        context_ = other.context_;
        data_ = std::exchange(other.data_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }
    ~memory() { reset(); }

    void *data() const { return data_; }
    template <class T> T *as() const { return static_cast<T *>(data_); }
    uint64_t bytes() const { return bytes_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

    /* Free the memory now.  After a failure the handle still owns it. */
    status free()
    {
        status done = data_ != nullptr ? weft_free(context_, data_) : WEFT_OK;

        if (done) detach();
        return done;
    }
    void reset() noexcept
    {
        if (!free()) detach();
    }
    void *detach() noexcept
    {
        bytes_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    weft_context *context_ = nullptr;
    void *data_ = nullptr;
    uint64_t bytes_ = 0;
};

class context;

/* Borrowed.  One rank's connection to its job (context.h, device.h). */
class context_ref : public detail::ref<weft_context>
{
public:
    using ref::ref;
    constexpr context_ref() noexcept = default;
    context_ref(const context_ref &) noexcept = default;
    context_ref &operator=(const context_ref &) noexcept = default;
    context_ref(context &&) = delete;
    context_ref &operator=(context &&) = delete;

    int32_t rank() const { return weft_rank(raw_); }
    int32_t size() const { return weft_size(raw_); }
    int32_t local_rank() const { return weft_local_rank(raw_); }
    int32_t local_size() const { return weft_local_size(raw_); }
    comm_ref world() const;
    cost_table costs() const { return retain<cost_table>(weft_context_costs(raw_)); }
    const weft_plugin *plugin() const { return weft_context_plugin(raw_); }
    status bind_thread() const { return weft_context_bind_thread(raw_); }
    result<weft_device_info> device() const
    {
        return detail::describe<weft_device_info>(weft_device_get, raw_);
    }

    /* Move this rank's shard SOURCE of layout FROM to its shard TARGET of layout TO (move.h).
     * Collective over the ranks of both meshes.  *RECORD, unless RECORD is null, becomes the handle
     * of this work. */
    status move(const spec &from, const void *source, const spec &to, void *target,
                stream_ref stream = {}, work *record = nullptr) const
    {
        return weft_move(raw_, from.get(), source, to.get(), target, stream.get(),
                         record != nullptr ? record->out() : nullptr);
    }
    status move_batch(uint32_t count, const weft_move_item *items, stream_ref stream = {},
                      work *record = nullptr) const
    {
        return weft_move_batch(raw_, count, items, stream.get(),
                               record != nullptr ? record->out() : nullptr);
    }
    /* The plan that move uses, with the costs of this context. */
    result<weft::plan> plan(const spec &from, const spec &to,
                            const weft_plan_options *options = nullptr) const
    {
        return detail::make<weft::plan>(weft_context_plan, raw_, from.get(), to.get(), options);
    }
    /* Count the operations between the two calls (trace.h).  COUNTS stays at its place; begin sets
     * its struct_size. */
    /* Abort all communicators. */
    void abort() const { weft_context_abort(raw_); }
    status begin_counts(weft_counts &counts) const
    {
        counts = sized<weft_counts>();
        return weft_counts_begin(raw_, &counts);
    }
    status end_counts(weft_counts &counts) const { return weft_counts_end(raw_, &counts); }
    /* Write the last operations to files; without PREFIX, to those of WEFT_DUMP. */
    status dump(const char *prefix = nullptr) const { return weft_dump(raw_, prefix); }
    status clear_moves() const { return weft_move_clear(raw_); }
    result<weft_move_info> moves() const
    {
        return detail::describe<weft_move_info>(weft_move_get, raw_);
    }

    /* Memory in stream order; free_on frees it after the work that is on the stream now. */
    result<void *> alloc_on(uint64_t bytes, stream_ref stream) const
    {
        return detail::ask<void *>(weft_alloc_on, raw_, bytes, stream.get());
    }
    status free_on(void *pointer, stream_ref stream) const
    {
        return weft_free_on(raw_, pointer, stream.get());
    }
    /* Bytes that are allocated now, and the most at one time. */
    result<weft_memory_info> memory_info() const
    {
        return detail::describe<weft_memory_info>(weft_memory_get, raw_);
    }

    result<memory> alloc(uint64_t bytes, weft_memory_kind kind = WEFT_MEMORY_DEVICE) const
    {
        void *out = nullptr;
        status done = weft_alloc(raw_, bytes, kind, &out);

        if (!done) return done;
        return memory(raw_, out, bytes);
    }
    status copy(const void *source, void *target, uint64_t bytes, stream_ref stream = {}) const
    {
        return weft_memory_copy(raw_, source, target, bytes, stream.get());
    }
    status fill(void *target, uint8_t byte, uint64_t bytes, stream_ref stream = {}) const
    {
        return weft_memory_fill(raw_, target, byte, bytes, stream.get());
    }

    result<stream> create_stream() const
    {
        weft_stream *out = nullptr;
        status done = weft_stream_create(raw_, &out);

        if (!done) return done;
        return stream(raw_, out);
    }
    /* NATIVE (cudaStream_t, hipStream_t) stays the caller's. */
    result<stream> wrap_stream(void *native) const
    {
        weft_stream *out = nullptr;
        status done = weft_stream_wrap(raw_, native, &out);

        if (!done) return done;
        return stream(raw_, out);
    }
    status wait(stream_ref stream = {}, int64_t timeout_ns = WEFT_FOREVER) const
    {
        return weft_stream_wait(raw_, stream.get(), timeout_ns);
    }
    result<work> record(stream_ref stream = {}) const
    {
        return detail::make<work>(weft_work_record, raw_, stream.get());
    }
    /* NATIVE (cudaEvent_t, hipEvent_t) stays the caller's. */
    result<work> wrap_work(void *native) const
    {
        return detail::make<work>(weft_work_wrap, raw_, native);
    }
};

/* Move-only.  Release leaves the job. */
class context : public detail::unique<context_ref, weft_context, weft_context_release>
{
public:
    using unique::unique;

    /* Join the job.  Collective. */
    static result<context> init(const weft_options *options = nullptr)
    {
        return detail::make<context>(weft_init, options);
    }
};

/* ---- tensors --------------------------------------------------------------------- */

/* Shared.  A spec and this rank's memory (tensor.h, random.h).  Moves are collective. */
class tensor : public detail::shared<weft_tensor, weft_tensor_retain, weft_tensor_release>
{
public:
    using shared::shared;

    static result<tensor> create(context_ref context, const weft::spec &spec,
                                 const weft_tensor_options *options = nullptr)
    {
        return detail::make<tensor>(weft_tensor_create, context.get(), spec.get(), options);
    }
    /* MEMORY stays the caller's. */
    static result<tensor> wrap(context_ref context, const weft::spec &spec, void *memory,
                               const weft_tensor_options *options = nullptr)
    {
        return detail::make<tensor>(weft_tensor_wrap, context.get(), spec.get(), memory, options);
    }

    /* The tensor owns MANAGED after success (dlpack.h). */
    static result<tensor> from_dlpack(context_ref context, const weft::spec &spec,
                                      weft_dl_versioned *managed,
                                      const weft_dlpack_options *options = nullptr)
    {
        return detail::make<tensor>(weft_tensor_from_dlpack, context.get(), spec.get(), managed,
                                    options);
    }
    static result<tensor> from_dlpack(context_ref context, const weft::spec &spec,
                                      weft_dl_unversioned *managed,
                                      const weft_dlpack_options *options = nullptr)
    {
        return detail::make<tensor>(weft_tensor_from_dlpack_unversioned, context.get(), spec.get(),
                                    managed, options);
    }
    /* This rank's shard, for another library, which calls the `deleter`. */
    result<weft_dl_versioned *> to_dlpack(const weft_dlpack_options *options = nullptr) const
    {
        return detail::ask<weft_dl_versioned *>(weft_tensor_to_dlpack, raw_, options);
    }
    result<weft_dl_unversioned *>
    to_dlpack_unversioned(const weft_dlpack_options *options = nullptr) const
    {
        return detail::ask<weft_dl_unversioned *>(weft_tensor_to_dlpack_unversioned, raw_, options);
    }

    weft::spec spec() const { return retain<weft::spec>(weft_tensor_spec(raw_)); }
    const char *name() const { return weft_tensor_name(raw_); }
    void *data() const { return weft_tensor_memory(raw_); }
    template <class T> T *as() const { return static_cast<T *>(data()); }
    const int64_t *strides() const { return weft_tensor_strides(raw_); }
    const weft_shard *shard() const { return weft_tensor_shard(raw_); }
    /* The shard of RANK: of this rank or, if ranks are simulated, of any. */
    result<weft_local_info> local_of(int32_t rank) const
    {
        return detail::describe<weft_local_info>(weft_tensor_local_of, raw_, rank);
    }

    /* A new tensor of layout SPEC, or the elements of TARGET. */
    result<tensor> move(const weft::spec &spec, stream_ref stream = {}) const
    {
        return detail::make<tensor>(weft_tensor_move, raw_, spec.get(), stream.get());
    }
    status move_into(const tensor &target, stream_ref stream = {}, work *record = nullptr) const
    {
        return weft_tensor_move_into(raw_, target.raw_, stream.get(),
                                     record != nullptr ? record->out() : nullptr);
    }
    /* The whole tensor on rank RANK, or on every rank of the mesh. */
    result<tensor> full(int32_t rank = WEFT_EVERY_RANK, stream_ref stream = {}) const
    {
        return detail::make<tensor>(weft_tensor_full, raw_, rank, stream.get());
    }
    /* Views: tensors that share this one's memory, without communication. */
    result<tensor> narrow(int32_t dim, int64_t start, int64_t length) const
    {
        return detail::make<tensor>(weft_tensor_narrow, raw_, dim, start, length);
    }
    result<tensor> transpose(int32_t a, int32_t b) const
    {
        return detail::make<tensor>(weft_tensor_transpose, raw_, a, b);
    }
    result<tensor> reshape(int32_t dims, const int64_t *shape) const
    {
        return detail::make<tensor>(weft_tensor_reshape, raw_, dims, shape);
    }
    /* Copies between this rank's shard and BYTES bytes of host memory. */
    status to_host(void *host, uint64_t bytes, stream_ref stream = {}) const
    {
        return weft_tensor_to_host(raw_, host, bytes, stream.get());
    }
    status from_host(const void *host, uint64_t bytes, stream_ref stream = {}) const
    {
        return weft_tensor_from_host(raw_, host, bytes, stream.get());
    }
    status fill(double value, stream_ref stream = {}) const
    {
        return weft_tensor_fill(raw_, value, stream.get());
    }
    /* How this tensor differs from OTHER, in any layout.  Collective. */
    result<weft_difference_info> compare(const tensor &other, stream_ref stream = {}) const
    {
        return detail::describe<weft_difference_info>(weft_tensor_compare, raw_, other.raw_,
                                                      stream.get());
    }
    /* This rank's shard as text, and the whole tensor, which is collective. */
    result<std::string> text(stream_ref stream = {}) const
    {
        return detail::print(weft_tensor_print, raw_, stream.get());
    }
    result<std::string> full_text(stream_ref stream = {}) const
    {
        return detail::print(weft_tensor_print_full, raw_, stream.get());
    }
    status uniform(weft_random &random, double low, double high, stream_ref stream = {}) const
    {
        return weft_tensor_uniform(raw_, &random, low, high, stream.get());
    }
    status normal(weft_random &random, double mean, double deviation, stream_ref stream = {}) const
    {
        return weft_tensor_normal(raw_, &random, mean, deviation, stream.get());
    }
    status truncated_normal(weft_random &random, double mean, double deviation, double low,
                            double high, stream_ref stream = {}) const
    {
        return weft_tensor_truncated_normal(raw_, &random, mean, deviation, low, high,
                                            stream.get());
    }
    status bernoulli(weft_random &random, double probability, stream_ref stream = {}) const
    {
        return weft_tensor_bernoulli(raw_, &random, probability, stream.get());
    }
    status dropout(weft_random &random, double probability, stream_ref stream = {}) const
    {
        return weft_tensor_dropout(raw_, &random, probability, stream.get());
    }
    status integers(weft_random &random, int64_t low, int64_t high, stream_ref stream = {}) const
    {
        return weft_tensor_integers(raw_, &random, low, high, stream.get());
    }
};

/* Move COUNT tensors to TARGETS as one batch (tensor.h).  Collective. */
inline status move_into(uint32_t count, weft_tensor *const *tensors, weft_tensor *const *targets,
                        stream_ref stream = {}, work *record = nullptr)
{
    return weft_tensors_move_into(count, tensors, targets, stream.get(),
                                  record != nullptr ? record->out() : nullptr);
}

/* ---- operators at work ----------------------------------------------------------- */

namespace detail
{

/* KERNEL, a function or an object that can be called, is called as a function of apply.h. */
template <class Kernel> struct kernel_ref {
    Kernel &kernel;

    static weft_status run(void *self, const weft_op_run *run) noexcept
    {
        return static_cast<kernel_ref *>(self)->kernel(*run);
    }
};

inline std::vector<weft_tensor *> raw_tensors(const std::vector<tensor> &tensors)
{
    std::vector<weft_tensor *> raw;

    for (const tensor &one : tensors)
        raw.push_back(one.get());
    return raw;
}

inline std::vector<tensor> own_tensors(const std::vector<weft_tensor *> &raw)
{
    std::vector<tensor> tensors;

    tensors.reserve(raw.size());
    for (weft_tensor *one : raw)
        tensors.emplace_back(one);
    return tensors;
}

} // namespace detail

/* Apply the operator of CALL to INPUTS (apply.h); an empty tensor is an absent input.  call.inputs
 * and call.input_count are not used.  KERNEL is a function or an object that can be called as
 * weft_status(const weft_op_run &).  It must not throw.  The outputs are in the order of the rule.
 */
template <class Kernel>
result<std::vector<tensor>> apply(context_ref context, weft_op_call call,
                                  const std::vector<tensor> &inputs, Kernel &&kernel,
                                  stream_ref stream = {})
{
    std::vector<weft_tensor *> raw = detail::raw_tensors(inputs), outputs;
    std::vector<const weft_spec *> specs;

    for (weft_tensor *one : raw)
        specs.push_back(weft_tensor_spec(one));
    call.inputs = specs.data();
    call.input_count = static_cast<uint32_t>(specs.size());
    detail::kernel_ref<std::remove_reference_t<Kernel>> held{kernel};
    result<op_choice> choice = op_choice::propose(call); /* the number of outputs */
    if (choice) {
        result<weft_op_choice_info> info = choice->info();
        if (!info) return info.to_status();
        outputs.resize(info->outputs);
    }
    if (choice.code() == WEFT_ERR_NO_MEMORY) return choice.to_status();
    /* A call without a strategy fails in weft_op_apply too, whose error names that function. */
    status done = weft_op_apply(context.get(), &call, raw.data(), held.run, &held, stream.get(),
                                outputs.empty() ? nullptr : outputs.data());
    if (!done) return done;
    return detail::own_tensors(outputs);
}

/* The same, but split dimensions stay split (phases.h).  Absent outputs at the end are left out: a
 * cross entropy has two outputs, or three with the reduction "mean". */
template <class Kernel>
result<std::vector<tensor>> apply_phases(context_ref context, weft_op_call call,
                                         const std::vector<tensor> &inputs, Kernel &&kernel,
                                         stream_ref stream = {})
{
    std::vector<weft_tensor *> raw = detail::raw_tensors(inputs);
    std::vector<weft_tensor *> outputs(WEFT_OP_PHASES_OUTPUTS, nullptr);

    call.inputs = nullptr;
    call.input_count = static_cast<uint32_t>(raw.size());
    detail::kernel_ref<std::remove_reference_t<Kernel>> held{kernel};
    status done = weft_op_apply_phases(context.get(), &call, raw.data(), held.run, &held,
                                       stream.get(), outputs.data());
    if (!done) return done;
    while (!outputs.empty() && outputs.back() == nullptr)
        outputs.pop_back();
    return detail::own_tensors(outputs);
}

/* Move-only.  The calls that compute the gradients of a call (ops.h). */
class op_backward : public detail::unique<detail::ref<weft_op_backward>, weft_op_backward,
                                          weft_op_backward_release>
{
public:
    using unique::unique;

    /* WANTED: an entry per input, 0: its gradient is not wanted; nullptr: all. */
    static result<op_backward> create(const weft_op_call &call,
                                      const unsigned char *wanted = nullptr)
    {
        return detail::make<op_backward>(weft_op_backward_create, &call, wanted);
    }
    result<weft_op_backward_info> info() const
    {
        return detail::describe<weft_op_backward_info>(weft_op_backward_get, raw_);
    }
    /* nullptr: there is no such call. */
    const weft_op_gradient_call *call(uint32_t index) const
    {
        return weft_op_backward_call(raw_, index);
    }
    /* nullptr: the input has no gradient. */
    const weft_op_operand *gradient(uint32_t input) const
    {
        return weft_op_backward_gradient(raw_, input);
    }
    /* The layout of a tensor of the calls; empty if it has no layout. */
    weft::spec spec_of(const weft_op_operand *operand) const
    {
        return retain<weft::spec>(weft_op_backward_spec(raw_, operand));
    }
    /* Run the calls.  FORWARD has the inputs, then the outputs of the forward call, and GRADIENTS
     * those of the outputs; tensors that no call reads may be empty.  The result has a tensor per
     * input, empty where it has no gradient.  KERNEL as in apply. */
    template <class Kernel>
    result<std::vector<tensor>> apply(context_ref context, const std::vector<tensor> &forward,
                                      const std::vector<tensor> &gradients, Kernel &&kernel,
                                      stream_ref stream = {}) const
    {
        std::vector<weft_tensor *> given = detail::raw_tensors(forward),
                                   slopes = detail::raw_tensors(gradients), found;
        result<weft_op_backward_info> info = this->info();

        if (!info) return info.to_status();
        given.resize(info->inputs + info->outputs);
        slopes.resize(info->outputs);
        found.resize(info->inputs);
        detail::kernel_ref<std::remove_reference_t<Kernel>> held{kernel};
        status done = weft_op_backward_apply(context.get(), raw_, given.data(), slopes.data(),
                                             held.run, &held, stream.get(), found.data());
        if (!done) return done;
        return detail::own_tensors(found);
    }
};

/* ---- communicators --------------------------------------------------------------- */

class comm;

/* Borrowed.  An ordered list of ranks that communicate (comm.h).  The world, and the communicators
 * of mesh axes, are released by weft.
 *
 * The collectives take the dtype from the type of the pointers (dtype_traits).  For other dtypes,
 * and for counts and offsets per rank, pass get() to the C functions. */
class comm_ref : public detail::ref<weft_comm>
{
public:
    using ref::ref;
    constexpr comm_ref() noexcept = default;
    comm_ref(const comm_ref &) noexcept = default;
    comm_ref &operator=(const comm_ref &) noexcept = default;
    comm_ref(comm &&) = delete;
    comm_ref &operator=(comm &&) = delete;

    int32_t rank() const { return weft_comm_rank(raw_); }
    int32_t size() const { return weft_comm_size(raw_); }
    const char *name() const { return weft_comm_name(raw_); }
    context_ref context() const { return weft_comm_context(raw_); }
    int32_t world_rank(int32_t rank) const { return weft_comm_world_rank(raw_, rank); }
    int32_t find_rank(int32_t world_rank) const { return weft_comm_find_rank(raw_, world_rank); }
    void *native() const { return weft_comm_native(raw_); }
    status async_error() const { return weft_comm_async_error(raw_); }
    void abort() const { weft_comm_abort(raw_); }

    /* Collective.  An empty comm for a rank that is in none of the parts. */
    result<comm> split(int32_t colour, int32_t key,
                       const weft_subcomm_options *options = nullptr) const;
    result<comm> create(int32_t count, const int32_t *ranks,
                        const weft_subcomm_options *options = nullptr) const;
    /* The communicator of mesh axes that contains this rank; this communicator releases it. */
    result<comm_ref> along(const mesh &mesh, const char *axes) const
    {
        return detail::make<comm_ref>(weft_comm_along, raw_, mesh.get(), axes);
    }

    status barrier(stream_ref stream = {}) const { return weft_barrier(raw_, stream.get()); }
    status collective(const weft_collective_args &args) const
    {
        return weft_collective(raw_, &args);
    }

    template <class T>
    status all_reduce(const T *send, detail::same_t<T> *recv, uint64_t count,
                      weft_reduction reduction, stream_ref stream = {}) const
    {
        return weft_all_reduce(raw_, send, recv, count, dtype_of<T>(), reduction, stream.get());
    }
    template <class T>
    status all_gather(const T *send, detail::same_t<T> *recv, uint64_t count,
                      stream_ref stream = {}) const
    {
        return weft_all_gather(raw_, send, recv, count, dtype_of<T>(), stream.get());
    }
    template <class T>
    status reduce_scatter(const T *send, detail::same_t<T> *recv, uint64_t count,
                          weft_reduction reduction, stream_ref stream = {}) const
    {
        return weft_reduce_scatter(raw_, send, recv, count, dtype_of<T>(), reduction, stream.get());
    }
    template <class T>
    status all_to_all(const T *send, detail::same_t<T> *recv, uint64_t count,
                      stream_ref stream = {}) const
    {
        return weft_all_to_all(raw_, send, recv, count, dtype_of<T>(), stream.get());
    }
    /* SEND of broadcast and scatter, and RECV of reduce and gather, are used on the root only. */
    template <class T>
    status broadcast(const detail::same_t<T> *send, T *recv, uint64_t count, int32_t root,
                     stream_ref stream = {}) const
    {
        return weft_broadcast(raw_, send, recv, count, dtype_of<T>(), root, stream.get());
    }
    template <class T>
    status scatter(const detail::same_t<T> *send, T *recv, uint64_t count, int32_t root,
                   stream_ref stream = {}) const
    {
        return weft_scatter(raw_, send, recv, count, dtype_of<T>(), root, stream.get());
    }
    template <class T>
    status reduce(const T *send, detail::same_t<T> *recv, uint64_t count, weft_reduction reduction,
                  int32_t root, stream_ref stream = {}) const
    {
        return weft_reduce(raw_, send, recv, count, dtype_of<T>(), reduction, root, stream.get());
    }
    template <class T>
    status gather(const T *send, detail::same_t<T> *recv, uint64_t count, int32_t root,
                  stream_ref stream = {}) const
    {
        return weft_gather(raw_, send, recv, count, dtype_of<T>(), root, stream.get());
    }
    template <class T>
    status send(const T *buffer, uint64_t count, int32_t peer, uint32_t tag = 0,
                stream_ref stream = {}) const
    {
        return weft_send(raw_, buffer, count, dtype_of<T>(), peer, tag, stream.get());
    }
    template <class T>
    status receive(T *buffer, uint64_t count, int32_t peer, uint32_t tag = 0,
                   stream_ref stream = {}) const
    {
        return weft_receive(raw_, buffer, count, dtype_of<T>(), peer, tag, stream.get());
    }
    status group_begin() const { return weft_group_begin(raw_); }
    status group_end() const { return weft_group_end(raw_); }
};

/* Move-only.  A communicator of split or create.  Its work must be complete when it is released. */
class comm : public detail::unique<comm_ref, weft_comm, weft_comm_release>
{
public:
    using unique::unique;
};

inline comm_ref context_ref::world() const
{
    return weft_world(raw_);
}

inline result<comm> comm_ref::split(int32_t colour, int32_t key,
                                    const weft_subcomm_options *options) const
{
    return detail::make<comm>(weft_comm_split, raw_, colour, key, options);
}

inline result<comm> comm_ref::create(int32_t count, const int32_t *ranks,
                                     const weft_subcomm_options *options) const
{
    return detail::make<comm>(weft_comm_create, raw_, count, ranks, options);
}

/* ---- bound plans and symmetric memory --------------------------------------------- */

/* Move-only.  A plan that is ready to run on a communicator (exec.h).  Its work must be complete
 * when it is released. */
class bound : public detail::unique<detail::ref<weft_bound>, weft_bound, weft_bound_release>
{
public:
    using unique::unique;

    uint64_t scratch() const { return weft_bound_scratch(raw_); }
    bool is_packed() const { return weft_bound_is_packed(raw_); }

    /* Post the redistribution to STREAM.  Collective.  *RECORD, unless RECORD is null, becomes the
     * handle of this work. */
    status redistribute(const void *source, void *target, stream_ref stream = {},
                        work *record = nullptr) const
    {
        return weft_redistribute(raw_, source, target, stream.get(),
                                 record != nullptr ? record->out() : nullptr);
    }
    status redistribute_batch(const void *const *sources, void *const *targets,
                              stream_ref stream = {}, work *record = nullptr) const
    {
        return weft_redistribute_batch(raw_, sources, targets, stream.get(),
                                       record != nullptr ? record->out() : nullptr);
    }
};

inline result<bound> plan::bind(comm_ref comm, const weft_bind_options *options) const
{
    return detail::make<bound>(weft_plan_bind, raw_, comm.get(), options);
}

inline result<uint64_t> plan::scratch(comm_ref comm, const weft_bind_options *options) const
{
    return detail::ask<uint64_t>(weft_plan_scratch, raw_, comm.get(), options);
}

/* Move-only.  Callbacks for every operation of a context (trace.h), until it is released. */
class observation : public detail::unique<detail::ref<weft_observation>, weft_observation,
                                          weft_observation_release>
{
public:
    using unique::unique;

    /* OBSERVER is copied.  The caller sets its struct_size. */
    static result<observation> create(context_ref context, const weft_observer &observer)
    {
        return detail::make<observation>(weft_observe, context.get(), &observer);
    }
};

/* Move-only.  Memory that all ranks of a communicator can read and write (symm.h).  Release is
 * collective and blocks until every rank releases. */
class symm : public detail::unique<detail::ref<weft_symm>, weft_symm, weft_symm_release>
{
public:
    using unique::unique;

    static result<symm> create(comm_ref comm, uint64_t bytes,
                               const weft_symm_options *options = nullptr)
    {
        return detail::make<symm>(weft_symm_create, comm.get(), bytes, options);
    }
    /* MEMORY stays the caller's and must outlive the handle. */
    static result<symm> register_memory(comm_ref comm, void *memory, uint64_t bytes,
                                        const weft_symm_options *options = nullptr)
    {
        return detail::make<symm>(weft_symm_register, comm.get(), memory, bytes, options);
    }

    comm_ref comm() const { return weft_symm_comm(raw_); }
    uint64_t bytes() const { return weft_symm_bytes(raw_); }
    uint32_t channels() const { return weft_symm_channels(raw_); }
    void *local() const { return weft_symm_local(raw_); }
    void *peer(int32_t peer) const { return weft_symm_peer(raw_, peer); }
    result<uint64_t> offset(const void *pointer, uint64_t bytes) const
    {
        return detail::ask<uint64_t>(weft_symm_offset, raw_, pointer, bytes);
    }
    result<weft_symm_device> device() const
    {
        return detail::ask<weft_symm_device>(weft_symm_device_get, raw_);
    }

    status put_to(const void *source, int32_t peer, uint64_t offset, uint64_t bytes,
                  stream_ref stream = {}) const
    {
        return weft_symm_put_to(raw_, source, peer, offset, bytes, stream.get());
    }
    status get_from(int32_t peer, uint64_t offset, void *target, uint64_t bytes,
                    stream_ref stream = {}) const
    {
        return weft_symm_get_from(raw_, peer, offset, target, bytes, stream.get());
    }
    status put_signal_to(const void *source, int32_t peer, uint64_t offset, uint64_t bytes,
                         uint32_t channel, uint64_t value, weft_signal_op op,
                         stream_ref stream = {}) const
    {
        return weft_symm_put_signal_to(raw_, source, peer, offset, bytes, channel, value, op,
                                       stream.get());
    }
    status signal_to(int32_t peer, uint32_t channel, uint64_t value, weft_signal_op op,
                     stream_ref stream = {}) const
    {
        return weft_symm_signal_to(raw_, peer, channel, value, op, stream.get());
    }
    status wait_from(int32_t peer, uint32_t channel, weft_compare compare, uint64_t value,
                     int64_t timeout_ns = 0, stream_ref stream = {}) const
    {
        return weft_symm_wait_from(raw_, peer, channel, compare, value, timeout_ns, stream.get());
    }
    status test_from(int32_t peer, uint32_t channel, weft_compare compare, uint64_t value) const
    {
        return weft_symm_test_from(raw_, peer, channel, compare, value);
    }
    status fence(stream_ref stream = {}) const { return weft_symm_fence(raw_, stream.get()); }
    status quiet(stream_ref stream = {}) const { return weft_symm_quiet(raw_, stream.get()); }
    status barrier(stream_ref stream = {}) const { return weft_symm_barrier(raw_, stream.get()); }
};

/* ---- context parallel ------------------------------------------------------------- */

/* Shared.  Attention over a sequence that the ranks of a mesh axis share (context_parallel.h). */
class cp_plan : public detail::shared<weft_cp_plan, weft_cp_plan_retain, weft_cp_plan_release>
{
public:
    using shared::shared;

    static result<cp_plan> create(const mesh &mesh, const char *axis, int64_t length,
                                  const weft_cp_options *options = nullptr)
    {
        return detail::make<cp_plan>(weft_cp_plan_create, mesh.get(), axis, length, options);
    }
    result<weft_cp_plan_info> info() const
    {
        return detail::describe<weft_cp_plan_info>(weft_cp_plan_get, raw_);
    }
    int64_t length(int32_t coordinate) const { return weft_cp_plan_length(raw_, coordinate); }
    uint64_t work(int32_t coordinate) const { return weft_cp_plan_work(raw_, coordinate); }
};

/* A plan on this rank. */
class cp : public detail::unique<detail::ref<weft_cp>, weft_cp, weft_cp_release>
{
public:
    using unique::unique;
    using attention = weft_status(void *user, const weft_cp_call *call);

    /* Collective. */
    static result<cp> create(context_ref context, const cp_plan &plan, const weft_cp_sizes &sizes)
    {
        return detail::make<cp>(weft_cp_create, context.get(), plan.get(), &sizes);
    }
    /* Collective.  KERNEL is called with USER for each problem. */
    status forward(const weft_cp_tensors &tensors, attention *kernel, void *user,
                   stream_ref stream = {}) const
    {
        return weft_cp_forward(raw_, &tensors, kernel, user, stream.get());
    }
    status backward(const weft_cp_tensors &tensors, attention *kernel, void *user,
                    stream_ref stream = {}) const
    {
        return weft_cp_backward(raw_, &tensors, kernel, user, stream.get());
    }
    /* Whole buffers to shards of dimension DIM; and back, which is collective. */
    template <class T>
    status shard(int32_t dims, const int64_t *shape, int32_t dim, const detail::same_t<T> *source,
                 T *target, stream_ref stream = {}) const
    {
        return weft_cp_shard(raw_, dtype_of<T>(), dims, shape, dim, source, target, stream.get());
    }
    template <class T>
    status restore(int32_t dims, const int64_t *shape, int32_t dim, const detail::same_t<T> *source,
                   T *target, stream_ref stream = {}) const
    {
        return weft_cp_restore(raw_, dtype_of<T>(), dims, shape, dim, source, target, stream.get());
    }
};

/* ---- pipelines -------------------------------------------------------------------- */

/* Move-only.  A schedule that the ranks of a communicator run (pipeline.h). */
class pipeline
    : public detail::unique<detail::ref<weft_pipeline>, weft_pipeline, weft_pipeline_release>
{
public:
    using unique::unique;

    /* Collective. */
    static result<pipeline> create(comm_ref comm, const weft::schedule &schedule,
                                   const weft_pipeline_options &options)
    {
        return detail::make<pipeline>(weft_pipeline_create, comm.get(), schedule.get(), &options);
    }
    /* Collective.  The callbacks of the options are called for each action of this rank. */
    status run() const { return weft_pipeline_run(raw_); }
    result<weft_pipeline_info> info() const
    {
        return detail::describe<weft_pipeline_info>(weft_pipeline_get, raw_);
    }
    /* What STAGE passes on. */
    result<weft_pipeline_values> values(int32_t stage) const
    {
        weft_pipeline_values out{};
        status done = weft_pipeline_values_get(raw_, stage, &out);

        if (!done) return done;
        return out;
    }
};

/* ---- experts, overlapped matmuls and styles ---------------------------------------- */

/* Move-only.  Where the tokens of one step travel (experts.h). */
class routing : public detail::unique<detail::ref<weft_routing>, weft_routing, weft_routing_release>
{
public:
    using unique::unique;

    result<weft_routing_info> info() const
    {
        return detail::describe<weft_routing_info>(weft_routing_get, raw_);
    }
    template <class T>
    status dispatch(int64_t width, const T *tokens, T *received, stream_ref stream = {}) const
    {
        return weft_routing_dispatch(raw_, dtype_of<T>(), width, tokens, received, stream.get());
    }
    template <class T>
    status combine(int64_t width, const T *outputs, T *tokens, stream_ref stream = {}) const
    {
        return weft_routing_combine(raw_, dtype_of<T>(), width, outputs, tokens, stream.get());
    }
    /* The layout of the received tokens of all ranks. */
    result<spec> layout(weft_dtype dtype, int64_t width, stream_ref stream = {}) const
    {
        return detail::make<spec>(weft_routing_spec, raw_, dtype, width, stream.get());
    }
};

/* Move-only.  Experts on the ranks of a mesh axis (experts.h). */
class experts : public detail::unique<detail::ref<weft_experts>, weft_experts, weft_experts_release>
{
public:
    using unique::unique;

    static result<experts> create(context_ref context, const mesh &mesh, const char *axis,
                                  const weft_experts_options &options)
    {
        return detail::make<experts>(weft_experts_create, context.get(), mesh.get(), axis,
                                     &options);
    }
    result<routing> route(const int64_t *counts, stream_ref stream = {}) const
    {
        return detail::make<routing>(weft_experts_route, raw_, counts, stream.get());
    }
};

/* Move-only.  Matmuls that run while rows travel (overlap.h). */
class overlap_state : public detail::unique<detail::ref<weft_overlap_state>, weft_overlap_state,
                                            weft_overlap_release>
{
public:
    using unique::unique;
    using engine = weft_status(void *user, const weft_overlap_rows *rows);

    static result<overlap_state> create(comm_ref comm, const weft_overlap_options &options)
    {
        return detail::make<overlap_state>(weft_overlap_create, comm.get(), &options);
    }
    result<weft_overlap_info> info(const weft_overlap_call &call) const
    {
        return detail::describe<weft_overlap_info>(weft_overlap_get, raw_, &call);
    }
    status gather(const weft_overlap_call &call, const void *input, engine *consume, void *user,
                  stream_ref stream = {}) const
    {
        return weft_overlap_gather(raw_, &call, input, consume, user, stream.get());
    }
    status reduce_scatter(const weft_overlap_call &call, engine *produce, void *user, void *output,
                          stream_ref stream = {}) const
    {
        return weft_overlap_reduce_scatter(raw_, &call, produce, user, output, stream.get());
    }
};

/* The four layouts of one part of a module (style.h). */
struct style_layouts {
    spec from, to, gradient_from, gradient_to;

    static result<style_layouts> create(const weft_style &style, weft_style_part part,
                                        const spec &tensor, int32_t axis)
    {
        weft_spec *made[WEFT_STYLE_LAYOUTS] = {};
        status done = weft_style_layouts(&style, part, tensor.get(), axis, made);

        if (!done) return done;
        return style_layouts{spec(made[WEFT_STYLE_FROM]), spec(made[WEFT_STYLE_TO]),
                             spec(made[WEFT_STYLE_GRADIENT_FROM]),
                             spec(made[WEFT_STYLE_GRADIENT_TO])};
    }
};

/* Move-only.  A list of styles by patterns of names (style.h). */
class styles : public detail::unique<detail::ref<weft_styles>, weft_styles, weft_styles_release>
{
public:
    using unique::unique;

    /* On MESH, unless it is null, instead of the mesh of TEXT. */
    static result<styles> parse(const char *text, const weft_mesh *mesh = nullptr)
    {
        return detail::make<styles>(weft_styles_parse, text, mesh);
    }
    weft::mesh mesh() const { return retain<weft::mesh>(weft_styles_mesh(raw_)); }
    /* The layout of the tensor NAME. */
    result<spec> apply(const char *name, weft_style_part part, const spec &tensor) const
    {
        return detail::make<spec>(weft_styles_apply, raw_, name, part, tensor.get());
    }
};

/* ---- starting ranks, listing plugins ----------------------------------------------- */

/* Move-only.  Ranks that are threads of the caller (context.h).  It must outlive their contexts. */
class threads : public detail::unique<detail::ref<weft_threads>, weft_threads, weft_threads_release>
{
public:
    using unique::unique;

    static result<threads> create(int32_t size)
    {
        return detail::make<threads>(weft_threads_create, size);
    }
};

/* Run RANK_MAIN() as SIZE ranks, each on its own thread (weft_threads_run).  All threads call the
 * same RANK_MAIN, which returns a status or a weft_status.  If it throws, its rank fails: with the
 * status of a weft::exception, otherwise with WEFT_ERR_ABORTED. */
template <class Function> status threads_run(int32_t size, Function rank_main)
{
    auto call = [](void *argument) -> weft_status {
        Function &run = *static_cast<Function *>(argument);
#if defined(__cpp_exceptions)
        try {
            return status(run()).code();
        } catch (const exception &thrown) {
            return weft_fail(thrown.code(), "%s", thrown.what());
        } catch (const std::exception &thrown) {
            return weft_fail(WEFT_ERR_ABORTED, "the rank threw an exception: %s", thrown.what());
        } catch (...) {
            return weft_fail(WEFT_ERR_ABORTED, "the rank threw an exception");
        }
#else
        return status(run()).code();
#endif
    };

    return weft_threads_run(size, call, &rank_main);
}

/* Move-only.  The server that the ranks of a launcher connect to (launch.h).  Release closes it. */
class rendezvous
    : public detail::unique<detail::ref<weft_rendezvous>, weft_rendezvous, weft_rendezvous_close>
{
public:
    using unique::unique;

    static result<rendezvous> open(const weft_rendezvous_options &options)
    {
        return detail::make<rendezvous>(weft_rendezvous_open, &options);
    }
    const char *address() const { return weft_rendezvous_address(raw_); }
    const char *token() const { return weft_rendezvous_token(raw_); }
    status serve() const { return weft_rendezvous_serve(raw_); }
    void report_gone(int32_t rank, const char *text) const
    {
        weft_rendezvous_report_gone(raw_, rank, text);
    }
};

/* Move-only.  The plugins that exist, and why each is usable or not (backend.h). */
class backends
    : public detail::unique<detail::ref<weft_backends>, weft_backends, weft_backends_release>
{
public:
    using unique::unique;

    static result<backends> create(const weft_backend_options *options = nullptr)
    {
        return detail::make<backends>(weft_backends_create, options);
    }
    size_t count() const { return weft_backends_count(raw_); }
    result<weft_backend_info> info(size_t index) const
    {
        return detail::describe<weft_backend_info>(weft_backends_get, raw_, index);
    }
    result<size_t> choose(weft_role role = WEFT_ROLE_COMM) const
    {
        return detail::ask<size_t>(weft_backends_choose, raw_, role);
    }
};

/* Borrowed.  The ring of a rank, as it was when it was read (ring.h). */
class ring_ref : public detail::ref<weft_ring>
{
public:
    using ref::ref;

    status refresh() const { return weft_ring_refresh(raw_); }
    result<weft_ring_info> info() const
    {
        return detail::describe<weft_ring_info>(weft_ring_get, raw_);
    }
    const weft_record *record(uint64_t id) const { return weft_ring_record(raw_, id); }
    const char *text(uint32_t number) const { return weft_ring_text(raw_, number); }
    /* As weft_record_print, for RECORD of this ring. */
    std::string print(const weft_record &record) const
    {
        std::string out(weft_ring_print(raw_, &record, nullptr, 0), '\0');

        (void)weft_ring_print(raw_, &record, &out[0], out.size() + 1);
        return out;
    }
    size_t comm_count() const { return weft_ring_comm_count(raw_); }
    result<weft_ring_comm_info> comm_info(size_t index) const
    {
        return detail::describe<weft_ring_comm_info>(weft_ring_comm_get, raw_, index);
    }
};

/* Move-only.  A ring in a file of its own. */
class ring : public detail::unique<ring_ref, weft_ring, weft_ring_close>
{
public:
    using unique::unique;

    static result<ring> open(const char *path) { return detail::make<ring>(weft_ring_open, path); }
};

/* Move-only.  The rings of this user's ranks on this host. */
class rings : public detail::unique<detail::ref<weft_rings>, weft_rings, weft_rings_release>
{
public:
    using unique::unique;

    static result<rings> create() { return detail::make<rings>(weft_rings_create); }
    size_t count() const { return weft_rings_count(raw_); }
    ring_ref at(size_t index) const { return weft_rings_at(raw_, index); }
    const char *problem(size_t index) const { return weft_rings_problem(raw_, index); }
    const char *folder(size_t index) const { return weft_rings_folder(raw_, index); }
};

/* ---- checkpoints ---------------------------------------------------------------- */

class checkpoint
    : public detail::unique<detail::ref<weft_checkpoint>, weft_checkpoint, weft_checkpoint_close>
{
public:
    using unique::unique;

    static result<checkpoint> open(const char *path)
    {
        return detail::make<checkpoint>(weft_checkpoint_open, path);
    }
    result<weft_checkpoint_info> info() const
    {
        return detail::describe<weft_checkpoint_info>(weft_checkpoint_get, raw_);
    }
    result<weft_checkpoint_tensor_info> tensor(size_t index) const
    {
        return detail::describe<weft_checkpoint_tensor_info>(weft_checkpoint_tensor_get, raw_,
                                                             index);
    }
    result<weft_checkpoint_unlisted_info> unlisted(size_t index) const
    {
        return detail::describe<weft_checkpoint_unlisted_info>(weft_checkpoint_unlisted_get, raw_,
                                                               index);
    }
    result<size_t> find(const char *name) const
    {
        return detail::ask<size_t>(weft_checkpoint_find, raw_, name);
    }
    status read(size_t index, const int64_t *offset, const int64_t *sizes, void *target) const
    {
        return weft_checkpoint_read(raw_, index, offset, sizes, target);
    }
    status read_shard(size_t index, const spec &layout, int32_t rank, void *target) const
    {
        return weft_checkpoint_read_shard(raw_, index, layout.get(), rank, target);
    }
};

/* Without a commit, the destructor removes what was written. */
class checkpoint_writer
    : public detail::unique<detail::ref<weft_checkpoint_writer>, weft_checkpoint_writer,
                            weft_checkpoint_writer_close>
{
public:
    using unique::unique;

    static result<checkpoint_writer> create(const char *path, const weft_checkpoint_entry *entries,
                                            size_t count,
                                            const weft_checkpoint_options *options = nullptr)
    {
        return detail::make<checkpoint_writer>(weft_checkpoint_create, path, entries, count,
                                               options);
    }
    status write(size_t index, const int64_t *offset, const int64_t *sizes, const void *source)
    {
        return weft_checkpoint_write(raw_, index, offset, sizes, source);
    }
    status commit() { return weft_checkpoint_commit(raw_); }
};

class layout : public detail::unique<detail::ref<weft_layout>, weft_layout, weft_layout_release>
{
public:
    using unique::unique;

    /* MESH, if it is given, replaces the mesh of the text. */
    static result<layout> parse(const char *text, const weft_mesh *mesh = nullptr)
    {
        return detail::make<layout>(weft_layout_parse, text, mesh);
    }
    static result<layout> open(const char *path, const weft_mesh *mesh = nullptr)
    {
        return detail::make<layout>(weft_layout_open, path, mesh);
    }
    result<const char *> find(const char *name) const
    {
        return detail::ask<const char *>(weft_layout_find, raw_, name);
    }
};

/* Rules that make tensors of other tensors. */
class rules : public detail::unique<detail::ref<weft_rules>, weft_rules, weft_rules_release>
{
public:
    using unique::unique;

    /* VALUES, such as "heads=32", replaces values of the text. */
    static result<rules> parse(const char *text, const char *values = nullptr)
    {
        return detail::make<rules>(weft_rules_parse, text, values);
    }
    static result<rules> open(const char *path, const char *values = nullptr)
    {
        return detail::make<rules>(weft_rules_open, path, values);
    }
    /* The tensors that the rules make of those of FROM, which must live as long as the result. */
    result<checkpoint> map(const checkpoint &from) const
    {
        return detail::make<checkpoint>(weft_checkpoint_map, from.get(), raw_);
    }
};

/* The checkpoint must live as long as the plan. */
class reshard : public detail::unique<detail::ref<weft_reshard>, weft_reshard, weft_reshard_close>
{
public:
    using unique::unique;

    static result<reshard> create(const checkpoint &from, const char *path,
                                  const weft_reshard_options *options = nullptr)
    {
        return detail::make<reshard>(weft_reshard_create, from.get(), path, options);
    }
    result<weft_reshard_info> info() const
    {
        return detail::describe<weft_reshard_info>(weft_reshard_get, raw_);
    }
    result<weft_reshard_file_info> file(size_t index) const
    {
        return detail::describe<weft_reshard_file_info>(weft_reshard_file_get, raw_, index);
    }
    /* Nanoseconds of run(), from a sample. */
    result<uint64_t> predict() const { return detail::ask<uint64_t>(weft_reshard_predict, raw_); }
    status run() { return weft_reshard_run(raw_); }
};

/* Collective.  OUT gets as many tensors as are loaded; the caller owns them. */
inline status load(context_ref context, const checkpoint &from, const layout &layout,
                   weft_tensor **out, const weft_load_options *options = nullptr)
{
    return weft_load(context.get(), from.get(), layout.get(), options, out);
}
/* Collective. */
inline status save(context_ref context, const char *path, weft_tensor *const *tensors, size_t count,
                   const weft_save_options *options = nullptr)
{
    return weft_save(context.get(), path, tensors, count, options);
}

/* A checkpoint that is written while the program goes on.  The destructor waits for its end. */
class saving : public detail::unique<detail::ref<weft_saving>, weft_saving, weft_saving_release>
{
public:
    using unique::unique;

    /* Collective.  The tensors may change afterwards. */
    static result<saving> begin(context_ref context, const char *path, weft_tensor *const *tensors,
                                size_t count, const weft_save_options *options = nullptr)
    {
        return detail::make<saving>(weft_save_begin, context.get(), path, tensors, count, options);
    }
    result<weft_saving_info> info() const
    {
        return detail::describe<weft_saving_info>(weft_saving_get, raw_);
    }
    status wait(int64_t timeout_ns = WEFT_FOREVER) const
    {
        return weft_saving_wait(raw_, timeout_ns);
    }
};

/* ---- fully sharded data parallel ------------------------------------------------- */

/* What groups share (fsdp.h). */
class fsdp : public detail::unique<detail::ref<weft_fsdp>, weft_fsdp, weft_fsdp_release>
{
public:
    using unique::unique;

    /* Collective over all ranks of the job. */
    static result<fsdp> create(context_ref context, const weft_fsdp_options *options = nullptr)
    {
        return detail::make<fsdp>(weft_fsdp_create, context.get(), options);
    }
    /* The layout in which AXES also split dimension DIM of a tensor of layout SPEC. */
    static result<weft::spec> shard_spec(const weft::spec &spec, const char *axes, int32_t dim)
    {
        return detail::make<weft::spec>(weft_fsdp_shard_spec, spec.get(), axes, dim);
    }
};

/* Parameters that travel together. */
class fsdp_group
    : public detail::unique<detail::ref<weft_fsdp_group>, weft_fsdp_group, weft_fsdp_group_release>
{
public:
    using unique::unique;

    /* Collective over the ranks of the parameters' meshes. */
    static result<fsdp_group> create(const weft::fsdp &fsdp, uint32_t count,
                                     const weft_fsdp_param *params,
                                     const weft_fsdp_group_options *options = nullptr)
    {
        return detail::make<fsdp_group>(weft_fsdp_group_create, fsdp.get(), count, params, options);
    }
    status unshard_begin(weft_fsdp_phase phase) const
    {
        return weft_fsdp_unshard_begin(raw_, phase);
    }
    status unshard_end() const { return weft_fsdp_unshard_end(raw_); }
    status reshard() const { return weft_fsdp_reshard(raw_); }
    status reshard_to(int32_t ranks) const { return weft_fsdp_reshard_to(raw_, ranks); }
    status prefetch(weft_fsdp_phase phase, uint32_t count, weft_fsdp_group *const *targets) const
    {
        return weft_fsdp_prefetch_set(raw_, phase, count, targets);
    }
    /* One tensor per parameter; NULL is an absent gradient. */
    status reduce_begin(weft_tensor *const *gradients, uint32_t flags = 0) const
    {
        return weft_fsdp_reduce_begin(raw_, gradients, flags);
    }
    status reduce_end() const { return weft_fsdp_reduce_end(raw_); }
    status gradients_clear() const { return weft_fsdp_gradients_clear(raw_); }
    status rebind(uint32_t index, const tensor &tensor) const
    {
        return weft_fsdp_rebind(raw_, index, tensor.get());
    }
    /* The gathered parameter and the reduced gradient; empty while the group has none. */
    tensor parameter(uint32_t index) const
    {
        return tensor(weft_tensor_retain(weft_fsdp_parameter(raw_, index)));
    }
    tensor gradient(uint32_t index) const
    {
        return tensor(weft_tensor_retain(weft_fsdp_gradient(raw_, index)));
    }
    spec gradient_spec(uint32_t index) const
    {
        return spec(weft_spec_retain(weft_fsdp_gradient_spec(raw_, index)));
    }
    result<tensor> gradient_create(uint32_t index) const
    {
        return detail::make<tensor>(weft_fsdp_gradient_create, raw_, index);
    }
    result<weft_fsdp_group_info> info() const
    {
        return detail::describe<weft_fsdp_group_info>(weft_fsdp_group_get, raw_);
    }
};

/* Gradients clipped by their norm, which is written to TOTAL in device memory, or by value
 * (clip.h).  The first is collective. */
inline status clip_grad_norm(context_ref context, uint32_t count, weft_tensor *const *tensors,
                             double max_norm, const weft_clip_options *options = nullptr,
                             stream_ref stream = {}, double *total = nullptr)
{
    return weft_clip_grad_norm(context.get(), count, tensors, max_norm, options, stream.get(),
                               total);
}
inline status clip_grad_value(context_ref context, uint32_t count, weft_tensor *const *tensors,
                              double most, stream_ref stream = {})
{
    return weft_clip_grad_value(context.get(), count, tensors, most, stream.get());
}

} // namespace weft

#endif
