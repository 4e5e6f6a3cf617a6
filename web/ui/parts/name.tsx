// SPDX-License-Identifier: Apache-2.0
// Names where there may be too little room for them: of functions, in full, over several lines, and of
// services, pods and hosts on one line.

import { briefName, shownName } from '../../flame/data/names';

export function Name({ name }: { name: string }) {
  const parts = shownName(name).match(/[^/.:]+[/.:]*|[/.:]+/g) ?? [];
  return <bdi>{parts.map((part, i) => (i === 0 ? part : <><wbr />{part}</>))}</bdi>;
}

// Names of a fleet differ at either end. On one line that is too short, the middle is left out.
const END_CHARACTERS = 12;

export function ShortName({ name }: { name: string }) {
  const shown = shownName(name);
  if (shown.length <= 2 * END_CHARACTERS) return <bdi class="one-line" title={shown}>{shown}</bdi>;
  return (
    <span class="short-name" title={shown}>
      <span class="hidden">{shown}</span>
      <bdi aria-hidden="true">{shown.slice(0, -END_CHARACTERS)}</bdi>
      <bdi aria-hidden="true">{shown.slice(-END_CHARACTERS)}</bdi>
    </span>
  );
}

// A function's name in a narrow column: of a long one, the last parts.
export function BriefName({ name, most }: { name: string; most: number }) {
  const shown = shownName(name);
  return <bdi class="brief-name" title={shown}>{briefName(shown, most)}</bdi>;
}
