# What `cmake --install` copies. Everything finds its parts by where it lies itself, so an installed tree may be moved:
#
#     bin/intarsia                        the program; libintarsia is in it
#     include/intarsia/*.h                the C API
#     lib/libintarsia.so, .a              the library
#     lib/libintarsia_simhost.so          names of NVSHMEM and CUDA for host files in the simulator
#     lib/intarsia/include/{sim,gpu}      headers for host files; apart, for they are called like NVIDIA's own
#     lib/intarsia/python/intarsia        the Python package, for `intarsia run`
#     lib/pkgconfig, lib/cmake/intarsia   how C programs find it: docs/c-api.md
#     lib/intarsia/uninstall.cmake        removes all that is listed in installed.txt beside it
#     share/man/man1/intarsia.1
#
# Device headers and the simulator's device library are built into the library (src/cc/CMakeLists.txt).
#
# A wheel holds bin, lib and include within its Python package instead.
include(CMakePackageConfigHelpers)

set(ITS_PRIVATE_DIR ${CMAKE_INSTALL_LIBDIR}/intarsia)

# The way from one folder of the installed tree to another, whatever the prefix is.
function(its_way result from to)
    file(RELATIVE_PATH way ${CMAKE_INSTALL_PREFIX}/${from} ${CMAKE_INSTALL_PREFIX}/${to})
    string(REGEX REPLACE "/$" "" way "${way}")
    set(${result} ${way} PARENT_SCOPE)
endfunction()

foreach(dir BINDIR LIBDIR INCLUDEDIR MANDIR)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${dir}})
        message(FATAL_ERROR "CMAKE_INSTALL_${dir} must be relative to the prefix: an installed tree can be moved")
    endif()
endforeach()

# -- programs and libraries ------------------------------------------------------------------------------------------------

its_way(way ${CMAKE_INSTALL_BINDIR} ${ITS_PRIVATE_DIR}/python)
set_source_files_properties(src/cli/python.c PROPERTIES COMPILE_DEFINITIONS ITS_PYTHON_DIR="${way}")
set_target_properties(intarsia_simhost PROPERTIES INSTALL_RPATH "$ORIGIN")

if(SKBUILD)
    install(TARGETS intarsia intarsia_simhost LIBRARY DESTINATION lib)
    install(TARGETS intarsia_cli RUNTIME DESTINATION bin)
    install(DIRECTORY include/sim include/gpu DESTINATION include)
    return()
endif()

set_target_properties(intarsia_static PROPERTIES EXPORT_NAME intarsia-static)
install(TARGETS intarsia_cli intarsia_simhost RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS intarsia EXPORT intarsia-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS intarsia_static EXPORT intarsia-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/intarsia DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY include/sim include/gpu DESTINATION ${ITS_PRIVATE_DIR}/include)
install(DIRECTORY python/intarsia DESTINATION ${ITS_PRIVATE_DIR}/python FILES_MATCHING PATTERN "*.py" PATTERN "py.typed"
        PATTERN "__pycache__" EXCLUDE)

# -- for C programs --------------------------------------------------------------------------------------------------------

# Not Requires.private, for which even users of the shared library would have to have these libraries' headers.
list(JOIN XXHASH_LDFLAGS " " ITS_PRIVATE_LIBS)
list(JOIN CJSON_LDFLAGS " " flags)
string(APPEND ITS_PRIVATE_LIBS " ${flags} -pthread -l${CMAKE_DL_LIBS} -lm")
its_way(ITS_PREFIX_FROM_PC ${CMAKE_INSTALL_LIBDIR}/pkgconfig "")
foreach(name intarsia intarsia-simhost)
    configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/cmake/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/cmake/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

set(ITS_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/intarsia)
configure_package_config_file(cmake/intarsia-config.cmake.in ${PROJECT_BINARY_DIR}/cmake/intarsia-config.cmake
                              INSTALL_DESTINATION ${ITS_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/intarsia-config-version.cmake
                                 COMPATIBILITY ${ITS_COMPATIBILITY})
install(FILES ${PROJECT_BINARY_DIR}/cmake/intarsia-config.cmake
        ${PROJECT_BINARY_DIR}/cmake/intarsia-config-version.cmake DESTINATION ${ITS_CMAKE_DIR})
foreach(form shared static)
    install(EXPORT intarsia-${form} NAMESPACE intarsia:: DESTINATION ${ITS_CMAKE_DIR})
endforeach()

# -- the man page ----------------------------------------------------------------------------------------------------------

set(ITS_MAN_PAGE ${PROJECT_BINARY_DIR}/intarsia.1)
add_custom_command(OUTPUT ${ITS_MAN_PAGE} COMMAND intarsia_cli help --man > ${ITS_MAN_PAGE} DEPENDS intarsia_cli
                   COMMENT "Writing the man page" VERBATIM)
add_custom_target(man_page ALL DEPENDS ${ITS_MAN_PAGE})
add_dependencies(programs man_page)
install(FILES ${ITS_MAN_PAGE} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# -- uninstalling ----------------------------------------------------------------------------------------------------------

install(FILES cmake/uninstall.cmake DESTINATION ${ITS_PRIVATE_DIR})
install(CODE "set(ITS_PRIVATE_DIR ${ITS_PRIVATE_DIR})")
install(CODE [[
    file(RELATIVE_PATH its_names ${CMAKE_INSTALL_PREFIX}/${ITS_PRIVATE_DIR} ${CMAKE_INSTALL_PREFIX})
    foreach(file ${CMAKE_INSTALL_MANIFEST_FILES} ${CMAKE_INSTALL_PREFIX}/${ITS_PRIVATE_DIR}/installed.txt)
        file(RELATIVE_PATH file ${CMAKE_INSTALL_PREFIX} ${file})
        string(APPEND its_names "\n${file}")
    endforeach()
    file(WRITE $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${ITS_PRIVATE_DIR}/installed.txt "${its_names}\n")
]])
