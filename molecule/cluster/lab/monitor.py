"""A client for a machine's QMP monitor socket."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import LabError


class Monitor:
    """One connection to a machine's monitor; use it as a context manager.

    ``timeout`` is how long one command may take, in seconds.
    """

    def __init__(self, path: Path, timeout: float = 60.0) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
            self._stream = self._socket.makefile("rwb")
            self._read()  # the greeting
            self.execute("qmp_capabilities")
        except OSError as error:
            self._socket.close()
            raise LabError(f"monitor {path}: no connection", found=str(error), todo="lab-status") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):  # what was not sent cannot be sent any more
            self._stream.close()
        self._socket.close()

    def _read(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise LabError(f"monitor {self._path}: the machine closed the connection")
        message: dict[str, Any] = json.loads(line)
        return message

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a QMP command and return its result; a LabError carries the machine's refusal."""
        request = {"execute": command, "arguments": {key.replace("_", "-"): val for key, val in arguments.items()}}
        try:
            self._stream.write(json.dumps(request).encode() + b"\n")
            self._stream.flush()
            while True:
                answer = self._read()
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise LabError(f"monitor {self._path}: {command} refused", found=answer["error"].get("desc", ""))
        except TimeoutError as error:
            raise LabError(f"monitor {self._path}: {command} did not end in time") from error
        except OSError as error:
            raise LabError(
                f"monitor {self._path}: the machine went away", found=str(error), todo="lab-status"
            ) from error

    def human(self, line: str) -> str:
        """Run a line of the human monitor, which has what QMP lacks, and return its output.

        A LabError when the output is an error: the human monitor has no status.
        """
        output = str(self.execute("human-monitor-command", command_line=line)).strip()
        if output.startswith("Error"):
            raise LabError(f"monitor {self._path}: {line} failed", found=output)
        return output
