# weft_add_xccl(NAME VENDOR IMAGES SOURCES...): a GPU plugin with the source that NCCL and RCCL share.
include(${CMAKE_CURRENT_LIST_DIR}/../gpu/gpu.cmake)
set(WEFT_XCCL_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

function(weft_add_xccl name vendor images)
  file(GLOB communication CONFIGURE_DEPENDS ${WEFT_XCCL_DIRECTORY}/ccl_*.c)
  weft_add_gpu(${name} ${vendor} "${images}" ${communication} ${ARGN})
  target_include_directories(weft_plugin_${name} PRIVATE ${WEFT_XCCL_DIRECTORY})
endfunction()
