// SPDX-License-Identifier: Apache-2.0
// Numbers for people: three significant digits, a unit that suits the size, a real minus sign, and
// a no-break space between number and unit.

const NBSP = '\u00a0';
const MINUS = '\u2212';

type Step = readonly [size: number, unit: string];

// The largest step that the value reaches is used.
const NANOSECONDS: readonly Step[] = [
  [172_800e9, 'd'], [7200e9, 'h'], [120e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [0, 'ns'],
];
const NANOSECONDS_IN: Record<string, number> = {
  d: 86_400e9, h: 3600e9, min: 60e9, s: 1e9, ms: 1e6, µs: 1e3, ns: 1,
};
const BYTES: readonly Step[] = [
  [2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'],
  [0, 'B'],
];

function digits(value: number): string {
  if (Number.isInteger(value) && value < 1000) return String(value);
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

export function grouped(value: number): string {
  const whole = Math.round(Math.abs(value)).toString();
  const parts = /e/.test(whole) ? whole : whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return (value < 0 ? MINUS : '') + parts;
}

// CPU time as money: nanoseconds with the unit "0.042 EUR per core-hour".
const PRICE = /^(\d[\d.e+-]*) ([A-Za-z]{0,8}) ?per core-hour$/;
const HOUR = 3600e9;

export function priceUnit(coreHour: number, currency: string): string {
  return `${coreHour} ${currency} per core-hour`;
}

function money(value: number, currency: string): string {
  if (value > 0 && value < 0.01) {
    const [size, prefix] = value < 1e-5 ? [1e6, 'µ'] : [1e3, 'm'];
    return digits(Number((value * size).toPrecision(6))) + NBSP + prefix + currency;
  }
  const number = value === 0 ? '0' : value < 1000 ? value.toFixed(2) : grouped(value);
  return currency === '' ? number : number + NBSP + currency;
}

function positive(value: number, unit: string): string {
  if (unit === 'nanoseconds') {
    const [, name] = NANOSECONDS.find(([size]) => value >= size) ?? NANOSECONDS[6];
    return digits(value / NANOSECONDS_IN[name]) + NBSP + name;
  }
  if (unit === 'bytes') {
    const [size, name] = BYTES.find(([limit]) => value >= limit) ?? BYTES[5];
    return digits(size > 0 ? value / size : value) + NBSP + name;
  }
  const price = PRICE.exec(unit);
  if (price) return money(value / HOUR * Number(price[1]), price[2]);
  const number = value >= 1e9 ? `${digits(value / 1e9)}${NBSP}G`
    : value >= 1e6 ? `${digits(value / 1e6)}${NBSP}M`
    : value >= 1000 ? grouped(value)
    : digits(value);
  return unit === 'count' || unit === '' ? number : number + NBSP + unit;
}

export function formatValue(value: number, unit: string): string {
  return (value < 0 ? MINUS : '') + positive(Math.abs(value), unit);
}

// A signed difference: "+1.20 ms", "−3", "0".
export function formatChange(value: number, unit: string): string {
  // Scaled values carry rounding errors; a difference that small is none.
  if (Math.abs(value) < 0.005) return positive(0, unit);
  return (value > 0 ? '+' : '') + formatValue(value, unit);
}

export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const percent = Math.abs(share) * 100;
  const sign = share < 0 ? MINUS : '';
  if (percent === 0) return '0%';
  if (percent < 0.01) return `${sign}<0.01%`;
  if (percent >= 99.995) return `${sign}${percent.toFixed(0)}%`;
  return `${sign}${percent.toFixed(percent < 10 ? 2 : 1)}%`;
}

// How much a value grew against its base, in words where a percentage would mean nothing.
export function formatGrowth(base: number, value: number): string {
  if (Math.abs(value - base) <= 1e-5 * Math.abs(base)) return '0%';
  if (base === 0) return 'new';
  if (value === 0) return 'gone';
  const share = (value - base) / Math.abs(base);
  if (Math.abs(share) >= 10) return `×${digits(Math.abs(value / base))}`;
  if (Math.abs(share) < 0.0001) return '~0%';
  return (share > 0 ? '+' : '') + formatPercent(share);
}

// The unit's name in a sentence, for the legend: "cpu (nanoseconds)".
export function typeLabel(name: string, unit: string): string {
  return unit === '' || unit === name ? name : `${name} (${unit})`;
}
