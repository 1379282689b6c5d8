/* The tables of fundamental types and state spaces; see its_type_size and its neighbours in intarsia/ptx.h. */
#ifndef ITS_PTX_TYPES_H
#define ITS_PTX_TYPES_H

#include "intarsia/ptx.h"

its_type its_type_of_text(const char *text, size_t size); /* ".u32"; ITS_TYPE_NONE if unknown */

#endif
