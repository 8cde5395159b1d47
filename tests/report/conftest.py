"""Reports of campaigns need the extra ``campaign``; the demo's page is tested without pyarrow."""

from importlib.util import find_spec

NEED_PYARROW = ["test_campaign.py", "test_compare.py", "test_selection.py", "test_win_rates.py"]
collect_ignore = [] if find_spec("pyarrow") else NEED_PYARROW
