// The compiled part of fslock/with_lock.hpp.
#include "fslock/with_lock.hpp"

namespace fslock {

bool detail::is_cancellation(const std::exception_ptr& e) noexcept {
    try {
        std::rethrow_exception(e);
    } catch (const system_error& error) {
        return error.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

}  // namespace fslock
