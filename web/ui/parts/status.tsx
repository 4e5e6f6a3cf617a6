// SPDX-License-Identifier: Apache-2.0
// What stands in a view while its data is on the way, when it could not be had, and when there is
// none.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { viewSecret, wantToken } from '../api';
import type { Loaded } from '../load';

// A quick answer should not make the page flicker: the bar comes after a moment.
export function Progress({ loaded }: { loaded: Loaded<unknown> }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (!loaded.loading) return undefined;
    const timer = setTimeout(() => setLate(true), 250);
    return () => clearTimeout(timer);
  }, [loaded.loading]);
  if (!loaded.loading && loaded.cancelled)
    return (
      <div class="notice" role="status">
        <p>The request was cancelled.</p>
        <div class="dialog-end">
          <button type="button" class="button" onClick={loaded.retry}>Retry</button>
        </div>
      </div>
    );
  if (!loaded.loading || !late) return <div class="progress" />;
  return (
    <div class="progress running" role="status">
      <span class="progress-words">
        Loading… <button type="button" class="link" onClick={loaded.cancel}>Cancel</button>
      </span>
    </div>
  );
}

export function Failure({ loaded }: { loaded: Loaded<unknown> }) {
  const { error } = loaded;
  if (!error) return null;
  if (error.status === 401 && viewSecret === null) return null; // then the page asks for a token
  return (
    <div class="notice wrong" role="alert">
      <p>{error.message}</p>
      <div class="dialog-end">
        {error.status === 403 && viewSecret === null && <button type="button" class="button"
          onClick={() => wantToken(error.message)}>Use another token</button>}
        <button type="button" class="button" onClick={loaded.retry}>Retry</button>
      </div>
    </div>
  );
}

export function Nothing({ children }: { children: ComponentChildren }) {
  return <div class="notice">{children}</div>;
}
