/*
 * Building JSON, with cJSON. A document is begun, filled in the order of its text and ended:
 *
 *     its_json json;
 *     cJSON *root = its_json_begin(&json, ctx);
 *     its_json_text(&json, root, "name", name);
 *     cJSON *array = its_json_array(&json, root, "calls");
 *     for (...) its_json_number(&json, its_json_item(&json, array), "line", line);
 *     return its_json_end(&json);
 *
 * Nothing in between is checked: the document remembers that memory ran out, and its end says so.
 */
#ifndef ITS_BASE_JSON_H
#define ITS_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/arena.h"

typedef struct its_json {
    its_context *ctx;
    cJSON *root;
    bool out_of_memory;
} its_json;

/* The object that the document is. */
cJSON *its_json_begin(its_json *json, its_context *ctx);
/* The document's text, freed with its_free; NULL, with a diagnostic, if memory ran out. Frees all else. */
char *its_json_end(its_json *json);

/* Members of an object. A text that is NULL becomes null. */
void its_json_text(its_json *json, cJSON *object, const char *name, const char *text);
void its_json_number(its_json *json, cJSON *object, const char *name, uint64_t number);
void its_json_bool(its_json *json, cJSON *object, const char *name, bool value);
void its_json_null(its_json *json, cJSON *object, const char *name);
cJSON *its_json_object(its_json *json, cJSON *object, const char *name);
cJSON *its_json_array(its_json *json, cJSON *object, const char *name);

/* A new object, or a text, at the end of an array. */
cJSON *its_json_item(its_json *json, cJSON *array);
void its_json_item_text(its_json *json, cJSON *array, const char *text);

#endif
