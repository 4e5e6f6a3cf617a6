// SPDX-License-Identifier: Apache-2.0
// Keys that name functions and nodes in a URL. A node's id holds for one document only, and the same
// question asked a minute later has another; a key is made of the names from the root on, so a copied
// URL finds the same frame again.

import type { Tree } from './tree';

// Two independent 32-bit hashes: among a million nodes, two that are taken for each other are a
// chance in ten million.
function hashName(name: string): [number, number] {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ c, 0x5bd1e995) ^ (b >>> 13);
  }
  return [a >>> 0, b >>> 0];
}

function mix(above: number, own: number, factor: number): number {
  const h = Math.imul(above ^ own, factor);
  return (h ^ (h >>> 15)) >>> 0;
}

function write(a: number, b: number): string {
  return a.toString(36) + b.toString(36).padStart(7, '0');
}

const ROOT = write(0, 0);

export function functionKey(name: string): string {
  return write(...hashName(name));
}

export function nodeKey(tree: Tree, names: readonly string[], node: number): string {
  let a = 0;
  let b = 0;
  const path: number[] = [];
  for (let n = node; n > 0; n = tree.parent[n]) path.push(tree.func[n]);
  for (const func of path.reverse()) {
    const [x, y] = hashName(names[func]);
    a = mix(a, x, 0x85ebca6b);
    b = mix(b, y, 0xc2b2ae35);
  }
  return write(a, b);
}

// The nodes with these keys, in their order; a key that no node has is left out.
export function findNodes(tree: Tree, names: readonly string[], keys: readonly string[]): number[] {
  if (keys.length === 0) return [];
  const known = names.map(hashName);
  const a = new Uint32Array(tree.size);
  const b = new Uint32Array(tree.size);
  const wanted = new Map(keys.map((key) => [key, key === ROOT ? 0 : -1]));
  // Most nodes are told apart by their first half, which is cheap to compare.
  const heads = new Set(keys.map((key) => parseInt(key.slice(0, -7), 36)));
  for (let n = 1; n < tree.size; n++) {
    const [x, y] = known[tree.func[n]];
    a[n] = mix(a[tree.parent[n]], x, 0x85ebca6b);
    b[n] = mix(b[tree.parent[n]], y, 0xc2b2ae35);
    if (!heads.has(a[n])) continue;
    const key = write(a[n], b[n]);
    if (wanted.get(key) === -1) wanted.set(key, n);
  }
  return keys.map((key) => wanted.get(key)!).filter((n) => n >= 0);
}

export function findFunctions(names: readonly string[], keys: readonly string[]): number[] {
  if (keys.length === 0) return [];
  const wanted = new Set(keys);
  const found = new Map<string, number>();
  for (let f = 0; f < names.length && found.size < wanted.size; f++) {
    const key = functionKey(names[f]);
    if (wanted.has(key) && !found.has(key)) found.set(key, f);
  }
  return keys.filter((key) => found.has(key)).map((key) => found.get(key)!);
}
