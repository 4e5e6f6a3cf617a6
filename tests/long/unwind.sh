#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# peers/unwind-rows.sh with the large programs of this system, and peers/dwarf.sh with more addresses.
ALL_FILES=yes bash -euo pipefail "$ROOT/tests/peers/unwind-rows.sh"
ADDRESSES=2500 exec bash -euo pipefail "$ROOT/tests/peers/dwarf.sh"
