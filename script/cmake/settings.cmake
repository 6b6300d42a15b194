# Compiler settings of every target. Anything a single room needs stands in that room.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

# Includes are written from the top level: "scheduler_core/program.h".
include_directories("${PROJECT_SOURCE_DIR}")

# For C++ alone: nvcc takes none of these.
set(cxx_options
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wformat=2
  -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wpointer-arith -Wundef
  # Messages name files from the top level, and do not depend on where the checkout lies.
  "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cxx_options -Wsuggest-override -Wduplicated-cond -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns of string + literal where nothing is wrong (GCC bug 105651).
    list(APPEND cxx_options -Wno-restrict)
  endif()
endif()
if(RRFP_DEVELOPER)
  list(APPEND cxx_options -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${cxx_options}>")

if(RRFP_PORTABLE)
  # The program and its modules bring the C++ library along, each its own copy: what passes between
  # them is memory of one allocator, and no exception.
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

if(RRFP_SANITIZE)
  add_compile_options("-fsanitize=${RRFP_SANITIZE}" -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${RRFP_SANITIZE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's instrumented code draws false alarms from the flow-based warnings; other builds keep
    # them. Boost.Asio has memory fences, which the thread sanitizer passes over with a warning.
    add_compile_options(-Wno-maybe-uninitialized -Wno-tsan)
  endif()
endif()
