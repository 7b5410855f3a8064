"""Stacks and their layers: what counts for which, that rules name what exists, and what the graph shows."""

import re
from xml.etree import ElementTree

import pytest

from bench.flame import svg
from bench.layers import IDLE, LAYERS, LOCKED, RULES, count, layer_of, shares, stacks
from tests.conftest import ROOT

ENGINE = "thread (2): engine;Thread.run (threading.py:982);EngineThread._drain (core/runtime/engine_thread.py:138)"
CALL = f"{ENGINE};produce (core/operations/produce.py:86)"
LOOP = "thread (1): MainThread;Runner.run (asyncio/runners.py:118)"
SEND = f"{LOOP};Incoming.send (app/incoming.py:133);RequestResponseCycle.send (uvicorn/protocols/http/h.py:5)"


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        (f"{LOOP};uv_run (core.c:464);read (libc.so.6)", "socket"),
        (f"{SEND};UVStream__try_write (loop.c:106818);write (libc.so.6)", "socket"),
        (SEND, "reply"),
        (f"{LOOP};Guard.__call__ (app/guard.py:54)", "HTTP"),
        (f"{LOOP};Decoder.decode (app/pieces.py:29);json_decode_dict (msgspec/_core.so)", "decode"),
        (f"{LOOP};Incoming._submit (app/incoming.py:1);Executor._queue (core/runtime/executor.py:89)", "hop"),
        (f"{ENGINE};EngineThread._tell (core/runtime/engine_thread.py:253);write (libc.so.6)", "hop"),
        (CALL, "check"),
        (f"{CALL};Engine.commit (core/engine.py:74);Grid.put (core/state/cells/grid.py:1);take (numpy/c.so)", "apply"),
        (f"{CALL};Grid.put (core/state/cells/grid.py:1)", "check"),
        (f"{ENGINE};page (app/routes/batch_meta_render.py:20)", "render"),
        (f"{ENGINE};JournalWriter.commit (core/runtime/journal_writer.py:40);fdatasync (libc.so.6)", "append"),
        ("thread (3): x;f (somewhere.py:1)", "other"),
        ("thread (3): x", "other"),
        (f"{ENGINE};EngineThread._first_job (core/runtime/engine_thread.py:161);0x7f (libc.so.6)", IDLE),
        (f"{LOOP};uv__io_poll (linux.c:1452);epoll_pwait (libc.so.6)", IDLE),
        (f"{LOOP};uv__async_io (async.c:193);pthread_cond_timedwait (libc.so.6);0x7f (libc.so.6)", LOCKED),
    ],
)
def test_a_stack_counts_for_the_layer_whose_code_runs(stack: str, layer: str) -> None:
    assert layer_of(tuple(stack.split(";"))) == layer


def test_every_rule_names_code_that_is_there() -> None:
    """A moved file would silently count for another layer."""
    for part, function, layer in RULES:
        assert layer in (*LAYERS, IDLE)
        if not part.startswith(("app/", "core/")):
            continue
        path = ROOT / part
        assert path.exists(), part
        if function:
            assert re.search(rf"def {function.rpartition('.')[2]}\b", path.read_text()), (part, function)


def test_the_engine_still_waits_where_the_samples_say() -> None:
    assert "def _first_job" in (ROOT / "core/runtime/engine_thread.py").read_text()


def test_shares_leave_out_who_waits_and_add_up() -> None:
    idle = f"{ENGINE};EngineThread._first_job (core/runtime/engine_thread.py:161) 50\n"
    locked = f"{LOOP};pthread_cond_timedwait (libc.so.6) 4\n"
    samples = count(stacks(f"{idle}{locked}{CALL} 3\n{SEND} 1\n"))
    found = shares(samples)
    assert (found["check"], found["reply"], sum(found.values())) == (75, 25, 100)
    assert (samples[IDLE], samples[LOCKED]) == (50, 4)
    assert set(shares(count([])).values()) == {0}


def test_the_graph_has_a_box_for_every_function_and_none_for_who_waits() -> None:
    idle = f"{LOOP};uv__io_poll (linux.c:1452);epoll_pwait (libc.so.6) 9\n"
    root = ElementTree.fromstring(svg(stacks(f"{idle}{CALL};f<g> (x.py:1) 3\n{SEND} 1\n"), "puts & more"))
    tips = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "f<g> (x.py:1): 75.0 %, check" in tips
    assert "thread (1): MainThread: 25.0 %, reply" in tips
    assert not any(tip is None or "epoll" in tip for tip in tips)
