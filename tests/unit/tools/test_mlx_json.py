"""JSON inside of outputs: several documents, words before them, damage."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.observe.tools import mlx_json


def read(text: str) -> mlx_json.Documents:
    return mlx_json.documents(iter(text.split("\n")))


def test_documents_follow_one_another_on_one_line_or_many() -> None:
    assert read('{"a": 1}\n[{"b": 2}] {"c": 3}{"d": 4}\n').found == ({"a": 1}, [{"b": 2}], {"c": 3}, {"d": 4})


def test_words_before_a_document_are_skipped() -> None:
    text = '-W- a warning\n{\n  "a": 1\n}\n'
    assert read(text).found == ({"a": 1},)
    first, everything = mlx_json.peek(iter(text.split("\n")))
    assert mlx_json.looks_json(first)
    assert list(everything) == text.split("\n")
    assert mlx_json.looks_json(text)
    assert not mlx_json.looks_json("State : Active\n[0]: rx_packets: 1\n")


def test_what_is_cut_leaves_a_trouble_with_its_line() -> None:
    found = read('{"a": 1}\n{"b":\n  [1, 2\n')
    assert (found.found, found.troubles[0].line) == (({"a": 1},), 4)


def test_depth_is_bounded() -> None:
    assert read("[" * 100_000).troubles
    assert read('{"a":' * 100_000).troubles


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), min_size=1), max_size=5),
    st.integers(0, 300),
)
def test_a_cut_never_changes_a_document(documents: list[dict[str, object]], at: int) -> None:
    text = "\n".join(json.dumps(item) for item in documents)
    assert list(read(text).found) == documents
    cut = read(text[:at])
    assert list(cut.found) == documents[: len(cut.found)]
