"""Arrays: copies, types, views, and the ways in which they can be misused."""

from __future__ import annotations

import gc

import numpy as np
import pytest

NUMPY_TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_round_trip(simulator, dtype):
    values = (np.arange(60) * 37 % 251).astype(dtype).reshape(3, 4, 5)
    array = simulator.array(values)
    assert array.dtype == np.dtype(dtype) and array.shape == (3, 4, 5) and array.nbytes == values.nbytes
    assert array.stride() == (20, 5, 1)
    copy = array.numpy()
    assert copy.dtype == values.dtype
    np.testing.assert_array_equal(copy, values)


def test_bfloat16_rounds_to_nearest_even(simulator):
    bits = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F800000, 0x7F7FFFFF, 0x80000000], np.uint32)
    array = simulator.array(bits.view(np.float32), "bfloat16")
    assert str(array.dtype) == "bfloat16" and array.nbytes == 14
    expected = [0x3F800000, 0x3F800000, 0x3F820000, 0x3F810000, 0x7F800000, 0x7F800000, 0x80000000]
    assert array.numpy().view(np.uint32).tolist() == expected
    assert np.isnan(simulator.array(np.float32("nan"), simulator.bfloat16).numpy())


def test_zeros_fill_and_broadcast(simulator):
    assert not simulator.zeros((7, 3)).numpy().any()
    array = simulator.empty((2, 3), "int32").copy_from(5)
    assert (array.numpy() == 5).all()
    array.zero_()
    assert (array.numpy() == 0).all()


def test_copies_between_arrays(simulator):
    a = simulator.array(np.arange(10, dtype=np.int32))
    b = simulator.empty(10, "int32").copy_from(a)
    np.testing.assert_array_equal(b.numpy(), np.arange(10))
    with pytest.raises(simulator.Error, match="would change type or shape"):
        simulator.empty(10, "float32").copy_from(a)


def test_empty_shapes(simulator):
    assert simulator.array(np.zeros((0, 4), np.float32)).numpy().shape == (0, 4)
    assert simulator.array(3.5).numpy() == 3.5


def test_views(simulator):
    array = simulator.array(np.arange(12, dtype=np.int32))
    np.testing.assert_array_equal(array.view((2, 2), offset=4).numpy(), [[4, 5], [6, 7]])
    np.testing.assert_array_equal(array.view(2, "int64").numpy(), [1 << 32, 2 | 3 << 32])
    with pytest.raises(simulator.Error, match="goes beyond"):
        array.view(9, offset=4)
    with pytest.raises(simulator.Error, match="is a view"):
        array.view(2, offset=1).free()


def test_a_view_keeps_the_memory(simulator):
    view = simulator.array(np.arange(4, dtype=np.int32)).view(2, offset=2)
    gc.collect()
    np.testing.assert_array_equal(view.numpy(), [2, 3])


def test_free_twice_and_use_after_free(simulator):
    array = simulator.zeros(4)
    array.free()
    assert "freed" in repr(array)
    for use in (array.free, array.numpy, array.data_ptr):
        with pytest.raises(simulator.Error, match="was freed"):
            use()


def test_device_memory_goes_with_its_array(simulator):
    address = simulator.zeros(1 << 20, "uint8").data_ptr()
    gc.collect()
    with pytest.raises(simulator.Error, match="a 1048576-byte allocation of device memory that was freed"):
        simulator.from_address(address, 4, "uint8").numpy()


def test_symmetric_memory_must_be_freed(simulator):
    array = simulator.symmetric(16, "int64")
    assert array.symmetric and not array.numpy().any()
    assert array.peer(0).data_ptr() == array.data_ptr()
    array.free()
    with pytest.warns(simulator.Warning, match="symmetric array of 128 bytes was dropped without free"):
        simulator.symmetric(16, "int64")
        gc.collect()


def test_peers_of_what_is_not_symmetric(simulator):
    with pytest.raises(simulator.Error, match="symmetric"):
        simulator.zeros(4).peer(0)
    array = simulator.symmetric(4)
    for pe in (3, -1, 1 << 32):
        with pytest.raises(simulator.Error, match=f"there is no PE {pe} among 1"):
            array.peer(pe)
    with pytest.raises(simulator.Error, match=r"the number of a PE is a whole number, not 0\.5"):
        array.peer(0.5)
    array.free()


@pytest.mark.parametrize(
    ("dtype", "message"), [("complex64", "no element type complex64"), ("float33", "'float33' is no element type")]
)
def test_types_that_kernels_lack(simulator, dtype, message):
    with pytest.raises(simulator.Error, match=message):
        simulator.empty(4, dtype)


def test_wrong_shapes_and_addresses(simulator):
    with pytest.raises(simulator.Error, match="can't be negative"):
        simulator.empty((4, -1))
    with pytest.raises(simulator.Error, match="can't be negative"):
        simulator.empty(4).view(-1)
    with pytest.raises(simulator.Error, match=r"one or more whole numbers, not \(3.5, 2\)"):
        simulator.empty((3.5, 2))
    with pytest.raises(simulator.Error, match=r"the offset of a view is a whole number, not 1\.5"):
        simulator.empty(4).view(1, offset=1.5)
    with pytest.raises(simulator.Error, match=r"values of the shape \(3,\) don't fill"):
        simulator.empty(4).copy_from([1, 2, 3])
    with pytest.raises(simulator.Error, match="null address"):
        simulator.from_address(0, 4, "int32")


@pytest.mark.parametrize("size", [1 << 61, (1 << 62) + 1, 1 << 64])
@pytest.mark.parametrize("make", ["empty", "zeros", "symmetric"])
def test_sizes_beyond_all_memory(simulator, make, size):
    with pytest.raises(simulator.Error, match=f"an array of {4 * size} bytes is larger than memory can be"):
        getattr(simulator, make)(size, "float32")


@pytest.mark.parametrize(
    ("values", "dtype", "first"),
    [
        ([1, 2.5, 3.5], "int32", "2.5"),
        ([[1], [1 << 40]], "int32", "1099511627776"),
        ([3, -1], "uint8", "-1"),
        ([0.0, np.nan], "int64", "nan"),
        (2, "bool", "2"),
        ([0.5], "float8_e5m2", "0.5"),
    ],
)
def test_values_that_would_become_others(simulator, values, dtype, first):
    with pytest.raises(simulator.Error, match=f"{first} is no {dtype}: convert the values first"):
        simulator.array(values, dtype)


def test_values_that_fit(simulator):
    for values, dtype in (([1.0, 2.0], "int32"), ([255, 0], "uint8"), ([1, 0], "bool"), ([1 << 63], "uint64")):
        np.testing.assert_array_equal(simulator.array(values, dtype).numpy(), values)
    assert simulator.array(0.1, "float16").numpy() == np.float16(0.1)


def test_arrays_of_a_closed_backend(simulator):
    array = simulator.zeros(4)
    simulator.finalize()
    with pytest.raises(simulator.Error, match="went when the backend was closed"):
        array.numpy()
    simulator.init()
