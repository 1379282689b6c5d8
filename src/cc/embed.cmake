# Writes the C file OUT that holds the files named in LIST, which lie below ROOT; see embed.h. Those of std/ are found by the
# names that C and C++ have for them: std/limits.h is <limits.h> and <climits>.
file(READ ${LIST} names)
set(arrays "")
set(table "")
set(count 0)
set(rows 0)
foreach(name ${names})
    file(READ ${ROOT}/${name} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n    "
           bytes "${bytes}")
    string(APPEND arrays "static const unsigned char file_${count}[] = {\n    ${bytes}0};\n")
    set(found_by ${name})
    if(name MATCHES "^std/(.*)\\.h$")
        set(found_by ${CMAKE_MATCH_1}.h c${CMAKE_MATCH_1})
    endif()
    foreach(alias ${found_by})
        string(APPEND table "    {\"${alias}\", (const char *)file_${count}, sizeof file_${count} - 1},\n")
        math(EXPR rows "${rows} + 1")
    endforeach()
    math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "/* Generated from device/ by embed.cmake. */
#include \"cc/embed.h\"

${arrays}
static const its_embedded files[] = {
${table}    {0, 0, 0},
};

const its_embedded *its_embedded_files(size_t *count) {
    *count = ${rows};
    return files;
}
")
