/* Every function of cJSON takes NULL for what an earlier one could not make, and answers NULL again. */
#include "base/json.h"

#include <string.h>

static cJSON *checked(its_json *json, cJSON *made) {
    if (!made) json->out_of_memory = true;
    return made;
}

void its_json_text(its_json *json, cJSON *object, const char *name, const char *text) {
    if (text)
        checked(json, cJSON_AddStringToObject(object, name, text));
    else
        its_json_null(json, object, name);
}

void its_json_number(its_json *json, cJSON *object, const char *name, uint64_t number) {
    checked(json, cJSON_AddNumberToObject(object, name, (double)number));
}

void its_json_bool(its_json *json, cJSON *object, const char *name, bool value) {
    checked(json, cJSON_AddBoolToObject(object, name, value));
}

void its_json_null(its_json *json, cJSON *object, const char *name) {
    checked(json, cJSON_AddNullToObject(object, name));
}

cJSON *its_json_object(its_json *json, cJSON *object, const char *name) {
    return checked(json, cJSON_AddObjectToObject(object, name));
}

cJSON *its_json_array(its_json *json, cJSON *object, const char *name) {
    return checked(json, cJSON_AddArrayToObject(object, name));
}

static cJSON *append(its_json *json, cJSON *array, cJSON *item) {
    if (item && cJSON_AddItemToArray(array, item)) return item;
    cJSON_Delete(item);
    return checked(json, NULL);
}

cJSON *its_json_item(its_json *json, cJSON *array) {
    return append(json, array, cJSON_CreateObject());
}

void its_json_item_text(its_json *json, cJSON *array, const char *text) {
    append(json, array, cJSON_CreateString(text));
}

cJSON *its_json_begin(its_json *json, its_context *ctx) {
    *json = (its_json){.ctx = ctx};
    json->root = checked(json, cJSON_CreateObject());
    return json->root;
}

/* cJSON has an allocator of its own; its text is copied to where its_free finds it. */
char *its_json_end(its_json *json) {
    char *text = json->out_of_memory ? NULL : cJSON_Print(json->root), *copy = NULL;
    size_t size = text ? strlen(text) + 1 : 0;
    if (text) copy = its_block_alloc(json->ctx, size);
    if (copy) memcpy(copy, text, size);
    cJSON_free(text);
    cJSON_Delete(json->root);
    if (!copy) its_no_memory(json->ctx);
    return copy;
}
