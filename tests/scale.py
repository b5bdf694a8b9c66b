"""A cluster file of any size, for tests and benchmarks: a rail-optimised RoCE cluster with eight rails."""

from __future__ import annotations

RAILS = 8
SU_NODES = 32
RADIX = 64


def cluster_text(nodes: int, rails: int = RAILS) -> str:
    """Return a cluster file of ``nodes`` nodes with ``rails`` GPUs and HCAs each."""
    units = -(-nodes // SU_NODES)
    nics = "\n".join(
        f'      - {{network: compute, pci: "0000:{0x10 + rail:02x}:00.0", rail: {rail}, rdma: {{device: mlx5_{rail}}}}}'
        for rail in range(rails)
    )
    return f"""\
format: 1
cluster: scale
networks:
  management: {{cidr: 10.0.0.0/16, role: management, mtu: 1500, gateway: 10.0.255.254}}
  compute:
    {{cidr: 10.128.0.0/9, role: compute, transport: roce, mtu: 9000, rate_gbps: 400, rail_subnets: true}}
  storage: {{cidr: 10.1.0.0/16, role: storage, transport: roce, mtu: 9000, rate_gbps: 200}}
hardware:
  node:
    gpus: {{type: h100, count: {rails}}}
    sockets: 2
    cores: 56
    threads: 2
    memory_mb: 2000000
    nics:
      - {{network: management, pci: "0000:01:00.0"}}
{nics}
      - {{network: storage, pci: "0000:02:00.0", rdma: {{device: mlx5_s}}}}
groups:
  control:
    role: controller
    hosts: head
    first_address: 65001
    nics:
      - {{network: management, pci: "0000:01:00.0"}}
      - {{network: storage, pci: "0000:02:00.0", rdma: {{device: mlx5_0}}}}
  gpu:
    role: compute
    hosts: "gpu[0001-{nodes:04d}]"
    hardware: node
    first_address: 1
    su_nodes: {SU_NODES}
    rack_nodes: 4
fabric: {{topology: rail}}
switches:
  leaf: {{names: "leaf[0001-{units * rails:04d}]", network: compute, tier: 1, ports: {RADIX}, uplinks: {RADIX // 2}}}
mounts:
  - {{path: /home, server: head, export: /home, network: storage, transport: rdma}}
partitions:
  main: {{groups: [gpu], default: true}}
  debug: {{groups: [gpu], max_time: "0:30:00", max_nodes: 4}}
"""
