# Writes the C file OUT that holds the files named in LIST, which lie below ROOT; see embed.h.
file(READ ${LIST} names)
set(arrays "")
set(table "")
set(count 0)
foreach(name ${names})
    file(READ ${ROOT}/${name} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n    "
           bytes "${bytes}")
    string(APPEND arrays "static const unsigned char file_${count}[] = {\n    ${bytes}0};\n")
    string(APPEND table "    {\"${name}\", (const char *)file_${count}, sizeof file_${count} - 1},\n")
    math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "/* Generated from device/ by embed.cmake. */
#include \"cc/embed.h\"

${arrays}
static const its_embedded files[] = {
${table}    {0, 0, 0},
};

const its_embedded *its_embedded_files(size_t *count) {
    *count = ${count};
    return files;
}
")
