"""Training by several replicas, as `tf.distribute` arranges them."""
