/* Variables, parameters, directives, the module's header. */
#include "ptx/verify.h"

void its_verify_header(its_verifier *v) {
    (void)v;
}
void its_verify_var(its_verifier *v, const its_var *var) {
    (void)v, (void)var;
}
void its_verify_function(its_verifier *v, const its_func *func) {
    (void)v, (void)func;
}
