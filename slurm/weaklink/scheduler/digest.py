"""The digest of our latest verdict in a node's Extra field: written by the node, read by the controller. Pure.

Extra may hold somebody else's JSON object: ours is one key of it. Any other text there is not ours to touch.
"""

import json
from collections.abc import Mapping
from typing import Any, Optional

KEY = "weaklink"
VERSION = 1
MAX_MESSAGE = 160
_MAX_EXTRA = 16_384


def _object(extra: str) -> Optional[dict[str, Any]]:
    text = extra.strip()
    if not text:
        return {}
    if len(text) > _MAX_EXTRA:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def merge(extra: str, digest: Mapping[str, Any]) -> Optional[str]:
    """Return Extra with our digest in it, or None when what stands there is not a JSON object (then leave it alone)."""
    data = _object(extra)
    if data is None:
        return None
    short = {key: (value[:MAX_MESSAGE] if isinstance(value, str) else value) for key, value in digest.items()}
    data[KEY] = {"v": VERSION, **short}
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True)


def remove(extra: str) -> Optional[str]:
    """Return Extra without our digest, or None when there is nothing of ours in it."""
    data = _object(extra)
    if not data or KEY not in data:
        return None
    del data[KEY]
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True) if data else ""


def read(extra: str) -> Optional[dict[str, Any]]:
    """Return our digest out of Extra, or None when there is none of a version that we know."""
    data = _object(extra)
    found = data.get(KEY) if data else None
    return found if isinstance(found, dict) and found.get("v") == VERSION else None
