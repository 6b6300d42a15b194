# rrfp_room(<target> [WITHOUT <file>...] [LINKS <library>...])
#
# The library of the room whose CMakeLists.txt calls it: every .cc file of the folder but those
# after WITHOUT. A room that holds no .cc file yet is an interface library, so that the rooms
# above it can already link it.
function(rrfp_room target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "WITHOUT;LINKS")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  foreach(name ${arg_WITHOUT})
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources} ${headers})
    target_link_libraries(${target} PUBLIC ${arg_LINKS})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_LINKS})
  endif()
endfunction()
