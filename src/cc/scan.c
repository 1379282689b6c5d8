/* Finding include directives; see scan.h. */
#include "cc/scan.h"

#include <string.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

/* The next character behind any line splices, or -1 at the end. */
static int peek(cursor *c) {
    while (c->end - c->p >= 2 && c->p[0] == '\\') {
        if (c->p[1] == '\n')
            c->p += 2;
        else if (c->end - c->p >= 3 && c->p[1] == '\r' && c->p[2] == '\n')
            c->p += 3;
        else
            break;
    }
    return c->p < c->end ? (unsigned char)*c->p : -1;
}

static bool is_blank(int c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool is_word(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c > 127;
}

/* Bounds keep the time linear in a text that is made to be slow: longer names are no file names. */
enum { LONGEST_COMMENT = 1024, LONGEST_NAME = 4096 };

/* Past blanks and comments, but not past the end of the line. */
static void skip_blanks(cursor *c) {
    for (;;) {
        while (is_blank(peek(c))) c->p++;
        if (c->end - c->p < 2 || c->p[0] != '/' || c->p[1] != '*') return;
        size_t left = (size_t)(c->end - c->p) - 2;
        const char *close = memmem(c->p + 2, left < LONGEST_COMMENT ? left : LONGEST_COMMENT, "*/", 2);
        if (!close) return;
        c->p = close + 2;
    }
}

/* Copies what `c` passes until `is_end`, without the splices in it; NULL if that is too long. */
static char *read_until(its_arena *arena, cursor *c, bool (*is_end)(int c, int close), int close) {
    cursor ahead = *c;
    size_t size = 0;
    while (!is_end(peek(&ahead), close) && size <= LONGEST_NAME) ahead.p++, size++;
    if (size > LONGEST_NAME) return NULL;
    char *text = its_arena_alloc(arena, size + 1);
    for (size_t i = 0; i < size; i++) {
        peek(c);
        text[i] = *c->p++;
    }
    text[size] = 0;
    return text;
}

static bool ends_word(int c, int close) {
    (void)close;
    return !is_word(c);
}

static bool ends_name(int c, int close) {
    return c == close || c == '\n' || c == 0 || c < 0;
}

/* What is between two delimiters on one line; NULL if the second is missing. */
static char *read_name(its_arena *arena, cursor *c, char close) {
    c->p++;
    cursor start = *c;
    char *name = read_until(arena, c, ends_name, close);
    if (name && *name && peek(c) == close) return name;
    *c = start;
    return NULL;
}

/* `"name"`, `<name>` or, if macros are allowed, a word. */
static bool read_operand(its_arena *arena, cursor *c, bool macros, its_include *include) {
    skip_blanks(c);
    int first = peek(c);
    if (first == '"' || first == '<') {
        include->kind = first == '"' ? ITS_INCLUDE_QUOTED : ITS_INCLUDE_ANGLED;
        include->name = read_name(arena, c, first == '"' ? '"' : '>');
        return include->name;
    }
    if (!macros || !is_word(first)) return false;
    include->kind = ITS_INCLUDE_MACRO;
    include->name = read_until(arena, c, ends_word, 0);
    return include->name;
}

static void read_define(its_arena *arena, cursor *c, its_include_list *list) {
    its_include_define define = {0};
    skip_blanks(c);
    if (!is_word(peek(c))) return;
    define.macro = read_until(arena, c, ends_word, 0);
    if (!define.macro) return;
    int next = peek(c);
    if (next != '"' && next != '<' && !is_blank(next) && next != '/') return;
    if (read_operand(arena, c, false, &define.target)) ITS_PUSH(arena, &list->defines, define);
}

/* `__has_include(<name>)`, `c` being behind the word: that the file is there matters, so it counts as included. */
static void read_probe(its_arena *arena, cursor *c, its_include_list *list) {
    its_include include = {0};
    if (c->end - c->p > 5 && memcmp(c->p, "_next", 5) == 0) {
        include.next = true;
        c->p += 5;
    }
    skip_blanks(c);
    if (peek(c) != '(') return;
    c->p++;
    if (read_operand(arena, c, true, &include)) ITS_PUSH(arena, &list->includes, include);
}

/* True if the newline at `p` is spliced away. */
static bool is_spliced(const char *start, const char *p) {
    return p > start && (p[-1] == '\\' || (p - start > 1 && p[-1] == '\r' && p[-2] == '\\'));
}

/* The end of the line that starts at `c`, its continuations included. */
static const char *logical_end(const cursor *c) {
    const char *p = c->p;
    while ((p = memchr(p, '\n', (size_t)(c->end - p))) && is_spliced(c->p, p)) p++;
    return p ? p : c->end;
}

/* Every __has_include in the rest of a directive, which is passed. */
static void read_probes(its_arena *arena, cursor *line, its_include_list *list) {
    static const char word[] = "__has_include";
    const char *p = line->p, *end = logical_end(line);
    while ((p = memmem(p, (size_t)(end - p), word, sizeof word - 1))) {
        cursor c = {p + sizeof word - 1, end};
        read_probe(arena, &c, list);
        p = c.p;
    }
    line->p = end;
}

/* `c` is behind the `#`. */
static void read_directive(its_arena *arena, cursor *c, its_include_list *list) {
    char word[16];
    size_t size = 0;
    skip_blanks(c);
    while (is_word(peek(c)) && size < sizeof word - 1) word[size++] = *c->p++;
    word[size] = 0;
    its_include include = {.next = strcmp(word, "include_next") == 0};
    if (strcmp(word, "define") == 0) {
        read_define(arena, c, list);
    } else if (strcmp(word, "if") == 0 || strcmp(word, "elif") == 0) {
        read_probes(arena, c, list);
    } else if (include.next || strcmp(word, "include") == 0 || strcmp(word, "embed") == 0) {
        if (read_operand(arena, c, true, &include)) ITS_PUSH(arena, &list->includes, include);
    }
}

/* Directives that start with `mark`; what one has taken is not looked at again, which keeps the time linear. */
static void scan_mark(its_arena *arena, const char *text, size_t size, const char *mark, its_include_list *list) {
    const char *end = text + size;
    for (const char *p = text; (p = memchr(p, *mark, (size_t)(end - p)));) {
        cursor c = {++p, end};
        if (mark[1] && peek(&c) != mark[1]) continue;
        if (mark[1]) c.p++;
        read_directive(arena, &c, list);
        p = c.p;
    }
}

void its_scan_includes(its_arena *arena, const char *text, size_t size, its_include_list *list) {
    scan_mark(arena, text, size, "#", list);
    scan_mark(arena, text, size, "%:", list);
}
