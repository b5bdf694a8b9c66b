"""Rules over a kernel's log. Which Xid means what follows NVIDIA's catalogue of Xid errors (deploy/xid-errors)."""

from weaklink.checks.tools.base import DRAIN, NOTE, Rule
from weaklink.model.finding import DEGRADED, FAIL, UNKNOWN

GPU_LOST = Rule(
    "kernel.gpu_lost",
    ("gpu-lost",),
    FAIL,
    DRAIN,
    "Xid 79, or the driver's own words that a GPU has fallen off the bus or is lost, with or without an Xid",
    "drain the node, power it off and on (not only a reboot); if it comes again, reseat or replace the GPU",
)
XID = Rule(
    "kernel.xid",
    (
        "gpu-requires-reset",
        "gsp-timeout",
        "nvlink-fatal",
        "page-retirement",
        "row-remap-pending",
        "user-application",
        "xid-not-classified",
    ),
    FAIL,
    DRAIN,
    "the number after 'NVRM: Xid (address):'; one GPU and one number is one event, however many lines it has",
    "hardware Xids: reset the GPU or reboot, read nvidia-smi -q; a user's Xid: tell the job's owner, keep the node",
)
RECOVERY = Rule(
    "kernel.gpu_recovery",
    ("gpu-requires-reset",),
    FAIL,
    DRAIN,
    "the last Xid 154 of a GPU names another recovery action than None, or the driver says that it needs a reset",
    "do what the driver names: reset the GPU (nvidia-smi --gpu-reset) or reboot the node",
)
GPU_INIT = Rule(
    "kernel.gpu_init",
    ("gpu-not-readable",),
    FAIL,
    DRAIN,
    "the NVIDIA driver could not set a GPU up (RmInitAdapter failed, probe failed)",
    "look at the lines before it; reset or power cycle, then reseat the GPU",
)
DRIVER_MATCH = Rule(
    "kernel.driver_library",
    ("driver-library-mismatch",),
    FAIL,
    DRAIN,
    "NVRM's 'API mismatch': the libraries are of another version than the loaded module",
    "reboot, or unload and load the NVIDIA modules, after the upgrade",
)
NVSWITCH = Rule(
    "kernel.sxid",
    ("nvlink-fatal",),
    FAIL,
    DRAIN,
    "an SXid of an NVSwitch that calls itself Fatal; Non-fatal ones are noted only",
    "restart the node; read the fabric manager's log; if it comes again, the baseboard needs service",
)
NIC_PROBE = Rule(
    "kernel.nic_probe",
    ("nic-probe-failed",),
    FAIL,
    DRAIN,
    "mlx5_core (or another RDMA driver) says that its probe of a function failed",
    "power cycle the node; check the NIC's firmware with mlxfwmanager or flint, reseat the card",
)
NIC_HANG = Rule(
    "kernel.nic_hang",
    ("nic-driver-hang",),
    FAIL,
    DRAIN,
    "TX time-outs, a compromised health poll, a fatal firmware error of a NIC, or a CPU stuck in its driver; "
    "the link state stays up meanwhile, so it proves nothing",
    "reboot the node; update the NIC's firmware and driver if it comes again",
)
LINKS = Rule(
    "kernel.links",
    ("link-flapping", "link-down"),
    FAIL,
    NOTE,
    "losses of carrier per device (gains are not added) against max_flaps_per_device; the state that came last; "
    "an unplugged module of a card that the context names",
    "clean and reseat the cable, swap the module, look at the switch port's counters",
)
CABLE = Rule(
    "kernel.cable",
    ("bad-cable",),
    DEGRADED,
    NOTE,
    "mlx5's 'Port module event[error]' (cable error, high temperature, bus stuck)",
    "read the module with mlxlink -m or ethtool -m; replace the cable or module",
)
PCI = Rule(
    "kernel.pci",
    ("pci-device-dead", "pcie-errors"),
    FAIL,
    DRAIN,
    "a fatal error that PCI Express AER reports, a failed recovery, or a card that left its slot; "
    "uncorrected non-fatal errors degrade, corrected ones are noted only",
    "power cycle; reseat the card, its riser or retimer",
)
PCIE_LIMIT = Rule(
    "kernel.pcie_limit",
    ("pcie-link-limited",),
    DEGRADED,
    NOTE,
    "the kernel says at start that a NIC's or GPU's PCIe bandwidth is limited by a link that could do more",
    "reseat the card; check the slot, bifurcation and riser",
)
LNET = Rule(
    "kernel.lnet",
    ("lnet-down",),
    FAIL,
    DRAIN,
    "LNet says that it could not start on a network, and no later line adds an interface of it",
    "correct the interface in lnet.conf or the module's options, see that it is up, then lnetctl lnet configure",
)
LUSTRE = Rule(
    "kernel.lustre",
    ("lustre-peer-timeout",),
    FAIL,
    DRAIN,
    "a Lustre or LNet peer timed out or its connection was lost; restored later it only degrades",
    "lctl ping the peer; check RDMA to the server and the server itself",
)
NFS = Rule(
    "kernel.nfs",
    ("nfs-server-not-responding",),
    FAIL,
    DRAIN,
    "'server … not responding' whose last word is not 'OK'; if it came back it only degrades",
    "check the network to the server and the server itself",
)
LOCKUP = Rule(
    "kernel.lockup",
    ("cpu-lockup",),
    DEGRADED,
    NOTE,
    "the watchdog's 'soft lockup' without a NIC's driver in it",
    "read the call trace; reboot when it goes on",
)
READ = Rule(
    "kernel.read",
    ("test-did-not-run", "not-root"),
    UNKNOWN,
    NOTE,
    "an empty log, or one that the kernel did not show to this user, allows no judgement",
    "read it as root (or sysctl kernel.dmesg_restrict=0)",
)
RULES = (
    GPU_LOST,
    DRIVER_MATCH,
    XID,
    RECOVERY,
    GPU_INIT,
    NVSWITCH,
    NIC_PROBE,
    NIC_HANG,
    PCI,
    LINKS,
    CABLE,
    PCIE_LIMIT,
    LNET,
    LUSTRE,
    NFS,
    LOCKUP,
    READ,
)

_RESET = "gpu-requires-reset"
_NVLINK = "nvlink-fatal"
LOST_XID = 79
ACTION_XID = 154
REMAP_XID = 63
REMAP_FAILED_XID = 64
NVLINK5 = range(144, 151)
# number: cause, words
HARDWARE = {
    LOST_XID: ("gpu-lost", "the GPU has fallen off the bus"),
    48: (_RESET, "double bit error in GPU memory"),
    95: (_RESET, "uncontained memory error"),
    REMAP_FAILED_XID: ("page-retirement", "a memory row or page could not be set aside"),
    74: (_NVLINK, "NVLink error"),
    119: ("gsp-timeout", "the GPU's system processor does not answer"),
    120: ("gsp-timeout", "the GPU's system processor failed"),
    **dict.fromkeys(NVLINK5, (_NVLINK, "NVLink error")),
    **dict.fromkeys((62, 109, 110, 136, 140, 143, 155, 156, 158), (_RESET, "GPU fault")),
}
APPLICATION = frozenset({13, 31, 43, 45, 69, 94})
