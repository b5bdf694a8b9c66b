"""Read cluster.yml: YAML with line numbers, checked against the schema. For the controller (PyYAML, jsonschema)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import jsonschema
import yaml

from weaklink.model.words import nearest

Path = tuple[Any, ...]
# libyaml where PyYAML was built with it: ten times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ClusterError(Exception):
    """The cluster file is not usable; the text has file, line, key, what was found and what is allowed."""

    def __init__(self, where: tuple[str, int], key: str, found: str, allowed: str, hint: str = "") -> None:
        self.file, self.line = where
        self.key, self.hint = key, hint
        text = f"{self.file}:{self.line}: {key}: found {found}; allowed: {allowed}"
        super().__init__(text + (f"; did you mean {hint!r}?" if hint else ""))


class Document:
    """A cluster file's data, and the line of each of its values by path."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        try:
            node = yaml.compose(text, Loader=_LOADER)
            self.data: Any = None if node is None else self._build(node, ())
        except RecursionError as error:
            raise ClusterError((file, 1), "(file)", "a value that holds itself", "a YAML mapping") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            problem = str(getattr(error, "problem", None) or error)
            raise ClusterError((file, line), "(file)", problem, "a YAML mapping") from error
        if not isinstance(self.data, dict):
            found = "nothing" if self.data is None else type(self.data).__name__
            raise ClusterError((file, 1), "(file)", found, "a YAML mapping with format, cluster, …")

    def _build(self, node: yaml.Node, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            result: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = self._scalar(key_node)
                line = key_node.start_mark.line + 1
                if not isinstance(key, str):
                    raise ClusterError((self.file, line), dotted(path) or "(file)", f"the key {key!r}", "words as keys")
                if key in result:
                    earlier = self.lines[(*path, key)]
                    raise ClusterError(
                        (self.file, line), dotted((*path, key)), f"it twice (line {earlier})", "each key once"
                    )
                self.lines[(*path, key)] = line
                result[key] = self._build(value_node, (*path, key))
            return result
        if isinstance(node, yaml.SequenceNode):
            return [self._build(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node)

    @staticmethod
    def _scalar(node: yaml.Node) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node, deep=True)
        except ValueError as error:  # a date such as 2026-02-30
            problem = f"{getattr(node, 'value', '')!s:.40}: {error}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error
        finally:
            loader.dispose()

    def error(self, path: Path, found: str, allowed: str, hint: str = "") -> ClusterError:
        """Return the error about the value at ``path``."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return ClusterError((self.file, self.lines.get(known, 1)), dotted(path) or "(file)", found, allowed, hint)


def dotted(path: Iterable[Any]) -> str:
    """Return a path as people write it: ``groups.compute.nics[1].pci``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the cluster file."""
    text = resources.files("weaklink.model").joinpath("cluster.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(document: Document) -> None:
    """Raise the first ClusterError that the schema finds: unknown keys before all else, then by line."""
    validator = jsonschema.Draft202012Validator(schema())
    errors = sorted(validator.iter_errors(document.data), key=lambda error: error.validator != "additionalProperties")
    if errors:
        first = errors[0].validator == "additionalProperties"
        same = [error for error in errors if (error.validator == "additionalProperties") == first]
        raise min((_explain(document, error) for error in same), key=lambda error: error.line)


def _explain(document: Document, error: jsonschema.ValidationError) -> ClusterError:
    path = tuple(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "additionalProperties" and isinstance(error.schema, dict):
        known = sorted(error.schema.get("properties", {}))
        unknown = str(next(key for key in value if key not in known))
        found = f"the unknown key {unknown!r}"
        return document.error((*path, unknown), found, ", ".join(known), nearest(unknown, known))
    if error.validator == "anyOf":
        # The alternative that is of the value's own kind says best what is wrong with it.
        deeper = (inner for inner in error.context if inner.validator != "type" or inner.path)
        inner = next(deeper, None)
        if inner is not None:
            return _explain(document, inner)
    hint = ""
    shown = json.dumps(value, default=str, ensure_ascii=False)[:80]
    if error.validator == "required":
        missing = next(key for key in wanted if key not in value)
        path, shown, allowed = (*path, missing), "nothing", f"required: {', '.join(wanted)}"
    elif error.validator in ("enum", "const"):
        words = [str(word) for word in (wanted if error.validator == "enum" else [wanted])]
        shown, allowed, hint = repr(value), ", ".join(words), nearest(str(value), words)
    elif error.validator == "anyOf":
        allowed = " or ".join(_words(_resolved(option)) for option in wanted)
    elif error.validator == "uniqueItems":
        allowed = "each item once"
    else:
        if "propertyNames" in error.absolute_schema_path:
            path, shown = (*path, value), f"the key {value!r}"
        allowed = _words(error.schema)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and "text" in allowed:
            allowed += f", in quotes: '{value}'"
    return document.error(path, shown, allowed, hint)


def _resolved(entry: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference in the schema."""
    if "$ref" not in entry:
        return entry
    found: dict[str, Any] = schema()["$defs"][entry["$ref"].rpartition("/")[2]]
    return found


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def _words(wanted: Any) -> str:
    """Return what a part of the schema allows, in words."""
    kinds = wanted.get("type", "string")
    text = " or ".join(_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    low, high = wanted.get("minimum"), wanted.get("maximum")
    if low is not None:
        text += f" from {low}"
    if "exclusiveMinimum" in wanted:
        text += f" above {wanted['exclusiveMinimum']}"
    if high is not None:
        text += f" to {high}"
    if wanted.get("minItems") or wanted.get("minLength") or wanted.get("minProperties"):
        text += ", not empty"
    if "examples" in wanted:
        text += f" such as {wanted['examples'][0]}"
    elif "pattern" in wanted:
        text += f" that matches {wanted['pattern']}"
    return text
