"""The page of states: one picture per machine of core/state/transitions.py, drawn from its transitions."""

from collections.abc import Iterator

from core.state.transitions import MACHINES, Machine, State

_INTRO = (
    "# States\n\nFour machines say what can become of a sample. An arrow is an event of the journal "
    "(`core/events.py`); what has no arrow does not happen. Arrows of `Restored` begin at the states that the "
    "checkpoint holds. The tables are in `core/state/transitions.py`.\n"
)


def states() -> str:
    """Markdown, with pictures in Mermaid."""
    return "\n".join((_INTRO, *map(_section, MACHINES)))


def _section(machine: Machine) -> str:
    sentences = "".join(f"* `{name}`: {meaning}\n" for name, meaning in machine.states.values())
    return f"## {machine.name}\n\n{machine.meaning}\n\n{_picture(machine)}\n{sentences}"


def _picture(machine: Machine) -> str:
    return "```mermaid\nstateDiagram-v2\n" + "".join(f"    {line}\n" for line in _arrows(machine)) + "```\n"


def _arrows(machine: Machine) -> Iterator[str]:
    """One line per pair of states, with all events that lead from one to the other; ends where no arrow begins."""
    if machine.first is not None:
        yield f"[*] --> {_name(machine, machine.first)}"
    events: dict[tuple[State | None, State], list[str]] = {}
    for before, event, after in machine.transitions:
        events.setdefault((before, after), []).append(event.__name__)
    for (before, after), names in events.items():
        yield f"{_name(machine, before)} --> {_name(machine, after)}: {', '.join(names)}"
    starts = {before for before, _, _ in machine.transitions}
    yield from (f"{_name(machine, state)} --> [*]" for state in machine.states if state not in starts)


def _name(machine: Machine, state: State | None) -> str:
    return "[*]" if state is None else machine.states[state][0]
