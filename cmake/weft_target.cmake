# How every target of weft is compiled and installed.

# install() into the package COMPONENT (weft_deb.cmake), unless weft is a part of a project that does not want it.
function(weft_install component)
  if(WEFT_INSTALL)
    list(FIND ARGN DESTINATION at)
    math(EXPR at "${at} + 2")
    list(INSERT ARGN ${at} COMPONENT ${component})
    install(${ARGN})
  endif()
endfunction()

function(weft_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed> # sanitizers leave loops as they are
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  if(WEFT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    # C++ libraries that a C program opens need the part of the runtime for C++, which needs C++'s own library.
    # AddressSanitizer must also know C++'s throw before another library brings it.
    target_link_options(${target} PRIVATE -fsanitize=${WEFT_SANITIZE}
      $<$<C_COMPILER_ID:Clang>:-fsanitize-link-c++-runtime>
      -Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state)
  endif()
  if(WEFT_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PRIVATE --coverage)
  endif()
endfunction()

# A thread that calls weft needs a stack of 96 KiB (docs/launch.md), so no function of the library and its plugins may
# take a third of it.  Builds without optimization, and with sanitizers, have larger frames.
function(weft_limit_frames target)
  if(NOT WEFT_SANITIZE AND NOT WEFT_COVERAGE)
    target_compile_options(${target} PRIVATE
      $<$<AND:$<CONFIG:Release,RelWithDebInfo,MinSizeRel>,$<COMPILE_LANGUAGE:C,CXX>>:-Wframe-larger-than=32768>)
  endif()
endfunction()

# A plugin: libweft_plugin_NAME.so beside libweft, exporting its entry and nothing else.
function(weft_add_plugin name)
  add_library(weft_plugin_${name} MODULE ${ARGN})
  weft_compile_options(weft_plugin_${name})
  weft_limit_frames(weft_plugin_${name})
  target_include_directories(weft_plugin_${name} PRIVATE ${PROJECT_SOURCE_DIR}/core/include/weft)
  target_link_options(weft_plugin_${name} PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/plugins/plugin.map)
  set_target_properties(weft_plugin_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${WEFT_PLUGIN_OUTPUT_DIRECTORY}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/plugin.map)
  weft_install(plugin-${name} TARGETS weft_plugin_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
endfunction()
