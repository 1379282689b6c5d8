/* Special registers: which there are, and where one may be read. */
#include <string.h>

#include "ptx/verify.h"

typedef struct sreg_row {
    const char *text;
    uint8_t type, parts, count, version, sm;
} sreg_row;

static const sreg_row sregs[] = {
#define ITS_SREG(id, text, type, parts, count, version, sm) {text, ITS_TYPE_##type, parts, count, version, sm},
#include "ptx/ptx_sregs.def"
};

/* Reads a decimal number without superfluous zeros; -1 if there is none. */
static int read_index(const char **at) {
    const char *text = *at;
    if (*text < '0' || *text > '9') return -1;
    int value = 0;
    while (*text >= '0' && *text <= '9' && value < 1000) value = value * 10 + (*text++ - '0');
    *at = text;
    return value;
}

/* Matches `text` with the name of the row, the number included; returns what follows, or NULL. */
static const char *match_name(const sreg_row *row, const char *text) {
    const char *hash = strchr(row->text, '#');
    size_t head = hash ? (size_t)(hash - row->text) : strlen(row->text);
    if (strncmp(text, row->text, head) != 0) return NULL;
    text += head;
    if (row->count) {
        int index = read_index(&text);
        if (index < 0 || index >= row->count) return NULL;
    }
    if (!hash) return text;
    size_t tail = strlen(hash + 1);
    return strncmp(text, hash + 1, tail) == 0 ? text + tail : NULL;
}

its_sreg its_sreg_find(const char *text) {
    for (size_t i = 0; i < sizeof sregs / sizeof *sregs; i++) {
        const char *rest = match_name(&sregs[i], text);
        if (!rest) continue;
        its_type type = (its_type)sregs[i].type;
        its_since since = {.version = sregs[i].version, .sm = sregs[i].sm};
        if (!*rest) return (its_sreg){type, sregs[i].parts, since};
        bool part = sregs[i].parts == 4 && rest[0] == '.' && rest[1] && !rest[2] && strchr("xyzwrgba", rest[1]);
        if (part) return (its_sreg){type, 1, since};
    }
    return (its_sreg){ITS_TYPE_NONE, 0, {0}};
}

/* Since PTX 1.x %tid and its kind may be read as 16 bits, %gridid as any size. */
static bool may_narrow(const char *text) {
    static const char *const old[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid.", "%gridid"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strncmp(text, old[i], strlen(old[i])) == 0) return true;
    return false;
}

bool its_sreg_fits(its_name name, its_sreg sreg, its_type type, bool wider) {
    if (its_type_fits(type, sreg.type, wider)) return true;
    return type != ITS_TYPE_PRED && may_narrow(name->text) && its_type_fits(type, sreg.type, true);
}
