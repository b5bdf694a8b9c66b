"""What is in the root file system of the lab's machines. Pure data; its hash names the cached image.

The image is a plain Debian 13 with the packages of a compute node and of a controller installed and every daemon off:
turning things on is the playbooks' work.
"""

# ruff: noqa: SIM905 - words in lines read better than forty quoted strings

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from . import layout

SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
REVISION = 1  # raise it when the way of building changes without a change of the data here

PACKAGES = (
    # the system
    "systemd systemd-sysv udev dbus linux-image-amd64 initramfs-tools busybox-static kmod procps psmisc sudo "
    "openssh-server iproute2 iputils-ping ethtool pciutils netbase libnss-myhostname ca-certificates zstd "
    "python3 python3-apt python3-sqlalchemy python3-yaml lua5.1 tcpdump "
    # RDMA and its file system
    "rdma-core ibverbs-utils ibverbs-providers rdmacm-utils infiniband-diags perftest iperf3 "
    "nfs-common nfs-kernel-server "
    # Slurm, its database and its clock
    "slurmd slurmctld slurmdbd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server chrony"
).split()

_DRIVERS = "/usr/lib/modules/*/kernel/drivers"
PATH_EXCLUDES = (
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/lib/modules/*/kernel/sound/*",
    *(f"{_DRIVERS}/{kind}/*" for kind in ("gpu", "media", "staging", "iio", "hid", "input", "mmc", "usb", "video")),
    f"{_DRIVERS}/net/wireless/*",
)

DISABLED = (
    "nfs-server nfs-client.target rpcbind.service rpcbind.socket munge mariadb chrony "
    "slurmd slurmctld slurmdbd systemd-networkd-wait-online sshd-keygen"
).split()
ENABLED = ("systemd-networkd", "ssh")
MASKED = (
    # timers and the like, which a machine of an hour's life does not need
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer "
    "man-db.timer logrotate.timer "
    # what only costs boot time under emulation
    "systemd-networkd-wait-online.service getty.target getty@tty1.service serial-getty@ttyS0.service "
    "systemd-pcrlock-make-policy.service systemd-binfmt.service modprobe@drm.service modprobe@efi_pstore.service "
    "modprobe@fuse.service sys-fs-fuse-connections.mount systemd-network-generator.service "
    "systemd-udev-load-credentials.service ldconfig.service systemd-pstore.service systemd-hibernate-clear.service "
    "systemd-tpm2-setup.service systemd-tpm2-setup-early.service sys-kernel-debug.mount sys-kernel-tracing.mount "
    "systemd-update-utmp.service systemd-logind.service systemd-random-seed.service modprobe@configfs.service "
    "sys-kernel-config.mount dev-mqueue.mount nfs-blkmap.service rpc-statd-notify.service"
).split()
GENERATORS_OFF = (
    "systemd-ssh-generator systemd-gpt-auto-generator systemd-tpm2-generator systemd-hibernate-resume-generator"
).split()

# The site's directory service in small: users that exist on every node, whose homes are on the shared file system.
USERS = {"alice": 2001, "bob": 2002}

_GENERATOR = """\
#!/bin/sh
# Configures the management NIC, and only that, from lab.id=N on the kernel command line.
for word in $(cat /proc/cmdline); do case $word in lab.id=*) id=${word#lab.id=} ;; esac; done
[ -n "$id" ] || exit 0
mkdir -p /run/systemd/network
cat > /run/systemd/network/10-lab-management.network <<END
[Match]
MACAddress=52:54:00:00:00:$(printf %02x "$id")
[Network]
Address=10.77.0.$id/24
LinkLocalAddressing=no
IPv6AcceptRA=no
LLDP=no
END
"""


class File(NamedTuple):
    """A file of the image: its text and its permission bits."""

    text: str
    mode: int = 0o644


FILES = {
    "etc/fstab": File("/dev/vda / ext4 rw,noatime 0 0\n"),
    "etc/hosts": File(layout.hosts_file()),
    "etc/resolv.conf": File(""),
    "etc/machine-id": File("77" * 16 + "\n"),  # the kernel command line overrides it; empty means first-boot presets
    "etc/systemd/system-generators/lab-network": File(_GENERATOR, 0o755),
    "etc/systemd/journald.conf.d/lab.conf": File("[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n"),
    "etc/ssh/sshd_config.d/lab.conf": File(
        "UseDNS no\nPermitRootLogin prohibit-password\nMaxStartups 50:30:100\nMaxSessions 100\n"
    ),
    "etc/initramfs-tools/update-initramfs.conf": File("update_initramfs=no\n"),  # the lab boots with its own
}

REMOVED = ("etc/hostname", "etc/munge/munge.key", "var/log/bootstrap.log", "var/log/dpkg.log", "var/log/apt")

# Modules that the machine needs before it can see its disk, with what they need, in this order.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")

INIT = """\
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for m in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$m; done
n=0; while [ ! -b /dev/vda ] && [ $n -lt 200 ]; do /bin/busybox sleep 0.05; n=$((n+1)); done
/bin/busybox mount -t ext4 -o rw,noatime /dev/vda /root || exec /bin/busybox sh
for d in dev proc sys; do /bin/busybox mount --move /$d /root/$d; done
exec /bin/busybox switch_root /root /sbin/init
"""

DISK_SIZE = 6 << 30  # bytes; sparse
MKE2FS = ("-t", "ext4", "-O", "^metadata_csum,^64bit", "-E", "root_owner=0:0,lazy_itable_init=1", "-m0", "-L", "root")


def fingerprint() -> str:
    """Return the name of the image that this recipe makes: 16 hex digits of a hash over all of its data."""
    data = {
        "revision": REVISION,
        "suite": SUITE,
        "packages": PACKAGES,
        "excludes": PATH_EXCLUDES,
        "units": [DISABLED, ENABLED, MASKED, GENERATORS_OFF],
        "users": USERS,
        "files": {path: list(file) for path, file in FILES.items()},
        "removed": REMOVED,
        "boot": [BOOT_MODULES, INIT],
        "disk": [DISK_SIZE, MKE2FS],
    }
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
