# The libraries of weft.  Each is a folder: LAYERS lists its modules, which are folders, in the order of data flow, and
# include/weft has its public headers.

# Set OUT to the sources of the modules in the LAYERS of the current folder.  A new .c file in a module's folder is built
# without an edit here; a new module is one line in LAYERS.
function(weft_module_sources out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/LAYERS)
  file(STRINGS LAYERS layers REGEX "^[a-z]+ *:")
  list(FILTER layers EXCLUDE REGEX "^kit ") # kit/kit.cmake
  set(sources)
  foreach(line IN LISTS layers)
    string(REGEX MATCH "^[a-z]+" module "${line}")
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${module}/*.c)
    list(APPEND sources ${files})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

include(CheckLinkerFlag)
check_linker_flag(C -Wl,-Bsymbolic-functions WEFT_LINKER_HAS_SYMBOLIC_FUNCTIONS)

# The shared library libTARGET.so.SOVERSION, the target weft::NAME for others, of the objects of the target
# TARGET_objects.  Tests link the objects, so that they can reach private functions; users link the library.
function(weft_add_library target name soversion)
  add_library(${target} SHARED $<TARGET_OBJECTS:${target}_objects> ${ARGN})
  add_library(weft::${name} ALIAS ${target})
  add_dependencies(${target} weft_api)
  weft_compile_options(${target})
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${WEFT_INCLUDES}>"
    $<BUILD_INTERFACE:${WEFT_API_INCLUDE}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(symbols ${PROJECT_BINARY_DIR}/api/lib${target}.map)
  # Plugins are never unloaded and keep pointers into libweft, so dlclose must not unload it either.
  target_link_options(${target} PRIVATE -Wl,--version-script=${symbols} -Wl,-z,defs -Wl,-z,nodelete)
  # Calls of the library's own public functions need no detour.
  if(WEFT_LINKER_HAS_SYMBOLIC_FUNCTIONS)
    target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions)
  endif()
  if(WEFT_SANITIZE) # the sanitizers' symbols come from the executable
    target_link_options(${target} PRIVATE -Wl,-z,undefs)
  endif()
  set(version ${PROJECT_VERSION})
  if(SKBUILD) # a wheel has copies instead of symbolic links, so there the library has one name
    set(version ${soversion})
    set(namelink NAMELINK_SKIP)
  else()
    set(namelink NAMELINK_COMPONENT dev)
  endif()
  set_target_properties(${target} PROPERTIES VERSION ${version} SOVERSION ${soversion} EXPORT_NAME ${name}
    LINK_DEPENDS ${symbols} BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH $ORIGIN)
  weft_install(${target} TARGETS ${target} EXPORT weft-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${namelink})
  weft_install(dev DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
