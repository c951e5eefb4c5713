"""``attnproof new NAME``: a file with one encoding that works, to be changed by its author."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from .usage import UsageError

TEXT = '''"""{title}: scores fall with the square of the distance.

See its card with

    attnproof card {file}
"""

from attnproof import Encoding, at_least, hypothesis, real


class {name}(Encoding):
    """−strength·(m − n)² is added to the score of a query at m with a key at n."""

    title = "{title}"
    source = ("where it was published, and the equation there",)

    # Parameters, as general as they may be: a law is proved for every real strength.  Other kinds
    # are positive(), natural(), real(d, d), frequencies(B); a learned table is a function(0) that
    # is called at positions, function(0, out=(d,)) if its rows are vectors.  Lengths are made by
    # (d,) = sizes("d", "features"); a query has d features, or those of `width`, say 2 * B.
    given = {{"strength": real()}}
    # Numbers for drawings and measurements; the proofs do not look at them.
    defaults = {{"strength": 0.01}}

    # What it does, in plain array code, in one method or in several:
    #   add(p)               is added to the token at position p
    #   turn(x, p)           a query or key x at p; or query(q, p) and key(k, p), each for itself
    #   relate(q, k, m, n)   is added to the product q·k of a query at m and a key at n
    #   bias(m, n)           is added to the score, which is that product divided by √d
    #   sees(m, n)           whether the query sees the key (a mask)
    #   value(v, m, n)       the value at n, as the query at m reads it
    # Positions p are one number or a row of them: with x (.., d) and p (..), turn and add give
    # (.., d), so p[..., None] meets features.  In pairs q is (r, 1, d), k (1, c, d), v (1, c, e),
    # m (r, 1) and n (1, c); relate, bias and sees give (r, c), value gives (r, c, e).
    # Functions of arrays: xp = array_namespace(m) from array_api_compat, then xp.exp, xp.abs,
    # xp.sum, ..; no if on an array, but xp.where(m > n, .., ..), and & | ~ for and, or, not.
    def bias(self, m, n):
        return -self.strength * (m - n) ** 2

    # What may be assumed of the parameters.  A law that fails without it is tried with it, and
    # the card tells both: the proof under it, and a witness that it is needed.
    @hypothesis("the strength is at least 0")
    def strength_not_negative(self):
        return [at_least(self.strength, 0)]
'''


def new_encoding(name: str, folder: Path) -> Path:
    """Write ``NAME.py`` into the folder; the path.

    A file that is there is never overwritten.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(
            f"wanted a name for a class and its file, such as my_encoding, got {name!r}; "
            "letters, digits and _ only, and no word of Python"
        )
    words = [word for word in re.split(r"_+", name) if word]
    made = "".join(word[0].upper() + word[1:] for word in words)
    if not words or not made.isidentifier():
        raise UsageError(f"wanted a name that begins with a letter, got {name!r}")
    if made == "Encoding":
        raise UsageError(f"the name {name} is that of the class all encodings are made from")
    file = folder / f"{name}.py"
    text = TEXT.format(name=made, title=" ".join(words), file=file.name)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} is there and is not overwritten; choose another name") from None
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"wanted to write {file}, but {why}; go to another folder") from None
    return file
