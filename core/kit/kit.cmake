# What several parts of weft compile into themselves, with hidden symbols.
#
#   WEFT_KIT_SOURCES          names, arguments of collectives, numbers in texts, limits of the process
#   WEFT_KIT_TRUST            which files may be run
#   WEFT_KIT_INCLUDES         folders of its headers, which are included as "kit/names.h"
#   WEFT_PLUGIN_KIT_SOURCES   the kit and plugins/common, for a plugin
#   WEFT_PLUGIN_KIT_INCLUDES  folders of its headers
#   weft_add_arithmetic(TARGET)  reductions, casts and random numbers
set(WEFT_KIT_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
set(WEFT_KIT_TRUST ${WEFT_KIT_DIRECTORY}/trust.c)
file(GLOB WEFT_KIT_SOURCES CONFIGURE_DEPENDS ${WEFT_KIT_DIRECTORY}/*.c)
list(REMOVE_ITEM WEFT_KIT_SOURCES ${WEFT_KIT_TRUST})
set(WEFT_KIT_INCLUDES ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/core/include/weft)
file(GLOB WEFT_PLUGIN_KIT_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/common/*.c)
list(APPEND WEFT_PLUGIN_KIT_SOURCES ${WEFT_KIT_SOURCES})
set(WEFT_PLUGIN_KIT_INCLUDES ${PROJECT_SOURCE_DIR}/plugins/common ${WEFT_KIT_INCLUDES})

# Compile the arithmetic into TARGET, at the level that every processor of the architecture has.  Never with fused
# multiply-add, so that all levels, and all targets, give the same bits.
set(WEFT_ARITHMETIC_FLAGS "-O3 -ffp-contract=off -fno-trapping-math -fno-math-errno")
function(weft_add_arithmetic target)
  set(arithmetic ${WEFT_KIT_DIRECTORY}/arithmetic)
  set(exact ${arithmetic}/cpu_kernels_base.c ${arithmetic}/cpu_casts.c ${arithmetic}/cpu_random.c)
  target_sources(${target} PRIVATE ${exact} ${arithmetic}/cpu_reduce.c)
  set_source_files_properties(${exact} PROPERTIES COMPILE_FLAGS "${WEFT_ARITHMETIC_FLAGS}")
endfunction()
