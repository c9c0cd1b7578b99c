import inspect
import typing

import pytest
import torch
from jaxtyping import AbstractArray, jaxtyped

from actor import flow_matching
from actor.action_expert import ActionExpert
from actor.gemma import AdaRMSNorm, Attention, GemmaConfig, GemmaLayer
from actor.learner import order_number_embeddings
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.siglip import SiglipConfig, SiglipVision
from actor.tiny.auxiliary import target_cells
from actor.tiny.conv_stem import ConvStem, ConvStemConfig

GEMMA = GemmaConfig(width=32, depth=2, mlp_dim=48, num_heads=4, num_kv_heads=2, head_dim=8)
SIZES = {"num_cameras": 2, "vocab_size": 300, "max_token_len": 16, "action_dim": 5, "action_horizon": 3}
CONFIGS = {
    "conv": Pi05Config(
        vision="conv",
        conv=ConvStemConfig(image_size=32, channels=(4, 8, 12), queries=3),
        paligemma=GEMMA,
        action_expert=GemmaConfig(width=16, depth=2, mlp_dim=24, num_heads=4, num_kv_heads=2, head_dim=8),
        **SIZES,
    ),
    "siglip": Pi05Config(
        siglip=SiglipConfig(24, 48, 2, 4, image_size=32, patch_size=16),
        paligemma=GEMMA,
        action_expert=GemmaConfig(width=16, depth=2, mlp_dim=24, num_heads=4, num_kv_heads=2, head_dim=8),
        **SIZES,
    ),
}


@pytest.fixture(params=["conv", "siglip"])
def model(request) -> Pi05:
    torch.manual_seed(0)
    return Pi05(CONFIGS[request.param]).eval()


def make_inputs(images: int, prompts: int, length: int = 6) -> Prompted:
    generator = torch.Generator().manual_seed(1)
    return Prompted(
        images=torch.rand(images, 2, 3, 32, 32, generator=generator) * 2 - 1,
        image_mask=torch.ones(images, 2, dtype=torch.bool),
        tokens=torch.randint(3, 300, (prompts, length), generator=generator),
        token_mask=torch.ones(prompts, length, dtype=torch.bool),
    )


def test_prompts_that_share_an_image_see_it_as_alone(model: Pi05):
    inputs, noise = make_inputs(2, 6), torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(2))
    together = model.sample(inputs, noise, num_steps=2)
    for i in range(6):
        row = slice(i // 3, i // 3 + 1)
        alone = Prompted(
            inputs.images[row], inputs.image_mask[row], inputs.tokens[i : i + 1], inputs.token_mask[i : i + 1]
        )
        torch.testing.assert_close(model.sample(alone, noise[i : i + 1], 2), together[i : i + 1], atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="5 prompts cannot be shared by 2 images"):
        model.encode(make_inputs(2, 5))


def test_padding_and_missing_cameras_change_nothing(model: Pi05):
    inputs, noise = make_inputs(1, 1), torch.randn(1, 3, 5)
    padded = Prompted(
        inputs.images,
        inputs.image_mask,
        torch.cat([inputs.tokens, torch.full((1, 4), 7)], 1),
        torch.cat([inputs.token_mask, torch.zeros(1, 4, dtype=torch.bool)], 1),
    )
    torch.testing.assert_close(model.sample(inputs, noise), model.sample(padded, noise), atol=1e-5, rtol=0)
    one = torch.tensor([[True, False]])
    other = torch.cat([inputs.images[:, :1], -inputs.images[:, 1:]], dim=1)
    masked = [Prompted(i, one, inputs.tokens, inputs.token_mask) for i in (inputs.images, other)]
    torch.testing.assert_close(model.sample(masked[0], noise), model.sample(masked[1], noise))


def test_several_flow_samples_share_a_prefix(model: Pi05):
    prefix = model.encode(make_inputs(1, 2))
    actions, time = torch.randn(6, 3, 5), torch.rand(6)
    repeated = model.velocity(prefix, actions, time)
    every_third = [model.velocity(prefix, actions[i::3], time[i::3]) for i in range(3)]
    for i in range(3):
        torch.testing.assert_close(repeated[i::3], every_third[i], atol=1e-5, rtol=0)


def test_every_weight_that_can_matter_gets_a_gradient(model: Pi05):
    inputs = make_inputs(2, 4)
    loss = model.loss(model.encode(inputs), torch.randn(4, 3, 5), torch.randn(4, 3, 5), torch.rand(4))
    assert loss.shape == (4, 3, 5)
    loss.mean().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None}
    unread = "language_model.layers.1."  # of the last prefix layer only keys and values are read
    assert all(name.startswith(unread) or name == "language_model.norm.weight" for name in without)
    assert f"{unread}self_attn.k_proj.weight" not in without


def test_pointing_scores_follow_the_prompt():
    torch.manual_seed(0)
    model = Pi05(CONFIGS["conv"])
    prefix = model.encode(make_inputs(1, 2))
    assert prefix.pointing is not None and prefix.pointing.shape == (2, 2, 64)
    assert not torch.allclose(prefix.pointing[0], prefix.pointing[1])
    assert prefix.image_tokens.shape == (2, 2, 3, 32)


def test_flow_matching_is_openpi_s():
    actions, noise = torch.ones(2, 3, 5), torch.full((2, 3, 5), 3.0)
    x, u = flow_matching.interpolate(actions, noise, torch.tensor([0.25, 1.0]))
    assert x[0, 0, 0] == 1.5 and x[1, 0, 0] == 3.0 and (u == 2.0).all()
    result = flow_matching.integrate(lambda x, t: torch.full_like(x, 2.0), noise, 7)
    torch.testing.assert_close(result, actions)
    with pytest.raises(ValueError, match="num_steps must be at least 1"):
        flow_matching.integrate(lambda x, t: x, noise, 0)


def test_flow_times_are_beta_distributed():
    times = flow_matching.sample_time(200_000, torch.Generator().manual_seed(0))
    reference = torch.distributions.Beta(1.5, 1.0)
    assert times.min() >= 0.001 and times.max() <= 1.0
    assert float(times.mean()) == pytest.approx(float(reference.mean) * 0.999 + 0.001, abs=2e-3)
    assert float(times.std()) == pytest.approx(float(reference.stddev) * 0.999, abs=2e-3)


def test_target_cells():
    nan = float("nan")
    pixels = torch.tensor([[[0.0, 0.0], [0.99, 0.49]], [[nan, nan], [1.0, 0.5]]])
    cell, visible = target_cells(pixels, 4)
    assert cell[0].tolist() == [0, 1 * 4 + 3]
    assert visible.tolist() == [[True, True], [False, False]]


def test_number_embeddings_start_in_order():
    torch.manual_seed(0)
    model = Pi05(CONFIGS["conv"])
    numbers = list(range(20, 276))
    order_number_embeddings(model.language_model, numbers, torch.Generator().manual_seed(0))
    curve = model.language_model.embed_tokens.weight[numbers].detach()
    near = (curve[1:] - curve[:-1]).norm(dim=-1).mean()
    far = (curve[64:] - curve[:-64]).norm(dim=-1).mean()
    assert near < 0.5 * far
    assert float(curve.std()) == pytest.approx(32**-0.5, rel=0.01)


def checking_shapes(function):
    """The function, asserting that its tensors have the shapes its annotations tell."""
    hints, signature = typing.get_type_hints(function), inspect.signature(function)

    def holds(hint, value) -> bool:
        return not (isinstance(hint, type) and issubclass(hint, AbstractArray)) or isinstance(value, hint)

    @jaxtyped(typechecker=None)
    def checked(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            assert holds(hints.get(name), value), f"{function.__qualname__}: {name} is {tuple(value.shape)}"
        result = function(*args, **kwargs)
        assert holds(hints.get("return"), result), f"{function.__qualname__} returned {tuple(result.shape)}"
        return result

    return checked


def test_shapes_in_the_signatures_hold(model: Pi05, monkeypatch: pytest.MonkeyPatch):
    for owner in (Attention, GemmaLayer, AdaRMSNorm, ActionExpert, ConvStem, SiglipVision):
        monkeypatch.setattr(owner, "forward", checking_shapes(owner.forward))
    for name in ("loss", "velocity"):
        monkeypatch.setattr(Pi05, name, checking_shapes(getattr(Pi05, name)))
    monkeypatch.setattr(flow_matching, "interpolate", checking_shapes(flow_matching.interpolate))
    prefix = model.encode(make_inputs(2, 4))
    model.loss(prefix, torch.randn(8, 3, 5), torch.randn(8, 3, 5), torch.rand(8))
    with pytest.raises(AssertionError, match=r"loss: time is \(8, 1\)"):
        model.loss(prefix, torch.randn(8, 3, 5), torch.randn(8, 3, 5), torch.rand(8, 1))


def test_configs_that_contradict_themselves():
    for make, message in (
        (lambda: GemmaConfig(num_heads=3, num_kv_heads=2), "multiple of num_kv_heads"),
        (lambda: GemmaConfig(head_dim=7), "must be even"),
        (lambda: SiglipConfig(image_size=225), "multiple of patch_size"),
        (lambda: SiglipConfig(hidden_size=100, num_attention_heads=16), "num_attention_heads"),
        (lambda: ConvStemConfig(image_size=126), "multiple of 4"),
        (lambda: ConvStemConfig(channels=(8, 16)), "three convolutions"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    assert CONFIGS["conv"].image_size == CONFIGS["siglip"].image_size == 32
