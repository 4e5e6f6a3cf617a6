// SPDX-License-Identifier: Apache-2.0
// Everything that is computed from a profile, each thing once and only when somebody asks: graphs
// and function values by type, outermost frames, the last search and the last sandwich.

import { functionValues, heaviest, vanished, type FunctionValues } from './functions';
import { isOther } from './graft';
import { makeSandwich, type Sandwich } from './sandwich';
import { makePattern, matchedTotal, matchNames, type Matches } from './search';
import { stateTotals, type StateTotals } from './states';
import { byChange, makeValues, outermost, type Graph } from './tree';
import type { Profile } from './data';

export interface Search {
  matches: Matches | null;
  // Why there are no matches to speak of, as a sentence; '' when all is well.
  error: string;
}

export class Model {
  private readonly graphs: Graph[] = [];
  private readonly changed: Graph[] = [];
  private readonly functions: FunctionValues[] = [];
  private outer: Uint8Array | null = null;
  private searched = { text: '', regex: false, result: { matches: null, error: '' } as Search };
  private sandwiched: { type: number; result: Sandwich } | null = null;

  private stateTotals: StateTotals | null = null;

  constructor(readonly profile: Profile) {}

  // Null where no state is known, or none of this type.
  states(type: number): StateTotals | null {
    const { states, tree, defaultType } = this.profile;
    if (!states || type !== defaultType) return null;
    return (this.stateTotals ??= stateTotals(tree, states, this.graph(type).values.total));
  }

  graph(type: number): Graph {
    const { tree, self, base } = this.profile;
    let graph = this.graphs[type];
    if (!graph) {
      const values = makeValues(tree, self[type], base[type] ?? null);
      const { whole } = this.profile;
      graph = {
        tree, values,
        whole: whole?.value[type] ?? values.total[0],
        wholeBase: whole?.base[type] ?? values.baseTotal?.[0] ?? 0,
      };
      this.graphs[type] = graph;
    }
    return graph;
  }

  // As graph(), as wide as changes are.
  changes(type: number): Graph {
    return (this.changed[type] ??= byChange(this.graph(type)));
  }

  private outermost(): Uint8Array {
    return (this.outer ??= outermost(this.profile.tree, this.profile.names.length));
  }

  hasFunctionValues(type: number): boolean {
    return this.functions[type] !== undefined;
  }

  // Whether small frames are missing from the picture, so that it can't be added up by function.
  isPruned(type: number): boolean {
    const { cut } = this.profile;
    return cut.value[type] > 0 || cut.base[type] > 0;
  }

  functionValues(type: number): FunctionValues {
    return (this.functions[type] ??= this.addUp(type));
  }

  private addUp(type: number): FunctionValues {
    const { tree, names, table } = this.profile;
    if (table)
      return {
        self: table.self[type], total: table.total[type],
        baseSelf: table.baseSelf[type] ?? null, baseTotal: table.baseTotal[type] ?? null,
      };
    const values = functionValues(tree, this.graph(type).values, names.length, this.outermost());
    // What stands for others is no function.
    for (let f = 0; f < names.length; f++)
      if (isOther(names[f]))
        for (const column of [values.self, values.total, values.baseSelf, values.baseTotal])
          if (column) column[f] = 0;
    return values;
  }

  // Functions that only the old profile has; 0 unless this is a diff.
  vanished(type: number): number {
    return this.profile.kind === 'diff' ? vanished(this.functionValues(type)) : 0;
  }

  search(text: string, regex: boolean): Search {
    const { searched } = this;
    if (searched.text === text && searched.regex === regex) return searched.result;
    const result = this.find(text, regex);
    this.searched = { text, regex, result };
    return result;
  }

  private find(text: string, regex: boolean): Search {
    if (text === '') return { matches: null, error: '' };
    try {
      return { matches: matchNames(this.profile.names, makePattern(text, regex)), error: '' };
    } catch (error) {
      return { matches: null, error: `${(error as Error).message}.` };
    }
  }

  matchedTotal(type: number, matches: Matches, root: number): number {
    return matchedTotal(this.profile.tree, this.graph(type).values.total, matches.flags, root);
  }

  // What the matches account for in all, at least and at most: equal unless stacks that aren't drawn
  // may have several of them.
  matchedBounds(type: number, { flags, count }: Matches): readonly [least: number, most: number] {
    const { tree, names, cut } = this.profile;
    const drawn = this.matchedTotal(type, { flags, count }, 0);
    if (!this.isPruned(type) || !this.profile.table) return [drawn, drawn];
    const { total } = this.functionValues(type);
    const { values } = this.graph(type);
    let largest = 0;
    let sum = 0;
    flags.forEach((flag, f) => {
      if (!flag) return;
      largest = Math.max(largest, total[f]);
      sum += total[f];
    });
    // Others below a match are counted already.
    const inMatch = new Uint8Array(tree.size);
    let below = 0;
    for (let n = 1; n < tree.size; n++) {
      inMatch[n] = inMatch[tree.parent[n]] || flags[tree.func[n]];
      if (inMatch[n] && isOther(names[tree.func[n]])) below += values.self[n];
    }
    const least = Math.max(drawn, largest);
    return [least, Math.max(least, Math.min(sum, drawn + cut.value[type] - below))];
  }

  // A function of -1 means the one with the greatest self value. Null in an empty profile.
  sandwich(type: number, func: number): Sandwich | null {
    const { sandwiched } = this;
    const chosen = func >= 0 ? func : heaviest(this.functionValues(type));
    if (chosen < 0) return null;
    if (sandwiched?.type === type && sandwiched.result.func === chosen) return sandwiched.result;
    const result = makeSandwich(
      this.graph(type), this.profile.names.length, chosen, this.outermost());
    this.sandwiched = { type, result };
    return result;
  }
}
