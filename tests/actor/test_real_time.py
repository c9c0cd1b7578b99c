"""Real-time chunking: the weights of the papers worked out by hand, and what continuing does to a chunk."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from actor import flow_matching
from actor.engine.config import EngineConfig
from actor.engine.sampler import PlainSampler, make_sampler
from actor.pi05 import Pi05, Pi05Config
from actor.real_time import (
    MAX_GUIDANCE,
    Continuation,
    draw_delays,
    flow_loss,
    guidance_scale,
    guidance_weights,
    integrate_guided,
)
from tests.actor.test_engine import FLOAT32, STEPS, inputs_of, make_model
from tests.actor.test_pi05 import CONFIGS, make_inputs


def continuation(method, delays, queued, actions=None) -> Continuation:
    actions = torch.randn(len(delays), 3, 5, generator=torch.Generator().manual_seed(5)) if actions is None else actions
    return Continuation(method, actions, torch.tensor(delays), torch.tensor(queued))


def test_weights_fall_from_what_is_executed_to_the_end_of_the_queue():
    actions = torch.zeros(2, 6, 1)
    weights = guidance_weights(continuation("guided", [2, 0], [5, 0], actions))
    c = [(5 - i) / (5 - 2 + 1) for i in (2, 3, 4)]
    falling = [x * (math.exp(x) - 1) / (math.e - 1) for x in c]
    torch.testing.assert_close(weights[0], torch.tensor([1.0, 1.0, *falling, 0.0]))
    assert torch.equal(weights[1], torch.zeros(6))


def test_the_scale_is_that_of_the_paper():
    for time in (0.9, 0.5, 0.25):
        clean = 1 - time
        variance = time**2 / (clean**2 + time**2)
        assert guidance_scale(time, 10) == pytest.approx(min(MAX_GUIDANCE, time / (clean * variance)))
    assert guidance_scale(1.0, 10) == MAX_GUIDANCE and guidance_scale(1.0, 3) == 3.0


def test_guidance_follows_the_gradient_of_the_clean_estimate():
    """With v(x, t) = x the clean estimate is (1 - t) x, so that every number can be worked out by hand."""
    noise, queued = torch.full((1, 2, 1), 2.0), torch.full((1, 2, 1), 1.0)
    guided = integrate_guided(lambda x, step: x * 1.0, noise, 2, continuation("guided", [1], [1], queued))
    x = 2.0
    for time in (1.0, 0.5):
        clean = (1 - time) * x
        correction = (1 - time) * (1.0 - clean)  # d clean / d x = 1 - t
        x = x - (x - guidance_scale(time, 2) * correction) / 2
    assert float(guided[0, 0, 0]) == pytest.approx(x)
    assert float(guided[0, 1, 0]) == pytest.approx(2.0 * 0.5 * 0.5)  # what is not queued is not touched


@pytest.mark.parametrize("method", ["guided", "trained"])
@pytest.mark.parametrize("name", ["conv", "siglip", "locate"])
def test_fused_and_plain_continue_alike(name: str, method):
    model, inputs = make_model(name), inputs_of(name)
    noise = torch.randn(3, 3, 5, generator=torch.Generator().manual_seed(2))
    asked = continuation(method, [0, 1, 2], [0, 2, 3])
    plain = PlainSampler(model, STEPS)
    expected = plain.sample(inputs, noise, asked)
    fused = make_sampler(model, STEPS, EngineConfig("fused", prompt_bucket=4), "cpu").sample(inputs, noise, asked)
    torch.testing.assert_close(fused, expected, atol=FLOAT32, rtol=0)
    alone = plain.sample(inputs, noise)
    torch.testing.assert_close(expected[0], alone[0], atol=FLOAT32, rtol=0)  # nothing is queued
    if method == "trained":
        assert torch.equal(expected[2, :2], asked.queued[2, :2])
        assert (expected[2, 2] - alone[2, 2]).abs().max() > 1e-4  # the rest knows of it
    else:
        near = [(x[2, :2] - asked.queued[2, :2]).abs().mean() for x in (expected, alone)]
        assert near[0] < 0.5 * near[1]


def tiny(trained_delay: int) -> Pi05:
    torch.manual_seed(0)
    return Pi05(dataclasses.replace(CONFIGS["siglip"], trained_delay=trained_delay))


def test_without_a_delay_the_loss_is_the_old_one():
    model, inputs = tiny(0), make_inputs(2, 2)
    actions, noise, time = torch.randn(2, 3, 5), torch.randn(2, 3, 5), torch.rand(2)
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    delays = draw_delays(0, 2, generator)
    assert delays is None and torch.equal(generator.get_state(), before)
    prefix = model.encode(inputs)
    assert torch.equal(
        flow_loss(model, prefix, actions, noise, time, delays), model.loss(prefix, actions, noise, time).mean()
    )


def test_given_actions_are_clean_and_do_not_count():
    model, inputs = tiny(2), make_inputs(4, 4)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    actions, noise, time = torch.randn(4, 3, 5), torch.randn(4, 3, 5), torch.rand(4) * 0.8 + 0.1
    delays = draw_delays(2, 4, torch.Generator().manual_seed(7))
    assert delays is not None and len(set(delays.tolist())) > 1
    prefix = model.encode(inputs)
    loss = flow_loss(model, prefix, actions, noise, time, delays)
    errors = []
    for i, delay in enumerate(delays.tolist()):  # one chunk after the other, token by token
        alone = make_inputs(4, 4)
        alone = dataclasses.replace(
            alone,
            **{f: getattr(alone, f)[i : i + 1] for f in ("images", "image_mask", "tokens", "token_mask")},
        )
        times = torch.full((1, 3), float(time[i]))
        times[:, :delay] = 0.0
        noisy = flow_matching.interpolate(actions[i : i + 1], noise[i : i + 1], time[i : i + 1])[0]
        noisy[:, :delay] = actions[i, :delay]
        v = model.velocity(model.encode(alone), noisy, times)
        error = (v - (noise - actions)[i : i + 1]).square()[:, delay:]
        errors.append(error.mean())
    torch.testing.assert_close(loss, torch.stack(errors).mean(), atol=1e-5, rtol=1e-5)


def test_a_time_for_each_action_is_the_time_of_all_where_they_agree():
    model = make_model("siglip")
    prefix, x, time = model.encode(inputs_of("siglip")), torch.randn(3, 3, 5), torch.rand(3)
    torch.testing.assert_close(
        model.velocity(prefix, x, time[:, None].expand(3, 3)), model.velocity(prefix, x, time), atol=1e-6, rtol=0
    )


def test_a_delay_has_to_leave_something():
    with pytest.raises(ValueError, match="trained_delay"):
        Pi05Config(action_horizon=8, trained_delay=8)


@pytest.mark.slow
def test_training_with_delays_makes_chunks_that_continue():
    """Chunks go on straight from where they begin, up or down. Only what is given tells which of the two."""
    torch.manual_seed(0)
    model, inputs = tiny(1), make_inputs(8, 8)
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(400):
        sign = torch.randint(0, 2, (8, 1, 1), generator=generator) * 2.0 - 1
        actions = sign.expand(8, 3, 5)
        noise = torch.randn(8, 3, 5, generator=generator)
        time = flow_matching.sample_time(8, generator)
        optimiser.zero_grad()
        flow_loss(model, model.encode(inputs), actions, noise, time, draw_delays(1, 8, generator)).backward()
        optimiser.step()
    sign = torch.tensor([1.0, -1.0] * 4)[:, None, None].expand(8, 3, 5)
    noise = torch.randn(8, 3, 5, generator=generator)
    asked = continuation("trained", [1] * 8, [1] * 8, sign)
    continued = PlainSampler(model.eval(), 10).sample(inputs, noise, asked)
    alone = PlainSampler(model, 10).sample(inputs, noise)
    assert (continued[:, 1:].sign() == sign[:, 1:]).float().mean() > 0.95
    assert (alone[:, 1:].sign() == sign[:, 1:]).float().mean() < 0.8
