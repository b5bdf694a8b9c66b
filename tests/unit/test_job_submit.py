"""job_submit.lua under Lua 5.1 with a stand-in for what slurmctld gives it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "slurm/job_submit.lua"
NOW = 1_800_000_000

HARNESS = """
slurm = { SUCCESS = 0, ERROR = -1 }
said, logged, opened = {}, {}, 0
slurm.log_user = function(format, ...) said[#said + 1] = string.format(format, ...) end
slurm.log_info = function(format, ...) logged[#logged + 1] = string.format(format, ...) end
slurm.log_error = slurm.log_info
io.popen = function() error("a process") end
os.execute = io.popen
clock = %(now)d
os.time = function() return clock end
local open = io.open
io.open = function(path, mode)
  assert(path == "/var/lib/weaklink-policy/policy" and mode == "r", path)
  opened = opened + 1
  return open("%(policy)s", mode)
end
assert(dofile("%(script)s") == 0)
local function submit() return slurm_job_submit({}, {}, 1000) end
%(body)s
print(table.concat(said, "|"), #logged, opened)
"""


@pytest.fixture
def lua() -> str:
    for name in ("lua5.1", "lua"):
        found = shutil.which(name)
        if found:
            return found
    pytest.fail("lua5.1 is not installed (tools/bootstrap.sh installs it)")


def play(
    lua: str, tmp_path: Path, policy: str | bytes | None, body: str = "assert(submit() == 0)"
) -> tuple[str, int, int]:
    path = tmp_path / "policy"
    if policy is not None:
        path.write_bytes(policy if isinstance(policy, bytes) else policy.encode())
    code = HARNESS % {"now": NOW, "policy": path, "script": SCRIPT, "body": body}
    done = subprocess.run([lua, "-"], input=code, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    said, logged, opened = done.stdout.rstrip("\n").split("\t")
    return said, int(logged), int(opened)


def test_it_compiles(lua: str) -> None:
    luac = shutil.which("luac5.1") or lua.replace("lua5.1", "luac5.1")
    subprocess.run([luac, "-p", str(SCRIPT)], check=True, timeout=20)


def test_a_message_is_shown_in_enforce_only(lua: str, tmp_path: Path) -> None:
    text = f"weaklink-policy 1 {NOW - 10}\nmode=%s\nmessage=c2 is slow: 50%% (%%s)\n"
    assert play(lua, tmp_path, text % "enforce")[0] == "c2 is slow: 50% (%s)"
    assert play(lua, tmp_path, text % "observe")[0] == ""
    assert play(lua, tmp_path, f"weaklink-policy 1 {NOW}\nmode=enforce\n")[0] == ""


@pytest.mark.parametrize(
    "policy",
    [
        None,
        "",
        "weaklink-policy 1",
        "weaklink-policy 2 1800000000\nmode=enforce\nmessage=x\n",
        f"weaklink-policy 1 {NOW - 3601}\nmode=enforce\nmessage=x\n",
        f"weaklink-policy 1 {NOW}\nmessage=x\n",
        f"weaklink-policy 1 {NOW}\nmode=maybe\nmessage=x\n",
        f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage=x\nno key and value\n",
        f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage=x\n" + "a=b\n" * 3000,
        f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage={'x' * 70000}\n",
        b"\x00\xff\xfe" * 100,
    ],
)
def test_a_file_that_says_nothing_accepts_the_job(lua: str, tmp_path: Path, policy: str | bytes | None) -> None:
    said, logged, _ = play(lua, tmp_path, policy)
    assert said == ""
    assert logged == (0 if policy is None else 1)


def test_the_file_is_read_every_few_seconds_not_at_every_job(lua: str, tmp_path: Path) -> None:
    policy = f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage=x\n"
    body = "for i = 1, 100 do assert(submit() == 0) end"
    body += " clock = clock + 4 submit() clock = clock + 1 submit() clock = clock - 9 submit()"
    assert play(lua, tmp_path, policy, body)[2] == 3


def test_an_error_inside_accepts_the_job(lua: str, tmp_path: Path) -> None:
    policy = f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage=x\n"
    body = "slurm.log_user = function() error('broken') end assert(submit() == 0)"
    assert play(lua, tmp_path, policy, body)[1] == 1
    body = "slurm.log_user = nil slurm.log_error = nil assert(submit() == 0)"
    play(lua, tmp_path, policy, body)
    play(lua, tmp_path, policy, "os.time = function() return nil end assert(submit() == 0)")


def test_what_is_shown_is_short_and_printable(lua: str, tmp_path: Path) -> None:
    policy = f"weaklink-policy 1 {NOW}\nmode=enforce\nmessage=\x1b[31mred\a{'x' * 2000}\n"
    said = play(lua, tmp_path, policy)[0]
    assert said.startswith("?[31mred?x")
    assert len(said) == 500


def test_a_change_of_a_job_is_let_through(lua: str, tmp_path: Path) -> None:
    play(lua, tmp_path, None, "assert(slurm_job_modify({}, {}, {}, 0) == 0)")
