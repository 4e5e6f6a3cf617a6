// SPDX-License-Identifier: Apache-2.0
// The switch between readable names of functions and those that the profiler reported.

import { namesParam, type Params } from '../route';

export function NamesSwitch({ onChange }: { onChange: (change: Params) => void }) {
  const original = namesParam().names !== undefined;
  return (
    <button type="button" class="button" aria-pressed={original} aria-label="Original names"
      title="Original names: show functions as the profiler reported them: mangled, and with the parts of generated names that differ from process to process"
      onClick={() => onChange({ names: original ? undefined : 'original' })}>
      Aa</button>
  );
}
