// SPDX-License-Identifier: Apache-2.0
// Which library a function is of, read off its binary, its file and its name; '' for a program's own
// code. src/profile/views/library.c does the same; both are tested with tests/fixtures/libraries.tsv.

import { packageEnd } from './names';

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const BINARY = /\.so(\.|$)|\.dylib$|\.dll$|^\[/i;

export function isLibraryFile(binary: string): boolean {
  return BINARY.test(baseName(binary));
}

// The first elements of the paths of Go's own packages.
const GO = new Set(('archive bufio bytes cmp compress container context crypto database debug embed encoding errors '
  + 'expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp '
  + 'runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak').split(' '));

// Packages of Java's platform and of what runs on it.
const JVM = ['java', 'javax', 'jdk', 'sun', 'com.sun', 'jakarta', 'kotlin', 'kotlinx', 'scala', 'groovy', 'clojure',
  'reactor', 'io.netty', 'io.grpc', 'io.micrometer', 'io.opentelemetry', 'org.apache', 'org.eclipse', 'org.hibernate',
  'org.jboss', 'org.postgresql', 'org.slf4j', 'org.springframework', 'com.fasterxml', 'com.google', 'com.mysql',
  'com.zaxxer', 'ch.qos'];

// The element of a path behind the last of these directories; a scope and a name are one.
function behind(file: string, directory: string): string {
  const at = file.lastIndexOf(directory);
  if (at < 0) return '';
  const [first, second] = file.slice(at + directory.length).split('/');
  return first.startsWith('@') && second !== undefined ? `${first}/${second}` : first;
}

function goLibrary(name: string, file: string): string {
  const pack = name.slice(0, packageEnd(name));
  const [first] = pack.split('/');
  if (GO.has(first)) return 'go';
  return /@v\d|\/vendor\/|\/pkg\/mod\//.test(file) ? pack : '';
}

function fileLibrary(name: string, file: string): string {
  if (/\.(go|s)$/.test(file)) return goLibrary(name, file);
  const packages = behind(file, '/node_modules/') || behind(file, '/gems/');
  if (packages !== '') return packages;
  if (file.startsWith('node:')) return 'node';
  const python = behind(file, '/site-packages/') || behind(file, '/dist-packages/');
  if (python !== '') return python.replace(/\.py$/, '');
  if (file.startsWith('<frozen ') || /\/lib(64)?\/python\d[^/]*\//.test(file)) return 'python';
  if (file.includes('/.cargo/registry/')) return name.slice(0, packageEnd(name)) || 'cargo';
  return file.startsWith('/rustc/') ? 'rust' : '';
}

function nameLibrary(name: string): string {
  if (/^(std|core|alloc)::/.test(name)) return 'std';
  const dotted = name.slice(0, 256).replaceAll('/', '.');
  return JVM.find((prefix) => dotted.startsWith(`${prefix}.`)) ?? '';
}

export function libraryOf(name: string, file: string, binary: string): string {
  if (isLibraryFile(binary)) return baseName(binary);
  return fileLibrary(name, file) || nameLibrary(name);
}
