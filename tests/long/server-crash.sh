# SPDX-License-Identifier: Apache-2.0
# The server, killed a hundred times under load: see tests/server/crash.sh.
export CRASH_ROUNDS=100 CRASH_CHECK_EVERY=10 GRPC_ROUNDS=60 ARROW_ROUNDS=40 UPLOAD_ROUNDS=40 END_ROUNDS=15 RELOAD_ROUNDS=300
. "$ROOT/tests/server/crash.sh"
