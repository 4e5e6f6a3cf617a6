// SPDX-License-Identifier: Apache-2.0
// What can be done with one frame or function, as the items of a menu.

import { isOther } from '../data/graft';
import { binaryName, type Transform } from '../data/transform';
import type { Profile } from '../data/data';
import type { MenuItem } from './menu';

export interface FrameActions {
  focus: (node: number) => void;
  sandwich: (func: number) => void;
  copy: (text: string) => void;
  hide: (func: number) => void;
  simplify: (change: Partial<Transform>) => void;
  // Each is there only where the page around has such a place.
  expand?: (node: number) => void;
  openFunction?: (name: string) => void;
  more?: [label: string, run: (name: string) => void][];
}

export interface Frame {
  // -1 for a function that was pointed at outside of the graph.
  node: number;
  func: number;
}

// `profile` is the tree as it is shown, `functions` how many of its functions the source has.
export function frameItems(
  profile: Profile, functions: number, t: Transform, { node, func }: Frame, act: FrameActions,
): MenuItem[] {
  const name = profile.names[func];
  const binary = binaryName(profile.binaries[func]);
  const collapsed = func >= functions;
  const out: MenuItem[] = [];
  const add = (label: string, run: () => void, key?: string) => out.push({ label, run, key });
  if (isOther(name)) {
    if (act.expand && node > 0) add('Show contents', () => act.expand!(node), 'Enter');
    else if (node > 0) add('Focus on this frame', () => act.focus(node), 'Enter');
    return out;
  }
  if (node > 0) add('Focus on this frame', () => act.focus(node), 'Enter');
  add('Callers and callees', () => act.sandwich(func), 's');
  if (act.openFunction && !collapsed) add('Open the function’s page', () => act.openFunction!(name));
  if (!collapsed) for (const [label, run] of act.more ?? []) add(label, () => run(name));
  add('Copy the name', () => act.copy(name));
  if (!collapsed) add('Hide this function', () => act.hide(func), 'h');
  if (binary === '') return out;
  if (t.fold.includes(binary))
    add(`Expand ${binary}`, () => act.simplify({ fold: t.fold.filter((one) => one !== binary) }));
  else if (!collapsed)
    add(`Collapse ${binary}`, () => act.simplify({ fold: [...t.fold, binary] }));
  if (t.only === binary) add('Show all stacks', () => act.simplify({ only: '' }));
  else add(`Only stacks through ${binary}`, () => act.simplify({ only: binary }));
  return out;
}
