"""What several readers of mounts share: octal escapes, options, a mount as a record. Pure."""

import re
from typing import NamedTuple, Optional

_ESCAPE = re.compile(r"\\([0-7]{3})|\\x([0-9a-fA-F]{2})")
_NETWORK = re.compile(r"@((?:o2ib|tcp|kfi|gni)\d{0,5})(?=[:,]|\Z)")
NFS = frozenset({"nfs", "nfs4"})


class Mount(NamedTuple):
    """A mount: point, type, source, options (flags have an empty value)."""

    point: str
    type: str
    source: str
    options: dict[str, str]

    @property
    def proto(self) -> Optional[str]:
        """The transport of an NFS or Lustre mount (``rdma``, ``tcp``, …); None where nothing says it.

        ``mountproto`` is that of the old MOUNT request and says nothing of the data. A bare ``rdma`` or ``tcp`` is
        an older way to ask for one. Lustre names the networks of its servers in the source; o2ib is RDMA.
        """
        if self.type == "lustre":
            networks = {
                "o2ib" if word.startswith("o2ib") else word.rstrip("0123456789")
                for word in _NETWORK.findall(self.source)
            }
            return None if len(networks) != 1 else "rdma" if networks == {"o2ib"} else networks.pop()
        if self.type not in NFS:
            return None
        word = self.options.get("proto")  # rdma6, tcp6: the same over IPv6, kept as printed
        if word:
            return word
        return next((flag for flag in ("rdma", "tcp", "udp") if self.options.get(flag) == ""), None)


def plain(text: str) -> str:
    r"""Return a path without the kernel's escapes (``\040`` is a blank)."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8) if match[1] else int(match[2], 16)), text)


def options_of(text: str) -> dict[str, str]:
    """Return the options of a comma-separated list; commas in quotes (``context="a,b"``) do not part them."""
    found: dict[str, str] = {}
    for word in re.findall(r'(?:[^,"]|"[^"]*"?)+', text):
        key, _, value = word.partition("=")
        found[key.strip()] = plain(value)
    return found
