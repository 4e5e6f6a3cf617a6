// SPDX-License-Identifier: Apache-2.0
// A menu at the pointer for a page: the one that the flame graph has for frames.

import { useEffect, useRef } from 'preact/hooks';
import { Lifetime } from '../../flame/dom';
import { Menu, type MenuItem } from '../../flame/controls/menu';

export type OpenMenu = (title: string, items: MenuItem[], x: number, y: number, closed?: () => void) => void;

export function usePointMenu(): OpenMenu {
  const made = useRef<{ menu: Menu; life: Lifetime } | null>(null);
  useEffect(() => () => {
    made.current?.life.end();
    made.current?.menu.element.remove();
  }, []);
  return (title, items, x, y, closed) => {
    if (!made.current) {
      const life = new Lifetime();
      made.current = { menu: new Menu(life), life };
      document.querySelector('main')?.append(made.current.menu.element); // a landmark, as all content
    }
    made.current.menu.open(title, items, x, y, closed);
  };
}
