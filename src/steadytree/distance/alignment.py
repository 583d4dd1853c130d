"""Alignment: two trees laid over each other with few edits, moved subtrees among them.

An edit is a split that was adjusted, replaced, grown or cut, a leaf with another label, or a move:

- a split moves up when it is asked first in a subtree and the rest keeps its order; the subtree
  ``s(t(a, b), t(c, d))`` becomes ``t(s(a, c), s(b, d))`` and decides as before;
- two splits swap when they take each other's place and all below stays where it is;
- a subtree moves when it is cut in one place and grown in another.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from steadytree.distance.subtrees import (
    NONE,
    Subtree,
    Subtrees,
    Task,
    has_split,
    mark,
    preorder,
    run,
)
from steadytree.models.tree import Tree

Status = Literal[
    "same", "moved", "moved away", "adjusted", "replaced", "relabelled", "grown", "cut"
]
STATUSES: tuple[Status, ...] = Status.__args__  # type: ignore[attr-defined]
Move = Literal["", "up", "swap", "subtree"]
MOST_PAIRS = 5_000  # pairs of subtrees that are looked at; beyond, trees align by position
MOST_ROUNDS = 3  # searches for subtrees that moved
EDIT = 1 << 20  # cost of an edit; small amounts beside it decide between equally many edits
COSTS = {"up": EDIT + 1, "swap": EDIT + 2, "insert": EDIT + 3, "delete": EDIT + 3}
ADJUSTED, REPLACED, ALONE = EDIT, EDIT + 4, EDIT + 3
HALF = EDIT // 2  # a moved subtree is paid where it is cut and where it is grown


@dataclass(frozen=True)
class NodeChange:
    """One position of the two trees laid over each other."""

    # "same"; "moved", a split or subtree that stood elsewhere; "moved away", where it stood;
    # "adjusted", the same feature with another threshold, set of categories or side for missing
    # values; "replaced", another feature; "relabelled", a leaf with another label; "grown", there
    # is more in the new tree; "cut", there is less
    status: Status
    old: int  # node of each tree at this position, -1 where it has none
    new: int
    parent: int  # position above, -1 at the root
    side: str  # "yes" or "no" by the split above, empty at the root
    depth: int
    left: int = NONE  # positions below, -1 where both trees end
    right: int = NONE
    move: Move = ""  # how what is "moved" has moved
    came_from: int = NONE  # position where a moved subtree stood
    went_to: int = NONE  # position where the subtree that stood here stands now

    @property
    def is_edit(self) -> bool:
        """Whether this is one of the edits that make the new tree of the old one."""
        if self.left == NONE:
            return self.status == "relabelled"
        return self.status != "same"


def align(old: Tree, new: Tree) -> tuple[NodeChange, ...]:
    """Positions of two trees over one space, in the order root, left, right."""
    subtrees = Subtrees(old, new)
    best = _Alignment(subtrees, {}).nodes()
    in_old, in_new = (
        {own.content for own in preorder(tree) if own.children}
        for tree in (subtrees.old, subtrees.new)
    )
    prices = dict.fromkeys(sorted(in_old & in_new), HALF)
    for _ in range(MOST_ROUNDS):
        if not prices or n_edits(best) < 2:
            break
        found = _Alignment(subtrees, prices)
        nodes = found.nodes()
        if not found.only_removed:
            best = min(best, nodes, key=_rank)
        if not found.only_removed and not found.only_grown:
            break
        # a side that is paid too often gets dearer, or the subtree may not move at all
        changes = dict.fromkeys(found.only_removed, HALF) | dict.fromkeys(found.only_grown, -HALF)
        prices = {content: price + changes.get(content, 0) for content, price in prices.items()}
        prices = {content: price for content, price in prices.items() if 0 <= price <= EDIT}
    return best


def n_edits(nodes: tuple[NodeChange, ...]) -> int:
    """Number of edits that make the new tree of the old one."""
    return sum(node.is_edit for node in nodes)


def _rank(nodes: tuple[NodeChange, ...]) -> tuple[int, int]:
    """Number of edits; among equally many, those that keep a split are better."""
    lost = sum(node.is_edit and node.status in ("replaced", "grown", "cut") for node in nodes)
    return n_edits(nodes), lost


class _Option(NamedTuple):
    """One way to make a subtree of another; `side` is the child that goes on."""

    kind: Literal["pair", "up", "swap", "insert", "delete", "away"]
    side: int = 0


Pair = tuple[Subtree | None, Subtree | None]


class _Alignment:
    """The cheapest alignment where some subtrees may move from one place to another.

    `prices` has their contents and the part of a move's cost that is paid where they are cut; the
    rest is paid where they are grown. The alignment is no use where some are `only_removed`.
    """

    def __init__(self, subtrees: Subtrees, prices: dict[int, int]) -> None:
        self._subtrees, self._prices = subtrees, prices
        self._best: dict[tuple[int, int], tuple[int, _Option]] = {}  # cost of a pair of contents
        # cost of a content that is cut or grown
        self._alone: dict[str, dict[int, int]] = {"cut": {}, "grown": {}}
        self._marks: dict[int, int] = {}  # of a content
        self._made: dict[tuple[int, int, str], Subtree] = {}  # by lifting or swapping a split
        self._n_pairs = 0
        self._positions: list[dict[str, Any]] = []
        self._away: dict[int, list[tuple[int, Subtree]]] = defaultdict(list)
        self._arrived: list[tuple[int, Subtree]] = []
        self.only_removed: set[int] = set()
        self.only_grown: set[int] = set()

    # ---- positions ----
    def nodes(self) -> tuple[NodeChange, ...]:
        """All positions; those below a position follow it."""
        stack: list[tuple[Pair, int, str]] = [((self._subtrees.old, self._subtrees.new), NONE, "")]
        while stack:
            pair, parent, side = stack.pop()
            index, depth = len(self._positions), 0
            if parent != NONE:
                self._positions[parent]["left" if side == "yes" else "right"] = index
                depth = self._positions[parent]["depth"] + 1
            self._positions.append({"parent": parent, "side": side, "depth": depth})
            below = self._compare_at(index, *pair)
            if below:
                stack += [(below[1], index, "no"), (below[0], index, "yes")]
        self._join_moves()
        return tuple(NodeChange(**position) for position in self._positions)

    def _compare_at(self, index: int, old: Subtree | None, new: Subtree | None) -> list[Pair]:
        """Describe a position; returns the two pairs below it, or none."""
        if old is None or (new is not None and new.children and not old.children):
            return self._grow(index, old, new)
        if new is None or (old.children and not new.children):
            return self._remove(index, old, new)
        if old.content == new.content:
            self._describe(index, "same", old, new)
            return [*zip(old.children, new.children, strict=True)]
        if not old.children:
            self._describe(index, "relabelled", old, new)
            return []
        return self._compare_splits(index, old, new)

    def _compare_splits(self, index: int, old: Subtree, new: Subtree) -> list[Pair]:
        option = self._choose(old, new)
        if option.kind == "away":
            self._away[old.content].append((index, old))
            return self._grow(index, None, new)
        top, below = self._below(old, new, option)
        if option.kind == "insert":
            self._describe(index, "grown", None, new)
        elif option.kind == "delete":
            self._describe(index, "cut", old, None)
        elif option.kind == "pair":
            features = self._subtrees.features
            other = "adjusted" if features[old.key] == features[new.key] else "replaced"
            self._describe(index, "same" if old.key == new.key else other, old, new)
        else:
            self._describe(index, "moved", top, new, option.kind)
        return below

    def _grow(self, index: int, old: Subtree | None, new: Any) -> list[Pair]:
        if new.content in self._prices:
            self._arrived.append((index, new))
            self._describe(index, "moved", None, new, "subtree")
            return [(child, child) for child in new.children]
        self._describe(index, "grown", old, new)
        return [(None, child) for child in new.children]

    def _remove(self, index: int, old: Subtree, new: Subtree | None) -> list[Pair]:
        if old.content in self._prices:
            self._away[old.content].append((index, old))
            self._describe(index, "moved away", None, new)
            return []
        self._describe(index, "cut", old, new)
        return [(child, None) for child in old.children]

    def _describe(
        self, index: int, status: str, old: Subtree | None, new: Subtree | None, move: str = ""
    ) -> None:
        nodes = [NONE if own is None else own.node for own in (old, new)]
        self._positions[index] |= {"status": status, "old": nodes[0], "new": nodes[1], "move": move}

    def _join_moves(self) -> None:
        """Join the places where equal subtrees were cut with those where they were grown."""
        for index, new in self._arrived:
            own = self._positions[index : index + 2 * new.n_splits + 1]
            if not self._away[new.content]:
                self.only_grown.add(new.content)
                for position in own:
                    position |= {"status": "grown", "old": NONE, "move": ""}
                continue
            source, old = self._away[new.content].pop(0)
            own[0]["came_from"], self._positions[source]["went_to"] = source, index
            for position, part in zip(own, preorder(old), strict=True):
                position["old"] = part.node
        self.only_removed = {content for content, rest in self._away.items() if rest}

    # ---- search ----
    def _choose(self, old: Subtree, new: Subtree) -> _Option:
        """The cheapest way from one split to another; in large trees only what is seen at once."""
        if old.n_splits * new.n_splits <= MOST_PAIRS:
            if self._known(old, new) is None:
                run(self._solve(old, new))
            return self._best.get((old.content, new.content), (0, _Option("pair")))[1]
        for side in (0, 1):
            if new.children[side].content == old.content:
                return _Option("insert", side)
            if old.children[side].content == new.content:
                return _Option("delete", side)
        return _Option("pair")

    def _below(self, old: Subtree, new: Subtree, option: _Option) -> tuple[Subtree, list[Pair]]:
        """The subtree that takes the place of the old one, and the pairs below."""
        kind, side = option
        if kind == "insert":
            pairs: list[Pair] = [(None, child) for child in new.children]
            pairs[side] = old, new.children[side]
            return old, pairs
        if kind == "delete":
            pairs = [(child, None) for child in old.children]
            pairs[side] = old.children[side], new
            return old, pairs
        if kind != "pair":
            old = (self._subtrees.lift if kind == "up" else self._subtrees.swap)(old, new.key)
        return old, [*zip(old.children, new.children, strict=True)]

    def _solve(self, old: Any, new: Any) -> Task:
        """Cost of making a split and what follows it of another one."""
        self._n_pairs += 1
        best, choice = sys.maxsize, _Option("pair")
        for bound, cost, option in sorted(self._options(old, new)):
            if bound >= best:
                break
            for one, other in self._pairs(old, new, option):
                known = self._known(one, other)
                cost += (yield self._solve(one, other)) if known is None else known
                if cost >= best:
                    break
            else:
                best, choice = cost, option
        self._best[old.content, new.content] = best, choice
        return best

    def _pairs(self, old: Subtree, new: Subtree, option: _Option) -> Sequence[Pair]:
        """The pairs below; what a split moves in is the same for equal subtrees."""
        if option.kind == "away":
            return ()
        if option.kind not in ("up", "swap"):
            return self._below(old, new, option)[1]
        made = (old.content, new.key, option.kind)
        if made not in self._made:
            self._made[made] = self._below(old, new, option)[0]
        return [*zip(self._made[made].children, new.children, strict=True)]

    def _options(self, old: Subtree, new: Subtree) -> list[tuple[int, int, _Option]]:
        """Ways from one split to another, each with the least and the own part of its cost."""
        features = self._subtrees.features
        replaced = ADJUSTED if features[old.key] == features[new.key] else REPLACED
        own = {_Option("pair"): 0 if old.key == new.key else replaced}
        if old.key != new.key and has_split(old, new.key):
            own |= {_Option(kind): COSTS[kind] for kind in ("up", "swap")}
        own |= {_Option(kind, k): COSTS[kind] for kind in ("insert", "delete") for k in (0, 1)}
        found = []
        for option, cost in own.items():
            least = cost
            if option.kind in ("up", "swap"):
                least += self._least(old, new)
            else:
                least += sum(self._least(*pair) for pair in self._below(old, new, option)[1])
            found.append((least, cost, option))
        if old.content in self._prices:
            cost = self._prices[old.content] + 1 + self._cost_alone(new, "grown")
            found.append((cost, cost, _Option("away")))
        return found

    def _known(self, old: Subtree | None, new: Subtree | None) -> int | None:
        """Cost of a pair of subtrees where no search is needed, or none is left."""
        if new is None or (old is not None and old.children and not new.children):
            return self._cost_alone(old, "cut")
        if old is None or (new.children and not old.children):
            return self._cost_alone(new, "grown")
        if old.content == new.content or not old.children:
            return 0 if old.content == new.content else EDIT
        found = self._best.get((old.content, new.content))
        if found is None and self._n_pairs >= MOST_PAIRS:
            return self._cost_alone(old, "cut") + self._cost_alone(new, "grown")
        return None if found is None else found[0]

    def _least(self, old: Subtree | None, new: Subtree | None) -> int:
        """A lower bound of the cost: each split that is not in the old subtree is an edit."""
        if old is None or new is None or not old.children or not new.children:
            known = self._known(old, new)
            return 0 if known is None else known
        return EDIT * (self._fixed(new) & ~old.marks).bit_count()

    def _cost_alone(self, subtree: Any, side: str) -> int:
        """Cost of a subtree that is cut or grown, or moves."""
        costs = self._alone[side]
        if subtree.content not in costs:
            for own in reversed([*preorder(subtree)]):
                below = sum(costs[child.content] for child in own.children)
                cost = below + ALONE if own.children else 0
                if own.content in self._prices:
                    price = self._prices[own.content]
                    cost = price if side == "cut" else EDIT - price
                costs[own.content] = cost
        return costs[subtree.content]

    def _fixed(self, subtree: Subtree) -> int:
        """Marks of the splits outside of subtrees that may move."""
        if not self._prices:
            return subtree.marks
        if subtree.content not in self._marks:
            for own in reversed([*preorder(subtree)]):
                if own.content not in self._marks:
                    marks = mark(own.key) if own.children else 0
                    for child in own.children:
                        marks |= self._marks[child.content]
                    self._marks[own.content] = 0 if own.content in self._prices else marks
        return self._marks[subtree.content]
