"""The published figures that stand beside ours."""

from __future__ import annotations

from predimem.envs.mikasa.published import MEANS, published


def test_published_figures() -> None:
    best = {n: published(f"RememberColor{n}-VLA-v0")[0] for n in (3, 5, 9)}
    assert {n: b.success for n, b in best.items()} == {3: 0.59, 5: 0.22, 9: 0.15}
    assert [b.method for b in best.values()] == ["OpenVLA (K=8)", "π0 (K=4)", "π0 (K=4)"]
    assert len(published("ShellGameTouch-VLA-v0")) == 5
    assert published("RememberShape3-VLA-v0") == ()
    assert [(p.method, p.success) for p in MEANS.figures][:2] == [("Chameleon", 0.751), ("SimpleMemVLA", 0.74)]
