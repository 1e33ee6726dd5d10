# What the folders of tests share: programs that have the library inside, and the backends they run on.

# A program that has the library inside, so that it can call private functions and let memory fail.
# weft_inside_program(NAME SOURCES...)
function(weft_inside_program name)
  add_executable(${name} ${ARGN} ${WEFT_INSIDE})
  weft_compile_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${WEFT_INSIDE_INCLUDES})
  target_link_libraries(${name} PRIVATE $<TARGET_NAME_IF_EXISTS:PkgConfig::CHECK> Threads::Threads
                                        ${CMAKE_DL_LIBS} m)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# The same, for ranks of gloo-cpu.
function(weft_rank_program name)
  weft_inside_program(${name} ${ARGN})
  add_dependencies(${name} weft_plugin_gloo-cpu)
endfunction()

# Values of the elements of tensors that move: a part of the tool, compiled once for all who compare them.
add_library(weft_test_values OBJECT ${PROJECT_SOURCE_DIR}/cli/redistribute/values.c)
weft_compile_options(weft_test_values)
target_include_directories(weft_test_values PRIVATE ${PROJECT_SOURCE_DIR}/cli ${WEFT_INSIDE_INCLUDES})

set(weft_on_gloo_cpu "WEFT_BACKEND=gloo-cpu;WEFT_CHECK=1")
if(TARGET weft_plugin_gloo-cpu)
  string(APPEND weft_on_gloo_cpu ";WEFT_PLUGIN_PATH=$<TARGET_FILE_DIR:weft_plugin_gloo-cpu>")
endif()

# A Check program of this folder for each of its test_*.c, each with SOURCES beside it; its ranks are
# threads of gloo-cpu, or simulated.
# weft_rank_tests(SOURCES...)
function(weft_rank_tests)
  file(GLOB tests CONFIGURE_DEPENDS test_*.c)
  foreach(file IN LISTS tests)
    get_filename_component(name ${file} NAME_WE)
    weft_rank_program(${name} ${file} ${ARGN})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200 ENVIRONMENT "CK_FORK=no;${weft_on_gloo_cpu}")
  endforeach()
endfunction()

# nccl over the stand-ins for the vendor's libraries: the host cannot use the device's memory, and
# work is done later.
set(weft_standin_nvidia ${CMAKE_BINARY_DIR}/tests/plugins/standin/nvidia)
set(weft_standin_kernels ${PROJECT_SOURCE_DIR}/plugins/kernels/weft_kernels.cu) # any file will do
set(weft_on_nccl_standin "WEFT_BACKEND=nccl;WEFT_CHECK=1;STANDIN_DEVICES=8;\
WEFT_CUDA_LIB=${weft_standin_nvidia}/libcuda.so.1;WEFT_NCCL_LIB=${weft_standin_nvidia}/libnccl.so.2;\
WEFT_NCCL_KERNELS=${weft_standin_kernels}")
if(TARGET weft_plugin_nccl)
  string(APPEND weft_on_nccl_standin ";WEFT_PLUGIN_PATH=$<TARGET_FILE_DIR:weft_plugin_nccl>")
endif()

# The programs test_GROUP_NAME of weft_rank_tests once more, on nccl over the stand-ins.
# weft_rank_tests_on_nccl(GROUP NAMES...)
function(weft_rank_tests_on_nccl group)
  if(TARGET weft_plugin_nccl)
    foreach(name IN LISTS ARGN)
      add_test(NAME test_${group}_${name}_nccl COMMAND test_${group}_${name})
      set_tests_properties(test_${group}_${name}_nccl PROPERTIES TIMEOUT 1200
                           ENVIRONMENT "CK_FORK=no;${weft_on_nccl_standin}")
    endforeach()
  endif()
endfunction()
