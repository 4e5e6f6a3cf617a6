// SPDX-License-Identifier: Apache-2.0
// Verdicts of the server beside a picture of a difference.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { CompareAnswer, ComparedMeasure } from '../ui/api';
import { verdictWords, withVerdicts } from '../ui/data/verdicts';

const measure = (given: Partial<ComparedMeasure>): ComparedMeasure =>
  ({ base: 1, new: 2, low: 0.5, high: 1.5, verdict: 'grew', ...given });

function answer(functions: Record<string, Partial<ComparedMeasure>>,
  given: Partial<CompareAnswer> = {}): CompareAnswer {
  return {
    method: 'windows', hosts: 0, judged: 12, found: 1, requests: 'unknown',
    new: { exposure: 100, windows: 64 }, ...given,
    functions: Object.entries(functions).map(([name, total]) =>
      ({ function: name, self: measure({ base: 0, new: 0 }), total: measure(total) })),
  };
}

const flame = { strings: ['', 'inlined', 'caller', 'rare', 'unknown'], functions: { name: [1, 2, 3, 4] } };
const changesOf = (compared: CompareAnswer) =>
  (withVerdicts(flame, compared) as { changes: unknown[] }).changes;

test('a function that is judged at its caller has no verdict of its own', () => {
  const zero = { base: 0, new: 0, low: 0, high: 0, verdict: 'noise' } as const;
  assert.deepEqual(changesOf(answer({ inlined: zero, caller: {} })),
    [{ function: 1, interval: [50, 150], verdict: 'grew' }]);
  // One that is there on one side only is judged as any other.
  assert.deepEqual(changesOf(answer({ inlined: { ...zero, new: 3, low: 1, high: 5, verdict: 'grew' } })),
    [{ function: 0, interval: [100, 500], verdict: 'grew' }]);
});

test('a function has a verdict on its own value, too, where it has one', () => {
  const compared = answer({ caller: { verdict: 'noise' } });
  compared.functions[0].self = measure({ high: null, verdict: 'too few' });
  assert.deepEqual(changesOf(compared),
    [{ function: 1, interval: [50, 150], verdict: 'noise', self: { verdict: 'noise' } }]);
});

test('an unbounded interval is left out, and too few samples are noise', () => {
  assert.deepEqual(changesOf(answer({ caller: { high: null }, rare: { low: null, verdict: 'too few' } })),
    [{ function: 1, verdict: 'grew' }, { function: 2, verdict: 'noise' }]);
  assert.deepEqual(changesOf(answer({})), []);
  assert.deepEqual(changesOf(answer({ caller: { high: null, cause: 'requests' },
    rare: { low: null, cause: 'unknown' }, unknown: { low: null, verdict: 'undecided', more_seconds: 60 } })),
  [{ function: 1, verdict: 'grew', cause: 'requests' }, { function: 2, verdict: 'grew' },
    { function: 3, verdict: 'undecided', more_seconds: 60 }]);
});

test('verdicts in words', () => {
  assert.equal(verdictWords(answer({})), '1 certain change among 12 comparisons, judged by 64 windows. '
    + 'More calls or slower ones: unknown without requests.');
  assert.match(verdictWords(answer({}, { found: 0, method: 'counts', requests: 'known' })),
    /^No change is certain among 12 comparisons, judged by counts alone\./);
  assert.match(verdictWords(answer({}, { found: 3, hosts: 2 })), /^3 certain changes .* 64 windows and 2 hosts\./);
  assert.match(verdictWords(answer({}, { coarse: 38409 })),
    /requests\. The 38409 smallest functions were not judged \(limits\.query_memory\)\.$/);
  assert.match(verdictWords(answer({}, { coarse: 1 })), / The smallest function was not judged /);
});
