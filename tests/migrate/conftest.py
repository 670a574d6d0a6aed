"""The script beside the tests needs packages that the tests do not need."""

collect_ignore = ["make_sb3.py"]
