# Everything from outside. All of it is looked for before anything is reported, so that what is
# missing comes as one list.

set(missing "")

if(RRFP_PORTABLE)
  # Archives alone, so that a library that has none is reported as missing.
  set(shared_suffixes "${CMAKE_FIND_LIBRARY_SUFFIXES}")
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Boost_USE_STATIC_LIBS ON)
endif()

# what: named to the reader. package: Debian's name. setting: tells CMake where it lies instead.
function(rrfp_need found what package setting)
  if(NOT found)
    string(APPEND missing "  ${what}\n      Debian package: ${package}\n      or: ${setting}\n")
    set(missing "${missing}" PARENT_SCOPE)
  endif()
endfunction()

macro(rrfp_find_target target package_name)
  find_package(${package_name} QUIET ${ARGN})
  set(have FALSE)
  if(TARGET ${target})
    set(have TRUE)
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
rrfp_find_target(Threads::Threads Threads)
rrfp_need(${have} "POSIX threads" libc6-dev "-DCMAKE_HAVE_LIBC_PTHREAD=ON, where the C library holds them")

rrfp_find_target(nlohmann_json::nlohmann_json nlohmann_json 3.9)
rrfp_need(${have} "nlohmann-json, 3.9 or later" nlohmann-json3-dev
          "-Dnlohmann_json_DIR=<folder of nlohmann_jsonConfig.cmake>")

# One call per component: a missing one must not hide the other.
rrfp_find_target(Boost::headers Boost 1.74)
rrfp_need(${have} "Boost headers, 1.74 or later" libboost-dev
          "-DBoost_DIR=<folder of BoostConfig.cmake>")
rrfp_find_target(Boost::program_options Boost 1.74 COMPONENTS program_options)
rrfp_need(${have} "Boost.Program_options" libboost-program-options-dev
          "-Dboost_program_options_DIR=<folder of boost_program_options-config.cmake>")
rrfp_find_target(Boost::iostreams Boost 1.74 COMPONENTS iostreams)
rrfp_need(${have} "Boost.Iostreams (with zlib and zstd)" libboost-iostreams-dev
          "-Dboost_iostreams_DIR=<folder of boost_iostreams-config.cmake>")

rrfp_find_target(ZLIB::ZLIB ZLIB 1.2)
rrfp_need(${have} "zlib" zlib1g-dev "-DZLIB_ROOT=<folder that zlib is installed in>")
rrfp_find_target(SQLite::SQLite3 SQLite3 3.22)
rrfp_need(${have} "SQLite, 3.22 or later" libsqlite3-dev
          "-DSQLite3_ROOT=<folder that SQLite is installed in>")
# Debian 12's package says nothing to CMake. Later releases do, and need more than one library.
rrfp_find_target(re2::re2 re2 CONFIG)
if(NOT have)
  find_library(RRFP_RE2_LIBRARY re2)
  find_path(RRFP_RE2_HEADERS re2/re2.h)
  if(RRFP_RE2_LIBRARY AND RRFP_RE2_HEADERS)
    add_library(re2::re2 UNKNOWN IMPORTED)
    set_target_properties(re2::re2 PROPERTIES
      IMPORTED_LOCATION "${RRFP_RE2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${RRFP_RE2_HEADERS}"
      INTERFACE_LINK_LIBRARIES Threads::Threads)
    set(have TRUE)
  endif()
endif()
rrfp_need(${have} "RE2" libre2-dev
          "-DRRFP_RE2_LIBRARY=<its path> -DRRFP_RE2_HEADERS=<folder that holds re2/re2.h>")
if(RRFP_PORTABLE)
  # An archive does not say what it needs: what Boost.Iostreams compresses with.
  foreach(name zstd bz2 lzma)
    find_library(RRFP_ARCHIVE_${name} ${name})
    rrfp_need("${RRFP_ARCHIVE_${name}}" "lib${name}.a, for RRFP_PORTABLE" lib${name}-dev
              "-DRRFP_ARCHIVE_${name}=<its path>")
    list(APPEND boost_needs "${RRFP_ARCHIVE_${name}}")
  endforeach()
  if(TARGET Boost::iostreams AND TARGET ZLIB::ZLIB)
    target_link_libraries(Boost::iostreams INTERFACE ${boost_needs} ZLIB::ZLIB)
  endif()
  if(TARGET SQLite::SQLite3)
    target_link_libraries(SQLite::SQLite3 INTERFACE ${CMAKE_DL_LIBS} Threads::Threads m)
  endif()
  set(CMAKE_FIND_LIBRARY_SUFFIXES "${shared_suffixes}")
endif()

rrfp_find_target(Eigen3::Eigen Eigen3 3.4)
rrfp_need(${have} "Eigen, 3.4 or later" libeigen3-dev "-DEigen3_DIR=<folder of Eigen3Config.cmake>")

if(RRFP_TESTS)
  rrfp_find_target(GTest::gtest_main GTest 1.11)
  rrfp_need(${have} "GoogleTest, 1.11 or later" libgtest-dev
            "-DGTest_DIR=<folder of GTestConfig.cmake>, or -DRRFP_TESTS=OFF")
  rrfp_find_target(benchmark::benchmark_main benchmark 1.6)
  rrfp_need(${have} "Google Benchmark, 1.6 or later" libbenchmark-dev
            "-Dbenchmark_DIR=<folder of benchmarkConfig.cmake>, or -DRRFP_TESTS=OFF")
endif()

if(missing)
  message(FATAL_ERROR "Missing, all of it:\n${missing}script/bootstrap installs the Debian packages.")
endif()
