"""How long a kernel may wait on a GPU: what can be said without one."""

from __future__ import annotations

import pytest

from intarsia import Error, _gpu, _link


@pytest.mark.parametrize(("given", "expected"), [(None, 0), (2, 2_000_000_000), ("0.25", 250_000_000), (1e-6, 1000)])
def test_seconds(given, expected):
    assert _gpu._wait_limit_of(given) == expected


@pytest.mark.parametrize("given", [0, -1, "soon", float("nan"), 1e10])
def test_what_is_no_limit(given):
    with pytest.raises(Error, match="a limit for waits is a number of seconds, not"):
        _gpu._wait_limit_of(given)


def test_the_environment_counts_where_nothing_is_given(monkeypatch):
    monkeypatch.setenv("INTARSIA_WAIT_LIMIT", "1.5")
    assert _gpu._wait_limit_of(None) == 1_500_000_000
    assert _gpu._wait_limit_of(2.0) == 2_000_000_000


WAIT = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;
	ld.param.u64 %rd1, [p];
L:
	ld.volatile.global.u32 %r1, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra L;
	ret;
}
"""


@pytest.mark.parametrize("limit", [False, True])
def test_only_a_limit_changes_the_kernel(limit):
    with _link.link("k.ptx", WAIT, _link.no_units, limit_waits=limit) as linked:
        assert ("%globaltimer" in linked.ptx) == limit
        assert ("trap" in linked.ptx) == limit
