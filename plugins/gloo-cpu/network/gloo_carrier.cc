// gloo_carrier.cc - the Gloo library as a carrier (network.h).
#include "network.h"

#include "gloo_transport.hpp"

#include <gloo/common/error.h>
#include <gloo/config.h>
#include <gloo/transport/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace tcp = gloo::transport::tcp;
using std::chrono::milliseconds;
using weft_gloo::Aborted;
using weft_gloo::AnyBuffer;
using weft_gloo::Transport;

namespace
{

// The top byte of a slot: the kind of a message (enum net_kind), or one of these.
constexpr uint64_t kHandshakeSlot = UINT64_C(0xf0) << 56;
constexpr uint64_t kNoticeSlot = UINT64_C(0xf1) << 56;
constexpr milliseconds kNoticeTimeout{200};

} // namespace

struct net_group {
    int rank, size;
    milliseconds timeout;
    std::vector<uint8_t> wanted;
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<Transport> transport;
    std::vector<char> address; // of this rank: an Address for every rank, zeros if it is not wanted
    std::vector<std::vector<uint8_t>> notices; // by peer: the received notice
    std::vector<AnyBuffer> notice_buffers;
    std::atomic<bool> connected{false};
};

struct net_work {
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

weft_status fail(net_failure *failure, weft_status status, int32_t peer, const char *text)
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
weft_status guarded(net_failure *failure, const int32_t *peer, weft_status otherwise, Body body)
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

// ---- making and ending ----

weft_status listen_group(const net_ranks *ranks, net_group **out, net_failure *failure)
{
    return guarded(failure, &nobody, WEFT_ERR_SYSTEM, [&] {
        auto group = std::make_unique<net_group>();

        group->rank = ranks->rank;
        group->size = ranks->size;
        group->timeout = to_milliseconds(ranks->timeout_ns);
        group->wanted.assign(ranks->wanted, ranks->wanted + ranks->size);
        group->address.resize(static_cast<size_t>(ranks->size) * sizeof(Address));
        group->device = tcp::CreateDevice(tcp::attr(ranks->address));
        auto inner = group->device->createContext(ranks->rank, ranks->size);
        // Gloo waits five times as long for a connection; other waits are given their limit.
        inner->setTimeout(std::max(group->timeout / 5, milliseconds(1)));
        group->transport = std::make_shared<Transport>(inner);
        for (int32_t peer = 0; peer < ranks->size; peer++) {
            Address address = {};
            if (!ranks->wanted[peer]) continue;
            std::vector<char> bytes = inner->createPair(peer)->address().bytes();
            if (bytes.size() > sizeof address.data) throw std::length_error("an address too long");
            address.bytes = static_cast<uint32_t>(bytes.size());
            std::copy(bytes.begin(), bytes.end(), address.data);
            std::memcpy(&group->address[static_cast<size_t>(peer) * sizeof address], &address,
                        sizeof address);
        }
        *out = group.release();
    });
}

size_t address_bytes(const net_group *group)
{
    return group->address.size();
}

void write_address(const net_group *group, void *out)
{
    std::memcpy(out, group->address.data(), group->address.size());
}

struct Handshake {
    uint64_t key;
    int32_t from, to;
};

void shake_hands(net_group *group, uint64_t key, int32_t *peer)
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
void expect_notices(net_group *group)
{
    group->notices.resize(static_cast<size_t>(group->size));
    group->notice_buffers.resize(static_cast<size_t>(group->size));
    for (int32_t peer = 0; peer < group->size; peer++) {
        size_t i = static_cast<size_t>(peer);
        if (!group->wanted[i]) continue;
        group->notices[i].assign(NET_NOTICE_BYTES, 0);
        AnyBuffer buffer =
            group->transport->createUnboundBuffer(group->notices[i].data(), NET_NOTICE_BYTES);
        try {
            buffer->recv(peer, kNoticeSlot, 0, NET_NOTICE_BYTES);
            group->notice_buffers[i] = std::move(buffer);
        } catch (const gloo::Exception &) {
        }
    }
}

// Where a network has just come up, hosts may be unreachable for a moment.
bool may_pass(const gloo::IoException &error)
{
    return std::strstr(error.what(), "No route to host") != nullptr ||
           std::strstr(error.what(), "Network is unreachable") != nullptr;
}

void connect_pair(net_group *group, int32_t peer, const std::vector<char> &address)
{
    const auto until = std::chrono::steady_clock::now() + group->timeout;

    for (;;) {
        try {
            group->transport->getPair(peer)->connect(address);
            return;
        } catch (const gloo::IoException &error) {
            if (!may_pass(error) || std::chrono::steady_clock::now() >= until) throw;
        }
        std::this_thread::sleep_for(milliseconds(100));
        group->transport->createPair(peer); // a pair does not connect twice
    }
}

weft_status connect_group(net_group *group, const void *addresses, size_t stride, uint64_t key,
                          net_failure *failure)
{
    int32_t peer = -1;

    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        for (peer = 0; peer < group->size; peer++) {
            Address address;
            if (!group->wanted[static_cast<size_t>(peer)]) continue;
            std::memcpy(&address,
                        static_cast<const char *>(addresses) + stride * static_cast<size_t>(peer) +
                            sizeof address * static_cast<size_t>(group->rank),
                        sizeof address);
            if (address.bytes > sizeof address.data) throw std::length_error("an address too long");
            connect_pair(group, peer,
                         std::vector<char>(address.data, address.data + address.bytes));
        }
        shake_hands(group, key, &peer);
        expect_notices(group);
        group->connected = true;
    });
}

// Close the pairs first: the device's thread refers to them, and through them to the buffers.
void close_group(net_group *group)
{
    if (group == nullptr) return;
    for (int32_t peer = 0; peer < group->size; peer++)
        group->transport->getPair(peer).reset();
    delete group;
}

void abort_group(net_group *group)
{
    group->transport->abort();
}

// ---- messages ----

// Gloo cannot handle a match of messages of different lengths.  A hash of the length is therefore a
// part of the slot: such messages wait until the time limit.
uint64_t slot_of(const net_part &part)
{
    uint64_t hash = part.bytes * UINT64_C(0x9e3779b97f4a7c15) >> 40;

    return static_cast<uint64_t>(part.kind) << 56 | static_cast<uint64_t>(part.tag) << 24 | hash;
}

void need_connected(const net_group *group)
{
    if (!group->connected) throw gloo::IoException("the connections have ended");
}

weft_status start(net_group *group, uint32_t send_count, const net_part *sends,
                  uint32_t receive_count, const net_part *receives, net_work **out,
                  net_failure *failure)
{
    int32_t peer = -1;

    if (send_count + receive_count == 0) {
        *out = nullptr;
        return WEFT_OK;
    }
    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        auto work = std::make_unique<net_work>();

        need_connected(group);
        work->pending.reserve(send_count + receive_count);
        for (uint32_t i = 0; i < receive_count; i++) {
            const net_part &part = receives[i];
            peer = part.peer;
            AnyBuffer buffer = group->transport->createUnboundBuffer(part.data, part.bytes);
            buffer->recv(part.peer, slot_of(part), 0, part.bytes);
            work->pending.push_back({part.peer, true, std::move(buffer)});
        }
        for (uint32_t i = 0; i < send_count; i++) {
            const net_part &part = sends[i];
            peer = part.peer;
            AnyBuffer buffer = group->transport->createUnboundBuffer(part.data, part.bytes);
            buffer->send(part.peer, slot_of(part), 0, part.bytes);
            work->pending.push_back({part.peer, false, std::move(buffer)});
        }
        *out = work.release();
    });
}

weft_status wait(net_group *group, net_work *work, net_failure *failure)
{
    std::unique_ptr<net_work> owned(work);
    int32_t peer = -1;

    if (work == nullptr) return WEFT_OK;
    return guarded(failure, &peer, WEFT_ERR_INTERNAL, [&] {
        for (net_work::Pending &pending : work->pending) {
            peer = pending.peer;
            if (pending.receives)
                pending.buffer->waitRecv(group->timeout);
            else
                pending.buffer->waitSend(group->timeout);
        }
    });
}

// ---- notices of failure ----

void hang_up(net_group *group, const void *notice)
{
    NoBrokenPipe guard;

    if (!group->connected.exchange(false)) return;
    for (int32_t peer = 0; peer < group->size; peer++) {
        if (!group->wanted[static_cast<size_t>(peer)]) continue;
        try {
            AnyBuffer buffer =
                group->transport->createUnboundBuffer(const_cast<void *>(notice), NET_NOTICE_BYTES);
            buffer->send(peer, kNoticeSlot, 0, NET_NOTICE_BYTES);
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

void read_notice(net_group *group, int32_t peer, void *notice)
{
    std::memset(notice, 0, NET_NOTICE_BYTES);
    if (peer < 0 || static_cast<size_t>(peer) >= group->notice_buffers.size()) return;
    if (!group->notice_buffers[static_cast<size_t>(peer)]) return;
    try {
        group->notice_buffers[static_cast<size_t>(peer)]->waitRecv(kNoticeTimeout);
        std::memcpy(notice, group->notices[static_cast<size_t>(peer)].data(), NET_NOTICE_BYTES);
    } catch (...) { // the peer sent no notice
    }
}

void transport(net_group *, char *out, size_t bytes)
{
    std::snprintf(out, bytes, "tcp");
}

} // namespace

extern "C" __attribute__((visibility("default"))) const struct net_carrier *weft_gloo_carrier(void)
{
    static const std::string library = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
                                       std::to_string(GLOO_VERSION_MINOR) + "." +
                                       std::to_string(GLOO_VERSION_PATCH);
    static const struct net_carrier carrier = {
        NET_VERSION,   library.c_str(), listen_group, address_bytes, write_address,
        connect_group, close_group,     abort_group,  start,         wait,
        hang_up,       read_notice,     transport,    nullptr,       nullptr, // requests of peers
    };
    return &carrier;
}
