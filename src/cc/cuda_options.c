/* What the options of the cuda dialect mean: most are NVRTC's own and passed on, a few are taken care of here. */
#include <string.h>

#include "base/diag.h"
#include "base/path.h"
#include "cc/cuda.h"

/* Options that are refused, since the result would be no PTX, or would depend on what no key holds. */
typedef struct refused_option {
    const char *name, *why;
} refused_option;

static const refused_option refused[] = {
    {"-arch", "the architecture is a setting of its own"},
    {"--gpu-architecture", "the architecture is a setting of its own"},
    {"-dw", "regions are linked, so their code is always relocatable"},
    {"--device-w", "regions are linked, so their code is always relocatable"},
    {"-ewp", "regions are linked, so their code is always relocatable"},
    {"--extensible-whole-program", "regions are linked, so their code is always relocatable"},
    {"-dlto", "it gives no PTX"},
    {"--dlink-time-opt", "it gives no PTX"},
    {"-optix-ir", "it gives no PTX"},
    {"--optix-ir", "it gives no PTX"},
    {"-pch", "what is in a precompiled header escapes the cache"},
    {"--pch", "what is in a precompiled header escapes the cache"},
    {"-create-pch", "what is in a precompiled header escapes the cache"},
    {"--create-pch", "what is in a precompiled header escapes the cache"},
    {"-use-pch", "what is in a precompiled header escapes the cache"},
    {"--use-pch", "what is in a precompiled header escapes the cache"},
    {"-pch-dir", "what is in a precompiled header escapes the cache"},
    {"--pch-dir", "what is in a precompiled header escapes the cache"},
    {"-time", "a cached result would write no such file"},
    {"--time", "a cached result would write no such file"},
    {"-fdevice-time-trace", "a cached result would write no such file"},
    {"--fdevice-time-trace", "a cached result would write no such file"},
};

typedef struct option_reader {
    its_arena *arena;
    const its_cc_input *input;
    its_cuda_options *options;
    uint32_t next; /* index of the option after the current one */
} option_reader;

/* True if `text` is `name`, or `name` with `=value`; `value` is then what follows, or NULL. */
static bool is_option(const char *text, const char *name, const char **value) {
    size_t size = strlen(name);
    if (strncmp(text, name, size) != 0 || (text[size] && text[size] != '=')) return false;
    *value = text[size] ? text + size + 1 : NULL;
    return true;
}

/* Short options of one letter may have their value right behind them or after blanks. */
static bool is_letter(const char *text, const char *name, const char **value) {
    if (strncmp(text, name, 2) != 0) return false;
    text += 2;
    while (*text == ' ' || *text == '=') text++;
    *value = *text ? text : NULL;
    return true;
}

/* The option's value: behind it or the next option; NULL if there is none. */
static const char *value_of(option_reader *r, const char *value) {
    return value ? value : r->next < r->input->n_options ? r->input->options[r->next++] : NULL;
}

static its_status no_value(its_context *ctx, const char *option) {
    return its_fail(ctx, ITS_ERR_INPUT, NULL, "the option '%s' lacks its value", option);
}

static its_status add_dir(its_context *ctx, option_reader *r, const char *option, const char *value) {
    if (!(value = value_of(r, value))) return no_value(ctx, option);
    ITS_PUSH(r->arena, &r->options->include_dirs, its_path_absolute(r->arena, value));
    return ITS_OK;
}

static its_status add_pre_include(its_context *ctx, option_reader *r, const char *option, const char *value) {
    if (!(value = value_of(r, value))) return no_value(ctx, option);
    ITS_PUSH(r->arena, &r->options->pre_includes, value);
    return ITS_OK;
}

/* -DNAME and -UNAME, also in two parts, are passed on in one. */
static its_status add_macro(its_context *ctx, option_reader *r, const char *option, const char *value) {
    if (!(value = value_of(r, value))) return no_value(ctx, option);
    bool define = strncmp(option, "-D", 2) == 0 || strncmp(option, "--d", 3) == 0;
    ITS_PUSH(r->arena, &r->options->passed, its_arena_printf(r->arena, "%s%s", define ? "-D" : "-U", value));
    return ITS_OK;
}

static its_status check_refused(its_context *ctx, const char *option) {
    const char *value;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_option(option, refused[i].name, &value))
            return its_fail(ctx, ITS_ERR_INPUT, "leave it out", "the option '%s' can't be used: %s", option,
                            refused[i].why);
    return ITS_OK;
}

static its_status check_rdc(its_context *ctx, option_reader *r, const char *option, const char *value) {
    if (!(value = value_of(r, value))) return no_value(ctx, option);
    if (strcmp(value, "true") == 0) return ITS_OK;
    return its_fail(ctx, ITS_ERR_INPUT, "leave it out", "the option '%s' can't be '%s': %s", option, value,
                    "regions are linked, so their code is always relocatable");
}

static its_status read_option(its_context *ctx, option_reader *r, const char *option) {
    its_cuda_options *options = r->options;
    const char *value;
    its_status status = check_refused(ctx, option);
    if (status != ITS_OK) return status;
    if (is_option(option, "-include", &value) || is_option(option, "--pre-include", &value))
        return add_pre_include(ctx, r, option, value);
    if (is_option(option, "-rdc", &value) || is_option(option, "--relocatable-device-code", &value))
        return check_rdc(ctx, r, option, value);
    if (is_option(option, "--include-path", &value) || is_letter(option, "-I", &value))
        return add_dir(ctx, r, option, value);
    if (is_option(option, "--define-macro", &value) || is_option(option, "--undefine-macro", &value) ||
        is_letter(option, "-D", &value) || is_letter(option, "-U", &value))
        return add_macro(ctx, r, option, value);
    if (strcmp(option, "-lineinfo") == 0 || strcmp(option, "--generate-line-info") == 0) return ITS_OK;
    if (strcmp(option, "-dc") == 0 || strcmp(option, "--device-c") == 0) return ITS_OK;
    if (strcmp(option, "-no-lineinfo") == 0) return options->no_lineinfo = true, ITS_OK;
    if (strcmp(option, "-clang-address-spaces") == 0) option = "-Daddress_space(x)=";
    if (strcmp(option, "-G") == 0 || strcmp(option, "--device-debug") == 0) options->debug = true;
    if (is_option(option, "-std", &value) || is_option(option, "--std", &value)) options->has_std = true;
    ITS_PUSH(r->arena, &options->passed, option);
    return ITS_OK;
}

its_status its_cuda_options_parse(its_context *ctx, its_arena *arena, const its_cc_input *input,
                                  its_cuda_options *options) {
    option_reader r = {.arena = arena, .input = input, .options = options};
    *options = (its_cuda_options){0};
    while (r.next < input->n_options) {
        its_status status = read_option(ctx, &r, input->options[r.next++]);
        if (status != ITS_OK) return status;
    }
    return ITS_OK;
}

const char *its_cuda_arch(its_arena *arena, const char *arch) {
    const char *number = strncmp(arch, "sm_", 3) == 0 ? arch + 3 : strncmp(arch, "compute_", 8) == 0 ? arch + 8 : "";
    size_t digits = strspn(number, "0123456789");
    const char *rest = number + digits;
    if (digits < 2 || digits > 3 || (*rest && strcmp(rest, "a") != 0 && strcmp(rest, "f") != 0)) return NULL;
    return its_arena_printf(arena, "compute_%s", number);
}
