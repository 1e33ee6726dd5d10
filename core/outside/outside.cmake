# core/base and core/kit for what stands on libweft: its other libraries and the tool compile them into themselves, with
# hidden symbols.  Left out is what keeps the state of the process (the last error, the log, the generation of forks,
# shared meshes and specs) or has public names; core/outside stands in for it by calls of the public functions.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/base/*.c)
list(FILTER sources EXCLUDE REGEX "/(status|log|vocabulary|fork|intern)\\.c$")
file(GLOB stand_ins CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(weft_outside OBJECT ${sources} ${stand_ins} ${WEFT_KIT_SOURCES})
weft_compile_options(weft_outside)
weft_limit_frames(weft_outside)
weft_add_arithmetic(weft_outside)
target_include_directories(weft_outside PUBLIC ${PROJECT_SOURCE_DIR}/core ${WEFT_INCLUDES}
                                        PRIVATE ${PROJECT_SOURCE_DIR}/core/include/weft)
