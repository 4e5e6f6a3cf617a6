// SPDX-License-Identifier: Apache-2.0
// Makes flame-data documents that look like real ones: a web service in several languages, a diff of
// it, and graphs of any size for measuring. The same seed always gives the same document.

export interface Document {
  version: number;
  kind: 'flame' | 'diff';
  title: string;
  notes: string[];
  types: { name: string; unit: string }[];
  default_type: number;
  strings: string[];
  functions: { name: number[]; file: number[]; binary: number[] };
  nodes: { up: number[]; function: number[]; inlined: number[] };
  self: number[][];
  base?: number[][];
  scale?: number[];
  normalize?: string;
  dropped: number;
}

export type Random = () => number;

// Marsaglia's xorshift32.
export function makeRandom(seed: number): Random {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export class DocumentBuilder {
  private readonly strings = new Map<string, number>([['', 0]]);
  private readonly functions = new Map<string, number>();
  private readonly name: number[] = [];
  private readonly file: number[] = [];
  private readonly binary: number[] = [];
  private readonly up: number[] = [];
  private readonly func: number[] = [];
  private readonly inlined: number[] = [];
  // By node, then by type.
  readonly self: number[][];

  constructor(private readonly types: { name: string; unit: string }[]) {
    this.self = types.map(() => [0]);
  }

  private string(text: string): number {
    let id = this.strings.get(text);
    if (id === undefined) this.strings.set(text, (id = this.strings.size));
    return id;
  }

  function(name: string, file = '', binary = ''): number {
    const key = `${name}\0${file}\0${binary}`;
    let id = this.functions.get(key);
    if (id === undefined) {
      id = this.functions.size;
      this.functions.set(key, id);
      this.name.push(this.string(name));
      this.file.push(this.string(file));
      this.binary.push(this.string(binary));
    }
    return id;
  }

  node(parent: number, func: number, values: number[] = [], inlined = false): number {
    const id = this.up.length + 1;
    this.up.push(id - parent);
    this.func.push(func);
    if (inlined) this.inlined.push(id);
    this.types.forEach((_, t) => this.self[t].push(values[t] ?? 0));
    return id;
  }

  document(title: string, notes: string[], defaultType: number): Document {
    return {
      version: 1,
      kind: 'flame',
      title,
      notes,
      types: this.types,
      default_type: defaultType,
      strings: [...this.strings.keys()],
      functions: { name: this.name, file: this.file, binary: this.binary },
      nodes: { up: this.up, function: this.func, inlined: this.inlined },
      self: this.self,
      dropped: 0,
    };
  }
}

const CPU = [{ name: 'samples', unit: 'count' }, { name: 'cpu', unit: 'nanoseconds' },
  { name: 'alloc_space', unit: 'bytes' }];

type Spec = [name: string, file: string, binary: string];

const ENTRY: Spec[] = [
  ['_start', '', 'orderd'], ['__libc_start_main_impl', 'libc-start.c', 'libc.so.6'],
  ['main', 'src/main.cc', 'orderd'],
];
const LIBRARY: Spec[] = [
  ['orders::http::Router::dispatch(orders::http::Request const&)', 'src/http/router.cc', 'orderd'],
  ['orders::json::Parser::parse_value(std::string_view)', 'src/json/parser.cc', 'orderd'],
  ['orders::json::Parser::parse_string()', 'src/json/parser.cc', 'orderd'],
  ['orders::db::Pool::acquire(std::chrono::milliseconds)', 'src/db/pool.cc', 'orderd'],
  ['orders::db::Statement::step()', 'src/db/statement.cc', 'orderd'],
  ['orders::price::Engine::quote(orders::Cart const&)', 'src/price/engine.cc', 'orderd'],
  ['orders::price::Rule::applies(orders::Line const&) const', 'src/price/rule.cc', 'orderd'],
  ['std::vector<orders::Line, std::allocator<orders::Line>>::push_back(orders::Line const&)',
    'stl_vector.h', 'orderd'],
  ['std::_Hashtable<std::string, std::pair<std::string const, int>>::find(std::string const&)',
    'hashtable.h', 'orderd'],
  ['sqlite3VdbeExec', 'sqlite3.c', 'libsqlite3.so.0'], ['sqlite3_step', 'sqlite3.c', 'libsqlite3.so.0'],
  ['sqlite3BtreeNext', 'sqlite3.c', 'libsqlite3.so.0'],
  ['inflate', 'inflate.c', 'libz.so.1'], ['crc32_z', 'crc32.c', 'libz.so.1'],
  ['SSL_read', 'ssl_lib.c', 'libssl.so.3'], ['aes_gcm_decrypt', '', 'libcrypto.so.3'],
  ['__memmove_avx_unaligned_erms', 'memmove-vec.S', 'libc.so.6'], ['malloc', 'malloc.c', 'libc.so.6'],
  ['_int_malloc', 'malloc.c', 'libc.so.6'], ['free', 'malloc.c', 'libc.so.6'],
  ['epoll_wait', 'epoll_wait.c', 'libc.so.6'], ['entry_SYSCALL_64', '', '[kernel]'],
  ['do_syscall_64', '', '[kernel]'], ['tcp_sendmsg', '', '[kernel]'], ['tcp_v4_rcv', '', '[kernel]'],
  ['ip_finish_output2', '', '[kernel]'], ['__schedule', '', '[kernel]'], ['[unknown]', '', 'orderd'],
  ['core::ptr::drop_in_place<alloc::vec::Vec<metrics::Sample>>', 'mod.rs', 'libmetrics.so'],
  ['metrics::encode::Writer::flush', 'encode.rs', 'libmetrics.so'],
  ['net/http.(*conn).serve', 'net/http/server.go', 'sidecar'],
  ['github.com/acme/mesh/proxy.(*Filter).Apply', 'proxy/filter.go', 'sidecar'],
  ['com.acme.orders.rules.RuleEngine.evaluate', 'RuleEngine.java', 'orders.jar'],
];

export const HOSTILE = '<script>alert(1)</script>';

// A service with about `nodes` nodes: deep towers, wide fans, recursion, inlined frames.
export function service(nodes: number, seed = 7): Document {
  const random = makeRandom(seed);
  const builder = new DocumentBuilder(CPU);
  const value = (share: number): number[] => {
    const samples = Math.max(1, Math.round(share * (0.5 + random())));
    return [samples, samples * 10_101_010, Math.round(samples * 4096 * random() * 9)];
  };
  const add = (parent: number, [name, file, binary]: Spec, values: number[], inlined = false) =>
    builder.node(parent, builder.function(name, file, binary), values, inlined);

  let trunk = 0;
  for (const spec of ENTRY) trunk = add(trunk, spec, []);
  const threads = ['orders::http::Server::worker(int)', 'orders::jobs::Scheduler::run()',
    'metrics::collector::Collector::run'].map((name) =>
    add(trunk, [name, 'src/thread.cc', 'orderd'], value(2)));
  add(threads[0], [HOSTILE, '"><img src=x>.js', 'evil</script>.so'], value(60));
  const recursive: Spec = LIBRARY[1];
  let chain = threads[0];
  for (let i = 0; i < 6; i++) chain = add(chain, recursive, value(14), i % 2 === 1);

  // New frames mostly go near a random walk down from the threads, which makes towers.
  const open = [...threads, threads[0], threads[0], chain];
  let count = 14;
  while (count < nodes) {
    let at = open[Math.floor(random() ** 1.7 * open.length)];
    const height = 1 + Math.floor(random() * 9);
    for (let i = 0; i < height && count < nodes; i++, count++) {
      const spec = LIBRARY[Math.floor(random() * LIBRARY.length)];
      at = add(at, spec, random() < 0.6 ? value(8 / (1 + i) ** 0.5) : [], random() < 0.12);
      if (random() < 0.35) open.push(at);
    }
  }
  const samples = builder.self[0].reduce((sum, v) => sum + v, 0);
  return builder.document('orderd.cpu.pb.gz', [
    `${samples.toLocaleString('en-US')} samples over 30.0 s on 1 host`,
    '2.1% of the time is missing symbols',
    'no samples were lost',
  ], 1);
}

// The service against an older build of itself: some subtrees grew, some shrank, some are new or gone.
export function serviceDiff(nodes: number, seed = 7): Document {
  const document = service(nodes, seed);
  const random = makeRandom(seed + 1);
  const factors = document.functions.name.map(() => {
    const r = random();
    return r < 0.45 ? 1 : r < 0.6 ? 0.55 + 0.3 * random() : r < 0.75 ? 1.3 + random()
      : 0.96 + 0.08 * random();
  });
  const parent = document.nodes.up.map((distance, i) => i + 1 - distance);
  const isNew = new Set<number>();
  const base = document.self.map((column) => column.slice());
  document.nodes.function.forEach((func, i) => {
    const node = i + 1;
    if (isNew.has(parent[i]) || (node > 20 && random() < 0.01)) isNew.add(node);
    const gone = !isNew.has(node) && node > 20 && random() < 0.03;
    base.forEach((column, t) => {
      column[node] = isNew.has(node) ? 0 : Math.round(column[node] * factors[func]);
      if (gone) document.self[t][node] = 0;
    });
  });
  const last = document.nodes.function.length;
  const old = document.strings.push('orders::legacy::Cache::lookup(int)') - 1;
  document.functions.name.push(old);
  document.functions.file.push(0);
  document.functions.binary.push(0);
  document.nodes.up.push(last + 1 - 3);
  document.nodes.function.push(document.functions.name.length - 1);
  document.self.forEach((column) => column.push(0));
  base.forEach((column) => column.push(column[3] + 90));
  const sum = (column: number[]) => column.reduce((a, v) => a + v, 0);
  return {
    ...document,
    kind: 'diff',
    title: 'orderd 1.41.0 → 1.42.0',
    notes: ['12,034 samples over 30.0 s against 11,870 over 30.0 s', ...document.notes.slice(1)],
    base,
    scale: document.self.map((column, t) => sum(column) / sum(base[t])),
    normalize: 'total',
  };
}

// A large random tree with `functions` functions: for measuring, not for looking at.
export function large(nodes: number, functions: number, seed = 11): Document {
  const random = makeRandom(seed);
  const builder = new DocumentBuilder([{ name: 'cpu', unit: 'nanoseconds' }]);
  for (let f = 0; f < functions; f++) {
    const library = `lib${f % 40}`;
    builder.function(`${library}::module${f % 400}::Type${f % 2000}::method${f}(int, char const*)`,
      `${library}/file${f % 900}.cc`, `${library}.so`);
  }
  const depth = [0];
  for (let n = 1; n < nodes; n++) {
    // Half of the frames continue the tower at hand, the others branch off nearby.
    let parent = random() < 0.6 ? n - 1 : Math.floor(random() * n);
    while (depth[parent] > 80) parent = Math.floor(parent * random());
    depth.push(depth[parent] + 1);
    builder.node(parent, Math.floor(random() ** 2 * functions),
      random() < 0.5 ? [Math.ceil(10_101_010 * random())] : []);
  }
  return builder.document(`${nodes.toLocaleString('en-US')} nodes`, ['synthetic'], 0);
}

// The page with a document in it, as the C program makes it.
export function fillPage(template: string, document: Document): string {
  const json = JSON.stringify(document).replace(/</g, '\\u003c');
  const title = document.title.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  return template
    .replace('<!--ASSAY-TITLE-->', () => title)
    .replace('<!--ASSAY-FLAME-DATA-->',
      () => `<script type="application/json" id="flame-data">${json}</script>`);
}
