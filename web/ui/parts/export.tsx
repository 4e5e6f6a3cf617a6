// SPDX-License-Identifier: Apache-2.0
// Taking what is shown along: as a file of any format, as a picture, or as a link that shows the same
// tomorrow.

import { useRef, useState } from 'preact/hooks';
import type { FlameApp } from '../../flame/app';
import { copyText } from '../../flame/dom';
import { call } from '../api';
import { fileName } from '../names';
import type { Params } from '../route';
import { Icon } from './icon';

const FORMATS: readonly (readonly [format: string, title: string, suffix: string])[] = [
  ['pprof', 'pprof', '.pb.gz'], ['folded', 'Folded stacks', '.folded'],
  ['speedscope', 'speedscope', '.speedscope.json'], ['otlp', 'OpenTelemetry', '.otlp'],
  ['svg', 'Picture (SVG)', '.svg'], ['html', 'Page (HTML)', '.html'],
];

function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export interface ExportProps {
  path: string; // of the API
  params: Params;
  formats?: readonly string[]; // all unless told
  title: string;
  app: () => FlameApp | null;
}

export function Export({ path, params, formats, title, app }: ExportProps) {
  const details = useRef<HTMLDetailsElement>(null);
  const [problem, setProblem] = useState('');
  const name = fileName(title);

  async function fetchAs(format: string, suffix: string) {
    setProblem('');
    try {
      const response = await call(path, { ...params, format });
      save(await response.blob(), name + suffix);
      if (details.current) details.current.open = false;
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  function picture() {
    const canvas = app()?.picture();
    if (!canvas) {
      setProblem('Show the graph first: the picture is of it.');
      return;
    }
    canvas.toBlob((blob) => blob && save(blob, `${name}.png`), 'image/png');
    if (details.current) details.current.open = false;
  }

  return (
    <details class="picker" ref={details}>
      <summary class="button"><Icon name="export" /> Export</summary>
      <div class="picker-panel picker-list">
        {FORMATS.filter(([format]) => !formats || formats.includes(format)).map(
          ([format, words, suffix]) => (
            <button type="button" key={format} class="link"
              onClick={() => fetchAs(format, suffix)}>{words}</button>
          ))}
        <button type="button" class="link" onClick={picture}>Picture (PNG)</button>
        {problem !== '' && <p class="problem" role="alert">{problem}</p>}
      </div>
    </details>
  );
}

// `link` is an address on this server.
export function CopyLink({ link }: { link: string }) {
  const [done, setDone] = useState('');
  async function copy() {
    setDone(await copyText(location.origin + link) ? 'Copied' : 'Not copied');
    setTimeout(() => setDone(''), 2000);
  }
  return (
    <button type="button" class="button" onClick={copy}
      title="Copy a link with fixed times: it shows the same tomorrow">
      <Icon name="link" /> <span role="status">{done || 'Link'}</span>
    </button>
  );
}
