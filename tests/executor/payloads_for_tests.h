// Payloads of one number each, for the tests of exchanges.
#pragma once

#include <cstring>

#include "executor/letter.h"

namespace rrfp {

inline Payload payload_of(int value) {
  Payload payload(sizeof(value));
  std::memcpy(payload.data(), &value, sizeof(value));
  return payload;
}

inline int value_of(const Payload& payload) {
  int value = 0;
  std::memcpy(&value, payload.data(), sizeof(value));
  return value;
}

}  // namespace rrfp
