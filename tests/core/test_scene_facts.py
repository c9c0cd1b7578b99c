"""Facts of scenes go through JSON as they are."""

from __future__ import annotations

import json

import numpy as np
import pytest

from predimem.core.scene_facts import KEY, SceneFacts


def test_facts_survive_json() -> None:
    pixels = np.full((2, 1, 2, 2), np.nan, np.float32)
    pixels[0, 0, 1] = 0.25, 0.5
    facts = SceneFacts(
        objects=("butter",),
        places=(("table",), ("top_drawer_left",)),
        pixels=pixels,
        mats=("", "basket_left"),
        mat_pixels=np.full((2, 2, 2), 0.125, np.float32),
        held=("", "butter"),
        joints=("top_drawer",),
        openings=np.array([[0.0], [1.0]], np.float32),
    )
    back = SceneFacts.of_metadata({KEY: json.loads(json.dumps(facts.as_json()))}, "x")
    np.testing.assert_array_equal(back.pixels, pixels)
    np.testing.assert_array_equal(back.openings, facts.openings)
    assert (back.places, back.mats, back.held, back.objects) == (facts.places, facts.mats, facts.held, facts.objects)
    assert len(back) == 2


def test_other_episodes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^a/b has no facts.*kind: vision_data"):
        SceneFacts.of_metadata({}, "a/b")
