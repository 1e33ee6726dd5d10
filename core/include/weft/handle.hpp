/* handle.hpp - results, and the owning handles that the classes of weft.hpp are made of.
 *
 * Errors: a call that creates or finds something returns a result, any other call a status.  The
 * header needs neither exceptions nor RTTI.  With exceptions, or_throw() throws a failure.  Nothing
 * else throws, except members that return a std::string if there is no memory for it. */
#ifndef WEFT_HANDLE_HPP
#define WEFT_HANDLE_HPP

#include <weft/weft.h>

#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
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
        this->reset(Retain(other.raw_)); /* the reference of OTHER keeps it, even if it is *this */
        return *this;
    }
    static T *add_reference(const T *raw) noexcept { return Retain(raw); }
};

/* Call FUNCTION with the place of its result as last argument: an object, a value, a struct that
 * begins with struct_size, or a text.  FUNCTION of value() cannot fail. */
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

    do { /* a text may be longer when it is asked for again */
        out.resize(length);
        status done = function(arguments..., &out[0], out.size() + 1, &length);
        if (!done) return done;
    } while (length > out.size());
    out.resize(length);
    return out;
}

template <class T, class Function, class... Arguments>
T value(Function function, Arguments... arguments) noexcept
{
    T out{};

    function(arguments..., &out);
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

} // namespace weft

#endif
