"""The predictive-coding head and S2's objective, against hand-built numbers and an independent reference."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.utils._pytree import tree_flatten, tree_unflatten

from planner.model import (
    ObjectiveConfig,
    images_per_row,
    objective_of,
    predictive_coding_loss,
    predictive_pairs,
    text_loss,
)
from tests.planner.builders import encode_batch, make_model


def test_pairs_go_to_the_same_camera_of_the_next_timestep():
    # 2 cameras, window of 3: images 0 1 | 2 3 | 4 5
    assert predictive_pairs([6], cameras=2, window=3) == [(0, 2), (1, 3), (2, 4), (3, 5)]


def test_pairs_never_leave_keyframes():
    # two keyframes (images 0-3), then a window of 2 (images 4-7)
    assert predictive_pairs([8], cameras=2, window=2) == [(4, 6), (5, 7)]


def test_pairs_of_a_young_episode_and_across_the_batch():
    # row 0: one timestep only; row 1: keyframe + window; row 2: three cameras would not divide
    assert predictive_pairs([2, 6], cameras=2, window=2) == [(4, 6), (5, 7)]
    assert predictive_pairs([4], cameras=2, window=5) == [(0, 2), (1, 3)]
    with pytest.raises(ValueError, match="no multiple of 3 cameras"):
        predictive_pairs([4], cameras=3, window=2)


def test_images_per_row():
    assert images_per_row([8, 4, 0], [4, 4, 4]) == [2, 1, 0]
    with pytest.raises(ValueError, match="row 1"):
        images_per_row([4, 6], [4, 4, 4])


def test_predictive_loss_by_hand():
    predicted = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    target = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    # MSE: (0 + 0 + 1 + 1) / 4; 1 - cos: (0 + 1) / 2
    assert predictive_coding_loss(predicted, target).item() == pytest.approx(1.0)


def test_no_gradient_flows_into_the_target():
    predicted = torch.randn(3, 4, requires_grad=True)
    target = torch.randn(3, 4, requires_grad=True)
    predictive_coding_loss(predicted, target).backward()
    assert target.grad is None
    assert predicted.grad is not None and predicted.grad.abs().sum() > 0


def test_text_loss_weights_deciding_tokens():
    logits = torch.zeros(1, 3, 4)  # every token has probability 1/4
    labels = torch.tensor([[-100, 1, 2]])
    assert text_loss(logits, labels, ObjectiveConfig()).item() == pytest.approx(math.log(4))
    weighted = ObjectiveConfig(answer_weight=8.0, answer_token_ids=(2,))
    assert text_loss(logits, labels, weighted).item() == pytest.approx(math.log(4) * (1 + 8) / 2)


def test_loss_equals_an_independent_reference(processor, episodes):
    model = make_model(processor)
    batch = encode_batch(processor, episodes[:2], steps=[7, 1])  # 3 timesteps with a keyframe; 2 without
    output = model(**batch)
    reference = _reference_loss(model, batch)
    assert output.loss.item() == pytest.approx(reference.item(), rel=1e-5)


def test_several_processes_can_take_an_output_apart(processor, episodes):
    """Distributed training does so where not all weights get a gradient, as with adapters."""
    output = make_model(processor)(**encode_batch(processor, episodes[:2], steps=[7, 1]))
    leaves, structure = tree_flatten(output)
    again = tree_unflatten(leaves, structure)
    assert type(again) is type(output) and again.keys() == output.keys()
    assert torch.equal(again.aux_loss, output.aux_loss)


def _reference_loss(model, batch):
    """Eq. 6 and the next-token loss, written out sample by sample with plain transformers outputs."""
    plain = {k: v for k, v in batch.items() if k != "labels"}
    output = type(model).__bases__[0].forward(model, **plain, output_hidden_states=True)
    features = model.model.get_image_features(plain["pixel_values"], plain["image_grid_thw"]).pooler_output
    final = output.hidden_states[-1]
    text, count, mse, cosine = 0.0, 0, [], []
    image = 0
    for row, ids in enumerate(batch["input_ids"]):
        places = [i for i, token in enumerate(ids.tolist()) if token == model.config.image_token_id]
        per_image = len(features[0])
        blocks = [places[i : i + per_image] for i in range(0, len(places), per_image)]
        recent = blocks[-4:]  # two cameras, window 2
        first = image + len(blocks) - len(recent)
        for i in range(len(recent) - 2):
            predicted = model.predictive_head(final[row, recent[i]])
            target = features[first + i + 2]
            mse.append(((predicted - target) ** 2).mean(1))
            norms = predicted.norm(dim=1) * target.norm(dim=1)
            cosine.append((predicted * target).sum(1) / norms)
        image += len(blocks)
        for position in range(1, len(ids)):
            label = int(batch["labels"][row, position])
            if label != -100:
                text = text - F.log_softmax(output.logits[row, position - 1], -1)[label]
                count += 1
    return text / count + 0.1 * (torch.cat(mse).mean() + (1 - torch.cat(cosine)).mean())


def test_the_vision_tower_gets_no_gradient(processor, episodes):
    model = make_model(processor)
    model.train()
    model(**encode_batch(processor, episodes[:2], steps=[7, 8])).loss.backward()
    assert all(p.grad is None for p in model.visual.parameters())
    for name, parameter in model.named_parameters():
        if "visual" not in name:
            assert parameter.grad is not None, name


def test_a_batch_without_pairs_has_no_predictive_loss(processor, episodes):
    model = make_model(processor)
    output = model(**encode_batch(processor, episodes[:1], steps=[0]))
    assert output["aux_loss"].item() == 0.0
    output.loss.backward()  # the head is in the graph all the same
    assert model.predictive_head[0].weight.grad.abs().sum() == 0


def test_without_labels_the_model_is_plain_qwen(processor, episodes):
    model = make_model(processor)
    batch = encode_batch(processor, episodes[:1], steps=[7])
    labels = batch.pop("labels")
    plain = model(**batch)
    assert plain.loss is None
    assert torch.allclose(plain.logits, model(**batch, labels=labels).logits, atol=1e-6)


def test_cut_labels_give_the_same_loss(processor, episodes):
    """Trainers may keep only the last logits, with labels cut to match."""
    model = make_model(processor)
    batch = encode_batch(processor, episodes[:2], steps=[7, 7])
    whole = model(**batch).loss
    keep = int((batch["labels"] != -100).sum(1).max()) + 1
    cut = model(**batch | {"labels": batch["labels"][:, -keep:]}, logits_to_keep=keep).loss
    assert cut.item() == pytest.approx(whole.item(), rel=1e-5)


def test_cached_features_change_nothing(processor, episodes):
    batch = encode_batch(processor, episodes[:2], steps=[7, 6])
    expected = make_model(processor)(**batch).loss.item()
    cached = make_model(processor, cache_features=True)
    for _ in range(2):
        assert cached(**batch).loss.item() == pytest.approx(expected, rel=1e-6)
    assert len(cached._features) == 12  # 3 timesteps of 2 cameras for each of 2 samples


def test_no_head_without_predictive_loss(processor, episodes):
    model = make_model(processor, predictive_weight=0.0)
    assert not any("predictive_head" in name for name, _ in model.named_parameters())
    assert model(**encode_batch(processor, episodes[:1], steps=[7])).loss.item() > 0


def test_the_objective_is_kept_in_the_hugging_face_config(processor, tmp_path):
    model = make_model(processor, answer_weight=8.0, answer_token_ids=(3, 4))
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert objective_of(loaded.config) == ObjectiveConfig(window=2, answer_weight=8.0, answer_token_ids=(3, 4))
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


def test_the_8b_model_builds_on_the_meta_device():
    """Qwen3-VL-8B-Instruct's sizes: the head fits, and nothing is allocated."""
    from transformers import Qwen3VLConfig

    from planner.model import PrediMemForConditionalGeneration

    config = Qwen3VLConfig(
        text_config={
            "vocab_size": 151936,
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5e6,
                "mrope_section": [24, 20, 20],
                "mrope_interleaved": True,
            },
        },
        vision_config={"out_hidden_size": 4096},
        predictive_coding=ObjectiveConfig().to_hf(),
    )
    with torch.device("meta"):
        model = PrediMemForConditionalGeneration(config)
    parameters = sum(p.numel() for p in model.parameters())
    assert 8.7e9 < parameters < 8.9e9
    assert model.predictive_head[2].out_features == 4096
    assert not any(p.requires_grad for p in model.visual.parameters())
