# SPDX-License-Identifier: Apache-2.0
# Known shares of time, of 8,000 samples: within two points of what the program measures itself.
# Chance: shares of samples are estimates, held to two points; another load can take more than
# that from one run.
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -fomit-frame-pointer -o shares "$subjects/shares.c"
for ASSAY_SAMPLER in "${samplers[@]}"; do
    at_rate 8
    "$ASSAY" record -q -F "$rate" -o shares.pb.gz -- ./shares "$amount" >truth
    check "shares ($ASSAY_SAMPLER)" python3 "$capture/shares.py" shares.pb.gz 2 <truth
    # What is sampled is what was spent, too.
    check "all of the time ($ASSAY_SAMPLER)" python3 "$capture/shares.py" --total shares.pb.gz 5 <truth
    check "chains ($ASSAY_SAMPLER)" chains shares.pb.gz shares <<'END'
        also main ...
        also main work ...
        sixty 100 main work sixty sixty_work
        also main work sixty ...
        thirty 100 main work thirty thirty_work
        also main work thirty ...
        ten 100 main work ten ten_work
        also main work ten ...
END
done
