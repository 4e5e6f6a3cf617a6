// SPDX-License-Identifier: Apache-2.0
// The one way this module makes elements. Text always goes in as text nodes, never as markup, so
// a hostile function name is only ever shown.

type Child = Node | string | null;
type Attributes = Record<string, string | boolean | number>;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

// A 16×16 line drawing from one path.
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  svg.classList.add('icon');
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

// A part of the page that is made when it is first needed.
export class Lazy<T> {
  now: T | null = null; // null until then

  constructor(private readonly make: () => T) {}

  get(): T {
    return (this.now ??= this.make());
  }
}

// Listeners and observers that end together.
export class Lifetime {
  private readonly ends: (() => void)[] = [];

  listen<E extends Event>(
    target: EventTarget, type: string, handle: (event: E) => void, options?: AddEventListenerOptions,
  ): void {
    target.addEventListener(type, handle as EventListener, options);
    this.ends.push(() => target.removeEventListener(type, handle as EventListener, options));
  }

  onEnd(end: () => void): void {
    this.ends.push(end);
  }

  end(): void {
    for (const end of this.ends.splice(0)) end();
  }
}

// Puts text on the clipboard; where a page may not, as one without TLS, by way of a selection.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make('textarea', { 'aria-hidden': 'true' });
    field.value = text;
    field.style.position = 'fixed';
    field.style.opacity = '0';
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}
