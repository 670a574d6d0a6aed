"""Catch, the chain of memory and the bandit, by hand."""

import numpy as np

import keras_rl2 as rl


def test_a_ball_falls_and_is_caught_or_missed() -> None:
    env = rl.envs.GraphVectorEnv("Catch-v0", num_envs=16)
    picture, _ = env.reset(seed=0)
    assert picture.shape == (16, 10, 5, 1)
    assert picture.dtype == np.uint8
    ball = picture[:, 0, :, 0].argmax(axis=1)
    assert len(set(ball.tolist())) > 2
    assert (picture[:, 9, 2, 0] == 255).all()
    assert (picture.sum(axis=(1, 2, 3)) == 2 * 255).all()
    # Half of the paddles follow their ball, the others go to the left.
    follows = np.arange(16) % 2 == 0
    paddle = np.full(16, 2)
    for row in range(1, 10):
        wanted = np.where(follows, np.sign(ball - paddle), -1)
        picture, reward, terminated, _, info = env.step(wanted + 1)
        paddle = np.clip(paddle + wanted, 0, 4)
        seen = info.get("final_obs", picture)
        assert (seen[np.arange(16), row, ball, 0] == 255).all()
        assert (seen[np.arange(16), 9, paddle, 0] == 255).all()
        assert terminated.all() == (row == 9)
        expected = np.where(ball == paddle, 1.0, -1.0) * (row == 9)
        assert reward.tolist() == expected.tolist()
    assert (reward[follows] == 1.0).all()
    # The next ball falls from above.
    assert (picture[:, 0].sum(axis=(1, 2)) == 255).all()


def test_a_bit_is_shown_once_and_asked_for_at_the_end() -> None:
    env = rl.envs.GraphVectorEnv(
        "MemoryChain-v0", num_envs=8, env_kwargs={"length": 4}
    )
    observation, _ = env.reset(seed=1)
    shown = observation[:, 2].copy()
    assert set(shown.tolist()) == {-1.0, 1.0}
    left = [observation[0, 0]]
    for time in range(1, 5):
        answer = (shown > 0).astype(int)
        answer[:4] = 1 - answer[:4]
        observation, reward, terminated, _, info = env.step(answer)
        seen = info.get("final_obs", observation)
        left.append(seen[0, 0])
        assert (seen[:, 2] == 0.0).all()
        assert (seen[:, 1] == (time == 3)).all()
        assert terminated.all() == (time == 4)
    assert left == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert reward.tolist() == [-1.0] * 4 + [1.0] * 4
