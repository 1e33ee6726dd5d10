# Debian packages, by `cpack -G DEB` in the build folder: one for each component of weft_install.  ci/packages.sh makes
# and names them; docs/install.md tells users which one they want.
#
# A library's package has its SONAME in its name, so that two releases can be installed side by side.  What has no SONAME
# in its file names is in packages of its own.
set(WEFT_MAINTAINER "weft maintainers <maintainers@weft.invalid>" CACHE STRING "Who the Debian packages name")
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${WEFT_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${WEFT_PLUGIN_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/weft_deb_files.cmake)
set(CPACK_WEFT_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE) # for that script
set(CPACK_WEFT_TRIGGERS ${PROJECT_BINARY_DIR}/triggers)
file(WRITE ${CPACK_WEFT_TRIGGERS} "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENTS_ALL)

# weft_deb(COMPONENT PACKAGE SECTION SUMMARY [ALL] [LIBRARY] [DEPENDS COMPONENT...] [SINCE PACKAGE...]
# [SUGGESTS PACKAGE...]): a package.  It depends on those of the components of DEPENDS in the same version, and on the
# packages of SINCE in this version or a newer one: they are the same file for every version of a library.  ALL: it has no
# machine code.  LIBRARY: programs link it.
function(weft_deb component package section summary)
  cmake_parse_arguments(PARSE_ARGV 4 deb "ALL;LIBRARY" "" "DEPENDS;SINCE;SUGGESTS")
  string(TOUPPER ${component} name)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${name}_DEPENDS ${deb_DEPENDS} PARENT_SCOPE)
  set(CPACK_COMPONENT_${name}_DESCRIPTION "${summary}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_DESCRIPTION "${summary}" PARENT_SCOPE)
  list(JOIN deb_SUGGESTS ", " suggests)
  set(CPACK_DEBIAN_${name}_PACKAGE_SUGGESTS "${suggests}" PARENT_SCOPE)
  list(TRANSFORM deb_SINCE APPEND " (>= ${PROJECT_VERSION})")
  list(JOIN deb_SINCE ", " since)
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${since}" PARENT_SCOPE)
  if(deb_LIBRARY)
    set(CPACK_DEBIAN_${name}_PACKAGE_CONTROL_EXTRA ${CPACK_WEFT_TRIGGERS} PARENT_SCOPE)
  endif()
  if(deb_ALL)
    set(CPACK_DEBIAN_${name}_PACKAGE_ARCHITECTURE all PARENT_SCOPE)
    set(CPACK_DEBIAN_${name}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
  else()
    set(CPACK_DEBIAN_${name}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  endif()
endfunction()

get_target_property(version weft SOVERSION)
weft_deb(weft libweft${version} libs "moves tensors between distributed layouts: library" LIBRARY
         SINCE weft-plugin-gloo-cpu SUGGESTS weft-plugin-nccl weft-plugin-nvshmem weft-plugin-rccl)
get_target_property(version weft_file SOVERSION)
weft_deb(weft_file libweft-file${version} libs "checkpoints of tensors in distributed layouts: library" LIBRARY
         DEPENDS weft SINCE weft-data)
get_target_property(version weft_parallel SOVERSION)
weft_deb(weft_parallel libweft-parallel${version} libs "operators and training systems on distributed tensors: library"
         LIBRARY DEPENDS weft)
get_target_property(version weft_feed SOVERSION)
weft_deb(weft_feed libweft-feed${version} libs "live weights from training jobs to serving jobs: library"
         LIBRARY DEPENDS weft)
weft_deb(plugin-gloo-cpu weft-plugin-gloo-cpu libs "weft's backend for CPUs" SUGGESTS libucx0)
weft_deb(plugin-nccl weft-plugin-nccl libs "weft's backend for NVIDIA GPUs, over NCCL" DEPENDS weft SUGGESTS libnccl2)
weft_deb(plugin-nvshmem weft-plugin-nvshmem libs "weft's backend for NVIDIA GPUs, over NVSHMEM" DEPENDS weft)
weft_deb(plugin-rccl weft-plugin-rccl libs "weft's backend for AMD GPUs, over RCCL" DEPENDS weft SUGGESTS librccl1)
weft_deb(data weft-data misc "layouts and rules of common models, for weft" ALL)
weft_deb(tool weft utils "moves tensors between distributed layouts: tool" DEPENDS weft weft_file weft_parallel data
         SUGGESTS weft-doc)
weft_deb(dev libweft-dev libdevel "moves tensors between distributed layouts: headers"
         DEPENDS weft weft_file weft_parallel weft_feed SUGGESTS weft-doc)
weft_deb(doc weft-doc doc "moves tensors between distributed layouts: documents and examples" ALL)
include(CPack)
