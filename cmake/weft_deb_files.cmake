# What a Debian package has and an installation by CMake has not: copyright, changelog, and compressed manual pages.  cpack
# runs it before it packs the components, which are folders of CPACK_TEMPORARY_DIRECTORY.  With SOURCE_DATE_EPOCH set, two
# builds of the same sources give the same bytes.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if it is set
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} name)
  set(package ${CPACK_DEBIAN_${name}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  set(documents ${root}/share/doc/${package})
  file(MAKE_DIRECTORY ${documents})
  file(COPY_FILE ${CPACK_WEFT_LICENSE} ${documents}/copyright)
  file(WRITE ${documents}/changelog
    "${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * weft ${CPACK_PACKAGE_VERSION}.  CHANGELOG.md of the package weft-doc lists what changed.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB pages ${root}/share/man/man*/*.[1-9])
  execute_process(COMMAND gzip -9nf ${documents}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
