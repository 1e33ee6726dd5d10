# weft_add_arithmetic(TARGET): compile the arithmetic of this folder into TARGET, at the level that every
# processor of the architecture has.  Never with fused multiply-add, so that all levels, and all
# targets, give the same bits.
set(WEFT_ARITHMETIC_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
set(WEFT_ARITHMETIC_FLAGS "-O3 -ffp-contract=off -fno-trapping-math -fno-math-errno")

function(weft_add_arithmetic target)
  set(kernels ${WEFT_ARITHMETIC_DIRECTORY}/cpu_kernels_base.c)
  set(casts ${WEFT_ARITHMETIC_DIRECTORY}/cpu_casts.c)
  set(random ${WEFT_ARITHMETIC_DIRECTORY}/cpu_random.c)
  target_sources(${target} PRIVATE ${kernels} ${casts} ${random} ${WEFT_ARITHMETIC_DIRECTORY}/cpu_reduce.c)
  set_source_files_properties(${kernels} ${casts} ${random} PROPERTIES COMPILE_FLAGS "${WEFT_ARITHMETIC_FLAGS}")
endfunction()
