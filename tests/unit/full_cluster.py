"""A cluster file with every key of the format, for tests that spoil or read each of them."""

# Every key of the format once (but those that exclude each other), so that each can be spoiled in turn.
FULL = """\
format: 1
cluster: full
manage: all
mode: observe
service_user: weaklink
networks:
  management: {cidr: 10.0.0.0/16, role: management, mtu: 1500, vlan: 10, gateway: 10.0.255.254}
  fabric:
    cidr: 10.64.0.0/12
    role: compute
    mtu: 9000
    transport: roce
    active_mtu: 4096
    rate_gbps: 400
    gid_type: RoCE v2
    rail_subnets: true
    qos:
      trust: dscp
      lossless_priority: 3
      dscp: 26
      cnp_dscp: 48
      cnp_priority: 6
      pfc: [3]
      pfc_watchdog: true
      ecn: true
      headroom: true
      traffic_class: 106
  store:
    cidr: 10.2.0.0/16
    role: storage
    mtu: 4092
    transport: infiniband
    ipoib_mode: datagram
    enhanced_ipoib: true
    pkey: "0x8001"
hardware:
  node:
    gpus: {type: h100, count: 2}
    sockets: 2
    cores: 8
    threads: 2
    cpus: 32
    memory_mb: 64000
    features: [h100]
    expected: {firmware: {MT_1: "28.1"}}
    nics:
      - {network: management, pci: "0000:01:00.0"}
      - {network: fabric, pci: "0000:10:00.0", rail: 0, plane: 0, rdma: {device: mlx5_0, kind: hca}}
      - {network: fabric, pci: "0000:20:00.0", rail: 1, plane: 0, rdma: {device: mlx5_1, kind: hca}}
      - {network: store, pci: "0000:30:00.0", rdma: {device: mlx5_2, kind: hca}}
groups:
  control:
    role: controller
    hosts: head
    first_address: {management: 60001, store: 60001}
    nics:
      - {network: management, position: 0}
      - {network: store, position: 1, rdma: {device: mlx5_0}}
  gpu:
    role: compute
    hosts: "gpu[1-4]"
    hardware: node
    first_address: 1
    su_nodes: 2
    block_nodes: 2
    rack_nodes: 2
    weight: 10
  big: {role: compute, hosts: "big[1-2]", hardware: node, first_address: 101, leaf: su9, block_nodes: 2}
fabric: {topology: rail, planes: 1}
switches:
  leaf: {names: "leaf[1-6]", network: fabric, tier: 1, ports: 4, uplinks: 2, mtu: 9216, model: SN5600, qos: {pfc: [3]}}
  spine: {names: "spine[1-3]", downlinks: 4, network: fabric, tier: 2, ports: 4}
mounts:
  - {path: /home, type: nfs, server: head, export: /home, network: store, transport: rdma, options: nosuid}
  - {path: /scratch, type: lustre, mgs: ["10.2.9.1@o2ib"], fsname: scratch, network: store}
  - {path: /weka, type: wekafs, backends: [10.2.9.2], filesystem: default, network: store}
  - path: /vast
    type: vast
    server: 10.2.9.3
    export: /
    network: store
    transport: rdma
    nconnect: 8
    remote_ports: 10.2.9.3-10.2.9.9
slurm: {topology: block, block_sizes: [2], options: {TreeWidth: 64}}
partitions:
  main:
    groups: [gpu, big]
    default: true
    max_time: "1-00:00:00"
    min_nodes: 1
    max_nodes: 4
    qos: normal
    priority_tier: 2
    allow_accounts: [ml]
    options: {OverSubscribe: "NO"}
expected:
  kernel: 6.8.0-60
  nvidia_driver: "570.158.01"
  fabric_manager: "570.158.01"
  dcgm: "4.2.3"
  doca_ofed: "3.0.0"
  nccl: "2.27.5"
  slurm: "24.11"
  firmware: {MT_0000000838: "28.43.2026"}
  packages: {libnccl2: "2.27.5"}
  switches: {SN5600: "5.12"}
policy:
  nonbatch: cancel
  health_strikes: 2
  budget:
    total_nodes: 4
    total_fraction: 0.1
    check_nodes: 2
    check_fraction: 0.05
    leaf_fraction: 0.25
    reserve_fraction: 0.1
    window_seconds: 3600
deadlines: {prolog: 10, epilog: 60, health: 50, check: 5, slurm: 8}
sweep: {bw_seconds: 2, lat_iterations: 100, min_loss: 0.15, sigmas: 5, baseline_sweeps: 3}
"""
