// One registry per execution context.
#include "registry.hpp"

#include FSLOCK_ASIO_HEADER(execution_context.hpp)
#include FSLOCK_ASIO_HEADER(io_context.hpp)
#include FSLOCK_ASIO_HEADER(strand.hpp)
#include FSLOCK_ASIO_HEADER(thread_pool.hpp)

namespace fslock::engine {
namespace {

/// `target` of Asio 1.22 does not check the type: compare first.
template <class Executor>
const Executor* target(const asio::any_io_executor& executor) {
    return executor.target_type() == typeid(Executor) ? executor.target<Executor>() : nullptr;
}

/// What lies under a strand: the timer of all locks must not run inside the strand of one of their users, nor die
/// with it.
asio::any_io_executor without_strand(asio::any_io_executor executor) {
    for (;;) {
        if (const auto* any = target<asio::strand<asio::any_io_executor>>(executor)) {
            asio::any_io_executor inner = any->get_inner_executor();
            executor = std::move(inner);
        } else if (const auto* io = target<asio::strand<asio::io_context::executor_type>>(executor)) {
            return io->get_inner_executor();
        } else if (const auto* pool = target<asio::strand<asio::thread_pool::executor_type>>(executor)) {
            return pool->get_inner_executor();
        } else {
            return executor;
        }
    }
}

class service final : public asio::execution_context::service {
 public:
    using key_type = service;
    inline static asio::execution_context::id id;

    explicit service(asio::execution_context& owner) : asio::execution_context::service(owner) {}

    std::shared_ptr<registry> of(const asio::any_io_executor& io) {
        const std::lock_guard lock(mutex_);
        // A tracked executor counts as work for as long as it exists.
        const auto untracked = asio::prefer(io, asio::execution::outstanding_work.untracked);
        if (registry_ && registry_->inherited()) {
            (void)new std::shared_ptr<registry>(registry_);  // the parent's: left alone
            registry_ = nullptr;
        }
        if (!registry_) registry_ = std::make_shared<registry>(without_strand(untracked));
        return registry_;
    }

 private:
    void shutdown() noexcept override {
        std::shared_ptr<registry> ending;
        {
            const std::lock_guard lock(mutex_);
            ending = registry_;
        }
        if (ending) ending->shutdown();
    }

    /// In the child nothing of the parent's is used: the next acquisition makes a registry of its own.
    void notify_fork(asio::execution_context::fork_event event) override {
        const auto existing = registry_;  // no other thread runs the context now (asio::execution_context::notify_fork)
        if (!existing) return;
        switch (event) {
            case asio::execution_context::fork_prepare: existing->before_fork(); break;
            case asio::execution_context::fork_parent: existing->after_fork_in_parent(); break;
            case asio::execution_context::fork_child: existing->after_fork_in_child(); break;
        }
    }

    std::mutex mutex_;
    std::shared_ptr<registry> registry_;
};

/// Services are shut down from the youngest to the oldest (asio::execution_context). Ours has to be younger than those of
/// its timer and its descriptors, or a thread of the pool could give one back to a service that is going.
void make_older_services(const asio::any_io_executor& io) {
    const asio::steady_timer timer(io);
    const asio::posix::stream_descriptor descriptor(io);
}

}  // namespace

std::shared_ptr<registry> registry_of(const asio::any_io_executor& io) {
    auto& context = asio::query(io, asio::execution::context);
    if (!asio::has_service<service>(context)) make_older_services(io);
    return asio::use_service<service>(context).of(io);
}

}  // namespace fslock::engine
