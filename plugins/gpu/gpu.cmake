# weft_add_gpu(NAME VENDOR IMAGES SOURCES...): a plugin from SOURCES and what all GPU plugins share,
# with the kernels' images inside.  VENDOR is cuda or hip.  The folder that calls it holds vendor.h.
# A plugin with symmetric memory names ${WEFT_GPU_SYMM} among its SOURCES.

set(WEFT_GPU_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
set(WEFT_GPU_SYMM ${WEFT_GPU_DIRECTORY}/comm/gpu_symm.c)

# A C file that carries IMAGES as they are; FUNCTION(i) is number i, and NULL past the last.
function(weft_embed_images file images function)
  set(text "/* Made by plugins/gpu/gpu.cmake: the kernels' device code. */\n#include <stddef.h>\n\n")
  string(APPEND text "const void *${function}(size_t index);\n\n")
  set(list)
  set(number 0)
  foreach(image IN LISTS images)
    string(APPEND text "__asm__(\".section .rodata\\n\\t.balign 64\\n\\t.hidden ${function}_${number}\\n\"\n"
      "        \"${function}_${number}:\\n\\t.incbin \\\"${image}\\\"\\n\\t.byte 0\\n\\t.text\\n\");\n"
      "extern const char ${function}_${number}[] __attribute__((visibility(\"hidden\")));\n")
    string(APPEND list "${function}_${number}, ")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND text "\nstatic const void *const images[] = {${list}NULL};\n\n"
    "const void *${function}(size_t index)\n{\n    return images[index];\n}\n")
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  set_source_files_properties(${file} PROPERTIES OBJECT_DEPENDS "${images}")
endfunction()

function(weft_add_gpu name vendor images)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/images.c)
  weft_embed_images(${embedded} "${images}" gpu_vendor_image)
  file(GLOB device CONFIGURE_DEPENDS ${WEFT_GPU_DIRECTORY}/*.c ${WEFT_GPU_DIRECTORY}/device/*.c
       ${WEFT_GPU_DIRECTORY}/kernel/*.c ${WEFT_GPU_DIRECTORY}/comm/*.c ${WEFT_GPU_DIRECTORY}/${vendor}/*.c)
  list(FILTER device EXCLUDE REGEX gpu_symm)
  file(GLOB_RECURSE hashed CONFIGURE_DEPENDS ${WEFT_GPU_DIRECTORY}/*.[ch] ${WEFT_GPU_DIRECTORY}/*.def
       ${WEFT_GPU_DIRECTORY}/../xccl/*.[ch] ${WEFT_GPU_DIRECTORY}/../xccl/*.def
       ${CMAKE_CURRENT_SOURCE_DIR}/*.[ch] ${CMAKE_CURRENT_SOURCE_DIR}/*.def
       ${WEFT_GPU_DIRECTORY}/../common/*.[ch] ${WEFT_KIT_DIRECTORY}/*.[ch]
       ${WEFT_GPU_DIRECTORY}/../kernels/*.h ${WEFT_GPU_DIRECTORY}/../kernels/*.cu)
  set(digests)
  foreach(file IN LISTS hashed)
    file(SHA256 ${file} digest)
    string(APPEND digests ${digest})
  endforeach()
  string(SHA256 build "${digests}")
  string(SUBSTRING ${build} 0 12 build)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${hashed})

  weft_add_plugin(${name} ${device} ${WEFT_PLUGIN_KIT_SOURCES} ${WEFT_KIT_TRUST} ${ARGN} ${embedded})
  target_include_directories(weft_plugin_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
    ${WEFT_GPU_DIRECTORY} ${WEFT_GPU_DIRECTORY}/${vendor} ${WEFT_PLUGIN_KIT_INCLUDES}
    ${WEFT_GPU_DIRECTORY}/../kernels)
  target_compile_definitions(weft_plugin_${name} PRIVATE VENDOR_VERSION="${PROJECT_VERSION}"
    VENDOR_BUILD="${PROJECT_VERSION}-${build}")
  add_dependencies(weft_plugin_${name} weft_cuda_images weft_hip_images)
  target_link_libraries(weft_plugin_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# Compile a plugin's declarations against the vendor's headers; nothing links the result.
function(weft_check_declarations name vendor source)
  add_library(weft_${name}_declarations OBJECT ${source})
  weft_compile_options(weft_${name}_declarations)
  target_include_directories(weft_${name}_declarations SYSTEM PRIVATE ${ARGN})
  target_include_directories(weft_${name}_declarations PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
    ${WEFT_GPU_DIRECTORY} ${WEFT_GPU_DIRECTORY}/${vendor} ${WEFT_GPU_DIRECTORY}/../xccl
    ${WEFT_PLUGIN_KIT_INCLUDES})
endfunction()
