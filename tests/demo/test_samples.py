"""The data follows the profile and depends on the seed alone."""

import numpy as np

from crew.values import pack
from demo.samples import ANSWER_FIELDS, OBJECTS, PROMPT_FIELDS, TENSORS, Sample, Step, make_answer, make_prompts
from demo.text import corpus, decode, encode, log_probs

STEP = Step(prompts=4, answers=2, seed=7, max_len=300)
INT64 = ("prompts", "responses", "response_mask", "loss_mask", "input_ids", "position_ids")


def packed(sample: Sample) -> dict[str, bytes]:
    return {name: pack(value) for name, value in sample.values.items()}


def test_text_and_tokens_are_two_forms_of_one_thing() -> None:
    text = corpus()[1000:1400]

    assert decode(encode(text)) == text
    assert encode(text).dtype == np.int64


def test_log_probs_are_of_a_distribution_and_differ_by_model() -> None:
    everything = np.arange(259)

    assert np.isclose(np.exp(log_probs("ref", everything)).sum(), 1, atol=1e-4)
    assert not np.array_equal(log_probs("ref", everything), log_probs("old_log_prob", everything))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again = make_prompts(STEP), make_prompts(STEP)
    other = make_prompts(Step(prompts=4, answers=2, seed=8, max_len=300))

    assert [(sample.key, packed(sample)) for sample in first] == [(sample.key, packed(sample)) for sample in again]
    assert {sample.key for sample in first}.isdisjoint(sample.key for sample in other)
    assert packed(make_answer(STEP, first[1].values, 1)) == packed(make_answer(STEP, again[1].values, 1))


def test_answers_differ_within_a_group() -> None:
    prompt = make_prompts(STEP)[0]
    one, two = (make_answer(STEP, prompt.values, index) for index in range(2))

    assert one.group_id == two.group_id == prompt.key
    assert (one.key, two.key) == (f"{prompt.key}_0_0", f"{prompt.key}_0_1")
    assert packed(one)["responses"] != packed(two)["responses"]


def test_fields_dtypes_and_lengths_of_the_profile() -> None:
    prompt = make_prompts(STEP)[0]
    answer = make_answer(STEP, prompt.values, 0)
    lp, lr = len(answer.values["prompts"]), len(answer.values["responses"])

    assert tuple(prompt.values) == PROMPT_FIELDS
    assert set(answer.values) == set(ANSWER_FIELDS) == {*TENSORS, *OBJECTS}
    assert len(ANSWER_FIELDS) == 19
    assert {name: answer.values[name].dtype.name for name in TENSORS} == {
        **dict.fromkeys(INT64, "int64"),
        "rollout_log_probs": "float32",
        "rm_scores": "float32",
        "dummy_tensor": "uint8",
    }
    lengths = {name: len(answer.values[name]) for name in TENSORS}
    assert lengths == dict.fromkeys(TENSORS, lr) | {
        "prompts": lp,
        "input_ids": lp + lr,
        "position_ids": lp + lr,
        "dummy_tensor": 1,
    }


def test_custom_meta_tells_the_lengths() -> None:
    answer = make_answer(STEP, make_prompts(STEP)[0].values, 0)
    lp, lr = len(answer.values["prompts"]), len(answer.values["responses"])

    assert answer.custom_meta == {
        "status": "success",
        "prompt_len": lp,
        "response_len": lr,
        "seq_len": lp + lr,
        "global_steps": 0,
        "min_global_steps": 0,
        "max_global_steps": 0,
    }


def test_lengths_spread_over_the_range_of_the_profile() -> None:
    step = Step(prompts=60, answers=1, seed=1)
    prompts = make_prompts(step)
    lp = [len(prompt.values["prompts"]) for prompt in prompts]
    lr = [len(make_answer(step, prompt.values, 0).values["responses"]) for prompt in prompts]

    assert 50 <= min(lp) < 150
    assert 1000 < max(lp) <= 2000
    assert 100 <= min(lr) < 400
    assert 3000 < max(lr) <= 8000
    assert np.mean(lr) > np.median(lr)


def test_the_shortest_lengths_still_make_samples() -> None:
    step = Step(prompts=2, answers=1, max_len=1)
    answer = make_answer(step, make_prompts(step)[0].values, 0)

    assert len(answer.values["responses"]) == 1
    assert len(answer.values["prompts"]) >= 1
