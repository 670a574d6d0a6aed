"""Models whose policy is written for other programs."""

import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import Literal

from keras_rl2.agents.acting_model import ActingModel
from keras_rl2.basics import arguments
from keras_rl2.collecting.litert import LiteRTPolicy
from keras_rl2.envs import EnvWrapper
from keras_rl2.export import exporting
from keras_rl2.export.export_check import ExportCheck
from keras_rl2.export.export_check import check_export
from keras_rl2.policies import actors
from keras_rl2.updates import finite_weights


class ExportableModel(ActingModel):
    """Base of models whose policy leaves Keras, to be run elsewhere.

    Only the policy is exported; `SaveableModel` saves what learns, too. Its
    arguments are those of an `ActingModel`.
    """

    @arguments.refusing_unknown
    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        *,
        deterministic: bool = True,
        quantize: Literal["float16", "int8"] | None = None,
        representative: Any = None,
        batch_size: int | None = None,
        accept: Callable[[Path], None] | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        opset_version: int | None = None,
        optimizations: Sequence[Any] | None = None,
        representative_dataset: Callable[[], Any] | None = None,
        target_spec: Mapping[str, Any] | None = None,
        inference_input_type: Any = None,
        inference_output_type: Any = None,
    ) -> None:
        """Exports the policy: raw observations in, actions out.

        Args:
            filepath: str or path. Where to write.
            format: str. `"tf_saved_model"`, `"onnx"`, `"litert"`, or another
                format of `keras.Model.export`. The first three hold a
                manifest; see `keras_rl2.read_manifest`. Defaults to
                `"tf_saved_model"`.
            deterministic: bool. Whether the most probable action is taken. If
                not, standard noise `[B, *noise_shape]`, as of `draw_noise`,
                is a second input. Defaults to `True`.
            quantize: str or None. Of `"litert"`: `"float16"` keeps weights in
                16 bits; `"int8"` weights and what is computed in 8, which
                costs some of the return. Defaults to `None`.
            representative: With `"int8"`, what the policy sees, by which
                ranges are chosen: an environment or its id, to be played in,
                partly at random; or observations `[N, ...]`, some hundreds,
                of a dataset say. Defaults to `None`.
            batch_size: int or None. How many observations each call has; 1 for
                microcontrollers and browsers, where LiteRT wants to know.
                Defaults to `None`: any number.
            accept: Callable or None. Is given the path of what was written,
                before it takes its place, and raises what it has against it:
                `check_export`, say. Defaults to `None`.
            verbose: bool or None. As of [`keras.Model.export`](
                https://keras.io/api/models/model_saving_apis/export/). None
                for silence. Defaults to `None`.
            input_signature: As of `keras.Model.export`; None for the policy's
                own inputs. Defaults to `None`.
            opset_version: int or None. Of `"onnx"`: that of its operations.
                Defaults to `None`.
            optimizations: Sequence of `tf.lite.Optimize` or None. Of
                `"litert"`, as of `tf.lite.TFLiteConverter`, like those that
                follow. Defaults to `None`.
            representative_dataset: Callable or None. Of `"litert"`. Defaults
                to `None`.
            target_spec: dict or None. Of `"litert"`. Defaults to `None`.
            inference_input_type: dtype or None. Of `"litert"`. Defaults to
                `None`.
            inference_output_type: dtype or None. Of `"litert"`. Defaults to
                `None`.

        Raises:
            ImportError: If what writes the format is not installed.
            OSError: If it cannot be written.
            TypeError: If the format's writer does not take an argument.
            ValueError: If a weight of the policy is not finite, arguments do
                not fit each other, or the format has not got an operation of
                the policy; nothing is written then.
        """
        self._require_bound()
        arguments.check_path(filepath=filepath)
        arguments.check_text(format=format)
        arguments.check_flag(deterministic=deterministic)
        arguments.check_has(
            "a function", "__call__", **arguments.present(accept=accept)
        )
        finite_weights.refuse_non_finite(self, "export", self.acting_variables)
        exporting.export(
            self,
            filepath,
            format,
            deterministic,
            quantize,
            representative,
            batch_size,
            accept,
            **arguments.present(
                verbose=verbose,
                input_signature=input_signature,
                opset_version=opset_version,
                optimizations=optimizations,
                representative_dataset=representative_dataset,
                target_spec=target_spec,
                inference_input_type=inference_input_type,
                inference_output_type=inference_output_type,
            ),
        )

    def _check_export(
        self,
        filepath: str | os.PathLike[str],
        env: Any,
        *,
        tolerance: float | None = None,
        loss: float = 0.1,
        **given: Any,
    ) -> ExportCheck:
        """Does what `check_export` says."""
        self._check_can_act()
        arguments.check_path(filepath=filepath)
        return check_export(
            self, filepath, env, tolerance=tolerance, loss=loss, **given
        )

    @arguments.standing_for(_check_export)
    def check_export(
        self,
        filepath: str | os.PathLike[str],
        env: Any,
        *,
        tolerance: float | None = None,
        loss: float = 0.1,
        episodes: int = 10,
        num_envs: int = 1,
        seed: int | None = 0,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
        step_timeout: float | None = None,
    ) -> ExportCheck:
        """Plays an exported policy against this agent.

        Both are asked for an action on each observation of the agent's
        episodes; then the file plays as many by itself, in environments of
        the same seeds.

        Args:
            filepath: str or path. What `export` wrote, of this release or an
                earlier one.
            env: An environment or id string.
            tolerance: float or None. By how much numbers of an action may
                differ, and on what share of observations choices; None for
                1e-4, or 1e-2 of a `"float16"` file. An `"int8"` file is then
                judged by its return. Defaults to `None`.
            loss: float. What the return of such a file may be less, as a share
                of the agent's. Defaults to `0.1`.
            episodes: int. Episodes to play. Defaults to `10`.
            num_envs: int. Environments to make when `env` is an id or a
                function. Defaults to `1`.
            seed: int or None. Seeds environments and sampling, the same for
                every evaluation; None for other episodes each time. Defaults
                to `0`.
            env_kwargs: dict or None. Arguments of the environments that are
                made of an id, as `gymnasium.make` takes them. Defaults to
                `None`.
            wrappers: sequence of functions from a `gymnasium.Env` to another
                one, applied to each environment that is made of an id.
                Defaults to `()`.
            step_timeout: float or None. Seconds that a step may take, of a
                `gymnasium.vector.AsyncVectorEnv`: nothing can interrupt one in
                this process. Defaults to `None`: as long as it likes.

        Returns:
            `keras_rl2.agents.ExportCheck`, with what was found, and `passed`.

        Raises:
            ImportError: If what runs the file is not installed.
            OSError: If it cannot be read.
            TypeError: If there is an argument that is not taken.
            ValueError: If it is of another agent or environment, or an
                argument is out of range.
        """
        raise NotImplementedError

    def litert_policy(self) -> LiteRTPolicy | None:
        """Returns the greedy policy for processes without TensorFlow.

        Returns:
            `LiteRTPolicy`, with the present weights; None where the policy
            does not convert.
        """
        self._require_bound()
        return actors.litert_policy(self)
