"""Which flow runs in which round. Pure and seeded: the same arguments give the same rounds.

A round is a list of directed flows ``(src, dst)`` of ``node/hca`` names. In a round an HCA sends in at most one flow
and receives in at most one, and no flow goes to its own node. Two shapes:

- small fleets (``quiet``): every ordered pair once, by the circle method; in a round each *node* takes part in one
  flow, so that a measurement is not disturbed by another one on the same machine. n nodes: 2·(n-1) rounds, or 2·n.
- large fleets: a fixed number of rounds, each a permutation without fixed points in which every HCA sends once and
  receives once, drawn so that a partner is not repeated while others are left. Time and memory grow with
  rounds x HCAs.

HCAs meet HCAs of the same rail only, as collective libraries use them: the rail of an HCA is given by the caller.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

# All ordered pairs up to this many nodes: 2·15 rounds of a few seconds each; beyond it a fixed number of rounds.
SMALL_FLEET = 16
LARGE_ROUNDS = 12


class Flow(NamedTuple):
    """One directed test from ``src`` to ``dst``, both ``node/hca``."""

    src: str
    dst: str


Rounds = list[list[Flow]]


def node_of(hca: str) -> str:
    """Return the node of a ``node/hca`` name."""
    return hca.partition("/")[0]


def schedule(rails: Mapping[str, int], *, seed: int, rounds: "int | None" = None) -> Rounds:
    """Return the rounds for the HCAs in ``rails`` (``node/hca`` → rail number; one HCA a node and rail).

    ``rounds`` limits (or, on large fleets, sets) the number of rounds. Fewer than two nodes: no rounds.
    Raises ValueError when two HCAs of one node share a rail.
    """
    by_rail: dict[int, list[str]] = {}
    for hca in sorted(rails):
        by_rail.setdefault(rails[hca], []).append(hca)
    for rail, hcas in by_rail.items():
        if len({node_of(hca) for hca in hcas}) != len(hcas):
            raise ValueError(
                f"rail {rail} has two HCAs of one node among {', '.join(hcas[:8])}: give each its own rail"
            )
    nodes = {node_of(hca) for hca in rails}
    generator = random.Random(seed)  # noqa: S311 - a reproducible order, not a secret
    if len(nodes) <= SMALL_FLEET:
        found = [one for rail in sorted(by_rail) for one in _quiet(by_rail[rail], generator)]
        return found if rounds is None else found[:rounds]
    wanted = LARGE_ROUNDS if rounds is None else rounds
    merged: Rounds = [[] for _ in range(wanted)]
    for rail in sorted(by_rail):
        for index, one in enumerate(_permutations(by_rail[rail], wanted, generator)):
            merged[index].extend(one)
    return [one for one in merged if one]


def _quiet(hcas: Sequence[str], generator: random.Random) -> Rounds:
    """All ordered pairs, disjoint in a round (circle method), the two directions in rounds of their own."""
    ring: list[str] = list(hcas)
    generator.shuffle(ring)
    if len(ring) < 2:  # noqa: PLR2004 - a pair
        return []
    if len(ring) % 2:
        ring.append("")  # whoever meets the empty seat rests in this round
    half = len(ring) // 2
    found: Rounds = []
    for _ in range(len(ring) - 1):
        pairs = [(ring[i], ring[-1 - i]) for i in range(half) if ring[i] and ring[-1 - i]]
        there = [Flow(a, b) if generator.random() < 0.5 else Flow(b, a) for a, b in pairs]  # noqa: PLR2004 - a coin
        found.append(there)
        found.append([Flow(flow.dst, flow.src) for flow in there])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    generator.shuffle(found)
    return found


def _permutations(hcas: Sequence[str], rounds: int, generator: random.Random) -> Rounds:
    """Fixed-point-free permutations: shifts of one shuffled ring by distances that differ from round to round."""
    size = len(hcas)
    if size < 2:  # noqa: PLR2004 - a pair
        return []
    distances: list[int] = []
    found: Rounds = []
    ring = list(hcas)
    for _ in range(rounds):
        if not distances:
            # A new ring each time all distances were used; within one ring no ordered pair comes twice.
            generator.shuffle(ring)
            distances = list(range(1, size))
            generator.shuffle(distances)
        step = distances.pop()
        found.append([Flow(ring[i], ring[(i + step) % size]) for i in range(size)])
    return found


def follow_up(
    suspects: Iterable[str],
    rails: Mapping[str, int],
    *,
    tried: Iterable[Flow],
    seed: int,
    partners: int = 2,
    controls: int = 1,
) -> Rounds:
    """Return rounds that test each suspect HCA again, in both directions, against ``partners`` other HCAs.

    Partners that are not suspects come first, then those the suspect has met least often (``tried``). ``controls``
    pairs of HCAs that are not suspects are measured along, in both directions: they tell how fast the fleet is right
    now. Each node takes part in one flow a round. A suspect without any partner gets no flow.
    """
    generator = random.Random(seed)  # noqa: S311 - a reproducible order, not a secret
    bad = sorted(set(suspects) & set(rails))
    met: dict[frozenset[str], int] = {}
    for flow in tried:
        pair = frozenset(flow)
        met[pair] = met.get(pair, 0) + 1
    wanted: list[frozenset[str]] = []
    for suspect in bad:
        others = [hca for hca in sorted(rails) if rails[hca] == rails[suspect] and node_of(hca) != node_of(suspect)]
        generator.shuffle(others)
        others.sort(key=lambda hca, one=suspect: (hca in bad, met.get(frozenset((one, hca)), 0)))  # type: ignore[misc]
        wanted += [frozenset((suspect, hca)) for hca in others[:partners]]
    good = [hca for hca in sorted(rails) if node_of(hca) not in {node_of(one) for one in bad}]
    generator.shuffle(good)
    if bad:
        wanted += [frozenset(pair) for pair in _control_pairs(good, rails)[:controls]]
    flows: list[Flow] = []
    for pair in dict.fromkeys(wanted):
        first, second = sorted(pair)
        flows += [Flow(first, second), Flow(second, first)]
    return pack(flows)


def _control_pairs(good: Sequence[str], rails: Mapping[str, int]) -> list[tuple[str, str]]:
    free = list(good)
    pairs = []
    while free:
        first = free.pop()
        match = next((h for h in free if rails[h] == rails[first] and node_of(h) != node_of(first)), None)
        if match is not None:
            free.remove(match)
            pairs.append((first, match))
    return pairs


def pack(flows: Sequence[Flow]) -> Rounds:
    """Put flows into as few rounds as a greedy pass finds, each node in one flow a round."""
    rounds: Rounds = []
    busy: list[set[str]] = []
    for flow in flows:
        nodes = {node_of(flow.src), node_of(flow.dst)}
        for index, taken in enumerate(busy):
            if not taken & nodes:
                rounds[index].append(flow)
                busy[index] = taken | nodes
                break
        else:
            rounds.append([flow])
            busy.append(set(nodes))
    return rounds
