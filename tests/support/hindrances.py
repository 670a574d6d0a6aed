"""Callbacks by which some checkpoints of a run cannot be written."""

import random
import resource

import keras

# The last epochs write again: a run that ends has saved its end.
EPOCHS = {1, 2, 4}


class _Hindrance(keras.callbacks.Callback):
    """Stands in the way from the beginning of some epochs to their end."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory
        # As the user does before the program is run again.
        self.lift()

    def on_epoch_begin(self, epoch, logs=None):
        # What is still being written beside training meets it too.
        self.lift()
        if epoch in EPOCHS:
            self.impose()

    def get_state(self):
        """Remembers nothing: the epoch says what there is to do."""

    def set_state(self, state):
        pass


class FullDisk(_Hindrance):
    """Lets no file become longer than some bytes, as a disk that is full."""

    def lift(self):
        self._limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])

    def impose(self):
        self._limit(random.randrange(40_000))

    def _limit(self, count):
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))


class ReadOnly(_Hindrance):
    """Lets nothing be made in the directory, nor removed from it."""

    def lift(self):
        self.directory.chmod(0o755)

    def impose(self):
        self.directory.chmod(0o555)
