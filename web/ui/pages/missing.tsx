// SPDX-License-Identifier: Apache-2.0
// An address that names no page.

export function Missing() {
  return (
    <div class="notice">
      <p>Page not found. Check that the URL was copied completely.</p>
      <p><a href="/">All services</a></p>
    </div>
  );
}
