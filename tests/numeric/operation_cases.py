"""A call of every ATen operation that is read as a term, with what stands for its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Of:
    """A tensor: its kind and its axes, as text.

    Kinds are real, positive, whole, truth, complex, stored (a table), seen (a mask of keys),
    following (the places 2, 3, ..) and alike (one number everywhere).
    """

    kind: str
    axes: str = ""


@dataclass(frozen=True)
class Symint:
    """A length of the graph, such as n or n + 2."""

    letter: str
    more: int = 0


@dataclass(frozen=True)
class Case:
    """One call; ``code`` is run in place of the operation where that is none of torch's own."""

    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    code: Any = None


def on(*args: Any, code: Any = None, **keywords: Any) -> Case:
    """A call."""
    return Case(args, keywords, code)


def R(axes: str) -> Of:
    """Real numbers."""
    return Of("real", axes)


N, M = Symint("n"), Symint("m")
X, Y, ROW, SCALAR = R("n 4"), R("n 4"), R("4"), Of("real")
P, BITS, MORE = Of("positive", "n 4"), Of("truth", "n 4"), Of("truth", "n 1")
WHOLE = Of("whole", "n m")
Z, SQUARE, BATCH = Of("complex", "n 2"), R("n n"), R("m n 4")
SHAPE = [N, 3]
PLACES, SLOTS, ONE_ROW = Of("following", "n"), R("3 8 4"), Of("alike", "1 4")

CASES: dict[str, list[Case]] = {
    "aten.add.Tensor": [on(X, ROW), on(X, Y, alpha=3), on(BITS, MORE), on(BITS, X)],
    "aten.add.Scalar": [on(X, 2), on(X, 0.3, alpha=2)],
    "aten.sub.Tensor": [on(X, ROW), on(X, Y, alpha=3)],
    "aten.sub.Scalar": [on(X, 2)],
    "aten.rsub.Scalar": [on(X, 2), on(X, 2, 3)],
    "aten.rsub.Tensor": [on(X, Y), on(X, Y, alpha=2)],
    "aten.mul.Tensor": [on(X, ROW), on(BITS, MORE), on(BITS, X), on(Z, Z), on(Z, R("n 2"))],
    "aten.mul.Scalar": [on(X, -3), on(BITS, 0.3)],
    "aten.div.Tensor": [on(X, P)],
    "aten.div.Scalar": [on(X, 3), on(WHOLE, 2)],
    "aten.div.Tensor_mode": [on(WHOLE, Of("counted", ""), rounding_mode="floor"),
                             on(X, P, rounding_mode=None)],
    "aten.div.Scalar_mode": [on(WHOLE, 3, rounding_mode="floor")],
    "aten.floor_divide.default": [on(WHOLE, Of("counted", ""))],
    "aten.remainder.Scalar": [on(WHOLE, 3)],
    "aten.remainder.Tensor": [on(WHOLE, Of("counted", ""))],
    "aten.pow.Tensor_Scalar": [on(X, 3), on(X, 0), on(P, -1), on(P, 0.5), on(P, -0.5), on(P, 2.0)],
    "aten.pow.Scalar": [on(10000.0, X), on(2, X), on(0.5, X)],
    "aten.pow.Tensor_Tensor": [on(P, X)],
    "aten.gelu.default": [on(X), on(X, approximate="tanh")],
    "aten.maximum.default": [on(X, Y)],
    "aten.clamp_min.default": [on(X, 0), on(X, -1e5)],
    "aten.clamp_min.Tensor": [on(X, Y)],
    "aten.minimum.default": [on(X, Y)],
    "aten.clamp_max.default": [on(X, 0.5)],
    "aten.clamp.default": [on(X, -1, 1), on(X, None, 0.5), on(X, 0)],
    "aten.clamp.Tensor": [on(X, ROW, P)],
    "aten.where.self": [on(BITS, X, Y), on(BITS, MORE, BITS), on(MORE, X, SCALAR)],
    "aten.where.ScalarOther": [on(BITS, X, 0.0)],
    "aten.where.ScalarSelf": [on(BITS, 1.0, X)],
    "aten.where.Scalar": [on(BITS, 1.0, 0.0)],
    "aten.masked_fill.Scalar": [on(X, BITS, -3.0), on(X, MORE, float("-inf"))],
    "aten.masked_fill.Tensor": [on(X, BITS, SCALAR)],
    "aten.logical_and.default": [on(BITS, MORE), on(WHOLE, WHOLE)],
    "aten.logical_or.default": [on(BITS, MORE), on(WHOLE, Of("whole", "m"))],
    "aten.logical_xor.default": [on(BITS, MORE), on(WHOLE, Of("whole", "m"))],
    "aten.logical_not.default": [on(BITS), on(WHOLE)],
    "aten.bitwise_and.Tensor": [on(BITS, MORE)],
    "aten.bitwise_and.Scalar": [on(BITS, True)],
    "aten.bitwise_or.Tensor": [on(BITS, MORE)],
    "aten.bitwise_or.Scalar": [on(BITS, True)],
    "aten.bitwise_xor.Tensor": [on(BITS, MORE)],
    "aten.__and__.Tensor": [on(BITS, MORE)],
    "aten.__and__.Scalar": [on(BITS, True)],
    "aten.__or__.Tensor": [on(BITS, MORE)],
    "aten.__or__.Scalar": [on(BITS, True)],
    "aten.__xor__.Tensor": [on(BITS, MORE)],
    "aten.bitwise_not.default": [on(BITS)],
    "aten.arange.default": [on(N), on(7)],
    "aten.arange.start": [on(2, 7), on(N, Symint("n", 3))],
    "aten.arange.start_step": [on(1, 8, 3), on(0, 8, 2), on(6, 0, -2), on(1, N), on(N, 0, -1),
        on(Symint("n", 3), -1, -1), on(N, Symint("n", 5), 2)],
    "aten.full.default": [on(SHAPE, 0.5), on(SHAPE, 1, dtype=torch.bool), on([], 2.0)],
    "aten.new_full.default": [on(X, SHAPE, 0.25)],
    "aten.full_like.default": [on(X, 7), on(BITS, 1), on(X, True, dtype=torch.bool)],
    "aten.fill.Scalar": [on(X, 7)],
    "aten.fill.Tensor": [on(X, SCALAR)],
    "aten.zeros.default": [on(SHAPE), on(SHAPE, dtype=torch.bool)],
    "aten.new_zeros.default": [on(X, SHAPE)],
    "aten.ones.default": [on(SHAPE), on(SHAPE, dtype=torch.bool)],
    "aten.new_ones.default": [on(X, SHAPE), on(X, SHAPE, dtype=torch.bool)],
    "aten.zeros_like.default": [on(X), on(BITS), on(X, dtype=torch.bool)],
    "aten.ones_like.default": [on(X), on(BITS), on(BITS, dtype=torch.float64)],
    "aten.scalar_tensor.default": [on(0.5)],
    "aten.tensor.default": [on(0.5, code=torch.tensor)],
    "aten.eye.default": [on(N)],
    "aten.eye.m": [on(3, 3)],
    "aten.tril.default": [on(SQUARE), on(X, -1), on(Of("truth", "n m"), 1)],
    "aten.triu.default": [on(SQUARE), on(X, -1), on(Of("truth", "n m"), 1)],
    "aten.outer.default": [on(ROW, R("n")), on(Of("truth", "m"), Of("truth", "n"))],
    "aten.meshgrid.indexing": [on([ROW, R("n")], indexing="ij")],
    "aten.meshgrid.default": [on([ROW, R("n")])],
    "aten.view_as_complex.default": [on(R("n 3 2"))],
    "aten.view_as_real.default": [on(Z)],
    "aten.complex.default": [on(X, Y)],
    "aten.polar.default": [on(P, X)],
    "aten.real.default": [on(Z), on(X)],
    "aten.imag.default": [on(Z)],
    "aten.conj.default": [on(Z)],
    "aten._conj.default": [on(Z)],
    "aten.cat.default": [on([X, Y]), on([X, BITS], 1), on([BITS, BITS], 0)],
    "aten.concat.default": [on([X, Y]), on([X, BITS], 1)],
    "aten.concatenate.default": [on([X, Y]), on([X, BITS], 1)],
    "aten.stack.default": [on([X, Y]), on([X, Y], -1), on([BITS, BITS], 1), on([Z, Z], -1)],
    "aten.repeat.default": [on(X, [2, 3]), on(X, [M, 1, 2])],
    "aten.repeat_interleave.self_int": [on(X, 2, 1), on(X, 3, 0)],
    "aten.constant_pad_nd.default": [on(X, [1, 2]), on(X, [0, 1, 2, 0], 5.0)],
    "aten.pad.default": [on(X, [1, 0], code=torch.nn.functional.pad),
                         on(X, [1, 0], "constant", 2.0, code=torch.nn.functional.pad)],
    "aten.index_put.default": [
        on(SLOTS, [None, PLACES], R("3 n 4")), on(SLOTS, [None, PLACES], R("4"), False),
        on(R("8 4"), [PLACES], X), on(Of("truth", "8 n"), [PLACES], Of("truth", "n 1")),
        on(X, [BITS], SCALAR), on(BATCH, [None, Of("truth", "n")], SCALAR),
        on(BATCH, [Of("truth", "m n")], SCALAR),
    ],
    "aten.index_copy.default": [
        on(SLOTS, 1, PLACES, R("3 n 4")), on(R("4 8"), -1, PLACES, R("4 n")),
    ],
    "aten.slice_scatter.default": [on(X, R("n 2"), 1, 0, 2), on(X, R("n 2"), 1, 1, 9, 2),
                                   on(R("n 8"), R("n 3"), 1, 1, 8, 3),
                                   on(R("n 8"), R("n 2"), 1, 2, 6, 3),
                                   on(R("8 n"), R("1 n"), 0, 7, 8, 2),
                                   on(R("8 n"), R("2 n"), 0, -3, 8, 2),
                                   on(X, R("n 1"), 1, 2, 3), on(X, Y), on(X, R("1 4"), 0, 1, 2),
                                   on(X, ONE_ROW, 0, 1, 2), on(X, ONE_ROW, 0, -1)],
    "aten.select_scatter.default": [on(X, R("n"), 1, 2), on(X, R("n"), 1, -1), on(X, ROW, 0, 1),
                                    on(X, ROW, 0, -2), on(BITS, Of("truth", "4"), 0, 0)],
    "aten.copy.default": [on(X, ROW)],
    "aten.slice.Tensor": [on(X, 1, 1, 3), on(X, 1, 0, 9223372036854775807, 2), on(X, -1, -3, -1),
                          on(X, 1, -9), on(X, 0, 1), on(BATCH, 1, 0, Symint("n", -1)),
                          on(Of("stored", "9 4"), 0, 0, N)],
    "aten.select.int": [on(X, 1, 2), on(X, -1, -1), on(X, 0, 0)],
    "aten.unfold.default": [on(X, 1, 2, 1), on(X, 1, 2, 2), on(X, -1, 3, 2), on(X, 0, 2, 1)],
    "aten.unbind.int": [on(X, 1), on(X, -1)],
    "aten.split.Tensor": [on(X, 2, 1), on(X, 3, -1)],
    "aten.split.default": [on(X, 3, 1, code=torch.split)],
    "aten.split_with_sizes.default": [on(X, [1, 3], 1)],
    "aten.chunk.default": [on(X, 2, 1), on(X, 3, -1)],
    "aten.flip.default": [on(X, [0]), on(X, [-1, 0])],
    "aten.index.Tensor": [on(Of("stored", "9 4"), [Of("whole", "m")]),
                          on(Of("stored", "4 9"), [None, WHOLE]),
                          on(Of("stored", "9 9 4"), [WHOLE, WHOLE]),
                          on(Of("stored", "4 9 9"), [None, Of("whole", "n m"), WHOLE])],
    "aten.index_select.default": [on(Of("stored", "9 4"), 0, Of("whole", "m")),
                                  on(Of("stored", "4 9"), -1, Of("whole", "m"))],
    "aten.gather.default": [on(Of("stored", "9 4"), 0, Of("whole", "m 4")),
                            on(Of("stored", "4 9"), -1, Of("whole", "4 m"))],
    "aten.embedding.default": [on(Of("stored", "9 4"), WHOLE)],
    "aten.roll.default": [on(X, [1], [0]), on(X, [-1, 2], [0, 1])],
    "aten.matmul.default": [on(X, R("4 m")), on(BATCH, R("4")), on(ROW, R("m 4 n")),
                            on(ROW, ROW), on(BATCH, R("4 3"))],
    "aten.mm.default": [on(X, R("4 m"))],
    "aten.bmm.default": [on(BATCH, R("m 4 3"))],
    "aten.mv.default": [on(X, ROW)],
    "aten.dot.default": [on(ROW, ROW)],
    "aten.linear.default": [on(X, R("3 4")), on(BATCH, R("3 4"), R("3"))],
    "aten.convolution.default": [
        on(R("n 4 m"), R("3 4 1"), R("3"), [1], [0], [1], False, [0], 1),
        on(R("n 4 m 2"), R("3 4 1 1"), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ],
    "aten.addmm.default": [on(R("3"), X, R("4 3")),
                           on(R("3"), X, R("4 3"), beta=2, alpha=3)],
    "aten.baddbmm.default": [on(R("m n 3"), BATCH, R("m 4 3")),
                             on(R("m n 3"), BATCH, R("m 4 3"), beta=0, alpha=3)],
    "aten.einsum.default": [
        on("ij,kj->ik", [X, R("m 4")]), on("ij,jk", [X, R("4 m")]),
        on("bij,bij->bi", [BATCH, BATCH]), on("...d,od->...o", [BATCH, R("3 4")]),
        on("...d,d", [BATCH, ROW]), on("ba,bc", [X, R("n 3")]), on("i->", [ROW]),
    ],
    "aten.sum.default": [on(X), on(BITS)],
    "aten.sum.dim_IntList": [on(X, [1]), on(BATCH, [0, -1], True), on(X, [])],
    "aten.mean.default": [on(X)],
    "aten.mean.dim": [on(X, [-1], True), on(BATCH, [0, 1])],
    "aten.var.correction": [on(X, [1]), on(X, [-1], correction=0, keepdim=True)],
    "aten.var.dim": [on(X, [1]), on(X, [1], False, True)],
    "aten.elu.default": [on(X), on(X, 2.0, 3.0, 0.5)],
    "aten.leaky_relu.default": [on(X), on(X, 0.25)],
    "aten.hardtanh.default": [on(X), on(X, 0.0, 6.0)],
    "aten.linalg_vector_norm.default": [on(X, 2, [-1]), on(X, 2, [1], True), on(X)],
    "aten.std.correction": [on(X, [1]), on(X, [-1], correction=0, keepdim=True)],
    "aten.var_mean.correction": [on(X, [1]), on(X, [-1], correction=0, keepdim=True)],
    "aten.cumsum.default": [on(X, 0), on(X, -1), on(BITS, 1)],
    "aten.amax.default": [
        on(X, [-1]),
        on(BATCH, [1], True),
        on(BATCH, [0, 2]),
        on(BATCH, [-1, 1], True),
    ],
    "aten.amin.default": [on(X, [-1]), on(BATCH, [1], True), on(BATCH, [0, 2])],
    "aten.max.default": [on(X), on(BATCH)],
    "aten.min.default": [on(X), on(BATCH)],
    "aten.min.dim": [on(X, 0), on(BATCH, 1, True)],
    "aten.aminmax.default": [on(X), on(X, dim=0), on(BATCH, dim=1, keepdim=True)],
    "aten.median.dim": [on(X, 0), on(BATCH, 1, True)],
    "aten.mode.default": [on(X, 0), on(BATCH, 1, True)],
    "aten.kthvalue.default": [on(X, 2, 0), on(BATCH, 1, -1, True)],
    "aten.sort.default": [on(X), on(X, 0, True), on(BATCH, 1)],
    "aten.sort.stable": [on(X, stable=True), on(BATCH, stable=True, dim=1, descending=True)],
    "aten.topk.default": [on(X, 2), on(X, 1, 0), on(X, 1, 0, False), on(BATCH, 2, 1, False)],
    "aten.cummax.default": [on(X, 0), on(BATCH, 1)],
    "aten.cummin.default": [on(X, 0), on(BATCH, 1)],
    "aten.isinf.default": [on(X)],
    "aten.isnan.default": [on(X)],
    "aten.any.dim": [on(BITS, -1), on(BITS, 0, True), on(X, 1)],
    "aten.any.dims": [on(BITS, [0, 1]), on(BITS, None, True)],
    "aten.any.default": [on(BITS), on(X)],
    "aten.all.dim": [on(BITS, -1), on(BITS, 0, True), on(X, 1)],
    "aten.all.dims": [on(BITS, [0, 1]), on(BITS, None, True)],
    "aten.all.default": [on(BITS), on(X)],
    "aten.max.dim": [on(X, 1), on(X, 0, True), on(BATCH, 1)],
    "aten.softmax.int": [on(X, -1), on(BATCH, 1)],
    "aten._softmax.default": [on(X, 1, False)],
    "aten._safe_softmax.default": [on(X, 1)],
    "aten.log_softmax.int": [on(X, -1)],
    "aten._log_softmax.default": [on(X, 0, False)],
    "aten.logsumexp.default": [on(X, [1]), on(BATCH, [1], True)],
    "aten.logaddexp.default": [on(X, Y), on(X, ROW)],
    "aten.cumprod.default": [on(X, -1), on(BATCH, -1)],
    "aten.prod.dim_int": [on(X, -1), on(X, -1, keepdim=True), on(BATCH, 2)],
    "aten.logcumsumexp.default": [on(X, 1), on(X, -1), on(BATCH, 1)],
    "aten.log_sigmoid.default": [on(X)],
    "aten.layer_norm.default": [on(X, [4]), on(X, [4], ROW, R("4"), 0.25)],
    "aten.native_layer_norm.default": [on(X, [4], ROW, R("4"), 0.25)],
    "aten._native_batch_norm_legit_no_training.default": [
        on(R("n 4 m"), ROW, R("4"), R("4"), Of("positive", "4"), 0.1, 0.25),
        on(R("n 4 m m"), None, None, ROW, Of("positive", "4"), 0.1, 0.25),
    ],
    "aten.rms_norm.default": [on(X, [4]), on(X, [4], ROW, 0.25), on(X, [4], None, 0.0)],
    "aten.diagonal.default": [on(SQUARE), on(R("n m n"), 0, 0, -1)],
    "aten.scaled_dot_product_attention.default": [
        on(*[R("2 m n 4")] * 3), on(*[R("2 m n 4")] * 3, None, 0.0, True),
        on(*[R("2 m n 4")] * 3, Of("seen", "n n"), scale=0.3),
        on(*[R("2 m n 4")] * 3, R("m 1 n")),
        on(R("2 4 n 4"), *[R("2 2 n 4")] * 2, enable_gqa=True),
        on(R("2 3 m 4"), *[R("2 3 n 4")] * 2, None, 0.0, True),
    ],
    "aten.view.default": [on(R("n 6"), [N, 2, 3]), on(R("n 2 3"), [N, -1])],
    "aten.reshape.default": [on(R("n 6"), [N, 3, -1])],
    "aten.view_as.default": [on(R("n 6"), R("n 3 2"))],
    "aten.reshape_as.default": [on(R("n 6"), R("3 n 2"))],
    "aten.unflatten.int": [on(R("n 6"), 1, [2, 3]), on(R("2 6 n"), -2, [3, -1])],
    "aten._unsafe_view.default": [on(R("n 2 3"), [N, 6])],
    "aten.permute.default": [on(BATCH, [2, 0, 1]), on(BATCH, [-1, 1, 0])],
    "aten.transpose.int": [on(BATCH, 0, -1), on(Z, 0, 1)],
    "aten.swapaxes.default": [on(BATCH, 0, -1)],
    "aten.swapdims.default": [on(BATCH, 1, 0)],
    "aten.mT.default": [on(R("2 n m"))],
    "aten.t.default": [on(X), on(ROW)],
    "aten.numpy_T.default": [on(X)],
    "aten.movedim.int": [on(BATCH, 0, 2), on(BATCH, -1, 0)],
    "aten.unsqueeze.default": [on(X, 0), on(X, -1), on(X, -2)],
    "aten.squeeze.dim": [on(R("n 1"), 1), on(X, 1)],
    "aten.squeeze.dims": [on(R("1 n 1"), [0, -1])],
    "aten.squeeze.default": [on(R("1 n 1"))],
    "aten.expand.default": [on(ROW, [N, 4]), on(R("n 1"), [2, -1, 3])],
    "aten.broadcast_to.default": [on(ROW, [N, 4])],
    "aten.expand_as.default": [on(R("n 1"), R("2 n 3"))],
    "aten.flatten.using_ints": [on(R("n 2 3"), 1), on(R("2 3 n"), 0, 1)],
    "aten.sym_size.int": [on(X, 0, code=torch.Tensor.size), on(X, -1, code=torch.Tensor.size)],
    "aten.sym_numel.default": [on(X, code=torch.Tensor.numel)],
    "mul": [on(N, 3, code=int.__mul__), on(N, M, code=int.__mul__)],
    "add": [on(N, 3, code=int.__add__)],
    "sub": [on(N, 1, code=int.__sub__)],
    "neg": [on(N, code=int.__neg__)],
    "floordiv": [on(12, 5, code=int.__floordiv__)],
} | {
    f"aten.{name}.default": [on(X)]
    for name in ("neg", "exp", "exp2", "expm1", "cos", "sin", "tan", "tanh", "square", "abs",
                 "sign",
                 "floor", "ceil", "round", "trunc", "relu", "sigmoid", "silu", "erf", "softplus",
                 "mish",
                 "hardswish", "clone", "alias", "detach", "detach_", "contiguous",
                 "lift_fresh_copy", "lift_fresh", "resolve_conj")
} | {
    f"aten.{name}.default": [on(P)]
    for name in ("log", "log1p", "log2", "sqrt", "rsqrt", "reciprocal")
} | {
    f"aten.{name}.{kind}": [on(X, Y if kind == "Tensor" else 0.5),
                            on(WHOLE, WHOLE if kind == "Tensor" else 1)]
    for name in ("eq", "ne", "lt", "le", "gt", "ge") for kind in ("Tensor", "Scalar")
} | {
    "aten.dropout.default": [on(X, 0.5, False)],
    "aten.native_dropout.default": [on(X, 0.5, False)],
}  # fmt: skip
