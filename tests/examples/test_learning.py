"""The learning part of the training, without service or processes: it learns, and without a signal it does not."""

from pathlib import Path

import numpy as np
import pytest
import torch

from examples.grpo.digits import SEPARATOR, make_prompt, scores
from examples.grpo.job import Job
from examples.grpo.learner import Batch, Learner, advantages
from examples.grpo.policy import Policy, load_vector, to_vector

STEPS = 60


def rewards(*, has_zero_advantages: bool) -> list[float]:
    """The mean reward of each step of a training in one process."""
    job = Job(Path(), seed=1, prompts=8, digits=3, has_zero_advantages=has_zero_advantages)
    learner, chance = Learner(job), torch.Generator().manual_seed(2)
    reference = Policy(job.digits)
    load_vector(reference, to_vector(learner.policy).clone())
    found = []
    for step in range(STEPS):
        prompts = np.stack([make_prompt(3, step * job.prompts + n, job.digits) for n in range(job.prompts)])
        ids = learner.policy.answer(torch.from_numpy(prompts).repeat_interleave(job.answers, 0), chance)
        score = torch.from_numpy(scores(ids.numpy(), job.digits))
        with torch.no_grad():
            batch = Batch(ids, learner.policy.log_probs(ids), reference.log_probs(ids), score)
        learner.learn(batch)
        found.append(score.mean().item())
    return found


def gain(found: list[float]) -> float:
    return float(np.mean(found[-10:]) - np.mean(found[:10]))


def test_it_learns_to_sort() -> None:
    assert gain(rewards(has_zero_advantages=False)) > 0.2


def test_without_advantages_it_learns_nothing() -> None:
    assert abs(gain(rewards(has_zero_advantages=True))) < 0.1


def test_a_score_is_the_part_of_the_places_that_is_right() -> None:
    prompt = [3, 1, 2, SEPARATOR]
    found = scores(np.array([[*prompt, 1, 2, 3], [*prompt, 1, 3, 2], [*prompt, 3, 1, 2]]), 3)
    assert found.tolist() == pytest.approx([1, 1 / 3, 0])
    assert found.dtype == np.float32


def test_a_prompt_is_the_same_whoever_makes_it_and_others_are_others() -> None:
    assert make_prompt(1, 7, 5).tolist() == make_prompt(1, 7, 5).tolist()
    assert len({tuple(make_prompt(seed, number, 8)) for seed in (1, 2) for number in range(20)}) == 40


def test_advantages_compare_an_answer_with_those_to_its_prompt_alone() -> None:
    found = advantages(torch.tensor([0.0, 1.0, 10.0, 11.0]), 2).flatten().tolist()
    assert found[0] == pytest.approx(-found[1])
    assert found[:2] == pytest.approx(found[2:])
    assert advantages(torch.tensor([0.5, 0.5]), 2).tolist() == [[0.0], [0.0]]


def test_what_was_learned_is_the_same_after_it_was_saved_and_loaded() -> None:
    job = Job(Path(), seed=1, digits=3, answers=2)
    ids = torch.tensor([[3, 1, 2, SEPARATOR, 1, 2, 3], [3, 1, 2, SEPARATOR, 0, 0, 0]])
    first, second = Learner(job), Learner(Job(Path(), seed=2, digits=3, answers=2))
    flat = torch.full((2, 3), -2.0)
    batch = Batch(ids, flat, flat, torch.tensor([1.0, 0.0]))
    first.learn(batch)
    second.load({name: tensor.clone() for name, tensor in first.tensors().items()})
    first.learn(batch)
    second.learn(batch)
    assert torch.equal(to_vector(first.policy), to_vector(second.policy))
