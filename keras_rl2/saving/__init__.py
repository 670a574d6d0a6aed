"""Files that are whole or not there: agents, checkpoints, arrays, JSON."""
