// SPDX-License-Identifier: Apache-2.0
// A tar archive (ustar), compressed where the browser can.

export interface TarFile {
  name: string; // at most 100 bytes
  content: Uint8Array;
}

const BLOCK = 512;
const encoder = new TextEncoder();

function header({ name, content }: TarFile, seconds: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  const octal = (value: number, digits: number) => `${Math.floor(value).toString(8).padStart(digits, '0')}\0`;
  const bytes = encoder.encode(name);
  if (bytes.length > 100) throw new Error(`The name ${name} is too long for a tar archive.`);
  block.set(bytes, 0);
  put(100, octal(0o644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(content.length, 11));
  put(136, octal(seconds, 11));
  put(148, ' '.repeat(8)); // the sum counts its own field as spaces
  put(156, '0');
  put(257, 'ustar\u000000');
  put(148, `${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `);
  return block;
}

export function tar(files: readonly TarFile[], seconds: number): Blob {
  const parts: BlobPart[] = [];
  for (const file of files) {
    parts.push(header(file, seconds) as BlobPart, file.content as BlobPart,
      new Uint8Array((BLOCK - (file.content.length % BLOCK)) % BLOCK) as BlobPart);
  }
  parts.push(new Uint8Array(2 * BLOCK) as BlobPart);
  return new Blob(parts);
}

// The archive and the end of its name.
export async function packed(files: readonly TarFile[], seconds: number): Promise<[Blob, string]> {
  const plain = tar(files, seconds);
  if (typeof CompressionStream === 'undefined') return [plain, '.tar'];
  return [await new Response(plain.stream().pipeThrough(new CompressionStream('gzip'))).blob(), '.tar.gz'];
}
