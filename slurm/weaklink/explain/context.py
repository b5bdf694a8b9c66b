"""The context: what is expected of what was printed, from a JSON file. Unknown keys are named, not refused."""

import json
from typing import Any

from weaklink.model.words import nearest

# All keys that any judge asks for; one outside is most likely misspelt.
KEYS = frozenset({
    "expected_ranks", "expected_busbw_gbps", "compare", "require_validation", "require_rdma", "transport",
    "expected_bw_gbps", "line_rate_gbps", "min_fraction", "fraction_applies_from_bytes", "min_msg_rate_mpps",
    "compute_hcas", "expected_hcas", "expected_rate_gbps", "expected_link", "expected_active_mtu", "link_layer",
    "unused_ports",
    "fabric_netdevs", "link_state", "max_flaps_per_device", "counters_cleared_minutes_ago",
    "lossless_priority", "rdma_dscp", "cnp_dscp", "required_trust", "configured_gid_index", "ip_version", "netdev",
    "snapshots", "seconds",
    "max_pause_frames_per_s",
    "profile_devices", "expected_pcie", "gpudirect", "virtualized", "gdr_max_distance",
    "expected_gpus", "expected_bus_ids", "expected_links", "expected_nvlink", "nvswitch_devices", "required_fields",
    "max_retired_pages",
    "level",
    "required_fw", "required", "expected",
    "required_mounts", "required_net", "command",
    "plugin", "slurm_nodes", "slurmd_C", "power_saving", "comment_prefix",
})  # fmt: skip
MAX_BYTES = 16 * 1024 * 1024


class ContextError(Exception):
    """The context cannot be used; the text says where, what was found, what was wanted."""


def read(path: str) -> tuple[dict[str, Any], list[str]]:
    """Return the context of a file, and a warning for each key that no judge knows. ContextError where it is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - node code leaves pathlib alone
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror or error}; --context wants a file with a JSON object") from error
    if len(data) > MAX_BYTES:
        raise ContextError(f"{path}: more than {MAX_BYTES >> 20} MiB; --context wants a file with a JSON object")
    try:
        text = data.decode("utf-8-sig")
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ContextError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ContextError(f"{path}: byte {error.start}: not UTF-8; wanted a JSON object in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ContextError(f"{path}: {error}"[:400]) from error
    if not isinstance(found, dict):
        raise ContextError(f"{path}: found {_kind(found)}, wanted a JSON object of key and value")
    return found, [f"{path}: {_unknown(key)}" for key in found if key not in KEYS]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r:.60} is there twice; keep one")
            seen.add(key)
    return found


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no value; wanted a number")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _unknown(key: str) -> str:
    near = nearest(key, KEYS)
    return f"key {key!r:.60} is unknown and says nothing" + (f"; did you mean {near!r}?" if near else "")
