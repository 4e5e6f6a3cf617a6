// SPDX-License-Identifier: Apache-2.0
// Wall-clock time by state: the label by which samples say what their thread did.

import { get, type FlameAnswer } from '../api';
import { writeQuery, type Selection } from '../selection';

export const STATE = 'state';
const STATES_MAX = 16; // that can be told apart

// Each state's part of a selection's flame graph.
export async function askStates(
  selection: Selection, times: { from: string; to: string }, split: string | undefined, signal: AbortSignal,
): Promise<[string, unknown][]> {
  const names = await get<string[]>(`label/${STATE}/values`, { query: writeQuery(selection), ...times }, signal);
  return Promise.all(names.slice(0, STATES_MAX).map(async (name): Promise<[string, unknown]> => {
    const query = writeQuery({ ...selection,
      matchers: [...selection.matchers, { name: STATE, operator: '=', value: name }] });
    return [name, (await get<FlameAnswer>('flame', { query, ...times, split }, signal)).flame];
  }));
}
