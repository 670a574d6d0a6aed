import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "website"

# Beside the package, and nowhere on the path.
if "website" not in sys.modules:
    _spec = importlib.util.spec_from_file_location(
        "website",
        FOLDER / "__init__.py",
        submodule_search_locations=[str(FOLDER)],
    )
    sys.modules["website"] = importlib.util.module_from_spec(_spec)
