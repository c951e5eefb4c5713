"""Document 001, blocks 1, 2, 3, 5 and the last: the same tokens in another order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import attention, self_attention, softmax


# Document 001, first code block: attention then permutation, permutation then attention
@demonstration("Permuting tokens permutes the output of self-attention", claims=("T5",))
def permuting_tokens_permutes_the_output() -> list[Row]:
    """Four tokens of width 8, heads of width 4, seed 42, rows gathered in the order 2, 0, 3, 1."""
    random = np.random.RandomState(42)
    X = random.randn(4, 8)
    to_query, to_key, to_value = (random.randn(8, 4) for _ in range(3))
    order = np.array([2, 0, 3, 1])
    output = self_attention(X, to_query, to_key, to_value)
    moved = self_attention(X[order], to_query, to_key, to_value)
    printed = np.array([
        [-0.266, 1.247, -1.711, -0.260],
        [-1.326, 2.649, -4.731, 0.253],
        [-1.782, 0.425, 0.940, 0.866],
        [2.312, 0.294, -0.452, -2.815],
    ])  # fmt: skip
    return [
        Row("attention", output, printed, digits=3),
        Row("attention, then the permutation", output[order], printed[order], digits=3),
        Row("the permutation, then attention", moved, printed[order], digits=3),
        Row("the two are close", bool(np.allclose(output[order], moved)), printed=True),
        Row("largest difference of the two", f"{np.abs(output[order] - moved).max():.1e}"),
    ]


# Document 001, second code block: the four steps of the equivariance proof in numbers
@demonstration("Every step of the equivariance proof, and the weights it moves", claims=("T12",))
def the_weights_follow_the_permutation() -> list[Row]:
    """The data of the first block; P has the rows of the identity in the order 2, 0, 3, 1."""
    random = np.random.RandomState(42)
    X = random.randn(4, 8)
    to_query, to_key, to_value = (random.randn(8, 4) for _ in range(3))
    order = np.array([2, 0, 3, 1])
    P = np.eye(4)[order]
    Q, K, V = X @ to_query, X @ to_key, X @ to_value
    Q_moved, K_moved, V_moved = (P @ X @ W for W in (to_query, to_key, to_value))
    S, S_moved = Q @ K.mT, Q_moved @ K_moved.mT
    A, A_moved = softmax(S / 4**0.5), softmax(S_moved / 4**0.5)
    steps = {
        "step 1, queries: Q′ = P Q": (Q_moved, P @ Q),
        "step 2, scores: S′ = P S Pᵀ": (S_moved, P @ S @ P.T),
        "step 3, weights: A′ = P A Pᵀ": (A_moved, P @ A @ P.T),
        "step 4, output: O′ = P O": (A_moved @ V_moved, P @ (A @ V)),
    }
    checks = {says: bool(np.allclose(*sides)) for says, sides in steps.items()}
    words = ["The", "cat", "sat", "mat"]
    sat, cat = order.tolist().index(2), order.tolist().index(1)
    weights = np.array([
        [0.112, 0.004, 0.456, 0.428],
        [0.025, 0.616, 0.000, 0.359],
        [0.000, 0.148, 0.851, 0.001],
        [0.994, 0.000, 0.000, 0.006],
    ])  # fmt: skip
    moved_weights = np.array([
        [0.851, 0.000, 0.001, 0.148],
        [0.456, 0.112, 0.428, 0.004],
        [0.000, 0.994, 0.006, 0.000],
        [0.000, 0.025, 0.359, 0.616],
    ])  # fmt: skip
    return [
        *(Row(says, held, printed=True) for says, held in checks.items()),
        Row("all steps", all(checks.values()), printed=True),
        Row("weights A", A, weights, digits=3),
        Row("weights A′ after the permutation", A_moved, moved_weights, digits=3),
        Row("P A Pᵀ", P @ A @ P.T, moved_weights, digits=3),
        Row("weight of cat for sat, before", A[2, 1], 0.148, digits=3),
        Row("the words after", ", ".join(words[i] for i in order), "sat, The, mat, cat"),
        Row("new places of sat and cat", (sat, cat), (0, 3)),
        Row("weight of cat for sat, after", A_moved[sat, cat], 0.148, digits=3),
    ]


# Document 001, third code block: a sentence and its reversal
@demonstration(
    "A sentence and its reversal get the same weights, word by word", claims=("T13", "T14")
)
def two_sentences_of_the_same_words() -> list[Row]:
    """Three words of width 3, heads of width 2, seed 42; the second sentence is the reversal."""
    john, loves, mary = [1.0, 0.5, 0.2], [0.3, 1.0, 0.4], [0.8, 0.6, 0.3]
    first, second = np.array([john, loves, mary]), np.array([mary, loves, john])
    random = np.random.RandomState(42)
    maps = [random.randn(3, 2) for _ in range(3)]
    to_query, to_key, _ = maps
    weights = [softmax(X @ to_query @ (X @ to_key).mT / 2**0.5) for X in (first, second)]
    outputs = [self_attention(X, *maps) for X in (first, second)]
    printed = np.array([[0.47, 0.18, 0.35], [0.49, 0.17, 0.34], [0.46, 0.19, 0.35]])
    same = bool(np.isclose(weights[0][0, 1], weights[1][2, 1]))
    sums = [output.sum(axis=0) for output in outputs]
    return [
        Row("weights, first sentence", weights[0], printed, digits=2),
        Row("weights, second sentence", weights[1], printed[::-1, ::-1], digits=2),
        Row("john to loves, first sentence", weights[0][0, 1], 0.1837, digits=4),
        Row("john to loves, second sentence", weights[1][2, 1], 0.1837, digits=4),
        Row("the same weight", same, printed=True),
        Row("first row of the output, first sentence", outputs[0][0].round(4)),
        Row("first row of the output, second sentence", outputs[1][0].round(4)),
        Row("the rows agree after reversal", bool(np.allclose(outputs[0], outputs[1][::-1]))),
        Row("the sums over the words agree", bool(np.allclose(*sums))),
    ]


# Document 001, fifth code block: four points in space, attended to and averaged
@demonstration(
    "A point cloud has one representation, whatever the order of its points",
    claims=("T22",),
    remark="The four points are symmetric in the three coordinates, so this example cannot see "
    "coordinates that are mixed up; 2000 random points are added. Of graph attention the page's "
    "block prints sentences only.",
)
def a_point_cloud_in_two_orders() -> list[Row]:
    """Attention with Q = K = V = X on the points A, B, C, D, then the mean over the points."""
    points = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 1.0, 1.0]])
    first, second = _mean_pooled(points), _mean_pooled(points[[2, 3, 0, 1]])
    t = 1 / 3**0.5
    e1, e2 = np.exp(t), np.exp(2 * t)
    closed = (e1 / (1 + e1) + 1 + (1 + e2) / (3 + e2)) / 4
    orders = [_mean_pooled(points[list(order)]) for order in permutations(range(4))]
    random = np.random.RandomState(42)
    many = random.randn(2000, 3)
    spread = np.abs(_mean_pooled(many) - _mean_pooled(many[random.permutation(2000)])).max()
    printed = (0.5791, 0.5791, 0.5791)
    return [
        Row("points in the order A, B, C, D", first, printed, digits=4),
        Row("points in the order C, D, A, B", second, printed, digits=4),
        Row("the two are close", bool(np.allclose(first, second)), printed=True),
        Row("¼ [eᵗ/(1+eᵗ) + 1 + (1+e²ᵗ)/(3+e²ᵗ)] at t = 1/√3", closed, 0.5791, digits=4),
        Row("all 24 orders, largest difference", f"{np.ptp(orders, axis=0).max():.1e}"),
        Row("2000 random points in two orders, largest difference", f"{spread:.1e}"),
    ]


def _mean_pooled(points: np.ndarray) -> np.ndarray:
    mean: np.ndarray = attention(points, points, points).mean(axis=0)
    return mean


# The pattern for images, reduced to its names: helpers that no class defines, and the names of
# the height, the width and the patch size, which are neither arguments nor variables.
PATTERN = """
class Image:
    def forward(self, image):
        patches = self.patchify(image)
        x = self.patch_embed(patches)
        return self.transformer_layers(x + self.pos_embed_2d(H // P, W // P))
"""

HELPERS = {
    "patchify": lambda _, image: image,
    "patch_embed": lambda _, patches: patches,
    "pos_embed_2d": lambda _, rows, columns: rows * columns,
    "transformer_layers": lambda _, x: x,
}


# Document 001, last code block: five patterns without constructors
@demonstration(
    "The pattern for images cannot run",
    claims=("T28",),
    remark="The page's block prints two sentences and computes nothing. What runs here is a "
    "reconstruction of its pattern for images, reduced to the names that it uses.",
)
def the_image_pattern_cannot_run() -> list[Row]:
    """The pattern as printed; with its helpers supplied; and with its free names as well."""
    forward = "forward of the pattern"
    stands, helped = _outcome({}), _outcome(HELPERS)
    return [
        Row(f"{forward}, as it stands", stands, "runs", expected_to_differ=True),
        Row(f"{forward}, with its helpers", helped, "runs", expected_to_differ=True),
        Row(f"{forward}, with H, W and P too", _outcome(HELPERS, H=12, W=20, P=4)),
    ]


def _outcome(helpers: dict[str, Any], **names: int) -> str:
    """Return whether the pattern runs in a scope with these names only, or what it raises."""
    scope: dict[str, Any] = {"__name__": "pattern", **names}
    exec(PATTERN, scope)
    image = type("Image", (scope["Image"],), helpers)()
    try:
        image.forward(0)
    except (AttributeError, NameError) as error:
        return f"{type(error).__name__}: {error}"
    return "runs"
