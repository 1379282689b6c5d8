/*
 * Instruction names against the forms of ptx_ops.def. A form is matched item by item: each takes the first modifier
 * that is left and fits, a type only if it is the first type that is left. The form fits if no modifier is left over.
 */
#include <string.h>

#include "ptx/verify.h"

typedef struct set_row {
    const char *name, *words;
} set_row;

static const set_row sets[] = {
#define ITS_SET(name, words) {name, words},
#include "ptx/ptx_ops.def"
};

/* A stretch of the pattern. */
typedef struct span {
    const char *text;
    size_t size;
} span;

static bool span_is(span word, const char *text) {
    return strlen(text) == word.size && memcmp(word.text, text, word.size) == 0;
}

/* Cuts the stretch in front of the first of `stops` off `*rest`; what follows stays in `*rest`. */
static span cut(span *rest, const char *stops) {
    size_t size = 0;
    while (size < rest->size && !strchr(stops, rest->text[size])) size++;
    span word = {rest->text, size};
    size_t skip = size < rest->size ? size + 1 : size;
    rest->text += skip, rest->size -= skip;
    return word;
}

static bool word_takes(span word, const char *mod, span *gate);

static bool set_takes(span name, const char *mod, span *gate) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (!span_is(name, sets[i].name)) continue;
        span rest = {sets[i].words, strlen(sets[i].words)};
        while (rest.size)
            if (word_takes(cut(&rest, " "), mod, gate)) return true;
    }
    return false;
}

/* True if the modifier is the word, in which "*" stands for any text. */
static bool is_like(span word, const char *mod) {
    const char *star = memchr(word.text, '*', word.size);
    if (!star) return span_is(word, mod);
    size_t head = (size_t)(star - word.text), tail = word.size - head - 1, size = strlen(mod);
    return size >= head + tail && memcmp(word.text, mod, head) == 0 && memcmp(star + 1, mod + size - tail, tail) == 0;
}

/* True if the word takes the modifier; what stands behind a word as "<78,90>" goes into `gate`. */
static bool word_takes(span word, const char *mod, span *gate) {
    span behind = word;
    word = cut(&behind, "<");
    if (*word.text == '@' ? !set_takes(word, mod, gate) : !is_like(word, mod)) return false;
    if (behind.size) *gate = behind;
    return true;
}

/* True if a word of the choice takes the modifier; stores what that word needs, as "78,90>", if asked to. */
static bool choice_takes(span choice, its_mod mod, span *gate) {
    const char *text = its_mod_text(mod);
    while (choice.size) {
        span needs = {0};
        if (!word_takes(cut(&choice, "/"), text, &needs)) continue;
        if (gate) *gate = needs;
        return true;
    }
    return false;
}

/* -- matching ------------------------------------------------------------------------------------------------------ */

typedef struct matching {
    const its_mnemonic *m;
    uint64_t left;    /* modifiers that no item has taken, as bits */
    its_since *since; /* what each modifier needs where it was taken, or NULL if nobody asks */
} matching;

static uint16_t read_number(span *text) {
    unsigned value = 0;
    for (; text->size && *text->text >= '0' && *text->text <= '9'; text->text++, text->size--)
        value = value * 10 + (unsigned)(*text->text - '0');
    return (uint16_t)value;
}

static bool skip(span *text, char c) {
    if (!text->size || *text->text != c) return false;
    text->text++, text->size--;
    return true;
}

/* "78,90", "86,100a", "86,100-110f", "!64,70"; nothing is no need at all. */
static its_since read_gate(span text) {
    its_since since = {.ended = skip(&text, '!')};
    since.version = read_number(&text);
    skip(&text, ',');
    since.sm = read_number(&text);
    if (skip(&text, '-')) since.last = read_number(&text);
    since.specific = skip(&text, 'a') ? 'a' : skip(&text, 'f') ? 'f' : 0;
    return since;
}

/* The index of the modifier that the item takes, or -1. */
static int item_take(matching *state, span choice) {
    bool type_seen = false;
    for (unsigned i = 0; i < state->m->n_mods; i++) {
        if (!((state->left >> i) & 1)) continue;
        its_mod mod = (its_mod)state->m->mods[i];
        bool type = its_mod_class_of(mod) == ITS_MODCLASS_TYPE;
        span gate = {0};
        if (!(type && type_seen) && choice_takes(choice, mod, &gate)) {
            state->left &= ~((uint64_t)1 << i);
            if (state->since) state->since[i] = read_gate(gate);
            return (int)i;
        }
        type_seen |= type;
    }
    return -1;
}

static bool is_repeated(const its_mnemonic *m, unsigned index) {
    for (unsigned i = 0; i < index; i++)
        if (m->mods[i] == m->mods[index]) return true;
    return false;
}

/* What may be left over: modifiers that ptxas ignores, and flags said twice. */
static bool left_over_fits(const matching *state) {
    for (unsigned i = 0; i < state->m->n_mods; i++) {
        if (!((state->left >> i) & 1)) continue;
        its_mod_class class = its_mod_class_of((its_mod)state->m->mods[i]);
        if (class == ITS_MODCLASS_LAX) continue;
        if (class == ITS_MODCLASS_TYPE || !is_repeated(state->m, i)) return false;
    }
    return true;
}

/*
 * Matches the items of a form. With `missing` one required item may be skipped, and is stored there. Returns true if
 * all others fit and nothing of weight is left over.
 */
static bool items_fit(matching *state, span items, span *missing) {
    bool skipped = false;
    while (items.size) {
        span item = cut(&items, " ");
        if (!item.size || *item.text == '<') continue;
        bool optional = item.text[item.size - 1] == '?';
        if (optional) item.size--;
        if (item_take(state, item) >= 0 || optional) continue;
        if (!missing || skipped) return false;
        skipped = true;
        *missing = item;
    }
    return left_over_fits(state);
}

static uint64_t all_mods(const its_mnemonic *m) {
    return m->n_mods ? ~(uint64_t)0 >> (64 - m->n_mods) : 0;
}

/* Cuts a form off `*rest`; `items` is what stands in front of its colon. */
static const char *next_form(span *rest, span *items) {
    span form = cut(rest, ";");
    size_t colon = form.size;
    for (size_t i = 0; i < form.size && colon == form.size; i++) { /* `::` is part of a modifier */
        bool last = i + 1 == form.size || form.text[i + 1] == ' ';
        if (form.text[i] == ':' && last && (i == 0 || form.text[i - 1] != ':')) colon = i;
    }
    *items = (span){form.text, colon};
    return form.text + (colon < form.size ? colon + 1 : colon);
}

const char *its_form_find(const its_mnemonic *m, const char *after) {
    if (m->n_mods > 64) return NULL;
    const char *pattern = its_op_pattern((its_op)m->op);
    if (after) {
        pattern = strchr(after, ';');
        if (!pattern) return NULL;
        pattern++;
    }
    span rest = {pattern, strlen(pattern)}, items;
    while (rest.size) {
        const char *operands = next_form(&rest, &items);
        matching state = {.m = m, .left = all_mods(m)};
        if (items_fit(&state, items, NULL)) return operands;
    }
    return NULL;
}

its_since its_form_since(const its_mnemonic *m, const char *form, its_since *mods) {
    const char *pattern = its_op_pattern((its_op)m->op);
    memset(mods, 0, m->n_mods * sizeof *mods);
    while (form > pattern && form[-1] != ';') form--;
    span rest = {form, strlen(form)}, items;
    next_form(&rest, &items);
    while (items.size && *items.text == ' ') items.text++, items.size--;
    its_since whole = {0};
    if (*items.text == '<') {
        span gate = cut(&items, " ");
        whole = read_gate((span){gate.text + 1, gate.size - 1});
    }
    matching state = {.m = m, .left = all_mods(m), .since = mods};
    items_fit(&state, items, NULL);
    return whole;
}

bool its_form_is_gated(const its_mnemonic *m, const char *form) {
    its_since mods[64], whole = its_form_since(m, form, mods);
    bool gated = whole.version || whole.sm;
    for (unsigned i = 0; i < m->n_mods; i++) gated |= mods[i].version || mods[i].sm;
    return gated;
}

/* -- explaining ---------------------------------------------------------------------------------------------------- */

/* True if some form of the opcode names the modifier. */
static bool has_place(const its_mnemonic *m, its_mod mod) {
    const char *pattern = its_op_pattern((its_op)m->op);
    span rest = {pattern, strlen(pattern)};
    while (rest.size) {
        span form = cut(&rest, ";");
        while (form.size) {
            span item = cut(&form, " ");
            bool last = item.size && item.text[item.size - 1] == ':';
            if (last) item.size--;
            if (item.size && item.text[item.size - 1] == '?') item.size--;
            if (item.size && choice_takes(item, mod, NULL)) return true;
            if (last) break;
        }
    }
    return false;
}

int its_form_stranger(const its_mnemonic *m) {
    for (unsigned i = 0; i < m->n_mods; i++)
        if (its_mod_class_of((its_mod)m->mods[i]) != ITS_MODCLASS_LAX && !has_place(m, (its_mod)m->mods[i]))
            return (int)i;
    return -1;
}

/* "a", "a or b", "a, b or c" from what is there and one more. */
static const char *add_choice(its_arena *arena, const char *text, const char *more, bool last) {
    if (!*text) return more;
    return its_arena_printf(arena, "%s%s%s", text, last ? " or " : ", ", more);
}

/* The modifiers for which `takes` holds, as text. */
static const char *list_mods(its_arena *arena, const bool *takes) {
    unsigned last = 0;
    const char *text = "";
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++)
        if (takes[mod]) last = mod;
    for (unsigned mod = 1; mod <= last; mod++)
        if (takes[mod]) text = add_choice(arena, text, its_mod_text((its_mod)mod), mod == last);
    return text;
}

const char *its_form_types(its_arena *arena, const its_mnemonic *m, unsigned index) {
    its_mnemonic changed = *m;
    uint16_t mods[64];
    bool takes[ITS_MOD_COUNT] = {false};
    if (m->n_mods > 64) return "";
    memcpy(mods, m->mods, m->n_mods * sizeof *mods);
    changed.mods = mods;
    for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++) {
        mods[index] = (uint16_t)mod;
        bool type = its_mod_class_of((its_mod)mod) == ITS_MODCLASS_TYPE;
        takes[mod] = type && its_form_find(&changed, NULL) != NULL;
    }
    return list_mods(arena, takes);
}

/* Reads the next item of a form into `*item`, without its "?"; false behind the last. */
static bool next_item(span *items, span *item) {
    do {
        if (!items->size) return false;
        *item = cut(items, " ");
    } while (!item->size || *item->text == '<');
    if (item->text[item->size - 1] == '?') item->size--;
    return true;
}

/* True if one item of the form takes the first modifier, and another one the second. */
static bool takes_both(span items, its_mod first, its_mod second) {
    unsigned only_first = 0, only_second = 0, both = 0;
    for (span item; next_item(&items, &item);) {
        bool one = choice_takes(item, first, NULL), two = choice_takes(item, second, NULL);
        both += one && two;
        only_first += one && !two;
        only_second += two && !one;
    }
    return both >= 2 || (both && (only_first || only_second)) || (only_first && only_second);
}

static bool is_conflict(const its_mnemonic *m, its_mod first, its_mod second) {
    if (first == second || its_mod_class_of(first) == ITS_MODCLASS_LAX || its_mod_class_of(second) == ITS_MODCLASS_LAX)
        return false;
    const char *pattern = its_op_pattern((its_op)m->op);
    span rest = {pattern, strlen(pattern)}, items;
    while (rest.size) {
        next_form(&rest, &items);
        if (takes_both(items, first, second)) return false;
    }
    return true;
}

bool its_form_conflict(const its_mnemonic *m, unsigned *first, unsigned *second) {
    if (m->n_mods > 16) return false; /* nobody writes that: not worth the time */
    for (*second = 1; *second < m->n_mods; (*second)++)
        for (*first = 0; *first < *second; (*first)++)
            if (is_conflict(m, (its_mod)m->mods[*first], (its_mod)m->mods[*second])) return true;
    return false;
}

const char *its_form_missing(its_arena *arena, const its_mnemonic *m) {
    bool takes[ITS_MOD_COUNT] = {false};
    const char *pattern = its_op_pattern((its_op)m->op);
    span rest = {pattern, strlen(pattern)}, items;
    if (m->n_mods > 64) return "";
    while (rest.size) {
        next_form(&rest, &items);
        span missing = {0};
        matching state = {.m = m, .left = all_mods(m)};
        if (!items_fit(&state, items, &missing)) continue;
        for (unsigned mod = 1; mod < ITS_MOD_COUNT; mod++) takes[mod] |= choice_takes(missing, (its_mod)mod, NULL);
    }
    return list_mods(arena, takes);
}
