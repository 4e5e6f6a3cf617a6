// SPDX-License-Identifier: Apache-2.0
// The path from the root to the zoomed frame. Each step is a button that zooms back out to it; a
// long path keeps its beginning and its end.

import { make } from '../dom';
import { functionName, type Profile } from '../data/data';
import { pathTo } from '../data/tree';

const SHOWN = 6;

export class Breadcrumb {
  readonly element = make('nav', { class: 'crumbs', 'aria-label': 'Path to the zoomed frame' });

  constructor(private readonly onZoom: (node: number) => void) {}

  show(profile: Profile, zoom: number): void {
    const path = pathTo(profile.tree, zoom);
    const parts: HTMLElement[] = [];
    path.forEach((node, i) => {
      const last = i === path.length - 1;
      if (path.length > SHOWN && i > 0 && i <= path.length - SHOWN + 1) {
        if (i === 1) parts.push(this.separator(), make('span', { class: 'crumb-gap' }, '…'));
        return;
      }
      if (i > 0) parts.push(this.separator());
      parts.push(this.crumb(functionName(profile, profile.tree.func[node]), node, last));
    });
    this.element.replaceChildren(...parts);
  }

  private separator(): HTMLElement {
    return make('span', { class: 'crumb-separator', 'aria-hidden': 'true' }, '›');
  }

  private crumb(name: string, node: number, last: boolean): HTMLElement {
    if (last) return make('span', { class: 'crumb', 'aria-current': 'true', title: name }, name);
    const button = make('button', { type: 'button', class: 'crumb', title: name }, name);
    button.addEventListener('click', () => this.onZoom(node));
    return button;
  }
}
