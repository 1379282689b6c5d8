/* Looking up what embed.cmake built in. */
#include "cc/embed.h"

#include <string.h>

#include "intarsia/cc.h"

const its_embedded *its_embedded_file(const char *name) {
    size_t count;
    const its_embedded *files = its_embedded_files(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0) return &files[i];
    return NULL;
}

const char *its_cc_builtin(const char *name) {
    const its_embedded *file = its_embedded_file(name);
    return file ? file->text : NULL;
}
