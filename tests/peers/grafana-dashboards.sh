# SPDX-License-Identifier: Apache-2.0
# The dashboards are what Grafana's own SDK (PyPI: grafana-foundation-sdk) understands: read as its
# types and written again, no key is lost and no value differs.
python3 -c 'import grafana_foundation_sdk' 2>/dev/null || { echo "The Python package grafana-foundation-sdk is not installed."; exit 77; }
python3 - "$ROOT"/packaging/grafana/*.json <<'P'
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

plugins.register_default_plugins()


def differences(given, got, path):
    if isinstance(given, dict) and isinstance(got, dict):
        for key, value in given.items():
            yield from differences(value, got.get(key, "nothing"), f"{path}/{key}")
    elif isinstance(given, list) and isinstance(got, list) and len(given) == len(got):
        for index, value in enumerate(given):
            yield from differences(value, got[index], f"{path}/{index}")
    elif given != got:
        yield f"{path}: {given} became {got}"


assert len(sys.argv) == 4, sys.argv
for path in sys.argv[1:]:
    board = json.load(open(path))
    again = json.loads(JSONEncoder().encode(dashboard.Dashboard.from_json(board)))
    found = list(differences(board, again, path))
    assert not found, "\n".join(found)
P
