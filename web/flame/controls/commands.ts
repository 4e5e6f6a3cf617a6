// SPDX-License-Identifier: Apache-2.0
// What the keys do, in the order in which the help lists them.

import type { Direction } from '../view/graph';
import type { Command } from './keyboard';
import type { View } from '../state';

export interface Controls {
  search(): void;
  move(direction: Direction): void;
  enter(): void;
  zoomOut(): void;
  escape(): void;
  actions(): void;
  hideSelected(): void;
  undo(): void;
  sandwich(): void;
  view(view: View): void;
  toggleRecursion(): void;
  toggleLibraries(): void;
  toggleOwn(): void;
  nextColour(): void;
  nextType(): void;
  flip(): void;
  dark(): void;
  safe(): void;
  help(): void;
}

export function commandsOf(controls: Controls): Command[] {
  return [
    { keys: ['/'], help: 'search functions', run: () => controls.search() },
    { keys: ['ArrowUp'], shown: '↑ ↓ ← →', help: 'move the selection', run: () => controls.move('up') },
    { keys: ['ArrowDown'], shown: '', help: '', run: () => controls.move('down') },
    { keys: ['ArrowLeft'], shown: '', help: '', run: () => controls.move('left') },
    { keys: ['ArrowRight'], shown: '', help: '', run: () => controls.move('right') },
    { keys: ['Enter'], help: 'zoom to the selected frame, or open the selected row',
      run: () => controls.enter() },
    { keys: ['Backspace', 'u'], shown: 'u', help: 'zoom out by one frame',
      run: () => controls.zoomOut() },
    { keys: ['Escape'], shown: 'Esc', help: 'back to the whole graph, then clear the search',
      typing: true, run: () => controls.escape() },
    { keys: ['o', 'ContextMenu'], shown: 'o', help: 'menu of the selected frame',
      run: () => controls.actions() },
    { keys: ['h'], help: 'hide the selected function', run: () => controls.hideSelected() },
    { keys: ['z'], help: 'undo the last hiding or collapsing', run: () => controls.undo() },
    { keys: ['s'], help: 'sandwich: callers and callees of the selected function',
      run: () => controls.sandwich() },
    { keys: ['b'], help: 'table and graph side by side', run: () => controls.view('both') },
    { keys: ['g'], help: 'graph', run: () => controls.view('graph') },
    { keys: ['t'], help: 'table of functions, and back', run: () => controls.view('table') },
    { keys: ['e'], help: 'call tree, and back', run: () => controls.view('tree') },
    { keys: ['i'], help: 'time: heat map and threads of a recording', run: () => controls.view('time') },
    { keys: ['r'], help: 'collapse recursion', run: () => controls.toggleRecursion() },
    { keys: ['l'], help: 'collapse libraries', run: () => controls.toggleLibraries() },
    { keys: ['y'], help: 'my code only: libraries are left out', run: () => controls.toggleOwn() },
    { keys: ['p'], help: 'colour by package, binary or state', run: () => controls.nextColour() },
    { keys: ['m'], help: 'next sample type', run: () => controls.nextType() },
    { keys: ['f'], help: 'flip: root at the bottom or at the top', run: () => controls.flip() },
    { keys: ['d'], help: 'dark or light', run: () => controls.dark() },
    { keys: ['c'], help: 'colour-blind safe colours', run: () => controls.safe() },
    { keys: ['?'], help: 'this help', run: () => controls.help() },
  ];
}
