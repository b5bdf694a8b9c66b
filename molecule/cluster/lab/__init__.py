"""A real small cluster on one host: a controller and compute nodes as virtual machines with RDMA between them."""

from __future__ import annotations

from .core import Lab
from .errors import LabError
from .faults import KINDS
from .image import Image
from .layout import COMPUTE, MANAGEMENT, STORAGE, Network, Node
from .tools import Progress

__all__ = ["COMPUTE", "KINDS", "MANAGEMENT", "STORAGE", "Image", "Lab", "LabError", "Network", "Node", "Progress"]
