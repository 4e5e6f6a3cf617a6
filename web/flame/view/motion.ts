// SPDX-License-Identifier: Apache-2.0
// A zoom in motion. Of two layouts, one is zoomed to a frame of the other: while that frame grows
// from its rectangle to the full width (or back), both layouts are stretched so that they agree on it.

import { rectangleOfNode, type Layout } from '../data/layout';
import { isInside, type Graph } from '../data/tree';

const DURATION_MS = 160;

export interface Motion {
  // The layout that shows more, and the one zoomed to a frame of it.
  wide: Layout;
  deep: Layout;
  // That frame's rectangle in `wide`.
  x: number;
  w: number;
  inward: boolean;
  start_ms: number;
}

export interface Pose {
  left: number;
  width: number;
  wideStretch: number;
  wideShift: number;
  deepStretch: number;
  done: boolean;
}

// Null where the two layouts have nothing to grow out of: then the zoom jumps.
export function startMotion(
  graph: Graph, from: Layout, to: Layout, now_ms: number,
): Motion | null {
  if (from.zoom === to.zoom || from.width !== to.width) return null;
  const inward = isInside(graph.tree, to.zoom, from.zoom);
  if (!inward && !isInside(graph.tree, from.zoom, to.zoom)) return null;
  const [wide, deep] = inward ? [from, to] : [to, from];
  const index = rectangleOfNode(wide, graph, deep.zoom);
  if (index < 0) return null;
  return { wide, deep, x: wide.x[index], w: wide.w[index], inward, start_ms: now_ms };
}

export function poseAt(motion: Motion, now_ms: number): Pose {
  const elapsed = Math.min(1, Math.max(0, (now_ms - motion.start_ms) / DURATION_MS));
  const eased = 1 - (1 - elapsed) ** 3;
  const p = motion.inward ? eased : 1 - eased;
  const full = motion.wide.width;
  const left = motion.x * (1 - p);
  const width = motion.w + (full - motion.w) * p;
  const wideStretch = width / motion.w;
  return {
    left,
    width,
    wideStretch,
    wideShift: left - motion.x * wideStretch,
    deepStretch: width / full,
    done: elapsed >= 1,
  };
}
