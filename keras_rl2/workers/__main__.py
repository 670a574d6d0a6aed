"""A worker process, which `LocalWorkers` starts."""

from keras_rl2.workers.local_process import main

main()
