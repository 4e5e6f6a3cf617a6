// SPDX-License-Identifier: Apache-2.0
// Asks the server for what a picture with "(other)" can't tell: tables of all functions, what a search
// accounts for, and a function's callers and callees.

import { readProfile } from '../../flame/data/data';
import type { Ask, Simpler, TableRequest } from '../../flame/exact';
import { get, type CallersAnswer, type DiffAnswer, type TopAnswer } from '../api';
import type { Params } from '../route';
import { parseQuery, writeQuery } from '../selection';
import { STATE } from './states';

const SORTS: Record<string, string> = {
  name: 'name', self: 'flat', total: 'cum', 'self-change': 'flat', 'total-change': 'cum',
  'self-base': 'base_flat', 'self-new': 'new_flat', 'total-base': 'base_cum', 'total-new': 'new_cum',
};

const simplerParams = ({ hide, fold, only, recursion }: Simpler): Params => ({
  hide, fold: [...fold], only: only || undefined, recursion: recursion ? 'once' : undefined,
});

export function tableParams(request: TableRequest): Params {
  const { search, regex, sort, descending, limit, focus } = request;
  return {
    sort: SORTS[sort] ?? 'flat', order: descending ? 'desc' : 'asc', limit: String(limit), focus,
    ...simplerParams(request),
    [regex ? 'regex' : 'search']: search || undefined,
  };
}

// The part of a selection that was measured in a state.
export function duringState(selection: Params, state: string): Params {
  if (state === '') return selection;
  const parsed = parseQuery(String(selection.query));
  if (!parsed) throw new Error('The query has no labels to choose a state by.');
  return { ...selection, query: writeQuery({ ...parsed,
    matchers: [...parsed.matchers, { name: STATE, operator: '=', value: state }] }) };
}

// Of one selection; `part` is what of its stacks is looked at, such as those below a function.
export function askTop(selection: Params, part: Params = {}): Ask {
  return {
    table: async (request, signal) => {
      const { functions, function_count: count, matched = 0 } = await get<TopAnswer>('top', {
        ...duringState(selection, request.during), ...tableParams(request), ...part }, signal);
      return {
        count, matched,
        rows: functions.map(({ function: name, file, binary, flat, cum }) =>
          ({ name, file, binary, self: flat, total: cum, baseSelf: 0, baseTotal: 0 })),
      };
    },
    around: askAround({ ...selection, ...part }),
  };
}

const askAround = (selection: Params): Ask['around'] => async (request, signal) => {
  const answer = await get<CallersAnswer>('callers', {
    ...duringState(selection, request.during), ...simplerParams(request), function: request.name, limit: '1' }, signal);
  return { callers: readProfile(answer.caller_tree), callees: readProfile(answer.callee_tree) };
};

// Of a comparison: the base is scaled, as in its picture.
export function askDiff(selection: Params): Ask {
  return {
    table: async (request, signal) => {
      const { functions, function_count: count, matched = 0, scale } = await get<DiffAnswer>('diff', {
        ...selection, ...tableParams(request) }, signal);
      return {
        count, matched,
        rows: functions.map((row) => ({
          name: row.function, file: row.file, binary: row.binary, self: row.new_flat, total: row.new_cum,
          baseSelf: row.base_flat * scale, baseTotal: row.base_cum * scale,
        })),
      };
    },
    around: askAround(selection),
  };
}
