// SPDX-License-Identifier: Apache-2.0
// Asks for a token where the server wants one.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, setToken } from '../api';

// What the server said, and what to do about it.
function explain(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.status === 401 && /expired/.test(error.message)) return error.message;
  if (error.status === 401)
    return 'Unknown token. Check that it was copied completely; `assay token list` shows the existing ones.';
  return error.message;
}

export function Login({ reason, onDone }: { reason: string; onDone: () => void }) {
  const [text, setText] = useState('');
  const [remember, setRemember] = useState(false);
  const [problem, setProblem] = useState(reason);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);

  async function enter(event: Event) {
    event.preventDefault();
    setBusy(true);
    setToken(text.trim(), remember);
    try {
      await get('types', { from: 'now-1m' });
      onDone();
    } catch (error) {
      setToken(null);
      setProblem(explain(error));
      field.current?.select();
    } finally {
      setBusy(false);
    }
  }

  return (
    <form class="login" onSubmit={enter}>
      <h1>Sign in with a token</h1>
      <p>Use a token with the role <code>read</code>. The administrator of the server creates it with:</p>
      <pre>assay token create me --roles read</pre>
      <label for="token">Token</label>
      <input id="token" ref={field} class="field" type="password" autocomplete="current-password"
        spellcheck={false} value={text} aria-invalid={problem !== ''} aria-describedby="token-problem"
        onInput={(event) => setText(event.currentTarget.value)} />
      <label class="check">
        <input type="checkbox" checked={remember}
          onChange={(event) => setRemember(event.currentTarget.checked)} />
        Remember the token in this browser
      </label>
      <p id="token-problem" class="problem" role="alert">{problem}</p>
      <button class="button primary" type="submit" disabled={busy || text.trim() === ''}>
        {busy ? 'Signing in…' : 'Log in'}
      </button>
    </form>
  );
}
