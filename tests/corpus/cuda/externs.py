"""Separate compilation: what nobody defines is told by name before anything runs."""

from cases import full
from cuda_cases import case

case("kernel", faults="nobody provides 'outside'", out=full(8, 0, "i32"), b=full(24))
