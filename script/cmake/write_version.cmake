# Run at build time: writes version.cc anew when the commit has changed, and only then.
#   cmake -DVERSION=... -DSOURCE_DIR=... -DTEMPLATE=... -DOUTPUT=... -P write_version.cmake
# A source tree without git, or one that git will not read, gives a version without a commit.
set(COMMIT "")
find_program(GIT git)
if(GIT)
  execute_process(
    COMMAND ${GIT} --no-optional-locks describe --always --dirty --exclude "*"
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(COMMIT)
  set(COMMIT " (${COMMIT})")
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
