"""The state and the episodes of datasets."""

import warnings


def state_of(dataset):
    """Returns the state of a dataset, whose environments need not be saved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dataset.get_state()


def episodes_of(dataset):
    """Returns the statistics of episodes: `episode_lengths` and others."""
    return state_of(dataset)["collector"]
