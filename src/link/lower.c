/* See lower.h. */
#include "link/lower.h"

#include <string.h>

#include "base/intern.h"
#include "ptx/mnemonic.h"

/* -- the table ----------------------------------------------------------------------------------------------------- */

#define COMM ITS_BARGUMENT_COMM
#define GROUP ITS_BARGUMENT_GROUP
#define INDEX ITS_BARGUMENT_INDEX
#define MULTIMEM ITS_BARGUMENT_MULTIMEM
#define ORDER ITS_BARGUMENT_ORDER
#define TEAM ITS_BARGUMENT_TEAM
#define CONTEXT ITS_BARGUMENT_CONTEXT
#define SCOPE ITS_BARGUMENT_SCOPE

static const its_barrier_provider providers[] = {
#define ITS_BARRIER_PROVIDER(name, arrive, wait, sync, ...) {name, {arrive, wait, sync}, {__VA_ARGS__}},
#include "link/barrier.def"
};

static const its_barrier_choice choices[] = {
#define ITS_BARRIER_CHOICE(field, name, value, enumerator, refusal) \
    {ITS_BARRIER_##field, name, value, enumerator, refusal},
#include "link/barrier.def"
    {ITS_BARRIER_FIELDS, NULL, 0, NULL, NULL}};

const its_barrier_choice *its_barrier_choices(void) {
    return choices;
}

const its_barrier_provider *its_barrier_provider_named(const char *name) {
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (strcmp(providers[i].name, name) == 0) return &providers[i];
    return NULL;
}

const char *its_barrier_argument_type(its_barrier_argument argument, bool promoted) {
    return argument == COMM ? ".b64" : argument == MULTIMEM && !promoted ? ".b8" : ".b32";
}

/* -- what front ends ask ------------------------------------------------------------------------------------------- */

static const its_barrier_choice *find_choice(its_barrier_field field, const char *name) {
    for (const its_barrier_choice *choice = choices; choice->name; choice++)
        if (choice->field == field && strcmp(choice->name, name) == 0) return choice;
    return NULL;
}

const char *its_barrier_name(its_barrier_field field, uint32_t index) {
    for (const its_barrier_choice *choice = choices; choice->name; choice++)
        if (choice->field == field && !choice->refusal && index-- == 0) return choice->name;
    return NULL;
}

const char *its_barrier_refusal(its_barrier_field field, const char *name) {
    const its_barrier_choice *choice = find_choice(field, name);
    return choice ? choice->refusal : NULL;
}

/* -- one operation ------------------------------------------------------------------------------------------------- */

typedef struct barrier {
    const its_barrier_choice *kind, *group, *order, *team;
    bool multimem;
} barrier;

bool its_lower_applies(its_linker *linker, const its_insn *insn) {
    const its_mnemonic *m = its_mnemonic_of(linker->ctx, insn->name);
    return m->op == ITS_OP_INTARSIA && its_mnemonic_has(m, ITS_MOD_DEVICE_INTRA_BARRIER);
}

static void fail(its_linker *linker, const its_insn *insn, const char *hint, const char *format, ...) ITS_PRINTF(4, 5);
static void fail(its_linker *linker, const its_insn *insn, const char *hint, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = its_arena_vprintf(&linker->scratch, format, args);
    va_end(args);
    its_diag_begin(linker->ctx, ITS_ERROR, its_node_place(&insn->node), "%s", text);
    its_diag_hint(linker->ctx, "%s", hint);
}

static const char form[] = "a barrier reads: intarsia.device_intra_barrier.sync.block.acq_rel (%r1), unit::intarsia, "
                           "(%rd1, %r2); docs/barriers.md has its modifiers";

/* A modifier goes to the field that has it, if that is not taken yet. */
static bool take(barrier *to, const char *name) {
    const struct {
        its_barrier_field field;
        const its_barrier_choice **choice;
    } fields[] = {{ITS_BARRIER_KIND, &to->kind},
                  {ITS_BARRIER_GROUP, &to->group},
                  {ITS_BARRIER_ORDER, &to->order},
                  {ITS_BARRIER_TEAM, &to->team}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const its_barrier_choice *found = find_choice(fields[i].field, name);
        if (!found) continue;
        if (*fields[i].choice) return false;
        *fields[i].choice = found;
        return true;
    }
    return false;
}

/* Reads the modifiers behind `.device_intra_barrier`, each with its dot. */
static bool read(its_linker *linker, const its_insn *insn, barrier *out) {
    const its_mnemonic *m = its_mnemonic_of(linker->ctx, insn->name);
    *out = (barrier){0};
    for (unsigned i = 0; i < m->n_mods; i++) {
        if (m->mods[i] == ITS_MOD_DEVICE_INTRA_BARRIER) continue;
        if (m->mods[i] == ITS_MOD_MULTIMEM) {
            out->multimem = true;
        } else if (!take(out, m->mod_names[i]->text + 1)) {
            fail(linker, insn, form, "'%s' is no modifier of a barrier, or stands there twice", m->mod_names[i]->text);
            return false;
        }
    }
    if (!out->kind || !out->group || !out->order) {
        fail(linker, insn, form, "a barrier lacks its %s", !out->kind ? "kind" : !out->group ? "group" : "order");
        return false;
    }
    if (out->group->refusal) {
        fail(linker, insn, "use thread, warp or block", "the group '%s' can't be used: %s", out->group->name,
             out->group->refusal);
        return false;
    }
    return true;
}

static const its_barrier_provider *find_provider(its_linker *linker, const its_insn *insn, const its_operand *operand) {
    const its_barrier_provider *found = its_barrier_provider_named(operand->name->text);
    const char *list = "";
    if (found) return found;
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        list = its_arena_printf(&linker->scratch, "%s%s'%s'", list, i ? ", " : "", providers[i].name);
    fail(linker, insn, its_arena_printf(&linker->scratch, "there are %s", list), "there is no barrier provider '%s'",
         operand->name->text);
    return NULL;
}

static bool takes(const its_barrier_provider *of, its_barrier_argument what) {
    for (unsigned i = 0; i < ITS_BARRIER_ARGUMENTS; i++)
        if (of->arguments[i] == what) return true;
    return false;
}

/* What a provider's functions have no argument for must not have been asked for. */
static bool check_fit(its_linker *linker, const its_insn *insn, const its_barrier_provider *of, const barrier *op) {
    if (op->multimem && !takes(of, MULTIMEM))
        fail(linker, insn, "leave multimem away", "the barrier provider '%s' does not use multicast memory", of->name);
    else if (op->team && !takes(of, TEAM))
        fail(linker, insn, "the team belongs to the communicator there", "the barrier provider '%s' takes no team",
             of->name);
    else if (!op->team && takes(of, TEAM))
        fail(linker, insn, "add .intra, .inter or .world", "the barrier provider '%s' needs a team", of->name);
    else
        return true;
    return false;
}

its_name its_lower_target(its_linker *linker, const its_insn *insn, const its_operand *operand) {
    barrier op;
    const its_barrier_provider *of = find_provider(linker, insn, operand);
    if (!of || !read(linker, insn, &op) || !check_fit(linker, insn, of, &op)) return NULL;
    return its_intern_text(linker->ctx, of->functions[op.kind->value]);
}

static its_operand immediate(uint64_t bits, uint32_t pos) {
    return (its_operand){.kind = ITS_OPND_INT, .bits = bits, .pos = pos};
}

bool its_lower_arguments(its_linker *linker, const its_insn *insn, its_call_parts *parts) {
    barrier op;
    const its_barrier_provider *of = find_provider(linker, insn, parts->target);
    if (!of || !read(linker, insn, &op)) return false;
    if (parts->n_args != 2) {
        fail(linker, insn, form, "a barrier takes a communicator and an index, not %u arguments", parts->n_args);
        return false;
    }
    its_operand *args = ITS_NEW_ARRAY(its_module_arena(linker->out), its_operand, ITS_BARRIER_ARGUMENTS);
    uint32_t pos = parts->target->pos;
    uint16_t n = 0;
    for (; n < ITS_BARRIER_ARGUMENTS && of->arguments[n] != ITS_BARGUMENT_NONE; n++) {
        switch (of->arguments[n]) {
        case COMM:
            args[n] = parts->args[0];
            break;
        case INDEX:
            args[n] = parts->args[1];
            break;
        case GROUP:
            args[n] = immediate(op.group->value, pos);
            break;
        case ORDER:
            args[n] = immediate(op.order->value, pos);
            break;
        case MULTIMEM:
            args[n] = immediate(op.multimem, pos);
            break;
        case TEAM:
            args[n] = immediate(op.team ? op.team->value : 0, pos);
            break;
        default: /* CONTEXT: the first one; SCOPE: the system, whose value is 0 */
            args[n] = immediate(0, pos);
        }
    }
    parts->args = args;
    parts->n_args = n;
    return true;
}
