"""Maps of a sequence of tokens: recurrences, convolutions and patches."""

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    differ,
    equal,
    function,
    index_below,
    iterate,
    natural,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import no_hypotheses
from attnproof.theorems.definitions.sequences import (
    affine_composite,
    affine_state,
    convolution,
    recurrent_cell,
    state_after,
    windowed,
)

p, d = sizes("p d", "features")
n, before, after, left, right = sizes("n before after left right", "tokens")
(K,) = sizes("K", "offsets")
a, b = sizes("a b", "patches")
(P,) = sizes("P", "pixels")


def state(a: Array, *tokens: Array) -> Array:
    """The last state of h_t = a h_{t−1} + x_t, from 0."""
    start = array_namespace(a).zeros(())
    last: Array = state_after(len(tokens), start, lambda h, x: a * h + x, tokens)
    return last


def neither_sum_nor_silence(a: Array, x: Array, y: Array) -> list[Any]:
    """a is neither 0 nor 1, and x is neither 0 nor y."""
    return [differ(a, 0), differ(a, 1), differ(x, 0), differ(x, y)]


@theorem(
    "h ↦ a h + x is neither equivariant nor invariant, for a not 0 or 1",
    given={"a": real(), "x": real(), "y": real()},
    assume=neither_sum_nor_silence,
    sources=("cf. document 001, equivariance against invariance, and on recurrent networks",),
    claims=("T3", "T17"),
)
def a_recurrence_sees_the_order_of_its_tokens(a: Array, x: Array, y: Array) -> dict[str, Claim]:
    """Tokens x, y give the states x, a x + y, and y, x give y, a y + x.

    An equivariant map would have swapped the two states; an invariant one would have kept each.
    """
    return {
        "the last state changes": differ(state(a, x, y), state(a, y, x), (a - 1) * (x - y)),
        "and is not swapped with the first": differ(state(a, x, y), state(a, y), a * x),
        "by how much": equal(state(a, x, y) - state(a, y, x), (a - 1) * (x - y)),
    }


@a_recurrence_sees_the_order_of_its_tokens.negative_control(
    "the cell adds its tokens up: a = 1", assume=no_hypotheses
)
def sum_of_tokens(a: Array, x: Array, y: Array) -> Claim:
    one = array_namespace(a).ones(())
    return differ(state(one, x, y), state(one, y, x), x - y)


@theorem(
    "A cell at rest stays at rest, so its state does not reveal the number of steps",
    given={
        "f": function(1, 1, out=None, says="any function of a state and a token"),
        "h": real(d),
        "x": real(p),
        "W": real(d, d),
        "U": real(d, p),
        "m": natural("a number of steps"),
    },
    sources=("document 001, on recurrent networks",),
    claims=("T17",),
)
def a_recurrence_need_not_count_its_steps(
    f: Function, h: Array, x: Array, W: Array, U: Array, m: Array
) -> dict[str, Claim]:
    """The cell s ↦ h + f(s, x) − f(h, x) is any cell that returns the state h on the token x.

    Without input and bias, tanh(W h + U x + b) is at rest in 0.  A cell that adds 1 does count.
    """
    xp = array_namespace(h)
    zero = xp.zeros(d)

    def silent(t: Array, state: Array) -> Array:  # noqa: ARG001 (the same at every step)
        cell: Array = recurrent_cell(state, xp.zeros(p), W, U, zero)
        return cell

    states = iterate(m, h, lambda t, s: h + f(s, x) - f(h, x))  # noqa: ARG005 (as above)
    counted = iterate(m, zero, lambda t, state: state + 1)  # noqa: ARG005
    return {
        "any cell at rest": equal(states, h).by_induction(m),
        "no input and no bias": equal(iterate(m, zero, silent), zero).by_induction(m),
        "a cell that counts": equal(counted, m + zero).by_induction(m),
    }


@a_recurrence_need_not_count_its_steps.negative_control("the cell need not be at rest")
def not_at_rest(f: Function, h: Array, x: Array, m: Array) -> Claim:
    return equal(iterate(m, h, lambda t, state: f(state, x)), h)  # noqa: ARG005


Step = tuple[Array, Array]


def composed(second: Step, first: Step) -> Step:
    """The affine step that applies ``first`` and then ``second``."""
    (A, b), (C, c) = second, first
    return A @ C, A @ c + b


def taken(step: Step, state: Array) -> Array:
    """A h + b."""
    A, b = step
    return A @ state + b


@theorem(
    "Affine steps compose associatively; m + k of them are the first m, then the last k",
    given={
        "A": real(d, d),
        "B": real(d, d),
        "C": real(d, d),
        "a": real(d),
        "b": real(d),
        "c": real(d),
        "h": real(d),
        "M": function(0, out=(d, d), says="the matrix of step t"),
        "v": function(0, out=(d,), says="the input of step t"),
        "m": natural("steps before the split"),
        "k": natural("steps after it"),
    },
    sources=("cf. document 001, its table of architectures", "Blelloch 1990, section 1.4.1"),
    claims=("T30",),
)
def an_affine_recurrence_can_be_split_anywhere(
    A: Array,
    B: Array,
    C: Array,
    a: Array,
    b: Array,
    c: Array,
    h: Array,
    M: Function,
    v: Function,
    m: Array,
    k: Array,
) -> dict[str, Claim]:
    """Both halves can be composed in parallel, and so can theirs: log₂ n rounds for n steps.

    State(m, h) is the state after m steps from h, and Composite(m, k) is [A | b] of the single
    step that equals the k steps from step m on.
    """
    one, two, three = (A, a), (B, b), (C, c)
    left_first, right_first = (
        composed(composed(one, two), three),
        composed(one, composed(two, three)),
    )
    whole = affine_state(0, m + k, h, M, v)
    first = affine_state(0, m, h, M, v)
    rest = affine_composite(m, k, d, M, v)
    return {
        "the composite": equal(taken(composed(one, two), h), taken(one, taken(two, h))),
        "associative, the matrix": equal(left_first[0], right_first[0]),
        "associative, the vector": equal(left_first[1], right_first[1]),
        "split after m steps": chain(
            whole, ("a step is composed with those before it", rest[:, :d] @ first + rest[:, d])
        ).by_induction(k),
    }


@an_affine_recurrence_can_be_split_anywhere.negative_control(
    "the halves are taken in the other order"
)
def other_order(A: Array, B: Array, a: Array, b: Array, h: Array) -> Claim:
    return equal(taken(composed((A, a), (B, b)), h), taken((B, b), taken((A, a), h)))


@theorem(
    "y_t = Σ_k w_k x_{t+k}, k = −K, .., K, is the sum over j of w_j x_{t+j−K}",
    given={
        "x": real(n + 2 * K),
        "w": real(2 * K + 1, says="a kernel of odd length"),
        "i": index_below(n),
        "t": real(),
        "s": function(0, says="any sequence, one that is 0 beyond its ends for instance"),
    },
    sources=("document 001, the formula for convolution and the loop that computes it",),
    claims=("T18a",),
)
def a_convolution_reads_a_window(
    x: Array, w: Array, i: Array, s: Function, t: Array
) -> dict[str, Claim]:
    """If the window does not reach the border, output K + i reads only x_i, .., x_{i+2K}."""
    xp = array_namespace(x)
    left, right = w[:K], w[K:][1:]
    before = left @ rows(K, lambda k: s(t - K + k))
    after = right @ rows(K, lambda k: s(t + 1 + k))
    window = rows(2 * K + 1, lambda j: x[i + j])
    return {
        "left, middle and right": equal(windowed(s, w, t), before + w[K] * s(t) + after),
        "away from the border": equal(convolution(x, w)[K + i], xp.sum(w * window, axis=0)),
    }


@a_convolution_reads_a_window.negative_control("the kernel is reversed")
def rotated(x: Array, w: Array, i: Array) -> Claim:
    xp = array_namespace(x)
    window = rows(2 * K + 1, lambda j: x[i + 2 * K - j])
    return equal(convolution(x, w)[K + i], xp.sum(w * window, axis=0))


def listed(x: Array, *numbers: int) -> Array:
    """These numbers as an array like x."""
    xp = array_namespace(x)
    array: Array = xp.stack([number * xp.ones(()) for number in numbers])
    return array


def amid(first: Array, window: Array, last: Array, w: Array) -> Array:
    """The output at the centre of a window with other tokens on both sides."""
    xp = array_namespace(window)
    output: Array = convolution(xp.concat((first, window, last)), w)[first.shape[0] + K]
    return output


@theorem(
    "A convolution gives equal outputs for equal windows, wherever they occur",
    given={
        "z": real(2 * K + 1, says="a window"),
        "w": real(2 * K + 1, says="a kernel"),
        "a": real(before),
        "b": real(after),
        "c": real(left),
        "d": real(right),
    },
    sources=("cf. document 001, repeated tokens under a convolution",),
    claims=("T18c",),
)
def equal_windows_get_equal_outputs(
    z: Array, w: Array, a: Array, b: Array, c: Array, d: Array
) -> dict[str, Claim]:
    """The two 2's of 1, 2, 3, 1, 2, 3 are such a case, for the kernel 0.2, 0.6, 0.2."""
    output = convolution(listed(z, 1, 2, 3, 1, 2, 3), listed(z, 1, 3, 1) / 5)
    return {
        "equal windows": chain(
            amid(a, z, b, w),
            ("nothing else is read", w @ z),
            ("nothing else is read", amid(c, z, d, w)),
        ),
        "the two 2's": equal(output[1], output[4]),
    }


@equal_windows_get_equal_outputs.negative_control(
    "the windows have their middle token in common", y=real(2 * K + 1)
)
def same_token(z: Array, y: Array, w: Array, a: Array, b: Array) -> Claim:
    xp = array_namespace(z)
    other = xp.where(xp.arange(2 * K + 1) == K, z, y)
    return equal(amid(a, z, b, w), amid(a, other, b, w))


Sequence = Callable[[Array], Array]


def two_sided(s: Sequence, left: Array, middle: Array, right: Array, t: Array) -> Array:
    """Σ_k left_k s(t − 1 − k) + middle s(t) + Σ_k right_k s(t + 1 + k), k = 0, .., K − 1."""
    before, after = rows(K, lambda k: s(t - 1 - k)), rows(K, lambda k: s(t + 1 + k))
    total: Array = left @ before + middle * s(t) + right @ after
    return total


def mirrored(x: Array) -> Array:
    """Four entries in reverse order."""
    reverse: Array = array_namespace(x).stack([x[3 - i] for i in range(4)])
    return reverse


@theorem(
    "A convolution commutes with translations, and with reversal if its kernel is symmetric",
    given={
        "s": function(0, says="any sequence, one that is 0 beyond its ends for instance"),
        "w": real(2 * K + 1, says="any kernel"),
        "h": real(K, says="one side of a kernel"),
        "g": real(K, says="its other side"),
        "c": real(says="its middle"),
        "t": real(),
        "shift": real(),
        "m": real(says="the sum of a place and its mirror image"),
        "x": real(4),
        "a": real(),
        "b": real(),
    },
    sources=("cf. document 001, on convolutional networks",),
    claims=("T18b",),
)
def a_symmetric_kernel_cannot_tell_left_from_right(
    s: Function,
    w: Array,
    h: Array,
    c: Array,
    t: Array,
    shift: Array,
    m: Array,
    x: Array,
    a: Array,
    b: Array,
) -> dict[str, Claim]:
    """With equal weights on both sides, left and right are treated equally, padding included."""
    xp = array_namespace(x)

    def reversed_sequence(place: Array) -> Array:
        return s(m - place)

    kernel = xp.stack((a, b, a))
    return {
        "translation": equal(
            windowed(lambda place: s(place + shift), w, t), windowed(s, w, t + shift)
        ),
        "reversal": equal(two_sided(reversed_sequence, h, c, h, t), two_sided(s, h, c, h, m - t)),
        "four tokens and their border": equal(
            convolution(mirrored(x), kernel), mirrored(convolution(x, kernel))
        ),
    }


@a_symmetric_kernel_cannot_tell_left_from_right.negative_control(
    "the two sides of the kernel may differ"
)
def any_kernel(s: Function, h: Array, g: Array, c: Array, t: Array, m: Array) -> Claim:
    return equal(two_sided(lambda place: s(m - place), g, c, h, t), two_sided(s, g, c, h, m - t))


@theorem(
    "An image of aP × bP pixels is cut into a·b patches of P × P pixels and reassembled",
    given={"image": real(a * P, b * P), "H": natural("the height"), "W": natural("the width")},
    sources=("document 001, its pattern for images", "Dosovitskiy et al. 2021, section 3.1"),
    claims=("T37",),
)
def patches_tile_an_image_they_divide(image: Array) -> dict[str, Claim]:
    """The patches form an a × b grid, and every pixel lies in exactly one of them."""
    xp = array_namespace(image)
    grid = xp.reshape(image, (a, P, b, P))
    patches = xp.reshape(xp.permute_dims(grid, (0, 2, 1, 3)), (a * b, P * P))
    back = xp.permute_dims(xp.reshape(patches, (a, b, P, P)), (0, 2, 1, 3))
    height, width = image.shape
    return {
        "how many": equal(xp.sum(xp.ones(a * b)), height / P * (width / P)),
        "put together again": equal(xp.reshape(back, (a * P, b * P)), image),
    }


@patches_tile_an_image_they_divide.negative_control("height and width are any numbers of pixels")
def any_size(H: Array, W: Array) -> Claim:
    return equal((H // 4) * (W // 4), H / 4 * (W / 4))
