# SPDX-License-Identifier: Apache-2.0
# Threads with names: each has its own chain under its own name, and its share of the time.
# Chance: shares of samples by thread are estimates, and what else runs takes time from one
# thread.
. "$ROOT/tests/capture/common.bash"
need gcc python3

gcc -O2 -fomit-frame-pointer -pthread -o threads "$subjects/threads.c"
for ASSAY_SAMPLER in "${samplers[@]}"; do
    at_rate 200
    "$ASSAY" record -q -F "$rate" -o threads.pb.gz -- ./threads "$amount" >truth
    # 2,000 samples: four standard errors are 4.4 points at most.
    check "shares ($ASSAY_SAMPLER)" python3 "$capture/shares.py" threads.pb.gz 5 <truth
    for letter in a b c d; do
        check "pool $letter ($ASSAY_SAMPLER)" chains threads.pb.gz threads --comm "pool $letter" <<END
            $letter 100 run_$letter outer_$letter inner_$letter leaf_$letter
            also run_$letter outer_$letter ...
            also run_$letter ...
END
    done
    check "nobody else ($ASSAY_SAMPLER)" chains threads.pb.gz threads --comm '(?!pool ).*' <<'END'
        also main ...
        # Before a thread has given itself its name.
        also run_[abcd] ...
END
done
