// SPDX-License-Identifier: Apache-2.0
// A file in another format: the server converts it, and the browser saves what comes back.

import { useState } from 'preact/hooks';
import { call } from '../api';
import type { OpenFile } from '../files';

const FORMATS: readonly (readonly [string, string, string])[] = [
  ['pprof', 'pprof', '.pb.gz'], ['folded', 'folded stacks', '.folded'],
  ['speedscope', 'speedscope', '.speedscope.json'], ['html', 'a page', '.html'],
  ['svg', 'a picture', '.svg'], ['otlp', 'OTLP', '.otlp'],
];

export function SaveAs({ file, content }: { file: OpenFile; content: Blob }) {
  const [problem, setProblem] = useState('');

  async function save(format: string, ending: string) {
    setProblem('');
    try {
      const response = await call('/api/v1/files/flame', { format, name: file.name },
        { method: 'POST', body: content });
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await response.blob());
      link.download = file.name.replace(/(\.pb|\.folded|\.json|\.jfr|\.txt)?(\.gz|\.zst)?$/, '') + ending;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  return (
    <>
      {problem !== '' && <span class="problem" role="alert">{problem}</span>}
      <select class="button" aria-label="Save as" value="" onChange={(event) => {
        const chosen = FORMATS.find(([format]) => format === event.currentTarget.value);
        event.currentTarget.value = '';
        if (chosen) void save(chosen[0], chosen[2]);
      }}>
        <option value="" hidden>Save as…</option>
        {FORMATS.map(([format, title]) => <option key={format} value={format}>{title}</option>)}
      </select>
    </>
  );
}
