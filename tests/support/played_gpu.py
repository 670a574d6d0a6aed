"""A GPU that is played by the first of two CPU devices of TensorFlow.

TensorFlow places there by default, as on a GPU. Code that asks for a CPU gets
the second device, and so do variables of int32, which TensorFlow keeps off a
GPU. XLA refuses variables of another device, as on a GPU. The placement and
the errors are those of a GPU, the speed is not.
"""

import types

import tensorflow as tf

_GPU = types.SimpleNamespace(name="/device:CPU:0", device_type="GPU")
_NAMES = {
    "gpu:0": "/CPU:0",
    "gpu": "/CPU:0",
    "cpu:0": "/CPU:1",
    "cpu": "/CPU:1",
}


def install():
    """Plays the GPU from here on, before TensorFlow has made its devices."""
    config, device = tf.config, tf.device
    config.set_logical_device_configuration(
        config.list_physical_devices("CPU")[0],
        [config.LogicalDeviceConfiguration()] * 2,
    )
    set_memory_growth = config.experimental.set_memory_growth

    def with_gpu(list_devices):
        def list_all(kind=None):
            others = [] if kind == "GPU" else list_devices(kind)
            return [*others, *([_GPU] if kind in (None, "GPU") else [])]

        return list_all

    def played(name):
        short = str(name).lower().removeprefix("/").removeprefix("device:")
        return device(_NAMES.get(short, name))

    def off_the_gpu(create, **given):
        dtype = given["dtype"] or getattr(given["initial_value"], "dtype", None)
        if dtype is None or tf.as_dtype(dtype) != tf.int32:
            return create(**given)
        with device("/CPU:1"):
            return create(**given)

    config.list_physical_devices = with_gpu(config.list_physical_devices)
    config.list_logical_devices = with_gpu(config.list_logical_devices)
    config.experimental.set_memory_growth = lambda gpu, on: (
        None if gpu is _GPU else set_memory_growth(gpu, on)
    )
    tf.device = played
    tf.variable_creator_scope(off_the_gpu).__enter__()
