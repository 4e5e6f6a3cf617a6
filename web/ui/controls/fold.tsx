// SPDX-License-Identifier: Apache-2.0
// Controls that on a phone are one line until somebody opens them; where there is room they are just
// there.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from '../parts/icon';

export interface FoldProps {
  class: string;
  label: string; // of the group
  summary: ComponentChildren; // what the closed line says
  children: ComponentChildren;
}

export function Fold({ class: name, label, summary, children }: FoldProps) {
  const [open, setOpen] = useState(false);
  return (
    <div class={`${name} fold${open ? ' open' : ''}`} role="group" aria-label={label}>
      <button type="button" class="button fold-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="fold-summary">{summary}</span> <Icon name={open ? 'up' : 'down'} />
      </button>
      {children}
    </div>
  );
}
