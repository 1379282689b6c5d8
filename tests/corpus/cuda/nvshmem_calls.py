"""NVSHMEM's own headers read a state that NVSHMEM's library alone has: told by name before anything runs."""

from cases import full
from cuda_cases import case

case("ring", faults="nobody provides", target=full(64, 0, "i32"), source=full(64, 0, "i32"), signal=full(2, 0, "u64"), n=16)
