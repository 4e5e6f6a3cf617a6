// SPDX-License-Identifier: Apache-2.0
// Every page but the first, in a file of its own: the list of services does not wait for charts and
// flame graphs.

export { Agents } from './agents';
export { Compare } from './compare';
export { Explain } from './explain';
export { Explore } from './explore';
export { Files } from './files';
export { Alerts } from './alerts';
export { Findings } from './findings';
export { FunctionPage } from './function';
export { Functions } from './functions';
export { KeepDialog } from '../parts/keep';
export { Recordings } from './recordings';
export { Requests } from './requests';
export { Saved } from './saved';
export { Symbols } from './symbols';
export { Triage } from './triage';
export { warmUp } from '../../flame/warm';
