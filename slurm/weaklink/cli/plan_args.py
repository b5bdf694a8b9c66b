"""The arguments that all of ``weaklink plan`` shares, and their limits: a bad value names its option and a good one."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import NoReturn

from weaklink.cli import UsageError
from weaklink.model.words import nearest
from weaklink.plan.request import TOPOLOGIES, PlanError, Request

MAX_COUNT = 1_000_000
SHOWN = 60  # characters of a bad value that an error repeats


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageErrors, and that takes options by their whole name alone."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise UsageError(f"{message}; see {self.prog} --help")


def hint(word: str, words: tuple[str, ...]) -> str:
    """Return a hint such as ``; did you mean 'rail'?``, empty where no word is like ``word``."""
    close = nearest(word.lower().replace("_", "-"), words, 0.5)
    return f"; did you mean {close!r}?" if close else ""


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from ``low`` to ``high``."""

    def read(text: str) -> int:
        wanted = f"wanted a whole number from {low} to {high}"
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {_shown(text)}; {wanted}") from None
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"found {_shown(text)}; {wanted}")
        return number

    return read


def real(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of numbers from ``low`` to ``high``."""

    def read(text: str) -> float:
        wanted = f"wanted a number from {low:g} to {high:g}"
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {_shown(text)}; {wanted}") from None
        if not math.isfinite(number) or not low <= number <= high:
            raise argparse.ArgumentTypeError(f"found {_shown(text)}; {wanted}")
        return number

    return read


def one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader of one of ``words`` that hints at the nearest."""

    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(
                f"found {_shown(text)}; wanted one of {', '.join(words)}{hint(text, words)}"
            )
        return text

    return read


def topologies(text: str) -> tuple[str, ...]:
    """Read ``fat-tree,rail`` or ``all``; each topology once."""
    if text == "all":
        return TOPOLOGIES
    names = tuple(one_of(TOPOLOGIES)(name.strip()) for name in text.split(","))
    if len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"found {_shown(text)}; wanted each topology once")
    return names


def _shown(text: str) -> str:
    """Return what was typed, short and without what could steer a terminal."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


def add_size(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how big the cluster and its switches are."""
    add = parser.add_argument
    add("--nodes", metavar="N", type=whole(1, MAX_COUNT), required=True, help="GPU nodes")
    add("--gpus-per-node", metavar="G", type=whole(1, 1024), required=True, help="GPUs in a node")
    add("--radix", metavar="K", type=whole(4, 1024), required=True, help="ports of a switch, even")
    add("--extra-endpoints", metavar="E", type=whole(0, MAX_COUNT), default=0, help="ports of no GPU (%(default)s)")
    add("--hcas-per-gpu", metavar="H", type=whole(1, 16), default=1, help="ports a GPU (%(default)s)")


def add_shape(parser: argparse.ArgumentParser) -> None:
    """Add the options that shape the network."""
    add = parser.add_argument
    add("--spines", metavar="S", type=whole(1, MAX_COUNT), help="spines that you have, over all planes")
    add("--planes", metavar="P", type=whole(1, 64), default=1, help="separate networks side by side (%(default)s)")
    add("--planes-per-gpu", metavar="Q", type=whole(1, 64), help="planes that a GPU has a port in (see the answer)")
    add("--taper", metavar="T", type=real(1, 64), default=1.0, help="down:up that is allowed (%(default)s)")
    add("--su-nodes", metavar="N", type=whole(1, MAX_COUNT), help="nodes in a scalable unit (rail)")
    add("--rate-gbps", metavar="R", type=real(1, 100_000), default=400.0, help="Gb/s of a node's link (%(default)g)")


def request(args: argparse.Namespace, topology: str) -> Request:
    """Return the Request that the options of add_size and add_shape make."""
    return Request(
        topology=topology,
        nodes=args.nodes,
        gpus_per_node=args.gpus_per_node,
        radix=args.radix,
        spines=args.spines,
        planes=args.planes,
        taper=args.taper,
        extra_endpoints=args.extra_endpoints,
        rate_gbps=args.rate_gbps,
        su_nodes=args.su_nodes,
        hcas_per_gpu=args.hcas_per_gpu,
        planes_per_gpu=args.planes_per_gpu,
    )


def refused(error: PlanError) -> UsageError:
    """Return a plan that cannot be as the error of a command."""
    return UsageError(str(error))
