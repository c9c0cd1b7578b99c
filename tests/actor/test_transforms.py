import numpy as np
import pytest

from actor.normalize import NormStats, Quantiles, compute_quantiles, load_stats, save_stats
from actor.transforms import (
    Discretise,
    Normalise,
    PadActions,
    ResizeWithPad,
    Unnormalise,
    UnpadActions,
)

QUANTILES = Quantiles(np.array([-2.0, 0.0, 5.0], np.float32), np.array([2.0, 1.0, 5.0], np.float32))


def test_quantiles_go_to_plus_and_minus_one():
    values = np.array([[-2, 0, 5], [2, 1, 5], [4, 0.25, 5.3]], np.float32)
    expected = [[-1, -1, 0], [1, 1, 0], [2, -0.5, 0]]
    np.testing.assert_allclose(Normalise(QUANTILES)(values), expected)


def test_unnormalise_inverts_and_keeps_constants():
    values = np.array([[-1.5, 0.9, 5.0]], np.float32)
    np.testing.assert_allclose(Unnormalise(QUANTILES)(Normalise(QUANTILES)(values)), values, atol=1e-6)
    assert Unnormalise(QUANTILES)(np.array([0.0, 0.0, 123.0]))[2] == 5.0


def test_computed_quantiles_ignore_outliers():
    values = np.linspace(0, 100, 1001)[:, None].repeat(2, 1)
    values[-1] = 1e6
    quantiles = compute_quantiles(values)
    np.testing.assert_allclose(quantiles.q01, 1.0, atol=0.1)
    np.testing.assert_allclose(quantiles.q99, 99.0, atol=0.1)
    with pytest.raises(ValueError, match="not finite"):
        compute_quantiles(np.array([[np.nan]]))


def test_a_dimension_that_moves_seldom_can_be_commanded():
    values = np.zeros((1000, 3), np.float32)
    values[:, 0] = np.linspace(-1, 1, 1000)
    values[:5, 1] = (0.5, -0.25, 1, 0, 0.75)
    quantiles = compute_quantiles(values)
    assert quantiles.q01[1:].tolist() == [-0.25, 0] and quantiles.q99[1:].tolist() == [1, 0]
    assert abs(quantiles.q99[0] - 0.98) < 0.01  # where there is more, single values do not count
    normalised = Normalise(quantiles)(values)
    assert normalised[2, 1] == 1 and not normalised[:, 2].any()


def test_state_bins_are_those_of_openpi():
    values = np.array([-1.0, -0.999, 0.0, 0.5, 0.9999, 1.0, 7.0, -7.0])
    openpi = np.digitize(values, bins=np.linspace(-1, 1, 256 + 1)[:-1]) - 1
    np.testing.assert_array_equal(Discretise()(values)[:-1], openpi[:-1])
    assert Discretise()(values).tolist() == [0, 0, 128, 192, 255, 255, 255, 0]


def test_pad_and_unpad():
    actions = np.ones((2, 4, 7), np.float32)
    padded = PadActions(32)(actions)
    assert padded.shape == (2, 4, 32) and not padded[..., 7:].any()
    np.testing.assert_array_equal(UnpadActions(7)(padded), actions)


def test_resize_keeps_the_aspect_ratio():
    image = np.full((64, 128, 3), 200, np.uint8)
    resized = ResizeWithPad(224)(image)
    assert resized.shape == (224, 224, 3)
    assert (resized[56:168] == 200).all() and not resized[:56].any() and not resized[168:].any()
    assert ResizeWithPad(64)(image[:, :64]) is not None


def test_stats_files(tmp_path):
    path = tmp_path / "norm_stats.json"
    save_stats(path, NormStats(QUANTILES, QUANTILES))
    stats = load_stats(path)
    np.testing.assert_array_equal(stats.state.q99, QUANTILES.q99)
    with pytest.raises(ValueError, match="state has 3 dimensions, the config expects 7"):
        stats.check(7, 3, path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="no quantiles"):
        load_stats(path)
