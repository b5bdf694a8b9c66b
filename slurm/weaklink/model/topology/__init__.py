"""Wire a fabric, link by link, from the few numbers of a shape. Pure."""

from weaklink.model.topology.build import build
from weaklink.model.topology.shape import HcaName, Names, Shape, leaf_counts

__all__ = ["HcaName", "Names", "Shape", "build", "leaf_counts"]
