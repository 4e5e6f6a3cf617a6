// SPDX-License-Identifier: Apache-2.0
// What people keep on the server for each other: views, notes and pins. Dialogs for them open over
// whatever page asks.

import { useEffect, useState } from 'preact/hooks';
import type { Bounds } from './time';

export interface View {
  id: string;
  name: string;
  address: string;
  by: string;
  saved: number;
}

export interface Note {
  id: string;
  text: string;
  service: string;
  from: number;
  to: number;
  by: string;
  saved: number;
}

export interface Pin {
  id: string;
  reason: string;
  from: number;
  to: number;
  expires: number;
  dropped: number | null;
  why: string;
  by: string;
  saved: number;
}

export interface Pins {
  pins: Pin[];
  bytes: number;
  limit_bytes: number;
}

// What a dialog is to ask for.
export type Keep =
  | { kind: 'view' }
  | { kind: 'note' | 'pin'; bounds: Bounds; service: string }
  | { kind: 'bundle'; bounds: Bounds; query: string };

export const KEEP = 'assay:keep';
export const KEPT = 'assay:kept';

export function keep(what: Keep): void {
  window.dispatchEvent(new CustomEvent(KEEP, { detail: what }));
}

// A number that grows whenever something was kept or deleted: lists ask again.
export function useKept(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const again = () => setCount((now) => now + 1);
    window.addEventListener(KEPT, again);
    return () => window.removeEventListener(KEPT, again);
  }, []);
  return count;
}
