// SPDX-License-Identifier: Apache-2.0
// A field with completion: a list under it that the keyboard walks through. What is typed narrows
// it; what is chosen, or entered as it is, is reported.

import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { narrow } from '../data/narrow';

export interface SuggestProps {
  label: string;
  value: string;
  options: string[];
  placeholder?: string;
  onChoose: (value: string) => void;
  // Asked when the field is first used, for lists that have to be fetched.
  onOpen?: () => void;
}

// The field is as wide as what is in it, up to a limit: names of services differ in their ends.
const MOST_CHARACTERS = 48;

export function Suggest({ label, value, options, placeholder, onChoose, onOpen }: SuggestProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  const shown = useMemo(() => narrow(options, text === value ? '' : text), [options, text, value]);
  useEffect(() => setText(value), [value]);

  function close(next: string | null) {
    setOpen(false);
    setActive(-1);
    if (next === null) setText(value);
    else {
      setText(next);
      if (next !== value) onChoose(next);
    }
  }

  function press(event: KeyboardEvent) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const by = event.key === 'ArrowDown' ? 1 : -1;
      setOpen(true);
      setActive((now) => shown.length === 0 ? -1 : (now + by + shown.length) % shown.length);
    } else if (event.key === 'Enter') {
      close(active >= 0 ? shown[active] : text.trim());
    } else if (event.key === 'Escape') {
      close(null);
      field.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <span class="suggest">
      <input ref={field} class="field" role="combobox" aria-label={label} aria-expanded={open}
        aria-controls={`${id}-list`} aria-autocomplete="list" autocomplete="off" spellcheck={false}
        aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
        placeholder={placeholder ?? label} value={text} style={{ '--characters': Math.min(MOST_CHARACTERS, text.length) }}
        onFocus={(event) => {
          event.currentTarget.select();
          setOpen(true);
          onOpen?.();
        }}
        onBlur={() => close(null)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
          setActive(-1);
        }}
        onKeyDown={press} />
      <ul class="suggest-list" role="listbox" id={`${id}-list`} aria-label={label}
        hidden={!open || shown.length === 0}>
        {shown.map((option, i) => (
          <li key={option} id={`${id}-${i}`} role="option" aria-selected={i === active}
            class={option === value ? 'current' : ''}
            onMouseDown={(event) => {
              event.preventDefault(); // the field keeps the focus until the choice is made
              close(option);
              field.current?.blur();
            }}>
            {option}
          </li>
        ))}
      </ul>
    </span>
  );
}
