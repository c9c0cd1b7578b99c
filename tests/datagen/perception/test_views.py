import numpy as np

from datagen.perception.views import look
from tests.datagen.perception import seeing_arena


def test_points_lie_where_things_are() -> None:
    env = seeing_arena(4, seed=2)
    agent, hand = look(env)
    assert (agent.camera, hand.camera) == ("agentview_depth", "eye_in_hand_depth")
    table = agent.world_m[agent.mask("table")]
    assert np.abs(table[:, 2]).mean() < 0.002
    for name in ("butter", "chocolate_pudding"):
        seen = agent.world_m[agent.mask(name)]
        assert len(seen) > 50 and np.linalg.norm(seen.mean(axis=0) - env.world().position_m[name][0].numpy()) < 0.03
    both = [view.world_m[view.mask("butter")] for view in (agent, hand)]
    assert all(len(points) for points in both)
    np.testing.assert_allclose(both[0][:, 2].max(), both[1][:, 2].max(), atol=0.005)  # one world for both cameras
    assert not agent.mask("no such thing").any()
    env.close()
