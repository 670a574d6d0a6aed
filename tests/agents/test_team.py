"""Teams: agents that play the same games, and learn as one model."""

import functools
import os

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.team_games import Tag

ROLLOUTS = {"horizon": 16, "batch_size": 16, "passes": 2}
REPLAY = {
    "steps_per_round": 32,
    "warm_up": 64,
    "capacity": 300,
    "batch_size": 16,
    "updates_per_round": 2,
}


@keras.saving.register_keras_serializable("team_tests")
def third(observation):
    return np.full(len(observation), 2)


def games(copies=2):
    return rl.envs.parallel(Tag, copies)


def made(members=None, settings=None, **arguments):
    """Returns a team and its dataset."""
    members = members or {"red": rl.PPO, "blue": rl.DQN}
    kinds = {rl.PPO: ROLLOUTS, rl.A2C: {"horizon": 16}, rl.DQN: REPLAY}
    known = games()
    small = {
        name: {"hidden": (8,)}
        for name, each in members.items()
        if isinstance(each, type)
    }
    team = rl.Team.for_env(known, members, small, seed=0)
    own = {name: kinds[type(agent)] for name, agent in team.agents().items()}
    return team, rl.TeamDataset(known, own | (settings or {}), seed=0)


def weights(model):
    return [each.value.numpy() for each in model.variables]


def are_equal(first, second):
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def test_each_member_learns_from_the_steps_of_its_players():
    team, data = made(settings={"blue": {**REPLAY, "warm_up": 0}})
    history = team.fit(data, epochs=2, verbose=0).history
    # 2 epochs of 16 steps are 6 games of 5 steps, in each of which 7 steps are
    # taken by red and 7 by blue, and 2 steps of all four, in 2 copies.
    steps = 2 * (6 * 7 + 4)
    assert team.members["red"].env_steps == steps
    assert team.members["blue"].env_steps == steps
    assert history["env_steps"][-1] == 2 * steps
    # The 7th game is over for `red_0`.
    assert history["episode_return/red"][-1] == (7 * 2 + 6 * 5) / 13
    assert history["episode_return/blue"][-1] == np.mean([30, 40])
    assert history["episode_length/blue"][-1] == np.mean([3, 4])
    # Replay holds whole rounds of 8 steps in 4 rows.
    assert data.datasets["blue"].buffer.steps == 2 * 16 * 4
    stored = data.datasets["red"].samples["observation"]
    assert stored.shape[-1] == 2


def test_logs_have_the_names_of_members():
    team, data = made()
    history = team.fit(data, epochs=1, verbose=0).history
    assert {"red/loss", "red/explained_variance", "red/learning_rate"} < {
        *history
    }
    assert {"blue/loss", "blue/q_value", "blue/epsilon"} < {*history}


@pytest.mark.parametrize(
    "kind", [rl.PPO, pytest.param(rl.A2C, marks=pytest.mark.slow), rl.DQN]
)
def test_a_team_of_one_trains_as_the_agent_alone(kind):
    class Red(Tag):
        lengths = {"red_0": 2, "red_1": 5}

    arguments = {rl.PPO: ROLLOUTS, rl.A2C: {"horizon": 16}, rl.DQN: REPLAY}[
        kind
    ]
    found = []
    for joins in (False, True):
        known = rl.envs.parallel(Red, 2)
        agent = kind.for_env(known, seed=0, hidden=(8,))
        if joins:
            model = rl.Team({"red": agent})
            data = rl.TeamDataset(known, {"red": arguments}, seed=0)
        else:
            model = agent
            data = (rl.RolloutDataset if agent.on_policy else rl.ReplayDataset)(
                known, seed=0, **arguments
            )
        history = model.fit(data, total_steps=400, verbose=0)
        found.append((weights(agent), agent.env_steps, history.epoch))
    (alone, *counts), (joined, *its) = found
    assert counts == its
    assert are_equal(alone, joined)


def test_a_saved_team_acts_and_trains_on_as_before(tmp_path):
    team, data = made()
    team.fit(data, epochs=1, verbose=0)
    path = tmp_path / "team.keras"
    team.save(path)
    loaded = rl.load(path)
    assert are_equal(weights(team), weights(loaded))
    for name, agent in team.agents().items():
        other = loaded.members[name]
        assert other.env_steps == agent.env_steps
        assert are_equal(weights(agent.optimizer), weights(other.optimizer))
    seen = {"red_1": np.ones(2, np.float32), "blue_0": np.ones(3, np.float32)}
    actions = team.act(seen, deterministic=True)
    assert actions == loaded.act(seen, deterministic=True)
    settings = {"red": ROLLOUTS, "blue": REPLAY}
    loaded.fit(rl.TeamDataset(games(), settings), epochs=1, verbose=0)


@pytest.mark.parametrize("episodes", [2, 5])
def test_it_evaluates_all_players_of_each_game(episodes):
    team, _ = made({"red": rl.PPO, "blue": third})
    results = team.evaluate(games(3), episodes=episodes, seed=0)
    assert results["episode_return/red"] == np.mean([2, 5])
    assert results["episode_length/red"] == np.mean([2, 5])
    assert results["episode_return_std/blue"] == np.std([30, 40])


def test_an_evaluation_in_between_does_not_change_the_training():
    found = []
    for validation in (None, rl.TeamEvaluation(games(), seed=3)):
        team, data = made()
        history = team.fit(
            data, epochs=2, verbose=0, validation_data=validation
        ).history
        assert ("val_episode_return/red" in history) == bool(validation)
        found.append(weights(team))
    assert are_equal(*found)


def test_an_evaluation_in_the_games_of_the_training_begins_them_anew():
    team, data = made()
    evaluation = rl.TeamEvaluation(data.games, episodes=2)
    team.fit(data, epochs=2, verbose=0, validation_data=evaluation)
    # The first member resets for both, before each epoch.
    assert data.games.resets == 2 * 2


def test_members_act_by_functions_and_frozen_agents():
    frozen = rl.PPO.for_env(
        rl.envs.players_env.PlayersEnv(games(), ["red_0"]), hidden=(8,), seed=1
    )
    frozen.trainable = False
    before = weights(frozen)
    team, data = made({"red": frozen, "blue": rl.DQN}, {"red": {}})
    team.fit(data, epochs=2, verbose=0)
    assert are_equal(before, weights(frozen))
    assert frozen.env_steps == 0
    assert [*data.datasets] == ["blue"]
    assert not are_equal(
        weights(team.members["blue"]),
        weights(
            made({"red": frozen, "blue": rl.DQN}, {"red": {}})[0].members[
                "blue"
            ]
        ),
    )


def test_transitions_stay_within_a_game_while_others_warm_up():
    team, data = made({"red": rl.DQN, "blue": rl.DQN})
    team.fit(data, epochs=1, verbose=0)
    for each in data.datasets.values():
        drawn = each.buffer.sample(500)
        time, after = drawn["observation"], drawn["next_observation"]
        np.testing.assert_array_equal(after[:, 0], time[:, 0] + 1.0)


def test_games_go_on_in_shorter_rounds_of_a_later_fit():
    members = {"red_0": rl.PPO, "red_1": rl.DQN, "blue": third}
    known = games()
    team = rl.Team.for_env(known, members, seed=0)
    own = {"red_0": ROLLOUTS, "red_1": {**REPLAY, "steps_per_round": 8}}
    data = rl.TeamDataset(known, own, seed=0)
    team.fit(data, epochs=1, verbose=0)
    team.members["red_0"].trainable = False
    before = known.resets
    team.fit(data, epochs=3, verbose=0)
    # Once, for the shorter rollouts of members who do not learn.
    assert known.resets - before <= 1


def test_an_evaluation_does_not_change_members():
    known = games()
    settings = {"hidden": (8,), "normalize_observations": True}
    team = rl.Team.for_env(
        known,
        {"red": rl.PPO, "blue": third},
        {"red": settings},
        seed=0,
    )
    team.fit(rl.TeamDataset(known, {"red": ROLLOUTS}, seed=0), verbose=0)
    before = weights(team.members["red"])
    team.evaluate(games(), episodes=2)
    assert are_equal(before, weights(team.members["red"]))


def test_a_member_can_be_unfrozen():
    team, data = made()
    team.members["red"].trainable = False
    team.fit(data, epochs=1, verbose=0)
    assert team.members["red"].env_steps == 0
    team.members["red"].trainable = True
    team.members["red"].compile()
    team.fit(data, epochs=1, verbose=0)
    assert team.members["red"].env_steps > 0


def test_another_acts_for_a_member_between_rounds():
    team, data = made({"red": rl.PPO, "blue": rl.A2C})
    steps = []

    def replace(epoch, logs):
        other = third if epoch == 1 else None
        data.play_by("red", other)
        steps.append(team.members["red"].env_steps)

    callback = keras.callbacks.LambdaCallback(on_epoch_begin=replace)
    team.fit(data, epochs=3, callbacks=[callback], verbose=0)
    assert steps[0] == 0
    assert steps[1] == steps[2] > 0
    assert team.members["red"].env_steps > steps[2]
    # The games of the other one are not those that the training began with.
    assert [game.seeded for game in data.games.envs] == [1, 1]


def test_functions_are_saved_by_their_registered_names(tmp_path):
    team, data = made({"red": rl.PPO, "blue": third})
    team.fit(data, epochs=1, verbose=0)
    team.save(tmp_path / "team.keras")
    assert rl.load(tmp_path / "team.keras").members["blue"] is third
    other = rl.Team({**team.members, "blue": lambda x: np.zeros(len(x), int)})
    with pytest.raises(ValueError, match="Expected functions registered"):
        other.save(tmp_path / "other.keras")
    assert not (tmp_path / "other.keras").exists()


def ends_after(most):
    def end(epoch, logs):
        if epoch + 1 == most:
            raise RuntimeError("the power is out")

    return keras.callbacks.LambdaCallback(on_epoch_end=end)


def trained(make, folder, *callbacks, epochs=4):
    team, data = make()
    checkpoint = rl.callbacks.Checkpoint(folder, every_steps=1)
    history = team.fit(
        data, epochs=epochs, callbacks=[*callbacks, checkpoint], verbose=0
    )
    state = [each.get_state()["variables"] for each in team.agents().values()]
    returns = [
        values
        for key, values in history.history.items()
        if "per_second" not in key
    ]
    return sum(state, weights(team)), returns, team.env_steps


def check_resumed(make, folder):
    whole = trained(make, folder / "whole")
    with pytest.raises(RuntimeError, match="the power is out"):
        trained(make, folder / "cut", ends_after(3))
    again = trained(make, folder / "cut")
    assert are_equal(whole[0], again[0])
    assert whole[1:] == again[1:]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"red": rl.PPO, "blue": rl.DQN}, id="two agents"),
        pytest.param(
            {"red": third, "blue": rl.DQN},
            marks=pytest.mark.slow,
            id="a function",
        ),
    ],
)
def test_a_stopped_training_goes_on_bit_for_bit(members, tmp_path):
    check_resumed(functools.partial(made, members), tmp_path)


@pytest.mark.slow
def test_a_stopped_training_goes_on_in_simple_tag(tmp_path):
    pytest.importorskip("mpe2")

    def make():
        known = rl.envs.parallel("mpe2:simple_tag_v3", num_envs=2)
        members = {"adversary": rl.PPO, "agent": rl.DQN}
        team = rl.Team.for_env(known, members, seed=0)
        settings = {
            "adversary": {"horizon": 33, "passes": 2},
            "agent": {"steps_per_round": 22},
        }
        return team, rl.TeamDataset(known, settings, seed=0)

    check_resumed(make, tmp_path)
    team = rl.load(os.fspath(tmp_path / "cut"))
    assert team.members["agent"].env_steps > 0


@pytest.mark.parametrize(
    ("members", "settings", "message"),
    [
        ({"red": rl.PPO, "green": rl.PPO}, None, "a group or a player of tag"),
        ({"red": rl.PPO}, None, "members of which each player has one"),
        (
            {"red": rl.PPO, "red_0": rl.PPO, "blue": rl.PPO},
            None,
            "members of which each player has one",
        ),
    ],
    ids=["no players", "no member", "two members"],
)
def test_it_refuses_members_that_do_not_fit_the_games(
    members, settings, message
):
    with pytest.raises(ValueError, match=message):
        made(members, settings)


def test_it_refuses_rounds_that_do_not_end_together():
    team, data = made(settings={"red": {**ROLLOUTS, "horizon": 20}})
    with pytest.raises(ValueError, match=r"\{'red': 20, 'blue': 8\}"):
        team.fit(data, verbose=0)


def test_open_rounds_end_with_the_longest():
    team, data = made(settings={"red": {**ROLLOUTS, "horizon": 20}, "blue": {}})
    data.bind(team)
    # 64 steps in 4 rows are 16 steps, and 10 is a divisor of 20.
    assert data.datasets["blue"].horizon == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda team, data: (
                setattr(team.members["red"], "trainable", False)
                or setattr(team.members["blue"], "trainable", False)
            ),
            "trainable",
        ),
        (lambda team, data: data._given.update(green={}), "settings"),
    ],
    ids=["all frozen", "settings of nobody"],
)
def test_fit_refuses_what_it_cannot_train(change, message):
    team, data = made()
    change(team, data)
    with pytest.raises(ValueError, match=message):
        team.fit(data, verbose=0)


def test_it_refuses_other_data_and_members():
    team, _ = made()
    with pytest.raises(ValueError, match=r"`keras_rl2.TeamDataset`"):
        team.fit(rl.RolloutDataset("CartPole-v1"))
    with pytest.raises(ValueError, match=r"Expected a `keras_rl2.RolloutData"):
        team.members["red"].fit(rl.TeamDataset(games()))
    with pytest.raises(ValueError, match=r"`keras_rl2.Agent`, or a function"):
        rl.Team({"red": rl.PPO, "blue": rl.DQN})
    with pytest.raises(ValueError, match="observation"):
        team.act({"green_0": np.zeros(2)})
    with pytest.raises(ValueError, match="another agent for each member"):
        rl.Team(dict.fromkeys(("red_0", "red_1"), team.members["red"]))
    with pytest.raises(ValueError, match="`Games`"):
        rl.Team.for_env("CartPole-v1", {"red": rl.PPO})
    with pytest.raises(ValueError, match="settings"):
        rl.Team.for_env(games(), team.members, {"red": {"gamma": 0.5}})


def test_members_with_a_memory_act_by_themselves():
    known = games()
    memory = {"memory": keras.layers.GRUCell(4), "hidden": (4,)}
    team = rl.Team.for_env(
        known, {"red": rl.PPO, "blue": third}, {"red": memory}, seed=0
    )
    with pytest.raises(ValueError, match="without memory"):
        team.act({"red_0": np.zeros(2, np.float32)})


def test_an_error_of_a_game_names_it_and_training_can_go_on():
    team, data = made()
    team.fit(data, epochs=1, verbose=0)
    step = data.games.envs[1].step
    data.games.envs[1].step = lambda actions: 1 / 0
    with pytest.raises(ZeroDivisionError) as caught:
        team.fit(data, epochs=1, verbose=0)
    assert "game 1 of tag" in "".join(caught.value.__notes__)
    data.games.envs[1].step = step
    team.fit(data, epochs=1, verbose=0)
