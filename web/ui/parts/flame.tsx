// SPDX-License-Identifier: Apache-2.0
// The flame-graph module within a page. Its state lives in the address, under names of its own, and
// so does what was asked for in more detail.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { mount, type FlameApp, type Focus } from '../../flame/app';
import { FlameDataError, parseProfile, readProfile, type Profile } from '../../flame/data/data';
import { exactBy, type Ask } from '../../flame/exact';
import { findPath, graft } from '../../flame/data/graft';
import { findNodes, nodeKey } from '../../flame/data/keys';
import { withStates } from '../../flame/data/states';
import { decodeState, encodeState, type View } from '../../flame/state';
import { pathTo } from '../../flame/data/tree';
import { useSettings } from '../settings';

// Asks for a part of the call tree again, whole: the stacks that begin with these names. `again` when
// that was done once before and did not suffice.
export type AskMore = (path: string[], again: boolean, signal: AbortSignal) => Promise<unknown>;
// Asks for each state's part of the profile, as documents.
export type AskStates = (signal: AbortSignal) => Promise<[name: string, data: unknown][]>;

export interface FlameProps {
  data: unknown; // a flame-data document, parsed
  state: string; // as encodeState writes it, and what was expanded
  onState: (state: string, step: boolean) => void;
  apart?: boolean; // one of several: keys are heard only inside of it
  onOpenFunction?: (name: string) => void;
  onCompare?: (name: string) => void;
  onAssembly?: (name: string, type: string) => void;
  more?: AskMore;
  exact?: Ask; // who has all stacks
  states?: AskStates;
  splits?: string[]; // labels by which the page can split what it shows
  // Hears of the module when it is there, and of null when it is gone.
  onApp?: (app: FlameApp | null) => void;
}

type Action = [label: string, run: (name: string) => void];

// Room for a table beside a graph.
const WIDE_PX = 1100;
const MORE = 'more';
const ROOT = 'root';

function read(data: unknown): Profile | string {
  try {
    return typeof data === 'string' ? parseProfile(data) : readProfile(data);
  } catch (error) {
    if (error instanceof FlameDataError) return error.message;
    throw error;
  }
}

const moreOf = (state: string) => (new URLSearchParams(state).get(MORE) ?? '')
  .split('.').filter((key) => key !== '');

export function withMore(state: string, keys: readonly string[]): string {
  const params = new URLSearchParams(state);
  if (keys.length > 0) params.set(MORE, keys.join('.'));
  return params.toString();
}

interface Grown {
  base: Profile;
  keys: string[];
  profile: Profile;
}

// One after the other: what is inside of an expanded part can be expanded, too.
async function grow(from: Grown, keys: string[], ask: AskMore, signal: AbortSignal): Promise<Grown> {
  let { profile } = from;
  for (let i = from.keys.length; i < keys.length; i++) {
    const key = keys[i];
    const { tree, names } = profile;
    const node = key === ROOT ? 0 : findNodes(tree, names, [key])[0] ?? -1;
    if (node < 0) continue;
    const path = pathTo(tree, node).slice(1).map((n) => names[tree.func[n]]);
    const part = read(await ask(path, keys.indexOf(key) < i, signal));
    if (typeof part !== 'string') profile = graft(profile, part, path);
  }
  return { base: from.base, keys, profile };
}

// Whether a view colours or filters by state.
function wantsStates(state: string): boolean {
  const params = new URLSearchParams(state);
  return params.get('colour') === 'state' || params.has('state');
}

// The profile with its states, where colours ask for them and the page has them.
function useStates(
  profile: Profile | string, wanted: boolean, ask: AskStates | undefined,
  setBusy: (words: string) => void,
): Profile | string {
  const [stated, setStated] = useState<{ of: Profile; profile: Profile } | null>(null);
  const has = typeof profile === 'string' || profile.states !== null || stated?.of === profile;
  useEffect(() => {
    if (has || !wanted || !ask || typeof profile === 'string') return undefined;
    const controller = new AbortController();
    setBusy('Loading states…');
    ask(controller.signal).then(
      (answers) => {
        const parts = answers.map(([name, data]) => [name, read(data)] as const)
          .filter((part): part is readonly [string, Profile] => typeof part[1] !== 'string');
        setBusy('');
        setStated({ of: profile, profile: withStates(profile, parts) });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setBusy((error as Error).message);
      });
    return () => controller.abort();
  }, [profile, wanted, ask !== undefined]);
  return typeof profile !== 'string' && stated?.of === profile ? stated.profile : profile;
}

export function Flame(props: FlameProps) {
  const { data, state, apart = false } = props;
  const settings = useSettings();
  const element = useRef<HTMLDivElement>(null);
  const app = useRef<FlameApp | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shown = useRef(state); // what the module that is mounted now shows
  const focus = useRef<Focus | null>(null); // new data does not take the keyboard away
  const [grown, setGrown] = useState<Grown | null>(null);
  const [busy, setBusy] = useState('');
  const base = useMemo(() => read(data), [data]);
  const profile = useStates(grown && grown.base === base ? grown.profile : base,
    wantsStates(state), props.states, setBusy);
  const keys = moreOf(state);
  const view: View = !apart && window.innerWidth >= WIDE_PX ? 'both' : 'graph';

  useEffect(() => {
    const { more } = latest.current;
    if (typeof base === 'string' || !more || keys.length === 0) return undefined;
    const known = grown && grown.base === base && grown.keys.every((key, i) => key === keys[i])
      ? grown : { base, keys: [], profile: base };
    if (known.keys.length === keys.length) return undefined;
    const controller = new AbortController();
    setBusy('Loading small frames…');
    grow(known, keys, more, controller.signal).then(
      (next) => {
        setBusy('');
        setGrown(next);
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setBusy((error as Error).message);
      });
    return () => controller.abort();
  }, [base, keys.join('.')]);

  useEffect(() => {
    if (!element.current || typeof profile === 'string') return undefined;
    const report = (text: string, step: boolean) => {
      shown.current = text;
      latest.current.onState(text, step);
    };
    // What the last one reported may not have come back as `state` yet: then it is shown after this.
    shown.current = latest.current.state;
    const mounted = mount(element.current, profile, {
      focus: focus.current,
      state: decodeState(latest.current.state, profile, view),
      theme: settings.theme,
      states: () => latest.current.states !== undefined,
      splits: () => latest.current.splits ?? [],
      exact: props.exact && exactBy({
        table: (request, signal) => latest.current.exact!.table(request, signal),
        around: props.exact.around
          && ((request, signal) => latest.current.exact!.around!(request, signal)),
      }),
      keys: apart ? element.current : document,
      onOpenFunction: props.onOpenFunction && ((name) => latest.current.onOpenFunction?.(name)),
      actions: [
        ...props.onCompare ? [['Compare with the previous period',
          (name: string) => latest.current.onCompare?.(name)] as Action] : [],
        ...props.onAssembly ? [['Show instructions', (name: string) =>
          latest.current.onAssembly?.(name, profile.types[mounted.state().type].name)] as Action] : [],
      ],
      onExpand: props.more && ((path) => {
        const node = findPath(profile, path);
        if (node < 0) return;
        const key = node === 0 ? ROOT : nodeKey(profile.tree, profile.names, node);
        report(withMore(encodeState({ ...mounted.state(), zoom: node }, profile, view),
          [...moreOf(latest.current.state), key]), true);
      }),
      onState: (next, step) =>
        report(withMore(encodeState(next, profile, view), moreOf(latest.current.state)), step),
    });
    app.current = mounted;
    latest.current.onApp?.(mounted);
    return () => {
      app.current = null;
      focus.current = mounted.focus();
      latest.current.onApp?.(null);
      mounted.destroy();
    };
  }, [profile]);
  useEffect(() => {
    if (props.states) app.current?.show(app.current.state()); // one more thing to colour by
  }, [props.states !== undefined]);
  useEffect(() => {
    if (!app.current || state === shown.current || typeof profile === 'string') return;
    shown.current = state;
    app.current.show(decodeState(state, profile, view));
  }, [state]);

  if (typeof profile === 'string')
    return <div class="notice wrong" role="alert"><p>{profile}</p></div>;
  return (
    <div class="flame-part">
      {busy !== '' && <p class="flame-busy" role="status">{busy}</p>}
      <div class="flame-box" ref={element} />
    </div>
  );
}
