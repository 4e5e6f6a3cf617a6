// SPDX-License-Identifier: Apache-2.0
// A flame graph of CPU time in money, where the server has a price: the same document with another
// unit.

import { priceUnit } from '../../flame/data/units';
import type { FlameAnswer } from '../api';

export function inMoney({ flame, price }: FlameAnswer): unknown {
  const document = flame as { types?: { unit: string }[] };
  if (!price || !Array.isArray(document.types)) return flame;
  const unit = priceUnit(price.core_hour, price.currency);
  return { ...document, types: document.types.map((type) =>
    type.unit === 'nanoseconds' ? { ...type, unit } : type) };
}
