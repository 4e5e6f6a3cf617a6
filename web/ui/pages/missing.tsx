// SPDX-License-Identifier: Apache-2.0
// An address that names no page.

export function Missing() {
  return (
    <div class="notice">
      <p>There is no such page here. Was the address copied whole?</p>
      <p><a href="/">All services</a></p>
    </div>
  );
}
