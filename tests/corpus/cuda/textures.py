"""Textures and surfaces, which the simulator doesn't have: it says so by the instruction's name."""

from cases import full
from cuda_cases import case

case("fetches", refuses="'tex.", out=full((10, 4)), t=0, u=0, x=0.5, i=0)
case("surfaces", refuses="'suld.", s=0, r=0, x=0, y=0)
case("raw", refuses="'txq.width", out=full(3, 0, "u32"), t=0, s=0, x=0.5)
