// SPDX-License-Identifier: Apache-2.0
// Two selections against each other: windows, versions, labels. What grew is red, what shrank blue.

import { useMemo, useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import type { PageProps } from '../app';
import { get, getBlob, type CompareAnswer, type DiffFlameAnswer, type FlameAnswer } from '../api';
import { askDiff, askTop } from '../data/exact';
import { useLoad } from '../load';
import { moreParams, WHOLE } from '../data/more';
import { CompareChart } from '../charts/compare-chart';
import { besides, CopyLink, DIFFERENCES, Export, foldedOf } from '../parts/export';
import { Fold } from '../controls/fold';
import { Flame } from '../parts/flame';
import { NamesSwitch } from '../controls/names';
import { QualityLine } from '../parts/quality';
import { RangePicker } from '../controls/range';
import { SelectionBar } from '../controls/selection-bar';
import { Failure, Nothing, Progress } from '../parts/status';
import { address, go, namesParam, type Params } from '../route';
import { labelOf, parseQuery, withLabel, writeQuery, type Selection } from '../selection';
import { useSettings } from '../settings';
import { before, boundsOf, formatBounds, formatShort, rangeOf, type Bounds, type Range } from '../time';
import { verdictWords, withVerdicts } from '../data/verdicts';
import { stepOfVersions, versionName } from '../data/versions';

const DAY = 86400;
const NORMALIZE: readonly (readonly [string, string])[] = [
  ['', 'Per second'], ['total', '% of total'], ['none', 'Raw'],
];

interface Side {
  text: string;
  selection: Selection;
  range: Range;
  bounds: Bounds;
}

function sideOf(params: URLSearchParams, prefix: string, fallback: Side | null, now: number): Side {
  const text = params.get(`${prefix}query`) ?? fallback?.text ?? 'cpu{}';
  const selection = parseQuery(text) ?? { type: 'cpu', matchers: [] };
  const given = params.get(`${prefix}from`);
  const range = given
    ? { from: given, to: params.get(`${prefix}to`) ?? 'now' }
    : fallback ? rangeOf(before(fallback.bounds)) : { from: 'now-1h', to: 'now' };
  return { text, selection, range, bounds: boundsOf(range, now) };
}

const times = (side: Side) => ({ from: String(side.bounds.from), to: String(side.bounds.to) });

const functionLink = (side: Side, name: string) =>
  address('/function', {
    query: side.text, name, from: side.range.from, to: side.range.to, ...namesParam() });

const diffParams = (base: Side, side: Side, normalize: string): Params => ({
  query: side.text, ...times(side), base_query: base.text, base_from: times(base).from,
  base_to: times(base).to, normalize,
});

// Both layouts are of the same difference.
async function difference(base: Side, side: Side, normalize: string, format: string): Promise<Blob> {
  const params = diffParams(base, side, normalize);
  if (format !== 'folded') return getBlob('diff', { ...params, format });
  return foldedOf((await get<DiffFlameAnswer>('diff', { ...params, format: 'flame', ...WHOLE })).flame);
}

function Overlaid(props: { base: Side; side: Side; normalize: string; view: string;
  onView: (view: string, step: boolean) => void; onApp: (app: FlameApp | null) => void }) {
  const { base, side, normalize, view, onView, onApp } = props;
  const key = `${base.text} ${base.bounds.from} ${base.bounds.to} ${side.text} `
    + `${side.bounds.from} ${side.bounds.to} ${normalize}`;
  const diff = useLoad(key, (signal) => get<DiffFlameAnswer>('diff', {
    ...diffParams(base, side, normalize), format: 'flame',
  }, signal));
  // Verdicts follow the picture: it doesn't wait for them, and does without where there are none.
  const compared = useLoad(diff.value ? `verdicts ${key}` : null, (signal) =>
    get<CompareAnswer>('compare', { ...diffParams(base, side, normalize), limit: '20000' }, signal));
  const known = compared.stale ? null : compared.value;
  const judged = (tree: unknown) => (known ? withVerdicts(tree, known) : tree);
  const flame = useMemo(() => diff.value && judged(diff.value.flame), [diff.value, known]);
  const missing = diff.value && [['Before', diff.value.base], ['After', diff.value.new]] as const;
  const empty = missing?.filter(([, { quality }]) => quality.windows === 0).map(([title]) => title);
  return (
    <>
      <Progress loaded={diff} />
      {diff.error?.status === 404
        ? <Nothing><p>One side has no data: no profile of this type with these labels in its range.
          Compare with another time or version, or remove labels.</p></Nothing>
        : <Failure loaded={diff} />}
      {diff.value && diff.error?.status !== 404 && <>
        <QualityLine bare sides={[
          { quality: diff.value.base.quality, bounds: base.bounds, title: 'Before' },
          { quality: diff.value.new.quality, bounds: side.bounds, title: 'After' },
        ]} words={known ? verdictWords(known)
          : compared.error ? `The certainty of the changes is unknown: ${compared.error.message}` : ''} />
        {empty && empty.length > 0
          ? <Nothing><p>{empty.join(' and ')}: no data for this selection in this range. Choose another
            range, or remove labels.</p></Nothing>
          : <Flame data={flame} state={view} onState={onView} onApp={onApp}
            exact={askDiff(diffParams(base, side, normalize))}
            more={async (path, again, signal) => judged((await get<DiffFlameAnswer>('diff', {
              ...diffParams(base, side, normalize), format: 'flame', ...moreParams(path, again),
            }, signal)).flame)}
            onOpenFunction={(name) => go(functionLink(side, name))} />}
      </>}
    </>
  );
}

function Half(props: { side: Side; title: string; view: string;
  onView: (view: string, step: boolean) => void; onApp: (app: FlameApp | null) => void }) {
  const { side, title, view, onView, onApp } = props;
  const flame = useLoad(`${side.text} ${side.bounds.from} ${side.bounds.to}`, (signal) =>
    get<FlameAnswer>('flame', { query: side.text, ...times(side) }, signal));
  return (
    <section class="half" aria-label={title}>
      <Progress loaded={flame} />
      <Failure loaded={flame} />
      {flame.value && <>
        <QualityLine bare sides={[{ quality: flame.value.quality, bounds: side.bounds, title }]} />
        {flame.value.quality.windows === 0
          ? <Nothing><p>No data for this selection in this range.</p></Nothing>
          : <Flame data={flame.value.flame} state={view} onState={onView} onApp={onApp} apart
            exact={askTop({ query: side.text, ...times(side) })}
            more={async (path, again, signal) => (await get<FlameAnswer>('flame', {
              query: side.text, ...times(side), ...moreParams(path, again),
            }, signal)).flame}
            onOpenFunction={(name) => go(functionLink(side, name))} />}
      </>}
    </section>
  );
}

export function Compare({ route }: PageProps) {
  const { params } = route;
  const { utc } = useSettings();
  const [asked, setAsked] = useState(() => Date.now() / 1000);
  const [problem, setProblem] = useState('');
  const side = useMemo(() => sideOf(params, '', null, asked), [params, asked]);
  const base = useMemo(() => sideOf(params, 'base_', side, asked), [params, asked]);
  const normalize = params.get('normalize') ?? '';
  const apart = params.get('layout') === 'apart';
  const service = labelOf(side.selection, 'service_name');
  const flames = useRef<Record<string, FlameApp | null>>({}); // by what they show
  const onApp = (what: string) => (app: FlameApp | null) => { flames.current[what] = app; };
  const picture = (what: string) => flames.current[what]?.picture() ?? null;

  function link(change: Params) {
    return address('/compare', {
      query: side.text, from: side.range.from, to: side.range.to,
      base_query: base.text, base_from: base.range.from, base_to: base.range.to,
      normalize: normalize || undefined,
      layout: apart ? 'apart' : undefined, flame: params.get('flame') ?? undefined,
      split: params.get('split') ?? undefined, ...namesParam(), ...change,
    });
  }
  const show = (change: Params, replace = false) => go(link(change), replace);
  const pinned = () => {
    const [after, earlier] = [rangeOf(side.bounds), rangeOf(base.bounds)];
    return link({ ...after, base_from: earlier.from, base_to: earlier.to });
  };
  const setSide = (prefix: string, selection: Selection, range: Range) => {
    setAsked(Date.now() / 1000);
    show({
      [`${prefix}query`]: writeQuery(selection), [`${prefix}from`]: range.from,
      [`${prefix}to`]: range.to, flame: undefined,
    });
  };
  const split = base.text !== side.text || params.get('split') !== null;
  const steps = useLoad(service === '' ? null : `versions ${side.text} ${side.bounds.to}`,
    (signal) => stepOfVersions(side.selection, side.bounds, signal));
  const against = (bounds: Bounds) => setSide('base_', side.selection, rangeOf(bounds));

  async function againstVersion() {
    setProblem('');
    try {
      const asked = labelOf(side.selection, 'version');
      const [now, previous] = await stepOfVersions(side.selection, side.bounds, new AbortController().signal);
      if (!now || !previous) {
        setProblem(now ? `No version of ${service} before ${now.name} in the last 14 days.`
          : `No ${asked === '' ? 'version' : `version ${asked}`} of ${service} ran in the last 14 days.`);
        return;
      }
      const [after, earlier] = [rangeOf(now.bounds), rangeOf(previous.bounds)];
      show({
        query: writeQuery(withLabel(side.selection, 'version', now.name)),
        base_query: writeQuery(withLabel(side.selection, 'version', previous.name)),
        from: after.from, to: after.to, base_from: earlier.from, base_to: earlier.to,
        flame: undefined,
      });
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  return (
    <div class="page explore">
      <h1 class="hidden">Compare</h1>
      {!split ? (
        <SelectionBar selection={side.selection} range={side.range} bounds={side.bounds} timeless
          onChange={(selection) => {
            setAsked(Date.now() / 1000);
            show({ query: writeQuery(selection), base_query: writeQuery(selection), flame: undefined });
          }}>
          <button type="button" class="button" title="Choose other services or labels for each side"
            onClick={() => show({ split: '1' })}>Two selections</button>
          {([['Before', base, 'base_'], ['After', side, '']] as const).map(([title, one, prefix]) => (
            <span key={title} class="inline" role="group" aria-label={title}>{title}
              <RangePicker range={one.range} onChange={(range) => setSide(prefix, one.selection, range)} /></span>
          ))}
        </SelectionBar>
      ) : <>
        <SelectionBar title="Before" selection={base.selection} range={base.range} bounds={base.bounds}
          onChange={(selection, range) => setSide('base_', selection, range)} />
        <SelectionBar title="After" selection={side.selection} range={side.range} bounds={side.bounds}
          onChange={(selection, range) => setSide('', selection, range)} />
      </>}
      <Fold class="page-head" label="Compare with" summary="Presets, layout, export">
        {([['Previous period', before(side.bounds)], ['Yesterday', before(side.bounds, DAY)]] as const).map(
          ([title, range]) => (
            <button key={title} type="button" class="button" title={formatBounds(range, utc)} onClick={() => against(range)}>
              {title} <span class="quiet preset">{formatShort(range, utc)}</span></button>
          ))}
        {service !== '' && <button type="button" class="button" onClick={againstVersion}>
          Previous version <span class="quiet preset">{steps.value?.length === 2
            ? `${versionName(steps.value[1].name)} → ${versionName(steps.value[0].name)}` : ''}</span></button>}
        <span class="problem" role="alert">{problem}</span>
        <span class="space" />
        {!apart && <select class="button whole" aria-label="Normalization" value={normalize}
          onChange={(event) => show({ normalize: event.currentTarget.value })}>
          {NORMALIZE.map(([id, title]) => <option key={id} value={id}>{title}</option>)}
        </select>}
        <div class="group" role="group" aria-label="Layout">
          <button type="button" class="button" aria-pressed={!apart}
            onClick={() => show({ layout: undefined, flame: undefined })}>Overlaid</button>
          <button type="button" class="button" aria-pressed={apart}
            onClick={() => show({ layout: 'apart', flame: undefined })}>Side by side</button>
        </div>
        <NamesSwitch onChange={show} />
        <CopyLink link={pinned()} />
        <Export title={`${service || 'assay'}-diff`} formats={DIFFERENCES}
          picture={() => apart ? besides([picture('base'), picture('side')]) : picture('diff')}
          make={(format) => difference(base, side, normalize, format)}
          more={[['Before', base] as const, ['After', side] as const].map(([title, one]) => ({
            words: `${title} (pprof)`, name: `${service || 'assay'}-${title.toLowerCase()}.pb.gz`,
            make: () => getBlob('profile', { query: one.text, ...times(one), format: 'pprof' }),
          }))} />
      </Fold>
      <CompareChart base={base} side={side}
        onBase={(bounds) => setSide('base_', base.selection, rangeOf(bounds))}
        onSide={(bounds) => setSide('', side.selection, rangeOf(bounds))} />
      {apart
        ? <div class="halves">
          <Half side={base} title="Before" view={params.get('flame') ?? ''}
            onView={(view, step) => show({ flame: view }, !step)} onApp={onApp('base')} />
          <Half side={side} title="After" view={params.get('flame') ?? ''}
            onView={(view, step) => show({ flame: view }, !step)} onApp={onApp('side')} />
        </div>
        : <Overlaid base={base} side={side} normalize={normalize} view={params.get('flame') ?? ''}
          onView={(flame, step) => show({ flame }, !step)}
          onApp={onApp('diff')} />}
    </div>
  );
}
