// The driver functions of the double, by name, as a program looks them up.
//
// Thread safety: any.
#pragma once

#include <string>

namespace rrfp {

class DoubleStream;

/// Null where the double has none of that name.
void* double_driver_function(const std::string& name);

/// It is about to be destroyed; its green context, if any, may go now.
void forget_double_stream(const DoubleStream* stream);

/// What has been objected to. Stays until the thread asks again.
const char* double_objection_text();

}  // namespace rrfp
