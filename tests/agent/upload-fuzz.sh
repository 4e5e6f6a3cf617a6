# SPDX-License-Identifier: Apache-2.0
# Random conversations between upload and server, with a model of what has to be where: see protocol.py.
type python3 zstd >/dev/null || { echo "There is no python3 or no zstd."; exit 77; }
python3 "$ROOT/tests/agent/protocol.py" "$AGENT_FEED" "${ASSAY_LIVES:-4}" "${ASSAY_SEED:-$RANDOM}"
