"""Episodes as GIF and MP4, played in a process without TensorFlow."""
