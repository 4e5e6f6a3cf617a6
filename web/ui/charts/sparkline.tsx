// SPDX-License-Identifier: Apache-2.0
// A time series as a line as small as a word, for tables.

import type { ChartPoint } from '../data/stack';
import type { Bounds } from '../time';

export function Sparkline({ points, bounds }: { points: ChartPoint[]; bounds: Bounds }) {
  const most = Math.max(...points.map(([, value]) => value), 0);
  if (points.length < 2 || most <= 0) return <svg class="sparkline" viewBox="0 0 120 24" aria-hidden="true" />;
  const at = ([time, value]: ChartPoint) => {
    const x = 120 * (time - bounds.from) / (bounds.to - bounds.from);
    return `${x.toFixed(1)},${(22 - 20 * value / most).toFixed(1)}`;
  };
  const line = points.map(at).join(' ');
  return (
    <svg class="sparkline" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`${at([points[0][0], 0])} ${line} ${at([points[points.length - 1][0], 0])}`} />
      <polyline points={line} />
    </svg>
  );
}
