// gloo_bridge.cc - see gloo_bridge.h.
#include "gloo_bridge.h"

#include "gloo_transport.hpp"

#include <gloo/allgatherv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/config.h>
#include <gloo/transport/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace tcp = gloo::transport::tcp;
using std::chrono::milliseconds;
using weft_gloo::Aborted;
using weft_gloo::AnyBuffer;
using weft_gloo::Context;
using weft_gloo::Transport;

namespace
{

// Gloo's collectives use prefixes 1 to 8 in the top byte of a slot.  Callers of start use 0.
constexpr uint64_t kHandshakeSlot = UINT64_C(0xf0) << 56;
constexpr uint64_t kNoticeSlot = UINT64_C(0xf1) << 56;
constexpr uint64_t kProbeSlot = UINT64_C(0xf2) << 56;
constexpr milliseconds kNoticeTimeout{200};

} // namespace

struct gloo_device {
    std::shared_ptr<gloo::transport::Device> device;
};

struct gloo_group {
    int rank, size;
    milliseconds timeout;
    std::vector<uint8_t> wanted;
    std::shared_ptr<Transport> transport;
    std::shared_ptr<Context> context;
    std::vector<std::vector<uint8_t>> notices; // by peer: the received notice
    std::vector<AnyBuffer> notice_buffers;
    std::atomic<bool> connected{false};
};

struct gloo_work {
    struct Pending {
        int32_t peer;
        bool receives;
        AnyBuffer buffer;
    };
    std::vector<Pending> pending;
};

namespace
{

// ---- failures ----

weft_status fail(gloo_failure *failure, weft_status status, int32_t peer, const char *text)
{
    failure->status = status;
    failure->peer = peer;
    std::snprintf(failure->text, sizeof failure->text, "%s", text);
    return status;
}

// Remove the "[file:line] " prefix of Gloo's messages.
const char *without_place(const char *text)
{
    const char *end = text[0] == '[' ? std::strstr(text, "] ") : nullptr;

    return end != nullptr ? end + 2 : text;
}

// Gloo writes to sockets whose other end may be closed.  SIGPIPE must not end the process.  Threads
// that Gloo starts meanwhile inherit the mask.
class NoBrokenPipe
{
  public:
    NoBrokenPipe()
    {
        sigset_t pending;

        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoBrokenPipe()
    {
        const struct timespec at_once = {0, 0};

        if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t pipe_, before_;
    bool was_pending_;
};

// Run BODY and convert any exception to a failure that names *PEER.
template <typename Body>
weft_status guarded(gloo_failure *failure, const int32_t *peer, weft_status otherwise, Body body)
{
    NoBrokenPipe guard;

    try {
        body();
        return WEFT_OK;
    } catch (const Aborted &) {
        return fail(failure, WEFT_ERR_ABORTED, -1, "the communicator was aborted");
    } catch (const gloo::IoException &error) {
        const char *text = without_place(error.what());
        bool late =
            std::strstr(text, "Timed out") != nullptr || std::strstr(text, "timeout") != nullptr;
        return fail(failure, late ? WEFT_ERR_TIMEOUT : WEFT_ERR_PEER, *peer, text);
    } catch (const std::bad_alloc &) {
        return fail(failure, WEFT_ERR_NO_MEMORY, -1, "out of memory");
    } catch (const std::exception &error) {
        return fail(failure, otherwise, *peer, without_place(error.what()));
    } catch (...) {
        return fail(failure, WEFT_ERR_INTERNAL, *peer, "an unknown exception in Gloo");
    }
}

const int32_t nobody = -1;

// An address with its length, as sent to peers.
struct Address {
    uint32_t bytes;
    char data[gloo::transport::Address::kMaxByteSize];
};

milliseconds to_milliseconds(int64_t ns)
{
    constexpr int64_t ten_years = INT64_C(10) * 365 * 24 * 3600 * 1000;

    if (ns < 0) return milliseconds(ten_years);
    return milliseconds(std::min(std::max(ns / 1000000, INT64_C(1)), ten_years));
}

// ---- devices and groups ----

weft_status device_open(const char *address, gloo_device **out, gloo_failure *failure)
{
    return guarded(failure, &nobody, WEFT_ERR_SYSTEM, [&] {
        tcp::attr attributes(address);
        *out = new gloo_device{tcp::CreateDevice(attributes)};
    });
}

void device_close(gloo_device *device)
{
    delete device;
}

weft_status group_listen(gloo_device *device, int32_t rank, int32_t size, const uint8_t *wanted,
                         int64_t timeout_ns, void *addresses, gloo_group **out,
                         gloo_failure *failure)
{
    return guarded(failure, &nobody, WEFT_ERR_SYSTEM, [&] {
        std::vector<Address> all(static_cast<size_t>(size));
        auto group = std::make_unique<gloo_group>();
        auto inner = device->device->createContext(rank, size);

        inner->setTimeout(to_milliseconds(timeout_ns));
        group->rank = rank;
        group->size = size;
        group->timeout = to_milliseconds(timeout_ns);
        group->wanted.assign(wanted, wanted + size);
        group->transport = std::make_shared<Transport>(inner);
        group->context =
            std::make_shared<Context>(device->device, group->transport, group->timeout);
        for (int32_t peer = 0; peer < size; peer++) {
            Address &address = all[static_cast<size_t>(peer)];
            if (!wanted[peer]) continue;
            std::vector<char> bytes = inner->createPair(peer)->address().bytes();
            if (bytes.size() > sizeof address.data) throw std::length_error("an address too long");
            address.bytes = static_cast<uint32_t>(bytes.size());
            std::copy(bytes.begin(), bytes.end(), address.data);
        }
        std::memcpy(addresses, all.data(), all.size() * sizeof(Address));
        *out = group.release();
    });
}

struct Handshake {
    uint64_t key;
    int32_t from, to;
};

void shake_hands(gloo_group *group, uint64_t key, int32_t *peer)
{
    size_t size = static_cast<size_t>(group->size);
    std::vector<Handshake> mine(size), theirs(size);
    std::vector<AnyBuffer> buffers(size);

    for (*peer = 0; *peer < group->size; ++*peer) {
        size_t i = static_cast<size_t>(*peer);
        if (!group->wanted[i]) continue;
        mine[i] = {key, group->rank, *peer};
        buffers[i] = group->transport->createUnboundBuffer(&mine[i], sizeof mine[i]);
        buffers[i]->send(*peer, kHandshakeSlot, 0, sizeof mine[i]);
    }
    for (*peer = 0; *peer < group->size; ++*peer) {
        size_t i = static_cast<size_t>(*peer);
        if (!group->wanted[i]) continue;
        AnyBuffer receive = group->transport->createUnboundBuffer(&theirs[i], sizeof theirs[i]);
        receive->recv(*peer, kHandshakeSlot, 0, sizeof theirs[i]);
        receive->waitRecv(group->timeout);
        buffers[i]->waitSend(group->timeout);
        if (theirs[i].key != key || theirs[i].from != *peer || theirs[i].to != group->rank)
            throw gloo::IoException("the other end of the connection does not belong to this job");
    }
}

// A peer that has already left sent no notice.  The first message to it fails.
void expect_notices(gloo_group *group)
{
    group->notices.resize(static_cast<size_t>(group->size));
    group->notice_buffers.resize(static_cast<size_t>(group->size));
    for (int32_t peer = 0; peer < group->size; peer++) {
        size_t i = static_cast<size_t>(peer);
        if (!group->wanted[i]) continue;
        group->notices[i].assign(GLOO_NOTICE_BYTES, 0);
        AnyBuffer buffer =
            group->transport->createUnboundBuffer(group->notices[i].data(), GLOO_NOTICE_BYTES);
        try {
            buffer->recv(peer, kNoticeSlot, 0, GLOO_NOTICE_BYTES);
            group->notice_buffers[i] = std::move(buffer);
        } catch (const gloo::Exception &) {
        }
    }
}

weft_status group_connect(gloo_group *group, const void *addresses, uint64_t key,
                          gloo_failure *failure)
{
    int32_t peer = -1;

    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        for (peer = 0; peer < group->size; peer++) {
            Address address;
            std::memcpy(&address, static_cast<const Address *>(addresses) + peer, sizeof address);
            if (!group->wanted[static_cast<size_t>(peer)]) continue;
            if (address.bytes > sizeof address.data) throw std::length_error("an address too long");
            group->transport->getPair(peer)->connect(
                std::vector<char>(address.data, address.data + address.bytes));
        }
        shake_hands(group, key, &peer);
        expect_notices(group);
        group->connected = true;
    });
}

// Close the pairs first: the device's thread refers to them, and through them to the buffers.
void group_close(gloo_group *group)
{
    if (group == nullptr) return;
    for (int32_t peer = 0; peer < group->size; peer++)
        group->transport->getPair(peer).reset();
    delete group;
}

void group_abort(gloo_group *group)
{
    group->transport->abort();
}

// ---- messages ----

void need_connected(const gloo_group *group)
{
    if (!group->connected) throw gloo::IoException("the connections have ended");
}

weft_status start(gloo_group *group, uint32_t send_count, const gloo_part *sends,
                  uint32_t receive_count, const gloo_part *receives, gloo_work **out,
                  gloo_failure *failure)
{
    int32_t peer = -1;

    if (send_count + receive_count == 0) {
        *out = nullptr;
        return WEFT_OK;
    }
    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        auto work = std::make_unique<gloo_work>();

        need_connected(group);
        work->pending.reserve(send_count + receive_count);
        for (uint32_t i = 0; i < receive_count; i++) {
            const gloo_part &part = receives[i];
            peer = part.peer;
            AnyBuffer buffer = group->transport->createUnboundBuffer(part.data, part.bytes);
            buffer->recv(part.peer, part.slot, 0, part.bytes);
            work->pending.push_back({part.peer, true, std::move(buffer)});
        }
        for (uint32_t i = 0; i < send_count; i++) {
            const gloo_part &part = sends[i];
            peer = part.peer;
            AnyBuffer buffer = group->transport->createUnboundBuffer(part.data, part.bytes);
            buffer->send(part.peer, part.slot, 0, part.bytes);
            work->pending.push_back({part.peer, false, std::move(buffer)});
        }
        *out = work.release();
    });
}

weft_status wait(gloo_group *group, gloo_work *work, gloo_failure *failure)
{
    std::unique_ptr<gloo_work> owned(work);
    int32_t peer = -1;

    if (work == nullptr) return WEFT_OK;
    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        for (gloo_work::Pending &pending : work->pending) {
            peer = pending.peer;
            if (pending.receives)
                pending.buffer->waitRecv(group->timeout);
            else
                pending.buffer->waitSend(group->timeout);
        }
    });
}

// ---- Gloo's collectives ----

// They do not name the peer that failed.  It is the peer to which a message cannot be sent.
int32_t broken_peer(gloo_group *group)
{
    for (int32_t peer = 0; peer < group->size; peer++) {
        if (!group->wanted[static_cast<size_t>(peer)]) continue;
        try {
            group->transport->createUnboundBuffer(nullptr, 0)->send(peer, kProbeSlot, 0, 0);
        } catch (...) {
            return peer;
        }
    }
    return -1;
}

template <typename Body> weft_status collective(gloo_group *group, gloo_failure *failure, Body body)
{
    weft_status status = guarded(failure, &nobody, WEFT_ERR_INTERNAL, [&] {
        need_connected(group);
        body();
    });

    if (status == WEFT_ERR_PEER && group->connected) failure->peer = broken_peer(group);
    return status;
}

weft_status all_gather_v(gloo_group *group, void *data, const size_t *bytes, gloo_failure *failure)
{
    return collective(group, failure, [&] {
        gloo::AllgathervOptions options(group->context);
        options.setOutput(static_cast<uint8_t *>(data),
                          std::vector<size_t>(bytes, bytes + group->size));
        gloo::allgatherv(options);
    });
}

weft_status broadcast(gloo_group *group, void *data, size_t bytes, int32_t root,
                      gloo_failure *failure)
{
    return collective(group, failure, [&] {
        gloo::BroadcastOptions options(group->context);
        options.setOutput(static_cast<uint8_t *>(data), bytes);
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

weft_status barrier(gloo_group *group, gloo_failure *failure)
{
    return collective(group, failure, [&] {
        gloo::BarrierOptions options(group->context);
        gloo::barrier(options);
    });
}

// ---- notices of failure ----

void hang_up(gloo_group *group, const void *notice)
{
    NoBrokenPipe guard;

    if (!group->connected.exchange(false)) return;
    for (int32_t peer = 0; peer < group->size; peer++) {
        if (!group->wanted[static_cast<size_t>(peer)]) continue;
        try {
            AnyBuffer buffer = group->transport->createUnboundBuffer(const_cast<void *>(notice),
                                                                     GLOO_NOTICE_BYTES);
            buffer->send(peer, kNoticeSlot, 0, GLOO_NOTICE_BYTES);
            buffer->waitSend(kNoticeTimeout);
        } catch (...) { // the peer is already unreachable
        }
    }
    group->transport->abort();
    for (int32_t peer = 0; peer < group->size; peer++) {
        try {
            if (group->wanted[static_cast<size_t>(peer)]) group->transport->getPair(peer)->close();
        } catch (...) {
        }
    }
}

void read_notice(gloo_group *group, int32_t peer, void *notice)
{
    std::memset(notice, 0, GLOO_NOTICE_BYTES);
    if (peer < 0 || static_cast<size_t>(peer) >= group->notice_buffers.size()) return;
    if (!group->notice_buffers[static_cast<size_t>(peer)]) return;
    try {
        group->notice_buffers[static_cast<size_t>(peer)]->waitRecv(kNoticeTimeout);
        std::memcpy(notice, group->notices[static_cast<size_t>(peer)].data(), GLOO_NOTICE_BYTES);
    } catch (...) { // the peer sent no notice
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) const struct gloo_bridge *weft_gloo_bridge(void)
{
    static const std::string library = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
                                       std::to_string(GLOO_VERSION_MINOR) + "." +
                                       std::to_string(GLOO_VERSION_PATCH);
    static const struct gloo_bridge bridge = {
        GLOO_BRIDGE_VERSION,
        sizeof(Address),
        library.c_str(),
        device_open,
        device_close,
        group_listen,
        group_connect,
        group_close,
        group_abort,
        start,
        wait,
        all_gather_v,
        broadcast,
        barrier,
        hang_up,
        read_notice,
    };
    return &bridge;
}
