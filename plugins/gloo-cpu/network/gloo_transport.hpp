// gloo_transport.hpp - Gloo's TCP transport with waits that can be aborted.
//
// Gloo can abort the wait on a buffer, but hides the buffers of its algorithms.  The transport's
// context creates all buffers, so this context replaces Gloo's and keeps a list of them.
#ifndef WEFT_CPU_GLOO_TRANSPORT_HPP
#define WEFT_CPU_GLOO_TRANSPORT_HPP

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace weft_gloo
{

using std::chrono::milliseconds;

// Thrown by aborted waits.
struct Aborted {
};

class Transport;
using AnyBuffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// A buffer of Gloo that is in the group's list while it exists.
class Buffer final : public gloo::transport::UnboundBuffer
{
  public:
    Buffer(Transport *transport, AnyBuffer inner);
    ~Buffer() override;
    bool waitRecv(int *rank, milliseconds timeout) override
    {
        if (!inner_->waitRecv(rank, timeout)) throw Aborted();
        return true;
    }
    bool waitSend(int *rank, milliseconds timeout) override
    {
        if (!inner_->waitSend(rank, timeout)) throw Aborted();
        return true;
    }
    void abortWaitRecv() override
    {
        inner_->abortWaitRecv();
    }
    void abortWaitSend() override
    {
        inner_->abortWaitSend();
    }
    void send(int peer, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->send(peer, slot, offset, bytes);
    }
    void recv(int peer, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->recv(peer, slot, offset, bytes);
    }
    void recv(std::vector<int> peers, uint64_t slot, size_t offset, size_t bytes) override
    {
        inner_->recv(std::move(peers), slot, offset, bytes);
    }

  private:
    Transport *transport_;
    AnyBuffer inner_;
};

// Gloo's context, with a list of all buffers so that every wait can be aborted.
class Transport final : public gloo::transport::Context
{
  public:
    explicit Transport(const std::shared_ptr<gloo::transport::Context> &inner)
        : gloo::transport::Context(inner->rank, inner->size), inner_(inner)
    {
    }
    std::unique_ptr<gloo::transport::Pair> &getPair(int peer) override
    {
        return inner_->getPair(peer);
    }
    std::unique_ptr<gloo::transport::Pair> &createPair(int peer) override
    {
        return inner_->createPair(peer);
    }
    AnyBuffer createUnboundBuffer(void *data, size_t bytes) override
    {
        return std::make_unique<Buffer>(this, inner_->createUnboundBuffer(data, bytes));
    }

    void enlist(Buffer *buffer)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (aborted_) throw Aborted();
        live_.insert(buffer);
    }
    void dismiss(Buffer *buffer)
    {
        std::lock_guard<std::mutex> guard(lock_);
        live_.erase(buffer);
    }
    void abort()
    {
        std::lock_guard<std::mutex> guard(lock_);
        aborted_ = true;
        for (Buffer *buffer : live_) {
            buffer->abortWaitRecv();
            buffer->abortWaitSend();
        }
    }

  private:
    std::shared_ptr<gloo::transport::Context> inner_;
    std::mutex lock_;
    std::set<Buffer *> live_;
    bool aborted_ = false;
};

inline Buffer::Buffer(Transport *transport, AnyBuffer inner)
    : gloo::transport::UnboundBuffer(inner->ptr, inner->size), transport_(transport),
      inner_(std::move(inner))
{
    transport_->enlist(this);
}

inline Buffer::~Buffer()
{
    transport_->dismiss(this);
}

} // namespace weft_gloo

#endif
