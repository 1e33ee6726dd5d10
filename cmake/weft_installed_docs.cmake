# Runs at the installation of the documents in WEFT_DOCDIR; WEFT_INCLUDEDIR has weft/weft.h.  In the sources, documents link
# to headers and to files that are not installed.  Here links to headers lead to the installed headers, and those to other
# files of the sources become plain text.
set(include_folders "(core|feed|files|parallel)/include")
set(other_folders "(api|bench|bindings|ci|cli|cmake|core|feed|files|kit|parallel|plugins|tests)")
file(GLOB_RECURSE pages ${WEFT_DOCDIR}/*.md)
foreach(page IN LISTS pages)
  get_filename_component(folder ${page} DIRECTORY)
  file(RELATIVE_PATH includes ${folder} ${WEFT_INCLUDEDIR})
  file(READ ${page} before)
  string(REGEX REPLACE "\\]\\((\\.\\./)*${include_folders}/" "](${includes}/" text "${before}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*${other_folders}(/[^)]*)?\\)" "\\1" text "${text}")
  if(NOT text STREQUAL before)
    file(WRITE ${page} "${text}")
  endif()
endforeach()
