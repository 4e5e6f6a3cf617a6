// SPDX-License-Identifier: Apache-2.0
// A function's name in full, which breaks where its parts end when a line is too short for it.

import { shownName } from '../../flame/data/names';

export function Name({ name }: { name: string }) {
  const parts = shownName(name).match(/[^/.:]+[/.:]*|[/.:]+/g) ?? [];
  return <bdi>{parts.map((part, i) => (i === 0 ? part : <><wbr />{part}</>))}</bdi>;
}
