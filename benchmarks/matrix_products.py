"""Times the matrix products that an update of SAC cannot do without.

    python benchmarks/matrix_products.py

Of two hidden layers of 256 units and minibatches of 256, sixteen products of
256 x 256 matrices are left: forward and back through two critics (6), both
targets (2), the next action (1), the action and its gradient (3), and both
critics of that action with the gradient by it (4). Compare with the time of an
update that `off_policy_speed.py` prints: what is above is not arithmetic.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SIZE = 256
PRODUCTS = 16
REPEATS = 2000


def milliseconds():
    """Returns the time of one product, in a loop within the graph."""
    import tensorflow as tf

    # Orthogonal: no product of many grows, or shrinks to numbers that are slow.
    matrix = tf.linalg.qr(tf.random.normal((SIZE, SIZE)))[0]

    @tf.function(autograph=False)
    def chain(product):
        return tf.while_loop(
            lambda count, _: count < REPEATS,
            lambda count, product: (count + 1, tf.matmul(product, matrix)),
            (0, product),
        )[1]

    chain(matrix)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        chain(matrix).numpy()
        times.append((time.perf_counter() - start) / REPEATS * 1e3)
    return statistics.median(times)


def main():
    one = milliseconds()
    rate = 2 * SIZE**3 / one / 1e6
    print(
        f"{one:.3f} ms a product ({rate:.0f} billion operations a second), "
        f"{PRODUCTS * one:.2f} ms for {PRODUCTS}"
    )


if __name__ == "__main__":
    main()
