"""The engines compute what the plain model computes, within tolerances that are stated here."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from actor.engine import graphs
from actor.engine.config import EngineConfig
from actor.engine.fused import FusedPi05
from actor.engine.linear import Fp8Product, to_fp8
from actor.engine.precision import set_precision
from actor.engine.sampler import FusedSampler, PlainSampler, make_sampler, padded
from actor.pi05 import Pi05, Prompted
from actor.policy import load_policy
from predimem.core.types import Observation
from tests.actor.test_pi05 import CONFIGS, make_inputs

ROOT = Path(__file__).parents[2]
STEPS = 3
LOCATING = dataclasses.replace(CONFIGS["conv"], state_dim=10, locate=True)
OPENVINO = (pytest.mark.slow, pytest.mark.needs("openvino"))
FLOAT32, BFLOAT16 = 1e-5, 0.05  # largest difference of a normalised action, whose range is -1 to 1


def make_model(name: str) -> Pi05:
    """Weights that all matter: a new model's adaRMS is the identity."""
    torch.manual_seed(0)
    model = Pi05(LOCATING if name == "locate" else CONFIGS[name]).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    return model


def inputs_of(name: str) -> Prompted:
    """Three observations; one prompt is padded and one camera missing."""
    inputs = make_inputs(3, 3)
    inputs.token_mask[1, 4:] = False
    inputs.image_mask[2, 1] = False
    if name != "locate":
        return inputs
    pose = torch.cat([torch.rand(3, 3), torch.eye(3).flatten()[:6].expand(3, -1)], dim=1)
    return dataclasses.replace(inputs, state=torch.randn(3, 10), pose=pose)


@pytest.fixture(params=["conv", "siglip", "locate"])
def name(request) -> str:
    return request.param


@pytest.fixture
def noise() -> torch.Tensor:
    return torch.randn(3, 3, 5, generator=torch.Generator().manual_seed(2))


def test_fused_is_plain(name: str, noise: torch.Tensor):
    model, inputs = make_model(name), inputs_of(name)
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    for config in (EngineConfig("fused"), EngineConfig("fused", prompt_bucket=5)):
        fused = make_sampler(model, STEPS, config, "cpu").sample(inputs, noise)
        torch.testing.assert_close(fused, plain, atol=FLOAT32, rtol=0)
    seen = dataclasses.replace(inputs, image_mask=torch.ones(3, 2, dtype=torch.bool))
    seen.token_mask[:] = True
    for always_mask in (False, True):  # with and without a mask over the keys
        fused = FusedPi05(model, STEPS)(seen, noise, always_mask)
        torch.testing.assert_close(fused, PlainSampler(model, STEPS).sample(seen, noise), atol=FLOAT32, rtol=0)


@pytest.mark.needs("openvino")
@pytest.mark.parametrize(
    "name", ["conv", *(pytest.param(name, marks=pytest.mark.slow) for name in ("siglip", "locate"))]
)
def test_openvino_is_plain(name: str, noise: torch.Tensor):
    model, inputs = make_model(name), inputs_of(name)
    sampler = make_sampler(model, STEPS, EngineConfig("openvino"), "cpu")
    for one in (inputs, padded(inputs, 8, 16)):
        plain = PlainSampler(model, STEPS).sample(one, noise)
        torch.testing.assert_close(sampler.sample(one, noise), plain, atol=FLOAT32, rtol=0)
    with pytest.raises(ValueError, match="runs on the CPU"):
        make_sampler(model, STEPS, EngineConfig("openvino"), "cuda")


@pytest.mark.slow
@pytest.mark.needs("openvino")
def test_openvino_in_bfloat16_is_near(name: str, noise: torch.Tensor):
    """With a program for each length of prompts. On a processor without bfloat16 it computes in float32."""
    model, inputs = make_model(name), inputs_of(name)
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    config = EngineConfig("openvino", dtype="bfloat16", prompt_bucket=8)
    error = (make_sampler(model, STEPS, config, "cpu").sample(inputs, noise) - plain).abs().max()
    assert error < BFLOAT16 * max(1.0, float(plain.abs().max()))


def test_bfloat16_runs_and_keeps_what_openpi_keeps(name: str, noise: torch.Tensor):
    model, inputs = make_model(name), inputs_of(name)
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    grid = model.vision.grid.clone() if name != "siglip" else None
    low = set_precision(model, torch.bfloat16)
    for config in (EngineConfig(dtype="bfloat16"), EngineConfig("fused", dtype="bfloat16")):
        actions = make_sampler(low, STEPS, config, "cpu").sample(inputs, noise)
        assert actions.dtype == torch.float32
        error = (actions - plain).abs().max()
        assert 0 < error < BFLOAT16 * max(1.0, float(plain.abs().max()))
    kept = {n for n, weight in low.named_parameters() if weight.dtype == torch.float32}
    for part in ("input_layernorm", "post_attention_layernorm", "norm.dense", "action_in_proj", "time_mlp_out"):
        assert any(part in n for n in kept), part
    assert not any("_proj" in n and ".layers." in n for n in kept)
    if grid is None:
        assert {"vision.patch_embedding.weight", "vision.position_embedding.weight"} <= kept
        assert low.vision.post_layernorm.weight.dtype == torch.bfloat16
    else:
        assert torch.equal(low.vision.grid, grid)  # buffers are not rounded


def test_eight_bits_cost_little_and_say_how_much(noise: torch.Tensor):
    x = torch.randn(7, 32, generator=torch.Generator().manual_seed(3)) * torch.logspace(-3, 3, 7)[:, None]
    rounded, scale = to_fp8(x)
    assert rounded.dtype == torch.float8_e4m3fn
    torch.testing.assert_close(rounded.float() * scale, x, rtol=1 / 16, atol=float(x.abs().max()) * 1e-2)
    weight = torch.randn(9, 32, generator=torch.Generator().manual_seed(4))
    product = Fp8Product(weight)(x)
    exact = (rounded.float() * scale) @ (to_fp8(weight)[0].float() * to_fp8(weight)[1]).T
    torch.testing.assert_close(product, exact, rtol=1e-4, atol=1e-4)
    model, inputs = make_model("siglip"), inputs_of("siglip")
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    eight = make_sampler(model, STEPS, EngineConfig("fused", fp8=True), "cpu").sample(inputs, noise)
    error = (eight - plain).abs().max() / plain.abs().max()
    assert 1e-4 < error < 0.1


def test_no_weight_is_kept_twice():
    model = make_model("siglip")
    layers = [weakref.ref(w) for part in ("language_model", "action_expert", "vision") for w in _matrices(model, part)]
    fused = FusedPi05(model, STEPS)
    held = sum(t.numel() for t in (*fused.parameters(), *fused.buffers()))
    table = fused.schedule.table.numel()
    plain = sum(w.numel() for w in model.parameters())
    assert held - table < plain  # the norms of the layers are part of the matrices
    del model
    gc.collect()
    assert [ref() for ref in layers] == [None] * len(layers)


def _matrices(model: Pi05, part: str) -> list[torch.Tensor]:
    return [w for n, w in getattr(model, part).named_parameters() if "q_proj" in n]


def test_one_prompt_an_image(noise: torch.Tensor):
    with pytest.raises(ValueError, match="one prompt an image, got 6"):
        FusedPi05(make_model("conv"), STEPS)(make_inputs(3, 6), noise)


def test_configs_that_contradict_themselves():
    for wrong in ({"fp8": True}, {"compile": True}, {"prompt_bucket": 16}):
        with pytest.raises(ValueError, match="kind: fused"):
            EngineConfig(**wrong)
    with pytest.raises(ValueError, match="take the engine fused"):
        EngineConfig("openvino", fp8=True)
    with pytest.raises(ValueError, match="prompt_bucket"):
        EngineConfig("fused", prompt_bucket=-1)
    with pytest.raises(ValueError, match="num_steps"):
        make_sampler(make_model("conv"), 0, EngineConfig("fused"), "cpu")


def test_a_shape_that_cannot_be_recorded_runs_eagerly(noise: torch.Tensor, caplog: pytest.LogCaptureFixture):
    """Here no graph can be recorded at all, because there is no GPU."""
    if torch.cuda.is_available():
        pytest.skip("with a GPU the graph is recorded")
    model, inputs = make_model("siglip"), inputs_of("siglip")
    with torch.no_grad():
        cache = graphs.GraphCache(FusedPi05(model, STEPS))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cuda, "synchronize", lambda: None)
            first, second = (cache(inputs, noise, True) for _ in range(2))
    assert torch.equal(first, second) and caplog.text.count("runs eagerly") == 1
    torch.testing.assert_close(first, PlainSampler(model, STEPS).sample(inputs, noise), atol=FLOAT32, rtol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_graphs_are_plain(name: str, noise: torch.Tensor):
    model, inputs = make_model(name), inputs_of(name)
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    on_gpu = inputs.map(torch.Tensor.cuda)
    sampler = make_sampler(model.cuda(), STEPS, EngineConfig("fused", prompt_bucket=8), "cuda")
    for _ in range(2):
        torch.testing.assert_close(sampler.sample(on_gpu, noise.cuda()).cpu(), plain, atol=1e-3, rtol=0)


@pytest.mark.slow
def test_compiled_kernels_are_plain(noise: torch.Tensor):
    model, inputs = make_model("siglip"), inputs_of("siglip")
    sampler = FusedSampler(FusedPi05(model, STEPS).eval(), EngineConfig("fused", compile=True), "cpu")
    plain = PlainSampler(model, STEPS).sample(inputs, noise)
    torch.testing.assert_close(sampler.sample(inputs, noise), plain, atol=FLOAT32, rtol=0)


@pytest.mark.parametrize(
    ("actor", "kind"),
    [
        ("actor", "fused"),
        pytest.param("actor", "openvino", marks=OPENVINO),
        ("arena-actor", "fused"),
        pytest.param("arena-actor", "openvino", marks=OPENVINO),
    ],
)
def test_the_shipped_actors_do_the_same_with_any_engine(actor: str, kind: str):
    folder = ROOT / "predimem" / "weights" / actor
    plain, fast = load_policy(folder), load_policy(folder, engine=EngineConfig(kind))
    config, rng = plain.config, np.random.default_rng(0)
    shape = (*config.camera_shape, 3)
    for step in range(2):
        images = {name: rng.integers(0, 256, shape, dtype=np.uint8) for name in config.cameras}
        state = rng.uniform(-0.3, 0.3, config.state_dim).astype(np.float32)
        observation = Observation(step, images, state)
        expected = plain.infer(observation, "pick up the red cube").actions
        np.testing.assert_allclose(fast.infer(observation, "pick up the red cube").actions, expected, atol=1e-4)
