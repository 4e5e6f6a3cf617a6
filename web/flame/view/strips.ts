// SPDX-License-Identifier: Apache-2.0
// Rows of rectangles as rows of pixels: each row is filled into an image one pixel high, and drawn
// stretched to its height. Thousands of thin rectangles cost a loop over memory this way, and the
// canvas a single call for each row.

import { make } from '../dom';

const OPAQUE = 255;

export class Strips {
  private readonly canvas = make('canvas');
  private readonly context: CanvasRenderingContext2D;
  private image: ImageData | null = null;
  private width = 0;
  private pixels = new Uint32Array(0);

  constructor() {
    const context = this.canvas.getContext('2d', { willReadFrequently: true });
    if (!context) throw new Error('This browser cannot draw on a canvas.');
    this.context = context;
  }

  // Begins anew with `rows` empty rows of `width` device pixels.
  begin(width: number, rows: number): void {
    const { canvas } = this;
    if (!this.image || this.width !== width || canvas.height < rows) {
      this.width = width;
      canvas.width = width;
      canvas.height = rows;
      this.image = this.context.createImageData(width, rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0, 0, width * rows);
  }

  // `alpha` is from 0 to 1; `from` and `to` lie within the width.
  fill(row: number, from: number, to: number, pixel: number, alpha: number): void {
    const at = row * this.width;
    this.pixels.fill(alpha < 1 ? withAlpha(pixel, alpha) : pixel, at + from, at + to);
  }

  // Rows are ready to be drawn from here on.
  end(rows: number): void {
    if (this.image && rows > 0)
      this.context.putImageData(this.image, 0, 0, 0, 0, this.width, rows);
  }

  draw(onto: CanvasRenderingContext2D, row: number, y: number, width: number, height: number): void {
    onto.drawImage(this.canvas, 0, row, this.width, 1, 0, y, width, height);
  }
}

function withAlpha(pixel: number, alpha: number): number {
  return ((pixel & 0xffffff) | (Math.round(OPAQUE * alpha) << 24)) >>> 0;
}
