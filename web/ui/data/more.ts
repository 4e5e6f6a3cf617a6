// SPDX-License-Identifier: Apache-2.0
// How a page asks for a part of the call tree in more detail.

import type { Params } from '../route';

// What a part of the tree may have when it is asked for by itself, and the whole when it must be.
const PART_NODES = '65536';
const WHOLE_NODES = '1048576';
// Longer addresses are refused.
const FOCUS_BYTES_MAX = 6000;

export const WHOLE: Params = { max_nodes: WHOLE_NODES };

// Nobody can be asked about a file later on: all of it comes, as far as a page can hold it.
export const WHOLE_FILE: Params = { max_nodes: '4194304' };

// `again`: this part was asked for before, and still had something folded away. So has the whole,
// where there is no part to ask for.
export function moreParams(path: string[], again = false): Params {
  if (path.length === 0 && !again) return { max_nodes: PART_NODES };
  const long = path.reduce((sum, name) => sum + encodeURIComponent(name).length + 7, 0);
  if (long > FOCUS_BYTES_MAX) return WHOLE;
  return { max_nodes: again ? WHOLE_NODES : PART_NODES, focus: path };
}
