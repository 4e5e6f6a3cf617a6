// SPDX-License-Identifier: Apache-2.0
// An address that names no page.

export function Missing() {
  return (
    <div class="notice">
      <h1>Page not found</h1>
      <p>Check that the URL was copied completely.</p>
      <p><a href="/">All services</a></p>
    </div>
  );
}
