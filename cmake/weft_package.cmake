# What lets other projects find an installed weft: a CMake package and a pkg-config file, both of
# which go on working when the installed tree is moved.
include(CMakePackageConfigHelpers)

set(WEFT_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/weft)
weft_install(weft DIRECTORY DESTINATION ${WEFT_PLUGIN_INSTALL_DIR}) # also where no plugin was built
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weft-config.cmake.in
  ${PROJECT_BINARY_DIR}/weft-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS WEFT_PLUGIN_INSTALL_DIR)
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake
  COMPATIBILITY SameMinorVersion)
weft_install(dev EXPORT weft-targets NAMESPACE weft:: DESTINATION ${package_dir})
weft_install(dev FILES ${PROJECT_BINARY_DIR}/weft-config.cmake
             ${PROJECT_BINARY_DIR}/weft-config-version.cmake DESTINATION ${package_dir})

# Documents and examples, in the places where their links lead.
weft_install(doc FILES README.md LICENSE CHANGELOG.md SECURITY.md ARCHITECTURE.md CONTRIBUTING.md
             DESTINATION ${CMAKE_INSTALL_DOCDIR})
weft_install(data DIRECTORY layouts rules DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
weft_install(doc DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
             PATTERN CMakeLists.txt EXCLUDE)
if(WEFT_INSTALL)
  foreach(folder DOCDIR INCLUDEDIR)
    set(path "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_${folder}}") # of the installation, which may have another prefix
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
      set(path "${CMAKE_INSTALL_${folder}}")
    endif()
    install(CODE "set(WEFT_${folder} \"\$ENV{DESTDIR}${path}\")" COMPONENT doc)
  endforeach()
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/weft_installed_docs.cmake COMPONENT doc)
endif()

file(RELATIVE_PATH WEFT_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
# weft_pkgconfig(LIBRARY FILE CONTENT REQUIRES): pkg-config's LIBRARY is libFILE.so.
function(weft_pkgconfig library file content requires)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  weft_install(dev FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
weft_pkgconfig(weft weft "" "")
weft_pkgconfig(weft-file weft_file ": checkpoints" weft)
weft_pkgconfig(weft-parallel weft_parallel ": operators and training" weft)
weft_pkgconfig(weft-feed weft_feed ": live weights" weft)
