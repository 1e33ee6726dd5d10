# libweft_gloo.so: the Gloo library as a carrier (network.h), beside the plugin, which
# opens it when ranks are on several hosts and UCX cannot carry them.
option(WEFT_GLOO "Let gloo-cpu use the Gloo library, for ranks on several hosts" ON)
find_path(GLOO_INCLUDE_DIR gloo/transport/tcp/device.h)
find_library(GLOO_LIBRARY gloo)
if(WEFT_GLOO AND CMAKE_CXX_COMPILER AND GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  add_library(weft_gloo MODULE network/gloo_carrier.cc)
  weft_compile_options(weft_gloo)
  weft_limit_frames(weft_gloo)
  if(WEFT_SANITIZE MATCHES undefined) # programs in C do not bring what this check of C++ needs
    target_compile_options(weft_gloo PRIVATE -fno-sanitize=vptr)
  endif()
  target_include_directories(weft_gloo PRIVATE ${PROJECT_SOURCE_DIR}/core/include/weft)
  target_include_directories(weft_gloo SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
  target_link_libraries(weft_gloo PRIVATE ${GLOO_LIBRARY} Threads::Threads)
  target_link_options(weft_gloo PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/network/gloo_carrier.map)
  set_target_properties(weft_gloo PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${WEFT_PLUGIN_OUTPUT_DIRECTORY}
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/network/gloo_carrier.map)
  weft_install(plugin-gloo-cpu TARGETS weft_gloo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
else()
  message(STATUS "gloo-cpu: without the Gloo library (libgloo-dev) or a C++ compiler")
endif()
