# Removes an installed tree, wherever it is by now: the files of the list beside this script, and folders of ours that are
# empty then. The first line of the list is the way from here to the prefix.
#
#     cmake -P /usr/local/lib/intarsia/uninstall.cmake
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/installed.txt names)
list(POP_FRONT names way)
get_filename_component(prefix ${CMAKE_CURRENT_LIST_DIR}/${way} ABSOLUTE)
set(folders "")
foreach(name ${names})
    file(REMOVE ${prefix}/${name})
    get_filename_component(folder ${name} DIRECTORY)
    while(folder MATCHES "/intarsia(/|$)") # include/intarsia, lib/intarsia/python/intarsia ..., never include or lib
        list(APPEND folders ${folder})
        get_filename_component(folder ${folder} DIRECTORY)
    endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING) # what is inside comes first
foreach(folder ${folders})
    file(GLOB rest ${prefix}/${folder}/*)
    if(IS_DIRECTORY ${prefix}/${folder} AND NOT rest)
        file(REMOVE_RECURSE ${prefix}/${folder})
    endif()
endforeach()
list(LENGTH names count)
message(STATUS "removed ${count} files from ${prefix}")
