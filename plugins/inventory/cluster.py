"""Inventory plugin weaklink.cluster.cluster: hosts, groups and variables out of cluster.yml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

DOCUMENTATION = r"""
name: cluster
short_description: Hosts, groups and variables out of cluster.yml
description:
  - Expands the one description of the cluster to Ansible's inventory.
  - Every group of the file becomes a group, and so does every role (C(controller), C(compute), C(storage), C(login)).
  - The group C(managed) holds the hosts whose networks, file systems and Slurm are set up; with C(manage) set to
    C(guard) it is empty, and only the guard is installed.
author: weaklink
"""


class InventoryModule(BaseInventoryPlugin):
    """Read cluster.yml with weaklink's model and hand it to Ansible."""

    NAME = "weaklink.cluster.cluster"

    def verify_file(self, path: str) -> bool:
        """Take files that are called cluster.yml."""
        return bool(super().verify_file(path)) and Path(path).name in ("cluster.yml", "cluster.yaml")

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill ``inventory`` with the cluster that ``path`` describes."""
        super().parse(inventory, loader, path, cache)
        slurm = str(Path(__file__).resolve().parents[2] / "slurm")
        if slurm not in sys.path:
            sys.path.insert(0, slurm)
        try:
            from weaklink.model import cluster, cluster_render
        except ImportError as error:
            raise AnsibleParserError(
                f"reading {path} needs netaddr, PyYAML and jsonschema on the controller ({error}); pip install them"
            ) from error
        try:
            described = cluster.load(path)
        except cluster.ClusterError as error:
            raise AnsibleParserError(str(error)) from error
        for warning in described.warnings:
            self.display.warning(f"{path}: {warning}")
        _fill(inventory, described, cluster_render)


def _fill(inventory: Any, described: Any, render: Any) -> None:
    for name, value in render.group_variables(described).items():
        inventory.set_variable("all", name, value)
    for role in ("controller", "compute", "storage", "login", "managed"):
        inventory.add_group(role)
    for group in described.groups.values():
        inventory.add_group(group.name)
        if group.name != group.role:
            inventory.add_child(group.role, group.name)
        if described.manage == "all":
            inventory.add_child("managed", group.name)
    common = render.shared(described)
    for host in described.hosts.values():
        inventory.add_host(host.name, group=host.group)
        for name, value in render.host_variables(described, host, common).items():
            inventory.set_variable(host.name, name, value)
    for name, value in render.controller_variables(described).items():
        inventory.set_variable(described.controller.name, name, value)
