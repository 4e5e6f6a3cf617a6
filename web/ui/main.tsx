// SPDX-License-Identifier: Apache-2.0
// The entry of the server's page.

import 'uplot/dist/uPlot.min.css';
import '../flame/theme.css';
import './style.css';
import { render } from 'preact';
import { App } from './app';
import { loadAhead } from './later';
import { Settings, SettingsContext } from './settings';

const element = document.getElementById('app');
if (element) {
  render(
    <SettingsContext.Provider value={new Settings()}>
      <App />
    </SettingsContext.Provider>, element);
  loadAhead();
}
