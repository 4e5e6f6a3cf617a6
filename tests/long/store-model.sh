# SPDX-License-Identifier: Apache-2.0
# Hundreds of stores whose files are damaged, against a model: see tests/unit/test_store_model.c. With
# sanitizers, where that program is built.
sanitized=${TEST_STORE_MODEL%/tests/*}-asan/tests/test_store_model
[ ! -x "$sanitized" ] || TEST_STORE_MODEL=$sanitized
for seed in 10000 20000 30000 40000; do
    STORE_MODEL_ROUNDS=${ASSAY_ROUNDS:-100} STORE_MODEL_SEED=$seed "$TEST_STORE_MODEL"
done
