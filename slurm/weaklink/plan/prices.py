"""The prices file: what a person was quoted, checked against its schema, with file and line in every error.

weaklink knows no prices of its own: without a file a cost is null. The currency is a label, nothing is converted.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import yaml

from weaklink.model.cluster_file import ClusterError, Document
from weaklink.model.words import nearest

EXAMPLE = "prices-example.yml"
_WHOLE = ("radix", "ports_per_node", "other_ports")


class PricesError(Exception):
    """The prices file is not usable; the text has file, line, key, what was found and what is allowed."""


class Compute(NamedTuple):
    """Prices of the compute network's parts, each for one piece."""

    switch: float
    hca: float
    node_cable: float
    inter_switch_cable: float
    node_module: float
    switch_module: float


class NetworkPrices(NamedTuple):
    """A storage or management network: how many ports it has, and what one piece of each part costs.

    ``other_ports`` are ports of servers that are no GPU nodes; ``oversubscription`` is down:up of its leaves;
    ``module`` is one transceiver, two for each link.
    """

    radix: int
    ports_per_node: int
    switch: float
    cable: float
    other_ports: int = 0
    oversubscription: float = 1.0
    nic: float = 0.0
    module: float = 0.0


class Prices(NamedTuple):
    """A whole prices file, checked. ``example`` says that the figures are nobody's quotation."""

    file: str
    dated: str
    currency: str
    example: bool
    note: str
    compute: Compute
    storage: NetworkPrices | None = None
    management: NetworkPrices | None = None


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the prices file."""
    text = resources.files("weaklink.plan").joinpath("prices.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def example_text() -> str:
    """Return the example prices file: a start to write one's own, not a quotation."""
    return resources.files("weaklink.plan").joinpath(EXAMPLE).read_text(encoding="utf-8")


def load(path: str | Path) -> Prices:
    """Read and check a prices file; PricesError has file and line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PricesError(f"{path}:1: (file): found {error}; allowed: a readable prices file in UTF-8") from error
    return parse(str(path), text)


def parse(file: str, text: str) -> Prices:
    """Return the prices that ``text`` describes; ``file`` is for messages. Pure."""
    _need_keys(file, text)
    try:
        document = Document(file, text)
        if type(document.data.get("dated")) is dt.date:  # YAML reads a bare day as a date
            document.data["dated"] = document.data["dated"].isoformat()
        _validate(document)
        if _not_a_day(document.data["dated"]):
            raise document.error(("dated",), repr(document.data["dated"]), "a day as YYYY-MM-DD")
        _need_finite(document)
    except ClusterError as error:
        raise PricesError(str(error)) from error
    data = document.data
    return Prices(
        file=file,
        dated=data["dated"],
        currency=data["currency"],
        example=data.get("example", False),
        note=data.get("note", ""),
        compute=Compute(**{key: float(value) for key, value in data["compute"].items()}),
        storage=_network(data["storage"]) if "storage" in data else None,
        management=_network(data["management"]) if "management" in data else None,
    )


def _network(data: dict[str, Any]) -> NetworkPrices:
    read: dict[str, Any] = {key: int(value) if key in _WHOLE else float(value) for key, value in data.items()}
    return NetworkPrices(**read)


def _need_keys(file: str, text: str) -> None:
    """Refuse a file that is a list, a text or empty, in words that fit prices."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return  # Document says it with its line
    if not isinstance(node, yaml.MappingNode):
        found = "nothing" if node is None else f"a {node.tag.rpartition(':')[2]}"
        raise PricesError(f"{file}:1: (file): found {found}; allowed: the keys format, dated, currency, compute, …")


def _need_finite(document: Document) -> None:
    """Refuse .inf and .nan, which no schema limit catches."""
    for part in ("compute", "storage", "management"):
        for key, value in document.data.get(part, {}).items():
            if not math.isfinite(value):
                raise document.error((part, key), str(value), "a number of 0 or more")


def _not_a_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() != text
    except ValueError:
        return True


def _validate(document: Document) -> None:
    """Raise the first error that the schema finds: unknown keys before all else, then by line."""
    found = list(jsonschema.Draft202012Validator(schema()).iter_errors(document.data))
    unknown = [error for error in found if error.validator == "additionalProperties"]
    if unknown or found:
        raise min((_explain(document, error) for error in unknown or found), key=lambda error: error.line)


def _explain(document: Document, error: jsonschema.ValidationError) -> ClusterError:
    path: tuple[Any, ...] = tuple(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    known = sorted(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
    if error.validator == "additionalProperties":
        word = next(key for key in value if key not in known)
        return document.error((*path, word), f"the unknown key {word!r}", ", ".join(known), nearest(word, known))
    if error.validator == "required":
        missing = next(key for key in wanted if key not in value)
        return document.error((*path, missing), "nothing", f"required: {', '.join(wanted)}")
    shown = json.dumps(value, default=str)[:80]
    return document.error(path, shown, _allowed(path, error))


def _allowed(path: tuple[Any, ...], error: jsonschema.ValidationError) -> str:
    """Return in words what may stand at ``path``."""
    words = {
        "dated": "a day as YYYY-MM-DD",
        "currency": "a label of up to 8 letters or a sign, such as USD",
        "format": "1",
    }
    if path and path[-1] in words:
        return words[path[-1]]
    if error.validator == "type":
        return {"number": "a number of 0 or more", "integer": "a whole number", "object": "keys and values"}.get(
            str(error.validator_value), f"a {error.validator_value}"
        )
    limits = {
        "minimum": "at least",
        "maximum": "at most",
        "maxLength": "text of at most this many characters:",
        "multipleOf": "a multiple of",
    }
    return f"{limits.get(str(error.validator), str(error.validator))} {error.validator_value}"
