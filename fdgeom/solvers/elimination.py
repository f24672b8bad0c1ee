"""Order of elimination of the nodes between pieces, with the nodes that each elimination couples."""

import heapq
from dataclasses import dataclass

import numpy as np


@dataclass
class Front:
    """Nodes that are eliminated together (``own``), and the nodes coupled with them then (``others``)."""

    own: list[int]
    others: set[int]


def eliminated(pairs: np.ndarray, sizes: np.ndarray, ready: np.ndarray) -> list[Front]:
    """The fronts of an elimination with least fill, each before the ones that its others belong to."""
    # Nodes whose elimination adds no entries come first, so trees are eliminated from their leaves
    # (Tinney & Walker, Direct solutions of sparse network equations by optimally ordered triangular
    # factorization, Proc. IEEE 55, 1967).
    weights = sizes.tolist()
    coupled: list[set[int]] = [set() for _ in weights]
    for a, b in pairs.tolist():
        if a != b:
            coupled[a].add(b)
            coupled[b].add(a)

    def price(node: int) -> tuple:
        others = coupled[node]
        fill = sum(weights[a] * weights[b] for a in others for b in others - coupled[a] if a < b)
        return fill, sum(weights[a] for a in others), not ready[node], node

    heap, left, found = [price(node) for node in range(len(weights))], set(range(len(weights))), []
    heapq.heapify(heap)
    while heap:
        cost = heapq.heappop(heap)
        node = cost[-1]
        if node not in left or cost != price(node):
            continue
        left.discard(node)
        others = coupled[node]
        found.append(Front([node], set(others)))
        for other in others:
            coupled[other] |= others
            coupled[other] -= {node, other}
        for changed in others.union(*(coupled[other] for other in others)):
            heapq.heappush(heap, price(changed))
    return _joined(found)


def _joined(found: list[Front]) -> list[Front]:
    """The fronts, with a front merged into its parent if both have the same nodes."""
    at = {front.own[0]: k for k, front in enumerate(found)}
    gone: set[int] = set()
    for k, front in enumerate(found):
        if not front.others:
            continue
        parent = found[min(at[node] for node in front.others)]
        if front.others == parent.others.union(parent.own):
            parent.own = [*front.own, *parent.own]
            gone.add(k)
            for node in front.own:
                at[node] = at[parent.own[-1]]
    return [front for k, front in enumerate(found) if k not in gone]
