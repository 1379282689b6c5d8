"""One PE raises while the other waits for it."""

import intarsia

intarsia.init()
memory = intarsia.symmetric(16)
if intarsia.my_pe() == 1:
    print(1 / (intarsia.my_pe() - 1))
intarsia.barrier()
memory.free()
