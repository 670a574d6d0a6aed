"""Makes the files of keras-rl's DQN that tests read.

    python tests/migrate/make_keras_rl.py [FOLDER]

in an environment with tf_keras, the last of Keras 2. `DQNAgent.save_weights`
of keras-rl and keras-rl2 is `save_weights` of its model, which is made here as
their examples and their `enable_dueling_network` make it. Keras 2 writes HDF5
where the name ends in `.h5`, and else, as for the `.h5f` of their examples, a
checkpoint of TensorFlow. The files here are of tf_keras 2.21.
"""

import sys
from pathlib import Path

import numpy as np
import tf_keras as keras
from tf_keras import layers

HERE = Path(__file__).parent / "keras_rl"


def with_dueling(model):
    """Returns a model as `DQNAgent(enable_dueling_network=True)` changes it."""
    width = model.output.shape[-1]
    both = layers.Dense(width + 1)(model.layers[-2].output)
    q_values = layers.Lambda(
        lambda y: (
            y[:, :1]
            + y[:, 1:]
            - keras.backend.mean(y[:, 1:], axis=1, keepdims=True)
        ),
        output_shape=(width,),
    )(both)
    return keras.Model(model.input, q_values)


def mlp():
    """Returns a network in the manner of their CartPole examples."""
    return keras.Sequential(
        [
            layers.Flatten(input_shape=(1, 4)),
            layers.Dense(8),
            layers.Activation("relu"),
            layers.Dense(7),
            layers.Activation("relu"),
            layers.Dense(2, activation="linear"),
        ]
    )


def cnn():
    """Returns one of pictures, with moving statistics."""
    return keras.Sequential(
        [
            layers.Permute((2, 3, 1), input_shape=(2, 12, 10)),
            layers.Conv2D(3, 4, strides=2, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(3),
        ]
    )


def main():
    """Makes all files, and what the networks answer."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(exist_ok=True)
    generator = np.random.default_rng(0)
    cases = {
        "mlp.h5": mlp(),
        "mlp.h5f": mlp(),
        "dueling.h5": with_dueling(mlp()),
        "cnn.h5f": cnn(),
    }
    expected = {}
    for name, model in cases.items():
        model.set_weights(
            [
                # Variances are above zero.
                np.abs(generator.normal(size=w.shape)).astype("float32") + 0.1
                if "variance" in w.name
                else generator.normal(size=w.shape).astype("float32")
                for w in model.weights
            ]
        )
        observation = generator.normal(size=(6, *model.input_shape[1:]))
        observation = observation.astype("float32")
        expected[f"{name}/observation"] = observation
        expected[f"{name}/q_values"] = model.predict(observation, verbose=0)
        model.save_weights(folder / name)
    (folder / "checkpoint").unlink(missing_ok=True)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main()
