"""Every class of judgement, by version; the nine settings of a widely read guide; a clean file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaklink.lint.base import CLASSES, Judgement, exit_code
from weaklink.lint.nccl import judge
from weaklink.lint.parse import read
from weaklink.lint.rule import DEBUGGING, FABRIC, SYSTEM, Rule
from weaklink.lint.table import RULES, nearest
from weaklink.lint.version import NEWEST, version

NINE = [
    ("NCCL_IB_TIMEOUT=22", {"ok"}),
    ("NCCL_IB_RETRY_CNT=7", {"no-op"}),
    ("NCCL_IB_GID_INDEX=3", {"discouraged"}),
    ("NCCL_IB_HCA=mlx5_0:1,mlx5_1:1", {"prefix-match"}),
    ("NCCL_SOCKET_IFNAME=eth0", {"prefix-match"}),
    ("NCCL_NET_GDR_LEVEL=5", {"debug", "discouraged"}),
    ("NCCL_NET_GDR_READ=1", {"debug", "no-op"}),
    ("NCCL_MIN_NCHANNELS=32", {"debug", "deprecated"}),
    ("NCCL_LAUNCH_MODE=PARALLEL", {"debug", "deprecated", "no-op"}),
]


def lint(text: str, at: str = "2.27.3", name: str = "/etc/nccl.conf") -> list[Judgement]:
    return judge([read(name, text.encode())], version(at))


def classes(text: str, at: str = "2.27.3") -> set[str]:
    return {judgement.klass for judgement in lint(text, at)}


def told(text: str, at: str = "2.27.3") -> str:
    return " | ".join(judgement.message for judgement in lint(text, at))


@pytest.mark.parametrize(("line", "wanted"), NINE)
def test_the_nine_settings_of_the_guide_alone(line: str, wanted: set[str]) -> None:
    assert classes(line) == wanted


def test_the_nine_settings_of_the_guide_together() -> None:
    found: dict[str, set[str]] = {}
    for judgement in lint("".join(f"{line}\n" for line, _ in NINE)):
        found.setdefault(judgement.subject, set()).add(judgement.klass)
    assert found == {line.partition("=")[0]: wanted for line, wanted in NINE}


def test_a_file_as_a_large_operator_keeps_it_is_fine() -> None:
    text = (
        "NCCL_DEBUG=WARN\nNCCL_IB_HCA==mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11\n"
        "NCCL_SOCKET_IFNAME==eth0\nNCCL_IB_TC=41\nNCCL_IB_TIMEOUT=22\nNCCL_IB_QPS_PER_CONNECTION=4\n"
        "NCCL_IB_SPLIT_DATA_ON_QPS=1\nNCCL_IB_ADAPTIVE_ROUTING=1\nNCCL_IGNORE_CPU_AFFINITY=1\nNCCL_NET_PLUGIN=none\n"
        "NCCL_TOPO_FILE=/etc/nccl/topo.xml\n"
    )
    judgements = lint(text)
    assert {judgement.klass for judgement in judgements} == {"ok"}
    assert len(judgements) == text.count("\n")
    assert exit_code(judgements) == 0


@pytest.mark.parametrize(
    ("line", "at", "klass", "words"),
    [
        # the timeout is an exponent
        ("NCCL_IB_TIMEOUT=22", "2.27", "ok", "17.18 s a try, about 2 minutes with 7 retries"),
        ("NCCL_IB_TIMEOUT=22\nNCCL_IB_RETRY_CNT=3", "2.27", "ok", "52 s"),
        ("# timeout (seconds)\nNCCL_IB_TIMEOUT=22", "2.27", "unit", "exponent"),
        ("NCCL_IB_TIMEOUT=22 # in seconds", "2.27", "unit", "17.18 s"),
        ("# 4.096 us * 2^22 = 17 seconds\nNCCL_IB_TIMEOUT=22", "2.27", "ok", "17.18 s"),
        ("NCCL_IB_TIMEOUT=0", "2.27", "discouraged", "for ever"),
        ("NCCL_IB_TIMEOUT=32", "2.27", "contradiction", "for ever"),
        ("NCCL_IB_TIMEOUT=31", "2.27", "discouraged", "17 hours"),
        ("NCCL_IB_TIMEOUT=20", "2.23", "no-op", "default of NCCL 2.23"),
        ("NCCL_IB_TIMEOUT=20", "2.22", "ok", "4.295 s"),
        ("NCCL_IB_TIMEOUT=18", "2.14", "no-op", "default"),
        ("NCCL_IB_TIMEOUT=14", "2.13.4", "no-op", "default"),
        # other units
        ("NCCL_IB_RETRY_CNT=5 # seconds", "2.27", "unit", "count"),
        ("NCCL_BUFFSIZE=8388608 # (MB)", "2.27", "unit", "bytes"),
        ("NCCL_BUFFSIZE=4M", "2.27", "unit", "reads '4M' as 4"),
        ("NCCL_IB_TIMEOUT=22s", "2.27", "unit", "as 22"),
        ("NCCL_IB_TIMEOUT=022", "2.27", "unit", "octal"),
        ("NCCL_IB_TC=26 # DSCP 26", "2.27", "unit", "DSCP 26 would be 104"),
        ("NCCL_SOCKET_RETRY_SLEEP_MSEC=2 # seconds", "2.27", "unit", "milliseconds"),
        # ranges, words
        ("NCCL_IB_RETRY_CNT=8", "2.27", "contradiction", "0 to 7"),
        ("NCCL_IB_RETRY_CNT=many", "2.27", "contradiction", "no number"),
        ("NCCL_IB_TC=256", "2.27", "contradiction", "0 to 255"),
        ("NCCL_IB_TC=107", "2.27", "discouraged", "congestion experienced"),
        ("NCCL_IB_QPS_PER_CONNECTION=129", "2.27", "contradiction", "1 to 128"),
        ("NCCL_MIN_CTAS=64", "2.24", "contradiction", "1 to 32"),
        ("NCCL_MIN_CTAS=64", "2.25", "debug", "experiment"),
        ("NCCL_CROSS_NIC=3", "2.27", "contradiction", "0 to 2"),
        ("NCCL_NTHREADS=100", "2.27", "contradiction", "64, 128, 256, 512"),
        ("NCCL_IB_DISABLE=2", "2.27", "contradiction", "neither 0 nor 1"),
        ("NCCL_LAUNCH_MODE=parallel", "2.27", "contradiction", "did you mean PARALLEL"),
        ("NCCL_NET_GDR_LEVEL=sys", "2.27", "contradiction", "in capitals"),
        ("NCCL_DEBUG=verbose", "2.27", "contradiction", "VERSION, WARN"),
        ("NCCL_DEBUG=ATTN", "2.31", "contradiction", "does not know ATTN"),
        ("NCCL_DEBUG=warn", "2.27", "ok", "takes it"),
        ("NCCL_DEBUG=INFO", "2.27", "debug", "every rank"),
        ("NCCL_IB_ADDR_RANGE=10.0.0.0/33", "2.27", "contradiction", "no network"),
        ("NCCL_DEBUG_FILE=~/nccl.%h.%p", "2.27", "contradiction", "does not expand"),
        ("NCCL_RAS_TIMEOUT_FACTOR=0", "2.27", "contradiction", "no positive number"),
        # levels
        ("NCCL_NET_GDR_LEVEL=5", "2.27", "discouraged", "5 stands for SYS"),
        ("NCCL_NET_GDR_LEVEL=2", "2.27", "discouraged", "2 stands for PXB"),
        ("NCCL_NET_GDR_LEVEL=SYS", "2.27", "discouraged", "does not enable GPUDirect"),
        ("NCCL_NET_GDR_LEVEL=PXB", "2.27", "no-op", "default"),
        # versions
        ("NCCL_MIN_NCHANNELS=32", "2.16", "debug", "experiment"),
        ("NCCL_LAUNCH_MODE=GROUP", "2.9", "deprecated", "since NCCL 2.9"),
        ("NCCL_IB_CUDA_SUPPORT=1", "2.27", "deprecated", "removed in NCCL 2.4"),
        ("NCCL_IB_GDR_LEVEL=PIX", "2.27", "deprecated", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_IB_ADDR_FAMILY=AF_INET6", "2.20", "no-op", "came with 2.21"),
        ("NCCL_IB_GID_INDEX=3", "2.20.5", "ok", "cannot find the GID itself"),
        ("NCCL_IB_GID_INDEX=3", "2.21", "discouraged", "since 2.21"),
        ("NCCL_IB_GID_INDEX=-1", "2.21", "no-op", "default"),
        ("NCCL_IB_GID_INDEX=0", "2.20", "no-op", "default"),
        ("NCCL_IB_SPLIT_DATA_ON_QPS=1\nNCCL_IB_QPS_PER_CONNECTION=2", "2.19", "no-op", "default"),
        ("NCCL_IB_SPLIT_DATA_ON_QPS=1\nNCCL_IB_QPS_PER_CONNECTION=2", "2.20", "ok", "site"),
        ("NCCL_NET_GDR_C2C=1", "2.26", "debug", "experiment"),
        ("NCCL_NET_GDR_C2C=1", "2.27", "no-op", "default"),
        ("NCCL_NET_GDR_READ=0", "2.4.1", "no-op", "default"),
        # names and lists
        ("NCCL_IB_HCA==mlx5_0,=mlx5_1", "2.27", "contradiction", "count once"),
        ("NCCL_IB_HCA==mlx5_0, mlx5_1", "2.27", "contradiction", "a space is part of the name"),
        ("NCCL_IB_HCA==mlx5_0:a", "2.27", "contradiction", "<hca>[:<port>"),
        ("NCCL_IB_HCA==mlx5_0:1:0:1", "2.30.5", "ok", "one HCA by its whole name"),
        ("NCCL_IB_HCA==", "2.27", "contradiction", "names nothing"),
        ("NCCL_IB_HCA==" + ",".join(f"m{n}" for n in range(33)), "2.27", "contradiction", "33 entries; NCCL keeps 32"),
        ("NCCL_IB_HCA=^mlx5_1", "2.27", "prefix-match", "write ^=mlx5_1"),
        ("NCCL_SOCKET_IFNAME=^docker,lo", "2.27", "prefix-match", "excludes"),
        ("NCCL_SOCKET_IFNAME==eth0 # boot", "2.27", "contradiction", "part of the value"),
        ('NCCL_IB_TIMEOUT="22"', "2.27", "contradiction", "no quotes"),
        # together
        ("NCCL_IB_GID_INDEX=3\nNCCL_IB_ROCE_VERSION_NUM=1", "2.27", "no-op", "only looked at where"),
        ("NCCL_SOCKET_NTHREADS=16\nNCCL_NSOCKS_PERTHREAD=8", "2.27", "contradiction", "128"),
        ("NCCL_MIN_CTAS=32\nNCCL_MAX_CTAS=16", "2.27", "contradiction", "more than NCCL_MAX_CTAS"),
        ("NCCL_IB_SPLIT_DATA_ON_QPS=1", "2.27", "no-op", "nothing is split"),
        ("NCCL_IB_AR_THRESHOLD=8388608", "2.27", "discouraged", "no message uses adaptive routing"),
        ("NCCL_IB_TC=1\nNCCL_IB_TC=2", "2.27", "no-op", "has no effect: /etc/nccl.conf:1 wins with 1"),
        ("NCCL_CONF_FILE=/a.conf", "2.27", "no-op", "environment only"),
        # others
        ("NCCL_IB_HAC=mlx5", "2.27", "unknown", "did you mean NCCL_IB_HCA"),
        ("nccl_debug=WARN", "2.27", "unknown", "did you mean NCCL_DEBUG"),
        ("NCCL_BANANA=1", "2.27", "unknown", "not in NCCL's list"),
        ("NCCL_ASYNC_ERROR_HANDLING=1", "2.27", "deprecated", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
        ("NCCL_IB_MERGE_VFS=0", "2.27", "debug", "not in its guide"),
        ("NCCL_RAS_ENABLE=0", "2.27", "discouraged", "ncclras"),
        ("NCCL_RAS_ADDR=0.0.0.0:28028", "2.27", "discouraged", "anyone"),
        ("NCCL_PROTO=LL128", "2.27", "discouraged", "corrupt data"),
        ("NCCL_PSK=short", "2.32", "contradiction", "shorter than 32"),
        ("NCCL_DEBUG=", "2.27", "no-op", "empty"),
        ("NCCL_IB_HCA=mlx5_0,mlx5_1", "2.27", "prefix-match", "mlx5_1 also means mlx5_10 to mlx5_19"),
    ],
)
def test_one_setting_gets_the_right_class_and_reason(line: str, at: str, klass: str, words: str) -> None:
    matching = [judgement for judgement in lint(line, at) if judgement.klass == klass and words in judgement.message]
    assert matching, told(line, at)
    if klass == "ok":
        assert classes(line.rpartition("\n")[2] if "IB_RETRY" in line else line, at) <= {"ok"}


def test_an_override_in_another_file_is_said_and_is_no_fault() -> None:
    sources = [read("/etc/nccl.conf", b"NCCL_IB_TC=1\n"), read("job.sh", b"export NCCL_IB_TC=104\n")]
    system, job = judge(sources, NEWEST)
    assert (system.klass, system.effective, job.klass, job.effective) == ("ok", False, "ok", True)
    assert "job.sh:1 wins with 104" in system.message
    assert "wins over /etc/nccl.conf:1" in job.message


def test_what_a_shell_computes_is_unknown() -> None:
    judgements = judge([read("a.sh", b"export NCCL_SOCKET_IFNAME=$IF\n")], NEWEST)
    assert [judgement.klass for judgement in judgements] == ["unknown"]
    assert exit_code(judgements) == 3


def test_a_secret_is_not_repeated() -> None:
    key = "correct-horse-battery-staple-0123456789"
    for judgement in [*lint(f"NCCL_PSK={key}\nNCCL_PSK={key}x\n", "2.32")]:
        assert key not in str(judgement.as_dict("variable"))


def test_unknown_alone_is_3_and_anything_else_is_1() -> None:
    assert exit_code(lint("NCCL_BANANA=1")) == 3
    assert exit_code(lint("NCCL_BANANA=1\nNCCL_IB_TC=106")) == 3
    assert exit_code(lint("NCCL_BANANA=1\nNCCL_IB_RETRY_CNT=7")) == 1


def test_the_table_holds_the_whole_list_and_is_sound() -> None:
    assert {rule.section for rule in RULES.values()} > {SYSTEM, FABRIC, DEBUGGING}
    assert sum(rule.documented for rule in RULES.values()) >= 129
    for name, rule in RULES.items():
        assert name == rule.name
        assert nearest(name) == name
        assert not rule.alias.startswith("NCCL_") or rule.alias in RULES, name
        for _, value in rule.defaults:
            if value and rule.kind in ("int", "flag", "size"):
                assert not rule.values or value in rule.values, name
                assert rule.low is None or int(value) >= rule.low, name


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.defaults], ids=lambda rule: rule.name)
def test_a_value_equal_to_the_default_of_its_version_is_a_no_op(rule: Rule) -> None:
    for since, value in rule.defaults:
        at = max(since, rule.since)
        if value and rule.default(at) == value:
            assert "no-op" in classes(f"{rule.name}={value}", str(at)), at


LINES = st.lists(
    st.tuples(st.sampled_from(sorted(RULES)), st.text(st.characters(codec="utf-8"), max_size=20)).map("=".join),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, at=st.sampled_from(["2.3", "2.18.5", "2.21", "2.27.3", "2.32"]), script=st.booleans())
def test_whatever_is_written_there_is_a_judgement_and_no_crash(lines: list[str], at: str, script: bool) -> None:
    source = read("a.sh" if script else "a.conf", "\n".join(lines).replace("\0", "").encode())
    judgements = judge([source], version(at))
    assert len(judgements) >= len(source.settings)
    for judgement in judgements:
        shown = judgement.as_dict("variable")
        assert shown["class"] in CLASSES
        assert shown["message"].isprintable()


@pytest.mark.parametrize("entry", ["ibp", "mlx5", "mlx5_", "rocep"])
def test_a_family_of_names_is_no_whole_name(entry: str) -> None:
    assert classes(f"NCCL_IB_HCA={entry}") == {"prefix-match"}
    assert f"{entry} takes every HCA whose name begins so" in told(f"NCCL_IB_HCA={entry}")
    assert f"write ={entry}" not in told(f"NCCL_IB_HCA={entry}")  # a device of that name does not exist
    assert "excludes every HCA" in told(f"NCCL_IB_HCA=^{entry}")


@pytest.mark.parametrize(
    "text", ["# for every cluster\n# mandatory\nNCCL_IB_TIMEOUT=22 # seconds", "# seconds\nNCCL_IB_TIMEOUT=22 # long"]
)
def test_the_line_of_a_comment_that_misnames_the_unit_is_quoted(text: str) -> None:
    assert "the comment 'seconds' misnames it" in told(text)


@pytest.mark.parametrize("word", ["P2C", "PXN", "C2C", "NVB"])
def test_distances_that_the_guide_does_not_list_are_known(word: str) -> None:
    assert classes(f"NCCL_NET_GDR_LEVEL={word}") == {"debug"}
    assert "contradiction" in classes(f"NCCL_NET_GDR_LEVEL={word.lower()}")
