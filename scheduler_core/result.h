// Errors by value. A failure of the world (a file, a peer, wrong usage) is an
// Error that a person can act on; it never crosses a library as an exception.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "scheduler_core/check.h"

namespace rrfp {

/// One message for a person: what was found, where, and what is allowed.
struct Error {
  std::string message;
};

/// A value or an Error. Both constructors are implicit, so that a function
/// can `return value;` or `return Error{"..."};`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// REQUIRES: ok().
  T& value() & {
    RRFP_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    RRFP_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    RRFP_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// REQUIRES: !ok().
  const Error& error() const {
    RRFP_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    RRFP_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace rrfp
