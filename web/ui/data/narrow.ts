// SPDX-License-Identifier: Apache-2.0
// What of a list fits to what was typed so far.

const SHOWN_MAX = 100;

// Those that begin with it first, then those that hold it.
export function narrow(options: string[], text: string): string[] {
  const wanted = text.toLowerCase();
  if (wanted === '') return options.slice(0, SHOWN_MAX);
  const starts = options.filter((option) => option.toLowerCase().startsWith(wanted));
  const holds = options.filter((option) => {
    const lower = option.toLowerCase();
    return !lower.startsWith(wanted) && lower.includes(wanted);
  });
  return [...starts, ...holds].slice(0, SHOWN_MAX);
}
