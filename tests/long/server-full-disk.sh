# SPDX-License-Identifier: Apache-2.0
# A disk that fills up under load, again and again: see tests/server/full-disk.sh.
export DISK_ROUNDS=15 DISK_SIZE=16m
. "$ROOT/tests/server/full-disk.sh"
