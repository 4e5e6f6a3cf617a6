// SPDX-License-Identifier: Apache-2.0
// The shell: navigation, theme and clock, the token, the keyboard map, and the page that the address
// names.

import type { ComponentType } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { setToken, token, TOKEN_WANTED, viewSecret } from './api';
import { KeyHelp, useGlobalKeys } from './keys';
import { later, restOf } from './later';
import { Home } from './pages/home';
import { Login } from './pages/login';
import { Missing } from './pages/missing';
import { DropTarget } from './parts/drop';
import { Icon } from './parts/icon';
import { address, followLink, useRoute, type Route } from './route';
import { KEEP, keep, type Keep } from './saved';
import { labelOf, parseQuery } from './selection';
import { useSettings } from './settings';
import { addressProblem, rangeFrom, rangeParams } from './time';

export interface PageProps {
  route: Route;
}

interface Page {
  path: string;
  title: string;
  component: ComponentType<PageProps>;
  inMenu: boolean;
  timed: boolean; // shows a time range, which goes along from page to page
}

const PAGES: readonly Page[] = [
  { path: '/', title: 'Services', component: Home, inMenu: true, timed: true },
  { path: '/explore', title: 'Explore', component: later('Explore'), inMenu: true, timed: true },
  { path: '/triage', title: 'Triage', component: later('Triage'), inMenu: true, timed: true },
  { path: '/requests', title: 'Requests', component: later('Requests'), inMenu: true, timed: true },
  { path: '/explain', title: 'Explain', component: later('Explain'), inMenu: false, timed: false },
  { path: '/functions', title: 'Functions', component: later('Functions'), inMenu: true, timed: true },
  { path: '/compare', title: 'Compare', component: later('Compare'), inMenu: true, timed: true },
  { path: '/function', title: 'Function', component: later('FunctionPage'), inMenu: false, timed: true },
  { path: '/alerts', title: 'Alerts', component: later('Alerts'), inMenu: true, timed: false },
  { path: '/findings', title: 'Findings', component: later('Findings'), inMenu: false, timed: false },
  { path: '/saved', title: 'Saved', component: later('Saved'), inMenu: true, timed: false },
  { path: '/files', title: 'Files', component: later('Files'), inMenu: true, timed: false },
  { path: '/recordings', title: 'Recordings', component: later('Recordings'), inMenu: true, timed: false },
  { path: '/agents', title: 'Agents', component: later('Agents'), inMenu: true, timed: false },
  { path: '/symbols', title: 'Symbols', component: later('Symbols'), inMenu: true, timed: true },
];

// `assay view` has this one page, at an address of its own.
function pageOf(path: string): Page | undefined {
  const wanted = viewSecret !== null ? '/files' : path;
  return PAGES.find((page) => page.path === wanted);
}

// What the page is about, for the tab: a function, a service, or just the page.
function titleOf(page: Page | undefined, { params }: Route): string {
  if (!page) return 'assay';
  const selection = parseQuery(params.get('query') ?? '');
  const about = params.get('name') ?? (selection ? labelOf(selection, 'service_name') : '');
  return [about, page.title, 'assay'].filter((part) => part !== '').join(' · ');
}

function Menu({ route }: PageProps) {
  const range = rangeParams(rangeFrom(route.params));
  const menu = useRef<HTMLElement>(null);
  // Where not all of it has room, the page that is shown is in sight.
  useEffect(() => {
    menu.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [route.path]);
  return (
    <nav class="menu" ref={menu} aria-label="Pages">
      {PAGES.filter((page) => page.inMenu).map(({ path, title, timed }) => (
        <a key={path} href={address(path, timed ? range : {})}
          aria-current={route.path === path ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

function Switches({ onHelp }: { onHelp: () => void }) {
  const settings = useSettings();
  const { dark, safe } = settings.theme.scheme;
  return (
    <div class="top-end">
      {viewSecret === null && <button type="button" class="button button-icon" aria-label="Save this view"
        title="Save this view" onClick={() => keep({ kind: 'view' })}>
        <Icon name="bookmark" />
      </button>}
      <button type="button" class="button" aria-pressed={settings.utc}
        title="Times in UTC or in this browser's zone (T)" onClick={() => settings.toggleUtc()}>
        {settings.utc ? 'UTC' : 'Local time'}
      </button>
      <button type="button" class="button button-icon" aria-pressed={safe}
        aria-label="Colour-blind safe colours" title="Colour-blind safe colours"
        onClick={() => settings.theme.toggleSafe()}>
        <Icon name="eye" />
      </button>
      <button type="button" class="button button-icon" aria-pressed={dark}
        aria-label="Dark theme" title="Dark theme (d)" onClick={() => settings.theme.toggleDark()}>
        <Icon name="moon" />
      </button>
      <button type="button" class="button button-icon" aria-label="Keyboard help"
        title="Keyboard help (?)" onClick={onHelp}>
        <Icon name="help" />
      </button>
      {token() !== null && viewSecret === null && (
        <button type="button" class="button button-icon" aria-label="Log out" title="Log out"
          onClick={() => {
            setToken(null);
            location.assign('/'); // nothing of what was seen stays in the page
          }}>
          <Icon name="leave" />
        </button>
      )}
    </div>
  );
}

// Dialogs that keep something, for whatever page asks.
function Keeping() {
  const [what, setWhat] = useState<Keep | null>(null);
  const [Dialog, setDialog] = useState<ComponentType<{ what: Keep; onClose: () => void }> | null>(null);
  useEffect(() => {
    const ask = (event: Event) => {
      void restOf().then(({ KeepDialog }) => {
        setDialog(() => KeepDialog);
        setWhat((event as CustomEvent<Keep>).detail);
      }, () => undefined);
    };
    window.addEventListener(KEEP, ask);
    return () => window.removeEventListener(KEEP, ask);
  }, []);
  return Dialog && what ? <Dialog what={what} onClose={() => setWhat(null)} /> : null;
}

// An address may hold any text: a time that can't be read is not replaced by another.
function BadRange({ route, problem }: PageProps & { problem: string }) {
  const params = { ...Object.fromEntries(route.params), from: undefined, to: undefined,
    base_from: undefined, base_to: undefined, part: undefined };
  return (
    <div class="page">
      <div class="page-head"><h1>Invalid time range</h1></div>
      <div class="notice wrong" role="alert">
        <p>{problem}</p>
        <div class="dialog-end"><a class="button" href={address(route.path, params)}>Show the last hour</a></div>
      </div>
    </div>
  );
}

// After a step to another page the keyboard is in that page, and not where the link was.
function useFocusOnArrival(path: string, content: { current: HTMLElement | null }): void {
  const arrived = useRef(path);
  useEffect(() => {
    if (arrived.current === path) return;
    arrived.current = path;
    content.current?.scrollTo(0, 0);
    content.current?.focus({ preventScroll: true });
  }, [path]);
}

// What had the focus may leave the page: a button whose work is done, a row that is no longer listed.
// The keyboard then stays in the page that is shown, and does not fall back to its beginning.
function useFocusStays(content: { current: HTMLElement | null }): void {
  useEffect(() => {
    let held = false;
    const hold = () => { held = document.activeElement !== document.body; };
    const isLost = () => held && document.activeElement === document.body && document.hasFocus();
    // A moment later: between one element and the next, nothing has the focus, and things are redrawn.
    const check = () => setTimeout(() => {
      if (isLost()) content.current?.focus({ preventScroll: true });
    });
    const observer = new MutationObserver(() => { if (isLost()) check(); });
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ['hidden', 'disabled', 'open'] });
    document.addEventListener('focusin', hold);
    return () => {
      observer.disconnect();
      document.removeEventListener('focusin', hold);
    };
  }, []);
}

export function App() {
  const route = useRoute();
  const settings = useSettings();
  const content = useRef<HTMLElement>(null);
  const [reason, setReason] = useState<string | null>(null); // why a token is wanted; null: it isn't
  const [help, setHelp] = useState(false);
  const { dark, safe } = settings.theme.scheme;
  const page = pageOf(route.path);
  const title = titleOf(page, route);
  const PageNow = page?.component ?? Missing;
  const problem = page?.timed ? addressProblem(route.params, undefined, page.path === '/explore') : '';

  useLayoutEffect(() => { // before any answer can ask for one
    const want = (event: Event) => setReason((event as CustomEvent<string>).detail);
    window.addEventListener(TOKEN_WANTED, want);
    return () => window.removeEventListener(TOKEN_WANTED, want);
  }, []);
  useEffect(() => {
    document.title = reason === null ? title : 'Log in · assay';
  }, [title, reason]);
  useFocusOnArrival(route.path, content);
  useFocusStays(content);
  useGlobalKeys({
    help: () => setHelp((open) => !open),
    theme: () => settings.theme.toggleDark(),
    clock: () => settings.toggleUtc(),
  });

  return (
    <div class="app" tabIndex={-1} data-theme={dark ? 'dark' : 'light'} data-palette={safe ? 'safe' : 'usual'}
      onClick={followLink}>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        content.current?.focus();
      }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href={viewSecret === null ? '/' : route.path}
          aria-label={viewSecret === null ? 'assay: services' : 'assay'}>
          <Icon name="mark" /> <span>assay</span>
        </a>
        {viewSecret === null && <Menu route={route} />}
        <Switches onHelp={() => setHelp(true)} />
      </header>
      <main id="content" class="content" ref={content} tabIndex={-1}>
        {reason !== null
          ? <Login reason={reason} onDone={() => setReason(null)} />
          : problem !== '' ? <BadRange route={route} problem={problem} /> : <PageNow route={route} />}
      </main>
      <p class="hidden" role="status">{title}</p>
      {reason === null && <DropTarget />}
      <Keeping />
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </div>
  );
}
