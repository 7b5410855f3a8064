"""The plot of a run: the reward by step, and the answers in each state over time."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .job import Job
from .progress import Progress

STATES = {
    "unfinished": ("being written, or waiting for log-probs or reward", "#bdbdbd"),
    "ready": ("ready to be trained", "#74add1"),
    "leased": ("held by the trainer", "#f46d43"),
}
SMOOTH = 10


def plot(file: Path, job: Job, progress: Progress) -> None:
    """Write a PNG or an SVG, by the name's end."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "grpo"}):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        rewards, states = figure.subplots(1, 2)
        _draw_rewards(rewards, job, progress)
        _draw_states(states, progress)
        file.parent.mkdir(parents=True, exist_ok=True)
        # A date would make each plot of the same run another file.
        figure.savefig(file, dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)


def _draw_rewards(axes: Axes, job: Job, progress: Progress) -> None:
    rewards = progress.column("reward")
    steps = np.arange(1, len(rewards) + 1)
    kernel = np.ones(min(SMOOTH, len(rewards)))
    smooth = np.convolve(rewards, kernel, "valid") / len(kernel)
    axes.plot(steps, rewards, color="#74add1", linewidth=0.8, label="each step")
    axes.plot(steps[len(kernel) - 1 :], smooth, color="#08519c", linewidth=1.8, label=f"mean of {len(kernel)} steps")
    axes.set(xlabel="step", ylabel="mean reward", ylim=(0, 1), xlim=(0, len(rewards)))
    axes.set_title(f"Reward: which part of {job.digits} digits is sorted right", loc="left")
    axes.legend(frameon=False, loc="lower right")


def _draw_states(axes: Axes, progress: Progress) -> None:
    seconds = progress.column("seconds")
    columns = [progress.column(state) for state in STATES]
    labels, colors = zip(*STATES.values(), strict=True)
    axes.stackplot(seconds, *columns, labels=labels, colors=colors, step="post")
    top = float(np.sum(columns, axis=0).max())
    axes.set(xlabel="seconds", ylabel="answers that are not trained yet", ylim=(0, 1.6 * top), xlim=(0, seconds[-1]))
    axes.set_title("Answers in each state", loc="left")
    settled = axes.twinx()
    settled.plot(seconds, progress.column("trained"), color="#1a9850", linewidth=1.8, label="trained (right)")
    settled.plot(seconds, progress.column("too_old"), color="#a50026", linewidth=1.8, label="too old (right)")
    settled.set_ylim(bottom=0)
    settled.spines["right"].set_visible(True)
    handles, names = axes.get_legend_handles_labels()
    more, more_names = settled.get_legend_handles_labels()
    axes.legend(handles + more, names + more_names, frameon=False, loc="upper left", fontsize=8)
