#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As peers/index.sh, with 10,000 addresses of each binary.
COUNT=10000 exec bash -euo pipefail "$ROOT/tests/peers/index.sh"
