"""The contents of TensorBoard's HParams tab for a folder of runs."""

from tensorboard.backend.event_processing.data_provider import (
    MultiplexerDataProvider,
)
from tensorboard.backend.event_processing.plugin_event_multiplexer import (
    EventMultiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.backend_context import Context
from tensorboard.plugins.hparams.get_experiment import Handler as Experiment
from tensorboard.plugins.hparams.list_session_groups import (
    Handler as SessionGroups,
)


def table(log_dir):
    """Returns the rows of the tab, by the plugin's own backend.

    Args:
        log_dir: path. A folder with a folder for each run.

    Returns:
        tuple: names of the columns, and a list of dicts: `hparams` and
        `metrics` by their names (a metric of several sessions is their mean),
        and `sessions`, their folders and how they ended.
    """
    runs = EventMultiplexer().AddRunsFromDirectory(str(log_dir))
    runs.Reload()
    context = Context(
        TBContext(data_provider=MultiplexerDataProvider(runs, str(log_dir)))
    )
    request = api_pb2.GetExperimentRequest()
    experiment = Experiment(RequestContext(), context, "", request).run()
    metrics = [info.name for info in experiment.metric_infos]
    request = api_pb2.ListSessionGroupsRequest(
        allowed_statuses=api_pb2.Status.values(),
        start_index=0,
        slice_size=100,
        aggregation_type=api_pb2.AGGREGATION_AVG,
    )
    for name in metrics:
        request.col_params.add().metric.CopyFrom(name)
    for info in experiment.hparam_infos:
        request.col_params.add().hparam = info.name
    found = SessionGroups(RequestContext(), context, "", request).run()
    columns = [info.name for info in experiment.hparam_infos]
    columns += [name.tag for name in metrics]
    return columns, [_row(group) for group in found.session_groups]


def _row(group):
    return {
        "hparams": {
            name: getattr(value, value.WhichOneof("kind"))
            for name, value in group.hparams.items()
        },
        "metrics": {each.name.tag: each.value for each in group.metric_values},
        "sessions": {
            session.name: api_pb2.Status.Name(session.status)
            for session in group.sessions
        },
    }
