// SPDX-License-Identifier: Apache-2.0
// What can be read off a function's name without knowing its language: shorter forms for narrow
// rectangles, and the package that colours go by.

const OPEN = '<([{';
const CLOSE = '>)]}';
// What parts a name, or opens and closes what does not: found by the browser, which is faster at looking
// through a name than a loop is.
const MARKS = /::|[./ <([{>)\]}]/g;

// Where each top-level piece of the name begins: after "::", "." or "/" outside of brackets.
function pieces(name: string): number[] {
  let starts = [0];
  let depth = 0;
  MARKS.lastIndex = 0;
  for (let found = MARKS.exec(name); found; found = MARKS.exec(name)) {
    const { 0: mark, index } = found;
    if (OPEN.includes(mark)) depth++;
    // The '>' of an arrow or of "operator>" closes nothing.
    else if (CLOSE.includes(mark)) depth = Math.max(0, depth - 1);
    else if (depth > 0) continue;
    else if (mark === ' ') break;
    else if (mark === '::') starts.push(index + 2);
    else if (index > 0 && index + 1 < name.length) {
      // Dots before a slash are a host's, as in "example.org/shop.Run".
      if (mark === '/') starts = starts.filter((start) => name[start - 1] !== '.');
      starts.push(index + 1);
    }
  }
  return starts;
}

const ARGUMENTS = /[<(>)]/g;

// Drops template and call arguments, but keeps Go's "(*T)" and names that are all brackets.
function withoutArguments(name: string): string {
  let out = '';
  let depth = 0;
  let kept = 0; // up to here, `out` has what is to stay
  ARGUMENTS.lastIndex = 0;
  for (let found = ARGUMENTS.exec(name); found; found = ARGUMENTS.exec(name)) {
    const { 0: mark, index } = found;
    if (mark === '<' || mark === '(') {
      if (index === 0 || name[index - 1] === '.' || name[index + 1] === '*') continue;
      if (depth++ === 0) out += name.slice(kept, index);
    } else if (depth > 0 && --depth === 0) kept = index + 1;
  }
  if (depth === 0) out += name.slice(kept);
  return out.replace(/ const$/, '').trim() || name;
}

// A closure's number says nothing without the function it stands in.
const ONLY_CLOSURE = /^(func)?\d+(\.|$)/;

// A place in a binary, "libx.so.1+0x5800": its dots separate nothing.
const PLACE = /\+0x[0-9a-f]+$/;

// Forms of the name from the longest to the leaf part alone. The first is the name itself.
export function shorterNames(name: string): string[] {
  const forms = [name];
  if (PLACE.test(name)) return forms;
  const bare = /^[[(<]/.test(name) || name.includes('operator') ? name : withoutArguments(name);
  if (bare !== name) forms.push(bare);
  for (const start of pieces(bare).slice(1)) {
    const form = bare.slice(start);
    if (form !== '' && !ONLY_CLOSURE.test(form)) forms.push(form);
  }
  return forms;
}

// The first of those forms that is no longer than so many characters, or else the leaf part.
export function briefName(name: string, most: number): string {
  const forms = shorterNames(name);
  return forms.find((form) => form.length <= most) ?? forms[forms.length - 1];
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

// What ends the part of a name that says where a function belongs.
const END = /[<(\s]/;

// Where the part of a name that says its package or namespace ends; 0 when it has none.
export function packageEnd(name: string): number {
  const scope = name.indexOf('::');
  const stop = name.search(END);
  if (scope > 0 && (stop <= 0 || scope < stop)) return scope;
  const head = stop > 0 ? name.slice(0, stop) : name;
  // Go: the package path ends at the first dot after the last slash.
  const slash = head.lastIndexOf('/');
  const dot = head.indexOf('.', slash + 1);
  if (dot <= 0 || slash > 0) return Math.max(0, dot);
  // Java and its kin: com.example.Type.method belongs to com.example.
  const second = head.indexOf('.', dot + 1);
  const third = second > 0 ? head.indexOf('.', second + 1) : -1;
  return third > 0 ? second : dot;
}

// Where a function without a package comes from: its binary, or its file's folder; '' when nothing says.
export function placeOf(file: string, binary: string): string {
  if (binary !== '') return baseName(binary);
  return file.slice(0, Math.max(0, file.lastIndexOf('/')));
}

// Characters that are not seen, or that turn the text around them: controls, and marks of direction.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
const UNSEEN_ALL = new RegExp(UNSEEN, 'g');

// A name as it is shown: what could make it look like another one is spelled out.
export function shownName(name: string): string {
  if (!UNSEEN.test(name)) return name;
  return name.replace(UNSEEN_ALL, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// Frames that stand for the absence of a name.
export function isUnnamed(name: string): boolean {
  if (name === '') return true;
  // Few names begin like one of these, and every name of a graph is asked for.
  const first = name[0];
  return (first === '[' || first === '(' || first === '0')
    && /^\[.*\]$|^\(.*\)$|^0x[0-9a-f]+$/i.test(name);
}
