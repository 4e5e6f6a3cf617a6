// SPDX-License-Identifier: Apache-2.0
// 16×16 line drawings.

const PATHS = {
  mark: 'M2 13.5h12M3.5 10h9M5.5 6.5h6M7 3h2.5',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z',
  moon: 'M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z',
  help: 'M5.8 6a2.2 2.2 0 1 1 3.4 1.9c-.8.5-1.2.9-1.2 1.9M8 12.4v.1',
  clock: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 5v3.2l2.2 1.3',
  refresh: 'M13.5 8a5.5 5.5 0 1 1-1.6-3.9M13.5 2v3h-3',
  close: 'M4 4l8 8M12 4l-8 8',
  leave: 'M9.5 3H3.5v10h6M7 8h7M11.5 5.5 14 8l-2.5 2.5',
  file: 'M4 2h5l3.5 3.5V14H4ZM9 2v3.5h3.5',
  up: 'M4 9.5 8 5.5 12 9.5',
  down: 'M4 6.5 8 10.5 12 6.5',
  plus: 'M8 3v10M3 8h10',
  link: 'M6.5 9.5a2.8 2.8 0 0 0 4 0l2-2a2.8 2.8 0 0 0-4-4l-.8.8M9.5 6.5a2.8 2.8 0 0 0-4 0l-2 2a2.8 2.8 0 0 0 4 4l.8-.8',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.5 10.5l3 3',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8Z',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  zoomOut: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.5 10.5l3 3M5 7h4',
  bookmark: 'M4 2h8v12l-4-3-4 3Z',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  export: 'M8 2.5v7M5 5.5l3-3 3 3M3 10.5v2.5h10v-2.5',
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[name]} /></svg>;
}
