"""PrivacyStatement: what a release promises, and what it cost."""

from dataclasses import dataclass, field
from typing import Any

RELATION = "add or remove one row"


@dataclass(frozen=True)
class PrivacyStatement:
    """What was spent on what, under which relation, and the promise in one sentence.

    Parameters
    ----------
    epsilon, delta : float
    spent : dict of str to float
        Epsilon by purpose; the amounts add up to at most `epsilon`.
    method : str
    private : bool
        False where the noise came from a seed, for tests: nothing is promised then.
    relation : str
        Which data sets are neighbours.

    Examples
    --------
    >>> print(PrivacyStatement(0.5, 0.0, {"tree": 0.5}, "gibbs").guarantee)
    Whoever sees this model learns of any one row, present or not, at most a factor of 1.65 in \
odds (epsilon 0.5, add or remove one row).
    """

    epsilon: float
    delta: float
    spent: dict[str, float]
    method: str
    private: bool = True
    relation: str = field(default=RELATION)

    @property
    def guarantee(self) -> str:
        """The promise in one sentence."""
        if not self.private:
            return "NOT PRIVATE: the noise came from a testing seed, so nothing is promised."
        factor = 2.718281828459045 ** min(self.epsilon, 300.0)
        text, unless = f"epsilon {self.epsilon:g}", ""
        if self.delta:
            text += f", delta {self.delta:g}"
            unless = f", except with probability about {self.delta:g}"
        seen = "answer" if self.method == "accuracy" else "model"
        return (
            f"Whoever sees this {seen} learns of any one row, present or not, at most a factor of "
            f"{factor:.3g} in odds{unless} ({text}, {self.relation})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "spent": dict(self.spent),
            "method": self.method,
            "private": self.private,
            "relation": self.relation,
            "guarantee": self.guarantee,
        }
