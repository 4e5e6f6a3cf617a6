// SPDX-License-Identifier: Apache-2.0
// Asking the server from within a view: what came last stays on the page while the next answer is on
// its way, and a question that nobody waits for any more is given up, here and on the server.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';
import { namesParam } from './route';

// Whoever asks to try again means all that failed, not the one part whose words are shown.
const RETRY = 'assay:retry';

export interface Loaded<T> {
  value: T | null; // the last answer, also while the next is awaited or after a failure; not after a 404
  answered: number; // when it came, in milliseconds; 0: there is none
  stale: boolean; // it answers an earlier question
  error: ApiError | null;
  loading: boolean;
  cancelled: boolean; // by whoever waited for it
  retry: () => void;
  cancel: () => void;
}

// Asks again when `asked` or the choice of names changes; null asks nothing.
export function useLoad<T>(
  asked: string | null, ask: (signal: AbortSignal) => Promise<T>,
): Loaded<T> {
  const key = asked === null ? null : `${asked} ${namesParam().names ?? ''}`;
  const [value, setValue] = useState<T | null>(null);
  const [answered, setAnswered] = useState(0);
  const [answeredKey, setAnsweredKey] = useState(key);
  const [error, setError] = useState<ApiError | null>(null);
  const [loading, setLoading] = useState(key !== null);
  const [cancelled, setCancelled] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const running = useRef<AbortController | null>(null);

  // At once, and not after the next frame is painted: an answer takes long enough.
  useLayoutEffect(() => {
    if (key === null) {
      setLoading(false);
      return undefined;
    }
    const controller = new AbortController();
    running.current = controller;
    setLoading(true);
    setCancelled(false);
    ask(controller.signal).then(
      (answer) => {
        if (controller.signal.aborted) return;
        setValue(() => answer);
        setAnswered(Date.now());
        setAnsweredKey(key);
        setError(null);
        setLoading(false);
      },
      (reason) => {
        if (controller.signal.aborted) return;
        // That there is nothing is an answer, too: what was there before is of something else.
        if (reason instanceof ApiError && reason.status === 404) setValue(null);
        setError(reason instanceof ApiError ? reason : new ApiError(0, 'internal', String(reason)));
        setLoading(false);
      });
    return () => controller.abort();
  }, [key, attempt]);

  useEffect(() => {
    if (error === null) return undefined;
    const again = () => setAttempt((count) => count + 1);
    window.addEventListener(RETRY, again);
    return () => window.removeEventListener(RETRY, again);
  }, [error]);

  return {
    value, answered, error, loading, cancelled,
    stale: value !== null && answeredKey !== key,
    retry: () => {
      if (error) window.dispatchEvent(new Event(RETRY));
      else setAttempt((count) => count + 1);
    },
    cancel: () => {
      running.current?.abort();
      setLoading(false);
      setCancelled(true);
    },
  };
}

// Several answers that make one view: waited for, given up and asked for again together.
export function together(...parts: Loaded<unknown>[]): Loaded<unknown> {
  return {
    value: null,
    answered: Math.min(...parts.map(({ answered }) => answered)),
    stale: parts.some(({ stale }) => stale),
    error: parts.find(({ error }) => error)?.error ?? null,
    loading: parts.some(({ loading }) => loading),
    cancelled: parts.some(({ cancelled }) => cancelled),
    retry: () => parts.filter(({ cancelled, error }) => cancelled || error).forEach(({ retry }) => retry()),
    cancel: () => parts.filter(({ loading }) => loading).forEach(({ cancel }) => cancel()),
  };
}

// Runs at most `limit` of them at a time, in order: a browser has six connections to a server.
export class Queue {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly limit: number) {}

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.running >= this.limit)
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.running++;
    try {
      return await task();
    } finally {
      this.running--;
      this.waiting.shift()?.();
    }
  }
}

// A number that grows every so often while the page is looked at, for views of what changes by
// itself. 0 stands still.
export function usePoll(every: number): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (every === 0) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setTick((now) => now + 1);
    }, every);
    return () => clearInterval(timer);
  }, [every]);
  return tick;
}
