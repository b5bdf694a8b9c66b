"""Read ``nvidia-smi nvlink`` -s (status), -e (error counters), -c (capabilities), -R (remote ends). Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

from weaklink.observe.tools import nvidia_words as words
from weaklink.observe.tools.nvidia_words import Notice
from weaklink.observe.tools.text import Trouble, integer, number

NAME = "nvidia-smi-nvlink"
_GPU = re.compile(r"GPU (\d{1,3}): ?(.*)\Z")
_UUID = re.compile(r"\(UUID: (GPU-[0-9a-fA-F-]+)\)?\s*\Z")
_LINK = re.compile(r"Link (\d{1,3})\s*([:,])\s*(.*)\Z")
_SPEED = re.compile(r"([\d.]{1,20}) ?GB/s\Z")
_NO_LINKS = "nvlink information as"
_DOWN = frozenset({"inactive", "disabled", "down", "off"})


class Link(NamedTuple):
    """One link: its speed in GB/s a direction, whether it is up (None: not told), its counters by name."""

    number: int
    line: int
    speed: Optional[float]
    up: Optional[bool]
    counters: dict[str, int]


class Gpu(NamedTuple):
    """One GPU: its number, model and UUID, its links by number, whether all its links are said to be inactive."""

    place: int
    line: int
    model: str
    uuid: Optional[str]
    links: dict[int, Link]
    all_down: bool
    unsupported: bool
    message: str


class Record(NamedTuple):
    """What nvidia-smi nvlink printed: the GPUs in order; ``status`` whether it tells which links are up."""

    gpus: tuple[Gpu, ...]
    status: bool
    notices: tuple[Notice, ...]
    troubles: tuple[Trouble, ...]
    version: Optional[str] = None


def recognise(head: str) -> int:
    """Return how sure it is that a text is this tool's: 95 by GPUs with links below them."""
    gpus = links = False
    for line in head[:65_536].split("\n")[:2000]:
        text = line.strip()
        gpus = gpus or bool(_GPU.match(text))
        if gpus and (_LINK.match(text) or _NO_LINKS in text.lower()):
            links = True
            break
    return 95 if links else 60 if _NO_LINKS in head.lower() else 35 if gpus and "(UUID: GPU-" in head else 0


class _Reader:
    def __init__(self) -> None:
        self.gpus: dict[int, Gpu] = {}
        self.gpu: Optional[int] = None
        self.status = False
        self.notices: list[Notice] = []
        self.troubles: list[Trouble] = []
        self.last = 0
        self.bare = False

    def take(self, line: str, at: int) -> None:
        text = line.strip()
        if not text:
            return
        self.last = at
        head = _GPU.match(text)
        if head and not text.startswith("GPU 0000"):
            self._gpu(int(head[1]), head[2], at)
            return
        link = _LINK.match(text)
        if link:
            self._link(int(link[1]), link[2], link[3].strip(), at)
            return
        low = text.lower()
        if self.gpu is not None and ("nvlink information" in low or "nvml:" in low):
            self._message(text, low, at)
            return
        said = words.notice(text, at)
        if said is not None:
            self.notices.append(said)
        elif text.startswith("Link"):
            self._bad(at, f"found {text[:40]!r}, wanted a link and its state")

    def _gpu(self, index: int, rest: str, at: int) -> None:
        self.gpu, self.bare = index, True
        if index in self.gpus:
            return
        uuid = _UUID.search(rest[-80:])
        model = rest.partition("(UUID:")[0].strip()
        self.gpus[index] = Gpu(index, at, model, uuid[1] if uuid else None, {}, False, False, "")

    def _message(self, text: str, low: str, at: int) -> None:
        if self.gpu is None:
            return
        self.bare, self.status = False, True
        down = "inactive" in low
        gpu = self.gpus[self.gpu]
        unsupported = "not supported" in low or "does not support" in low
        if not down and not unsupported:
            self._bad(at, f"GPU {self.gpu}: {text[:100]}")
        self.gpus[self.gpu] = gpu._replace(
            all_down=gpu.all_down or down,
            unsupported=gpu.unsupported or unsupported,
            message=text[:200],
        )

    def _link(self, place: int, mark: str, rest: str, at: int) -> None:
        if self.gpu is None:
            self._bad(at, f"link {place} before any GPU")
            return
        self.bare = False
        links = self.gpus[self.gpu].links
        link = links.get(place) or Link(place, at, None, None, {})
        links[place] = link
        if mark == ",":
            return
        word = rest.strip("<>").strip().lower()
        speed = _SPEED.match(rest)
        if word in _DOWN:
            links[place] = link._replace(up=False, line=at)
            self.status = True
        elif speed and number(speed[1]) is not None:
            rate = number(speed[1]) or 0.0
            links[place] = link._replace(speed=rate, up=rate > 0, line=at)
            self.status = True
        elif ":" in rest or "," in rest:
            self._counter(link, rest, at)
        elif words.fault(rest):
            links[place] = link._replace(up=False, line=at)
            self.status = True
        else:
            self._bad(at, f"GPU {self.gpu}: link {place}: found {rest[:40]!r}, wanted a speed or <inactive>")

    def _counter(self, link: Link, rest: str, at: int) -> None:
        name, _, value = rest.rpartition(":")
        name = name.strip()
        counts = any(word in name.lower() for word in ("error", "event", "discard"))
        if not counts or words.absent(value):
            return
        count = integer(value.strip())
        if count is None:
            self._bad(at, f"GPU {self.gpu}: link {link.number}: {name[:40]}: found {value[:30]!r}, wanted a number")
        elif len(link.counters) < 100:  # noqa: PLR2004 - more counters than any release prints
            link.counters[name] = count

    def _bad(self, at: int, what: str) -> None:
        if len(self.troubles) < 50:  # noqa: PLR2004 - more than anybody reads
            self.troubles.append(Trouble(at, what))

    def finish(self) -> None:
        """Note what shows that the end is missing: the last GPU lists fewer links than all the others."""
        if not self.gpus:
            if not self.notices and not self.troubles:
                self._bad(0, "no output of nvidia-smi nvlink is in the text")
            return
        if self.gpu is None:
            return
        last = self.gpus[self.gpu]
        others = [len(gpu.links) for gpu in self.gpus.values() if gpu.place != self.gpu and gpu.links]
        if self.bare:
            self._bad(self.last, f"GPU {self.gpu}: the output ends before its links")
        elif last.links and others and len(last.links) < min(others) and max(last.links) == len(last.links) - 1:
            self._bad(
                self.last, f"GPU {self.gpu}: the output ends at link {max(last.links)}, others have {min(others)}"
            )


def parse(lines: Iterable[str]) -> Record:
    """Return the GPUs and their links; status, counters and capabilities of the same GPU are put together."""
    reader = _Reader()
    for at, line in enumerate(lines, 1):
        reader.take(line, at)
    reader.finish()
    return Record(tuple(reader.gpus.values()), reader.status, tuple(reader.notices), tuple(reader.troubles))
