/*
 * Contexts, status codes, names and diagnostics: what every other header of Intarsia builds on.
 *
 * A context owns interned names and a list of diagnostics. The library never prints and never exits: a function that
 * fails returns a status and leaves one or more diagnostics in its context, and the caller decides what to do with
 * them.
 *
 * Thread safety: a context and everything made with it belongs to one thread at a time. Different contexts are
 * independent of each other; the library has no mutable global state.
 */
#ifndef INTARSIA_BASE_H
#define INTARSIA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ITS_API __attribute__((visibility("default")))
#define ITS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define ITS_API
#define ITS_PRINTF(fmt, args)
#endif

/* The last member of a structure, an array of any length: C has it, C++ compilers only as an extension. */
#if defined(__clang__) && defined(__cplusplus)
#define ITS_FLEXIBLE(type, name)                                                              \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc99-extensions\"") \
        type name[] _Pragma("clang diagnostic pop")
#elif defined(__GNUC__)
#define ITS_FLEXIBLE(type, name) __extension__ type name[]
#else
#define ITS_FLEXIBLE(type, name) type name[]
#endif

#define ITS_VERSION_MAJOR 0
#define ITS_VERSION_MINOR 1
#define ITS_VERSION_PATCH 0
#define ITS_VERSION_STRING "0.1.0"

/* What a function came to. Anything but ITS_OK leaves at least one error in the context's diagnostics. */
typedef enum its_status {
    ITS_OK = 0,
    ITS_ERR_INPUT,       /* the input is wrong: a syntax error, a missing definition, a mismatch */
    ITS_ERR_NOMEM,       /* memory ran out, or a limit that guards it was reached */
    ITS_ERR_IO,          /* a file or pipe could not be read or written */
    ITS_ERR_ABSENT,      /* a library or program that is needed is not on this machine */
    ITS_ERR_USAGE,       /* the caller broke a precondition that is cheap to check */
    ITS_ERR_FAULT,       /* a kernel did something wrong while it ran */
    ITS_ERR_INTERRUPTED, /* a wait was ended because the program asked for it; see its_sim_host_interrupt */
} its_status;

/* A short lower-case phrase such as "bad input"; static storage, never NULL. */
ITS_API const char *its_status_text(its_status status);

/* The library's version, "MAJOR.MINOR.PATCH"; static storage. */
ITS_API const char *its_version(void);

/* -- allocation ---------------------------------------------------------------------------------------------------- */

/* Where a context takes its memory from; called by the thread that uses the context. */
typedef struct its_allocator {
    /*
     * Behaves like realloc: `old_size` is what the block was asked for, in bytes, a `new_size` of 0 frees it and
     * returns NULL, and a NULL return for a larger size means that memory ran out. Blocks are aligned for any type.
     */
    void *(*resize)(void *user, void *block, size_t old_size, size_t new_size);
    void *user;
} its_allocator;

typedef struct its_context its_context;

/*
 * Makes a context. `allocator` may be NULL for the C library's heap, else it is copied and must outlive the context.
 * Returns NULL if memory ran out. The caller owns the result and frees it with its_context_free after everything that
 * was made with it.
 */
ITS_API its_context *its_context_new(const its_allocator *allocator);
/* Frees a context with its names and diagnostics; NULL does nothing. What was made with it must be freed before. */
ITS_API void its_context_free(its_context *ctx);

/*
 * Frees a string or block that a function of this library returned with the words "free with its_free"; NULL does
 * nothing. `ctx` is the context that the function was called with.
 */
ITS_API void its_free(its_context *ctx, void *block);

/* -- names --------------------------------------------------------------------------------------------------------- */

/*
 * An interned string: within one context equal texts are equal pointers, so names are compared with ==.
 * `text` is NUL-terminated and lives as long as the context. The other fields are the library's own.
 */
typedef struct its_str {
    uint32_t size; /* bytes of `text` without the NUL */
    uint32_t hash;
    void *bind;     /* parser: innermost symbol of this name */
    void *range;    /* parser: innermost register range with this prefix */
    size_t late;    /* parser: the last operand that waits for a label of this name, counted from 1 */
    void *mnemonic; /* decoder: this name split into opcode and modifiers */
    ITS_FLEXIBLE(char, text);
} its_str;
typedef its_str *its_name;

/* Interns `size` bytes (which may hold any byte but NUL). NULL if memory ran out. */
ITS_API its_name its_intern(its_context *ctx, const char *text, size_t size);

/* -- diagnostics --------------------------------------------------------------------------------------------------- */

typedef enum its_severity { ITS_NOTE, ITS_WARNING, ITS_ERROR } its_severity;

/* One place of a diagnostic: the two ends of a conflict are two of them, a chain of inlined calls one per link. */
typedef struct its_diag_place {
    const char *file;      /* as the caller named the source; NULL if the diagnostic has no place */
    uint32_t line, column; /* both from 1; 0 if unknown */
    const char *text;      /* the source line without its end, "" if unknown; long ones are windowed for display only */
    const char *label;     /* what this place is, "" for the main one, e.g. "first defined here", "inlined from here" */
} its_diag_place;

typedef struct its_diag {
    its_severity severity;
    const char *message; /* one sentence, no final full stop, no position in it */
    const char *hint;    /* one line that says what to do, or NULL */
    uint32_t n_places;
    const its_diag_place *places; /* places[0] is where the message points */
} its_diag;

/* How many diagnostics there are so far: of each severity 200 at most, the rest is only counted. */
ITS_API size_t its_diag_count(const its_context *ctx);
/* Number `index`, oldest first, NULL past the last; valid until its_diag_clear or its_context_free. */
ITS_API const its_diag *its_diag_get(const its_context *ctx, size_t index);
/* How many errors there were, those that were only counted included. */
ITS_API size_t its_diag_errors(const its_context *ctx);
/* Forgets all of them: for a context that does several jobs. */
ITS_API void its_diag_clear(its_context *ctx);

/*
 * All diagnostics as text for people: `file:line:col: error: message`, the source line, a caret, further places, the
 * hint. `color` adds ANSI colours. Free with its_free; NULL if memory ran out.
 */
ITS_API char *its_diag_render(its_context *ctx, bool color);

#ifdef __cplusplus
}
#endif
#endif
