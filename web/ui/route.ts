// SPDX-License-Identifier: Apache-2.0
// Every view is its URL: a path that names the page and parameters that say what it shows. The route
// is the only state that pages share, so a copied address opens the same view.

import { useLayoutEffect, useState } from 'preact/hooks';

export interface Route {
  path: string;
  params: URLSearchParams;
}

const CHANGED = 'assay:route';

export function currentRoute(): Route {
  return { path: location.pathname, params: new URLSearchParams(location.search) };
}

// A parameter that is undefined or empty is left out, so that addresses stay short.
export type Params = Record<string, string | string[] | undefined>;

export function address(path: string, params: Params = {}): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== '') out.append(name, one);
  const text = out.toString();
  return text === '' ? path : `${path}?${text}`;
}

// Whether functions are shown as the profiler reported them. Part of the address, like everything
// that a view shows; links from one view of functions to another keep it.
export function namesParam(): Params {
  return { names: currentRoute().params.get('names') === 'original' ? 'original' : undefined };
}

// `replace` is for changes that are no step worth going back to.
export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  window.dispatchEvent(new Event(CHANGED));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useLayoutEffect(() => {
    const update = () => setRoute(currentRoute());
    window.addEventListener('popstate', update);
    window.addEventListener(CHANGED, update);
    return () => {
      window.removeEventListener('popstate', update);
      window.removeEventListener(CHANGED, update);
    };
  }, []);
  return route;
}

// Links are real links: they can be opened in a new tab, and only a plain click stays here.
export function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const anchor = (event.target as Element | null)?.closest?.('a[href]');
  if (!(anchor instanceof HTMLAnchorElement) || anchor.target || anchor.hasAttribute('download'))
    return;
  if (anchor.origin !== location.origin || anchor.dataset.outside !== undefined) return;
  event.preventDefault();
  go(anchor.pathname + anchor.search);
}
