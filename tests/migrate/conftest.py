"""The script beside the tests needs what the tests do without."""

collect_ignore = ["make_sb3.py"]
