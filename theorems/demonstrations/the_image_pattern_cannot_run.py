"""Document 001, last code block: five patterns without constructors."""

from __future__ import annotations

from typing import Any

from attnproof.numeric.demonstration import Row, demonstration

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


@demonstration(
    "The pattern for images cannot run",
    claims=("T28",),
    remark="The page's block prints two sentences and computes nothing. What runs here is a "
    "reconstruction of its pattern for images, reduced to the names that it uses.",
)
def run() -> list[Row]:
    """The pattern as it stands; with its helpers supplied; and with its free names as well."""
    forward = "forward of the pattern"
    stands, helped = _outcome({}), _outcome(HELPERS)
    return [
        Row(f"{forward}, as it stands", stands, "runs", expected_to_differ=True),
        Row(f"{forward}, with its helpers", helped, "runs", expected_to_differ=True),
        Row(f"{forward}, with H, W and P too", _outcome(HELPERS, H=12, W=20, P=4)),
    ]


def _outcome(helpers: dict[str, Any], **names: int) -> str:
    """Whether the pattern runs in a scope with these names only, or what it raises."""
    scope: dict[str, Any] = {"__name__": "pattern", **names}
    exec(PATTERN, scope)
    image = type("Image", (scope["Image"],), helpers)()
    try:
        image.forward(0)
    except (AttributeError, NameError) as error:
        return f"{type(error).__name__}: {error}"
    return "runs"
