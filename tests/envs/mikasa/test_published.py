"""The published figures that stand beside ours."""

from __future__ import annotations

from predimem.envs.mikasa.published import MEANS, published


def test_published_figures() -> None:
    best = {n: published(f"RememberColor{n}-VLA-v0")[0] for n in (3, 5, 9)}
    assert {n: b.success for n, b in best.items()} == {3: 0.65, 5: 0.22, 9: 0.17}
    assert [b.method for b in best.values()] == ["RATE", "π0 (K=4)", "Diffusion Policy"]
    assert len(published("ShellGameTouch-VLA-v0")) == 10
    assert (published("TakeItBack-VLA-v0")[0].method, published("TakeItBack-VLA-v0")[0].success) == ("RATE", 0.42)
    assert [p.success for p in published("ChainOfColors7-VLA-v0")] == [0.0] * 5
    assert published("BlinkCountButtonPressEasy-VLA-v0") == ()
    assert [(p.method, p.success) for p in MEANS.figures][:2] == [("Chameleon", 0.751), ("SimpleMemVLA", 0.74)]
