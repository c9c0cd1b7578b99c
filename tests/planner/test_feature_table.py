"""Features of paths, computed once: the same as the tower's, for every sample that shows them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from planner.tiny.feature_table import FeatureTable, add_features, images_of
from tests.planner.builders import make_model


@pytest.fixture
def paths(tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(path)
    return list(map(str, paths))


def tower_says(model, processor, paths):
    images = [np.asarray(Image.open(path)) for path in paths]
    inputs = processor.image_processor(images=images, do_resize=False, return_tensors="pt")
    with torch.no_grad():
        return model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)


def test_rows_are_what_the_tower_says(processor, paths, tmp_path):
    model = make_model(processor).eval()
    assert add_features(tmp_path / "table", paths[:3], model.model, processor.image_processor) == 3
    assert add_features(tmp_path / "table", paths, model.model, processor.image_processor) == 2
    assert add_features(tmp_path / "table", paths, model.model, processor.image_processor) == 0
    table = FeatureTable(tmp_path / "table")
    assert list(table.rows) == paths and len(table) == 5
    assert (table.grid_thw(4), table.tokens(4)) == ([1, 4, 4], 4)
    shown = [paths[4], paths[0], paths[4]]
    ours = table(torch.tensor([table.rows[path] for path in shown]))
    theirs = tower_says(model, processor, shown)
    torch.testing.assert_close(
        torch.stack(ours.pooler_output), torch.stack(list(theirs.pooler_output)), atol=3e-3, rtol=3e-3
    )
    for one, other in zip(ours.deepstack_features, theirs.deepstack_features, strict=True):
        torch.testing.assert_close(torch.stack(one), torch.stack(tuple(other)), atol=3e-3, rtol=3e-3)


def test_a_model_reads_the_table_in_place_of_pixels(processor, paths, tmp_path):
    model = make_model(processor, predictive_weight=0.1, cameras=1).eval()
    add_features(tmp_path / "table", paths, model.model, processor.image_processor)
    table = FeatureTable(tmp_path / "table")
    pad, text = model.config.image_token_id, processor.tokenizer("wait").input_ids
    ids = torch.tensor([text + [pad] * 4 + text + [pad] * 4 + text])
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == pad).long(),
        "labels": torch.where(ids == pad, -100, ids),
        "image_grid_thw": torch.tensor([[1, 4, 4]] * 2),
    }
    images = [np.asarray(Image.open(path)) for path in paths[:2]]
    pixels = processor.image_processor(images=images, do_resize=False, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        from_pixels = model(**batch, pixel_values=pixels)
        model.read_features_from(table)
        from_rows = model(**batch, pixel_values=torch.tensor([0, 1]))
    assert float(from_rows.loss) == pytest.approx(float(from_pixels.loss), rel=2e-3)
    assert float(from_rows["aux_loss"]) == pytest.approx(float(from_pixels["aux_loss"]), rel=2e-3)


def test_images_of_several_sizes_have_their_own_grids(processor, paths, tmp_path):
    for name in ("tall", "taller"):
        Image.fromarray(np.full((128, 64, 3), len(name), np.uint8)).save(tmp_path / f"{name}.png")
    model, mixed = (
        make_model(processor).eval(),
        [*paths, *(str(tmp_path / f"{name}.png") for name in ("tall", "taller"))],
    )
    mixed = [mixed[i] for i in (0, 5, 1, 6, 2, 3, 4)]
    assert add_features(tmp_path / "table", mixed, model.model, processor.image_processor) == 7
    table = FeatureTable(tmp_path / "table")
    rows = [table.rows[path] for path in mixed]
    assert [table.grid_thw(row) for row in rows[:4]] == [[1, 4, 4], [1, 8, 4], [1, 4, 4], [1, 8, 4]]
    assert [table.tokens(row) for row in rows] == [4, 8, 4, 8, 4, 4, 4]
    ours, theirs = table(torch.tensor(rows)), tower_says(model, processor, mixed)
    for one, other in zip(ours.pooler_output, theirs.pooler_output, strict=True):
        torch.testing.assert_close(one, other, atol=3e-3, rtol=3e-3)


def test_an_empty_table_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no features"):
        FeatureTable(tmp_path)


def test_images_are_listed_once_in_the_order_of_the_samples(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"images": ["b", "a"]}\n{"images": ["a", "c"]}\n')
    assert images_of(path) == ["b", "a", "c"]
