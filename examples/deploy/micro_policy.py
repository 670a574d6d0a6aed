"""A policy of int8 in the interpreter of microcontrollers, on this machine.

    python micro_policy.py policy.tflite < observations.txt

reads observations, one in each line, and prints the action of each, by LiteRT
for Microcontrollers (`pip install tflite-micro`). The same file becomes an
array of C by `xxd -i policy.tflite`.
"""

import sys

import numpy as np
from tflite_micro import runtime

# Bytes of memory for all that is computed, as on the device.
ARENA = 64 * 1024

interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=ARENA)
for line in sys.stdin:
    observation = np.array([line.split()], np.float32)
    interpreter.set_input(observation, 0)
    interpreter.invoke()
    print(*interpreter.get_output(0)[0])
