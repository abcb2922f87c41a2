"""Vector instructions inside Numba: loads, multiply-adds and stores of whole registers, written as LLVM.

Numba's own code has no vectors, and whether its loops become vector instructions is the compiler's guess.
An intrinsic that is built with `Emitter` contains exactly the instructions that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils

INDEX, INT32 = ir.IntType(64), ir.IntType(32)


@cache
def registers() -> tuple[int, int]:
    """How many vector registers this processor has, and how many bytes one holds."""
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 32, 64
    if features.get("avx2") and features.get("fma"):
        return 16, 32
    return (32 if features.get("neon") or features.get("asimd") else 16), 16


def lanes(dtype: str) -> int:
    """Numbers in one vector register: 16 float32 or 8 float64 with AVX-512."""
    return registers()[1] // np.dtype(dtype).itemsize


class Emitter:
    """Emits LLVM for vectors of one type. Offsets count elements; variables become registers."""

    def __init__(self, builder: ir.IRBuilder, dtype: str, width: int) -> None:
        self.builder = builder
        self.bytes = np.dtype(dtype).itemsize
        self.scalar = ir.FloatType() if self.bytes == 4 else ir.DoubleType()
        self.vector = ir.VectorType(self.scalar, width)
        self.width = width

    def whole(self, number: int) -> ir.Constant:
        """A constant index."""
        return ir.Constant(INDEX, number)

    def pointer(self, address: ir.Value) -> ir.Value:
        """An address that came as a number."""
        return self.builder.inttoptr(address, self.scalar.as_pointer())

    def opaque(self, pointer: ir.Value) -> ir.Value:
        """The same address through an empty line of assembly: the compiler no longer knows how it came about.

        Where addresses depend on each other in this way, loads stay behind one another. Else LLVM moves all
        loads of a turn to its beginning, runs out of registers, and spills accumulators to the stack.
        """
        type_ = ir.FunctionType(pointer.type, [pointer.type])
        return self.builder.call(ir.InlineAsm(type_, "", "=r,0", side_effect=False), [pointer])

    def parts(self, value: ir.Value) -> list[ir.Value]:
        """What a tuple holds."""
        return cgutils.unpack_tuple(self.builder, value)

    def steps(self, value: ir.Value) -> list[ir.Value]:
        """A tuple of an address and the distances to the next ones: a pointer and the distances."""
        address, *distances = self.parts(value)
        return [self.pointer(address), *distances]

    def exists(self, pointer: ir.Value) -> ir.Value:
        """Whether an address is not 0."""
        return self.builder.icmp_unsigned("!=", self.builder.ptrtoint(pointer, INDEX), self.whole(0))

    def at(self, pointer: ir.Value, *offsets: ir.Value) -> ir.Value:
        """The address that lies so many elements behind `pointer`."""
        for offset in offsets:
            pointer = self.builder.gep(pointer, [offset])
        return pointer

    def _vector_at(self, pointer: ir.Value) -> ir.Value:
        return self.builder.bitcast(pointer, self.vector.as_pointer())

    def load(self, pointer: ir.Value) -> ir.Value:
        """One vector; the address need not be a multiple of anything but the size of a number."""
        return self.builder.load(self._vector_at(pointer), align=self.bytes)

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        self.builder.store(value, self._vector_at(pointer), align=self.bytes)

    def splat(self, number: ir.Value) -> ir.Value:
        """A vector that holds one number in every place."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(INT32, 0))
        places = ir.Constant(ir.VectorType(INT32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, undefined, places)

    def broadcast(self, pointer: ir.Value) -> ir.Value:
        """The one number at an address, in every place of a vector."""
        return self.splat(self.builder.load(pointer))

    def variable(self, value: ir.Value) -> ir.Value:
        """A vector that changes; the compiler keeps it in a register."""
        place = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(value, place)
        return place

    def add_product(self, total: ir.Value, a: ir.Value, b: ir.Value) -> None:
        """``total += a * b``, one instruction and one rounding."""
        name = f"llvm.fma.v{self.width}f{8 * self.bytes}"
        signature = ir.FunctionType(self.vector, [self.vector] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, signature, name)
        self.builder.store(self.builder.call(fma, [a, b, self.builder.load(total)]), total)

    def add(self, total: ir.Value, value: ir.Value) -> None:
        """``total += value``."""
        self.builder.store(self.builder.fadd(self.builder.load(total), value), total)

    def at_least(self, value: ir.Value, floor: ir.Value) -> ir.Value:
        """The larger of the two; NaN stays NaN, because only what is surely below the floor is replaced."""
        below = self.builder.fcmp_ordered("<", value, floor)
        return self.builder.select(below, floor, value)

    def where_positive(self, gate: ir.Value, value: ir.Value) -> ir.Value:
        """The value where the gate is larger than 0, else 0."""
        zero = ir.Constant(self.vector, [0.0] * self.width)
        return self.builder.select(self.builder.fcmp_ordered(">", gate, zero), value, zero)

    def sum(self, value: ir.Value) -> ir.Value:
        """The sum over the places of a vector, added pairwise."""
        name = f"llvm.vector.reduce.fadd.v{self.width}f{8 * self.bytes}"
        signature = ir.FunctionType(self.scalar, [self.scalar, self.vector])
        reduce = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(reduce, [ir.Constant(self.scalar, -0.0), value], fastmath=("reassoc",))

    def load_first(self, pointer: ir.Value, count: ir.Value) -> ir.Value:
        """A vector of which only the first `count` places are read; the others are 0."""
        places = ir.Constant(ir.VectorType(INDEX, self.width), list(range(self.width)))
        wanted = ir.Constant(ir.VectorType(INDEX, self.width), ir.Undefined)
        for place in range(self.width):
            wanted = self.builder.insert_element(wanted, count, ir.Constant(INT32, place))
        mask = self.builder.icmp_signed("<", places, wanted)
        address = self._vector_at(pointer)
        name = f"llvm.masked.load.v{self.width}f{8 * self.bytes}.p0"
        arguments = [address.type, INT32, mask.type, self.vector]
        load = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(self.vector, arguments), name
        )
        align = ir.Constant(INT32, self.bytes)
        return self.builder.call(load, [address, align, mask, ir.Constant(self.vector, [0.0] * self.width)])

    def prefetch(self, pointer: ir.Value, level: int = 1) -> None:
        """Ask for the cache line at an address that is needed soon; a wrong address does no harm."""
        byte = ir.IntType(8).as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [byte] + [INT32] * 3)
        call = cgutils.get_or_insert_function(self.builder.module, signature, "llvm.prefetch.p0")
        read, keep, data = 0, 4 - level, 1
        hints = [ir.Constant(INT32, hint) for hint in (read, keep, data)]
        self.builder.call(call, [self.builder.bitcast(pointer, byte), *hints])

    def transpose(self, rows: list[ir.Value]) -> list[ir.Value]:
        """Rows to columns of a square, by perfect shuffles: one for each bit of the index."""
        half = self.width // 2
        low = [place for k in range(half) for place in (k, self.width + k)]
        high = [half + place for place in low]
        type_ = ir.VectorType(INT32, self.width)
        for _ in range(self.width.bit_length() - 1):
            pairs = zip(rows[:half], rows[half:], strict=True)
            rows = [
                self.builder.shuffle_vector(a, b, ir.Constant(type_, places))
                for a, b in pairs
                for places in (low, high)
            ]
        return rows

    @contextmanager
    def loop(self, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """``for index in range(0, stop, step)``.

        The empty line of assembly tells the compiler that memory may change between two turns, so that it
        does not mix the loads of several turns when it unrolls the loop.
        """
        bounds = self.whole(0), stop, self.whole(step)
        with cgutils.for_range_slice(self.builder, *bounds, intp=INDEX) as (index, _):
            fence = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", side_effect=True)
            self.builder.call(fence, [])
            yield index


@njit(inline="always")
def address(array, offset):
    """For compiled code: where the element stands that comes `offset` elements after the first."""
    return array.ctypes.data + offset * array.itemsize
