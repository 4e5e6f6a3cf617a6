// SPDX-License-Identifier: Apache-2.0
// The fuzzer of configuration files: the tree keeps what it promises, and label rules read from it
// can be applied whatever was wrong with them.

#include <string.h>

#include "label/rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Recursion is bounded by the depth that a tree may have. */
static uint64_t check(const struct yaml_node *node, size_t depth)
{
    uint64_t weight = 1;
    require(depth <= YAML_DEPTH_MAX * 2 && node->text && node->line);
    require((node->kind == YAML_LIST || node->kind == YAML_MAP) || !node->count);
    for (size_t i = 0; i < node->count; i++) {
        weight += check(node->values[i], depth + 1);
        require(node->kind == YAML_LIST || node->keys[i]->kind <= YAML_SCALAR);
    }
    require(weight == node->weight && weight <= YAML_NODES_MAX);
    return weight;
}

static void apply(const struct yaml_tree *tree)
{
    struct problems problems = {.file = "fuzz"};
    struct settings settings;
    struct label_rules rules;
    settings_open(&settings, &problems, tree->root, "The file");
    label_rules_read(&settings, &rules);
    settings_close(&settings);
    require(!problems.count == !problems.text.length);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "checkout");
    labels_set(&labels, "__meta_x", "Some-Value 1");
    labels_set(&labels, "a", "jane@example.com");
    label_rules_apply(&rules, "tenant", 1, &labels, NULL);
    for (size_t i = 0; i < labels.count; i++)
        require(*labels.list[i].name && *labels.list[i].value);
    label_rules_release(&rules);
    problems_release(&problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct yaml_tree tree = {0};
    struct error error = {0};
    if (yaml_tree_read("fuzz", (const char *)data, length, &tree, &error) < 0) {
        require(error.text[0] && !tree.root);
        return 0;
    }
    check(tree.root, 0);
    apply(&tree);
    yaml_tree_release(&tree);
    return 0;
}
