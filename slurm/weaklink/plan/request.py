"""What a person asks of the planner and what comes of it, as data. Pure."""

from typing import NamedTuple, Optional

TOPOLOGIES = ("fat-tree", "rail", "multi-plane", "dragonfly", "dragonfly+", "hypercube")
TREES = ("fat-tree", "rail", "multi-plane")


class PlanError(ValueError):
    """What cannot be built: ``key`` of the request, what was ``found`` there and what would be ``wanted``."""

    def __init__(self, key: str, found: object, wanted: str) -> None:
        super().__init__(f"{key}: found {found}, wanted {wanted}")
        self.key = key
        self.found = found
        self.wanted = wanted


class Request(NamedTuple):
    """What is asked for.

    ``topology`` is one of TOPOLOGIES; ``radix`` is the ports of a switch; ``spines`` forces their number (over all
    planes). ``taper`` is the oversubscription allowed, end points to links: at the leaves of a tree, at the border of
    a dragonfly+ group. ``extra_endpoints`` are ports taken by something else than GPUs. ``rate_gbps`` is the rate of
    one link. ``su_nodes`` are the nodes of a scalable unit (rail): a leaf takes that many end points, by default half
    its ports.

    ``hcas_per_gpu`` above 1 counts every HCA as an end point, dealt over the planes in turn. With 1 and several
    planes, a node with as many GPUs as planes has each GPU in a plane of its own; any other has a port of every GPU
    in every plane. ``planes_per_gpu`` says it otherwise: in how many of the planes a GPU has a port.
    """

    topology: str
    nodes: int
    gpus_per_node: int
    radix: int
    spines: Optional[int] = None
    planes: int = 1
    taper: float = 1.0
    extra_endpoints: int = 0
    rate_gbps: float = 400.0
    su_nodes: Optional[int] = None
    hcas_per_gpu: int = 1
    planes_per_gpu: Optional[int] = None

    @property
    def gpu_planes(self) -> int:
        """In how many planes a GPU has a port; 1 where every HCA is an end point of its own."""
        if self.planes == 1 or self.hcas_per_gpu > 1:
            return 1
        if self.planes_per_gpu is not None:
            return self.planes_per_gpu
        return 1 if self.planes == self.gpus_per_node else self.planes


class Design(NamedTuple):
    """What comes of a request. Counts are totals over all planes, None where the topology has no such tier.

    ``links_by_tier``: links by "node-leaf", "leaf-spine", "spine-core", "group-local", "global" or "cube".
    ``modules``: transceiver modules, "node" + "switch" being all of them; "twin_port" of these carry two links.
    ``oversubscription``: end points to links at the tightest border (leaf, group, half of a cube), 1 = none.
    ``bisection_gbps``: between the two halves of the end points, one direction.
    ``diameter`` and ``mean_hops``: links between switches on the shortest way from one end point's switch to
    another's, at most and on average over pairs of different switches of a plane that take end points.
    ``max_endpoints``: the largest size at this radix with the same tiers and planes.
    ``minimum``: switches of a tier by ports alone, where even wiring asks for more than that.
    """

    request: Request
    topology: str
    nodes: int
    gpus: int
    endpoints: int
    tiers: int
    planes: int
    leaf: Optional[int]
    spine: Optional[int]
    core: Optional[int]
    switches: int
    node_links: int
    inter_switch_links: int
    links_by_tier: dict[str, int]
    modules: dict[str, int]
    oversubscription: float
    bisection_gbps: float
    diameter: int
    mean_hops: float
    max_endpoints: int
    minimum: dict[str, int]
    warnings: tuple[str, ...]
