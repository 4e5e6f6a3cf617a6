// SPDX-License-Identifier: Apache-2.0
// Every page but the first, in a file of its own: the list of services does not wait for charts and
// flame graphs.

export { Agents } from './agents';
export { Compare } from './compare';
export { Explore } from './explore';
export { Files } from './files';
export { Findings } from './findings';
export { FunctionPage } from './function';
export { Functions } from './functions';
export { Recordings } from './recordings';
export { Symbols } from './symbols';
export { warmUp } from '../../flame/warm';
