"""Scripts beside the tests need what the tests do without."""

collect_ignore = ["make_keras_rl.py", "make_sb3.py"]
