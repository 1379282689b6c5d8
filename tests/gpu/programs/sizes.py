"""PE 1 allocates another size, at another line."""

import intarsia

intarsia.init()
whole = intarsia.symmetric(64)
whole.free()
if intarsia.my_pe() == 1:
    intarsia.symmetric(65)
else:
    intarsia.symmetric(64)
