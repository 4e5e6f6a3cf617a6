// SPDX-License-Identifier: Apache-2.0
// Opening files: by dropping them anywhere on the page, or by choosing them.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { addFiles, filesPath } from '../data/files';
import { address, go } from '../route';
import { Icon } from './icon';

const FORMATS = 'pprof, perf.data, perf script, folded stacks, speedscope, OTLP, JFR, V8 .cpuprofile and .heapprofile, '
  + 'stackprof, flamebearer, gperftools CPU and heap, Chrome traces, Firefox Profiler, callgrind, massif, '
  + 'heaptrack, cProfile, Austin, bpftrace, DTrace, macOS sample; also compressed with gzip or zstd';

// Two that come together are compared, in the order they came.
export function openAndShow(files: File[]): void {
  if (files.length === 0) return;
  const [first, second] = addFiles(files.slice(0, 8));
  go(address(filesPath(), second ? { file: second.id, base: first.id } : { file: first.id }));
}

export function FilePicker(props: { label: string; primary?: boolean; onFiles: (files: File[]) => void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class={props.primary ? 'button primary' : 'button'}
        onClick={() => field.current?.click()}>{props.label}</button>
      <input ref={field} type="file" multiple hidden aria-label="Profiles to open"
        onChange={(event) => {
          props.onFiles([...event.currentTarget.files ?? []]);
          event.currentTarget.value = '';
        }} />
    </>
  );
}

export function DropZone() {
  return (
    <section class="drop-zone">
      <Icon name="file" />
      <h1>Drop a profile here</h1>
      <p>You can view, compare and convert it; it is only stored if you choose to. Drop two
        profiles to compare the first with the second.</p>
      <FilePicker label="Choose files…" primary onFiles={openAndShow} />
      <p class="quiet">{FORMATS}.</p>
      <p class="quiet">From a shell, without a server: <code>assay view FILE</code></p>
    </section>
  );
}

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;

// Listens on the whole window; what it draws is only there while something is dragged over it.
export function DropTarget() {
  const [over, setOver] = useState(false);
  useLayoutEffect(() => {
    const drag = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false); // out of the window
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!holdsFiles(event)) return;
      event.preventDefault();
      openAndShow([...event.dataTransfer?.files ?? []]);
    };
    window.addEventListener('dragover', drag);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', drag);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  }, []);
  return over ? <div class="drop-over" role="status">Drop to open</div> : null;
}
