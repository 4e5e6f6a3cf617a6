// SPDX-License-Identifier: Apache-2.0
// A library that a program opens while it runs, works in, and is called back from.
#include "known.h"

CALL void plugin_leaf(void)
{
    spin(UNIT);
}
CALL void plugin_inner(void (*callback)(void))
{
    plugin_leaf();
    callback();
    STAY;
}
void plugin_entry(void (*callback)(void));
void plugin_entry(void (*callback)(void))
{
    plugin_inner(callback);
    STAY;
}
