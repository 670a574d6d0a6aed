"""What a trial of a tuner has drawn, in the HParams tab."""

from keras_rl2.callbacks import TensorBoard
from support.hparams_tab import table


def test_what_is_none_is_left_out(agent, rollouts, episodes, tmp_path):
    drawn = {"rate": 0.1, "target_kl": None}
    agent.fit(
        rollouts,
        validation_data=episodes,
        callbacks=[TensorBoard(tmp_path / "run", hyper_parameters=drawn)],
        verbose=0,
    )
    _, (row,) = table(tmp_path)
    assert row["hparams"] == {"rate": 0.1}
