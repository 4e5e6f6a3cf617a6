// SPDX-License-Identifier: Apache-2.0
// How a page asks for a part of the call tree in more detail.

import type { Params } from './route';

// What a part of the tree may have when it is asked for by itself, and the whole when it must be.
const PART_NODES = '65536';
const WHOLE_NODES = '1048576';
// Longer addresses are refused.
const FOCUS_BYTES_MAX = 6000;

export function moreParams(path: string[]): Params {
  const long = path.reduce((sum, name) => sum + encodeURIComponent(name).length + 7, 0);
  return long > FOCUS_BYTES_MAX ? { max_nodes: WHOLE_NODES } : { max_nodes: PART_NODES, focus: path };
}
