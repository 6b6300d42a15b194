// Counts what this thread allocates, by replacing operator new in the whole
// test program. To be included by one file of a program.
//
// Sanitizers bring operators of their own, and mixing the two is an error to
// them: with one, nothing is replaced and the tests that count are skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RRFP_NEEDS_COUNTED_ALLOCATIONS() \
  GTEST_SKIP() << "allocations are not counted under a sanitizer"
#else
#define RRFP_NEEDS_COUNTED_ALLOCATIONS() static_cast<void>(0)
#endif

namespace rrfp {

inline thread_local std::int64_t allocations = 0;

/// What `work()` allocates on this thread.
template <typename Work>
std::int64_t allocations_of(const Work& work) {
  const std::int64_t before = allocations;
  work();
  return allocations - before;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
inline void* counted(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}

inline void* counted(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  std::abort();
}
#endif

}  // namespace rrfp

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) { return rrfp::counted(size); }
void* operator new[](std::size_t size) { return rrfp::counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return rrfp::counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return rrfp::counted(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return rrfp::counted(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return rrfp::counted(size, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
