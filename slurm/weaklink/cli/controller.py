"""What the controller's sub-commands share: opening site, store and Slurm, and turning errors into exit codes."""

import json
import signal
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from weaklink.cli import UsageError
from weaklink.model.finding import EXIT_UNKNOWN

if TYPE_CHECKING:
    from weaklink.guard.context import Guard


def options(argv: list[str], text: str, flags: tuple[str, ...], values: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the options of a sub-command: flags as True, values as text, what is left under "".

    UsageError on options that are neither.
    """
    found: dict[str, Any] = {"": []}
    left = list(argv)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word in flags:
            found[word] = True
        elif name in values:
            if not equals and not left:
                raise UsageError(f"{name} wants a value\n{text}")
            found[name] = value if equals else left.pop(0)
        elif word.startswith("-"):
            raise UsageError(f"no option {word!r}\n{text}")
        else:
            found[""].append(word)
    return found


def one_node(argv: list[str], text: str) -> Optional[tuple[str, bool]]:
    """Return (node, whether JSON is wanted) of ``COMMAND NODE [--json]``; None when help was wanted, and printed."""
    found = options(argv, text, ("--json", "-h", "--help"))
    if "-h" in found or "--help" in found:
        print(text, end="")
        return None
    if len(found[""]) != 1:
        raise UsageError(f"wanted one node\n{text}")
    return found[""][0], "--json" in found


def tell(line: str) -> None:
    """Print a line for the person, on standard error: standard output is the result's."""
    print(line, file=sys.stderr, flush=True)


def open_guard() -> "Guard":
    """Open everything that cluster.json names. Raises SiteError, StoreError."""
    from weaklink.guard.context import KEY_PATH, Guard
    from weaklink.history.store import Store
    from weaklink.model.site import load_site
    from weaklink.observe.command import feed, run
    from weaklink.scheduler.ownership import load_key
    from weaklink.scheduler.slurm import SlurmClient

    site = load_site()
    key = load_key(KEY_PATH)
    if key is None:
        tell(f"weaklink: {KEY_PATH} cannot be used (are you root on the controller?): no drain can be told to be ours")
    slurm = SlurmClient(run, site.deadlines.get("slurm", 8.0), feed)
    return Guard(site, slurm, key, Store.open(site.store), run, tell)


def with_guard(work: "Callable[[Guard], int]", *, opener: "Optional[Callable[[], Guard]]" = None) -> int:
    """Run ``work`` with an open guard; our own failures are exit 3, with one line that says what and where."""
    try:
        import sqlalchemy  # noqa: F401 - to say what is missing before anything is half done
    except ImportError:
        tell("weaklink: SQLAlchemy is missing: apt install python3-sqlalchemy (the controller's commands need it)")
        return EXIT_UNKNOWN
    from weaklink.guard.context import BusyError
    from weaklink.history.store import StoreError
    from weaklink.model.site import SiteError
    from weaklink.scheduler.slurm import SlurmError

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        return work((opener or open_guard)())
    except (SiteError, StoreError, BusyError) as error:
        tell(f"weaklink: {error}")
    except SlurmError as error:
        tell(f"weaklink: Slurm could not be asked: {error}; nothing was changed after that")
    except KeyboardInterrupt:
        tell("weaklink: interrupted; allocations were given back")
    finally:
        signal.signal(signal.SIGTERM, before)
    return EXIT_UNKNOWN


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=True)
    sys.stdout.write("\n")
