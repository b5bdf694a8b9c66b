"""Labels that srun -l, pdsh, clush and mpirun put in front of every line, taken off, and the lines sorted by them."""

import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple, Optional

_FORMS = (
    # Open MPI: from 5 on with a blank behind the colon, before without.
    re.compile(r"\[(?:[\w.-]{1,253}@)?\d{1,10},(\d{1,10})\]<(?:stdout|stderr|stddiag)>:(?: |$)"),
    re.compile(r"\[(?:[\w.-]{1,253}@)?\d{1,10},(\d{1,10})\]<(?:stdout|stderr|stddiag)>:"),
    re.compile(r" {0,8}(\d{1,8}):(?: |$)"),
    re.compile(r"([A-Za-z0-9][\w.-]{0,252}):(?: |$)"),
)
_HOST_FORM = _FORMS[-1]
# Of a job's log a few lines may come from the job script itself, where ranks are numbered.
_MOST = 0.8
# What the starter itself says carries no label.
_OWN = ("srun: ", "slurmstepd: ", "salloc: ", "pdsh@", "clush: ")
HELD = 4 * 1024 * 1024
MAX_LABELS = 20_000


class Labelled(NamedTuple):
    """How lines are labelled: the form, the labels that the first lines carry, and how many lines do."""

    form: "re.Pattern[str]"
    labels: tuple[str, ...]
    with_label: int

    @property
    def plain(self) -> bool:
        """Whether labels come again, or one line has a number; a name a line may be something else."""
        alone = self.with_label == 1 and self.form is not _HOST_FORM
        return alone or len(self.labels) < self.with_label


def labelled(lines: Iterable[str]) -> Optional[Labelled]:
    """Return how the lines are labelled, or None where they are not.

    Every line that is not empty has a label; where ranks are numbered most lines are enough, and the caller sees
    whether the text reads better without.
    """
    texts = [line for line in lines if line.strip() and not line.startswith(_OWN)]
    for form in _FORMS:
        found = [match for match in map(form.match, texts) if match]
        enough: float = len(texts) if form is _HOST_FORM else _MOST * len(texts)
        if form is _FORMS[0]:
            enough = max(enough, sum(1 for line in texts if _FORMS[1].match(line)))
        if found and len(found) >= enough:
            labels = dict.fromkeys(match.group(1) for match in found)
            return Labelled(form, tuple(labels), len(found))
    return None


def stripped(lines: Iterable[str], how: Labelled) -> Iterator[str]:
    """Yield the lines without labels; the starter's own are left empty, so that lines keep their numbers."""
    for line in lines:
        found = how.form.match(line)
        yield line[found.end() :] if found else ("" if line.startswith(_OWN) else line)


class Sheaf:
    """Lines sorted by label, with bounded memory: what exceeds it lies in one unnamed temporary file."""

    def __init__(self, held: Optional[int] = None) -> None:
        self._held = HELD if held is None else held
        self._size = 0
        self._lines: dict[str, list[str]] = {}
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._file: Optional[IO[bytes]] = None
        self.left = 0

    def fill(self, lines: Iterable[str], how: Labelled) -> None:
        """Take the lines up. One without a label belongs to the label before it."""
        label = ""
        for line in lines:
            if line.startswith(_OWN):
                continue
            found = how.form.match(line)
            label = found.group(1) if found else label
            if label not in self._places:
                if len(self._places) >= MAX_LABELS:
                    self.left += 1
                    continue
                self._places[label] = []
            text = line[found.end() :] if found else line
            self._lines.setdefault(label, []).append(text)
            self._size += len(text) + 64
            if self._size > self._held:
                self._put_away()

    def _put_away(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="weaklink-")  # noqa: SIM115 - closed by close()
        for label, lines in self._lines.items():
            data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
            self._places[label].append((self._file.seek(0, 2), len(data)))
            self._file.write(data)
        self._lines = {}
        self._size = 0

    def labels(self) -> tuple[str, ...]:
        """Return the labels in the order of their first line."""
        return tuple(label for label in self._places if label)

    def lines(self, label: str) -> Iterator[str]:
        """Yield the lines of one label."""
        for start, size in self._places[label]:
            if self._file is not None:
                self._file.seek(start)
                yield from self._file.read(size).decode("utf-8", "surrogatepass").split("\n")[:-1]
        yield from self._lines.get(label, ())

    def close(self) -> None:
        """Give the temporary file back."""
        if self._file is not None:
            self._file.close()
