# SPDX-License-Identifier: Apache-2.0
# Many random conversations between upload and server: see tests/agent/protocol.py.
for seed in 1 2 3 4 5; do
    mkdir "$seed"
    (cd "$seed" && ASSAY_LIVES=${ASSAY_LIVES:-40} ASSAY_SEED=$seed bash -euo pipefail "$ROOT/tests/agent/upload-fuzz.sh")
done
