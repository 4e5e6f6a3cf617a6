// SPDX-License-Identifier: Apache-2.0
// What a page without data says: how to send the first profile to this very server, or where the
// data is when there is some.

import { useState } from 'preact/hooks';
import { get, token, type ProfileType } from '../api';
import { useLoad } from '../load';
import { address, currentRoute } from '../route';
import { useSettings } from '../settings';
import { formatRange, type Range } from '../time';

function Commands({ title, children }: { title: string; children: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <>
      <h3>{title}</h3>
      <div class="commands">
        <pre>{children}</pre>
        {/* Only secure pages may use the clipboard. */}
        {navigator.clipboard && <button type="button" class="button" onClick={() => {
          void navigator.clipboard.writeText(children).then(() => setCopied(true), () => undefined);
        }}>{copied ? 'Copied' : 'Copy'}</button>}
      </div>
    </>
  );
}

function HowToSend() {
  const { origin } = location;
  const secret = token() !== null;
  const header = secret ? "-H \"Authorization: Bearer $TOKEN\" " : '';
  return (
    <>
      {secret && <Commands title="Create a token for senders">
        {'assay token create sender --roles ingest'}</Commands>}
      <Commands title="Profile a Linux machine continuously">
        {`sudo assay agent --server ${origin}${secret ? ' --token-file FILE' : ''}`}</Commands>
      <Commands title="Record one command">{`assay record -o app.pb.gz -- ./app
curl ${header}--data-binary @app.pb.gz '${origin}/api/v1/push?service_name=app'`}</Commands>
      <Commands title="From a Go program, with Pyroscope's client">{`pyroscope.Start(pyroscope.Config{
    ApplicationName: "app",
    ServerAddress:   "${origin}",${secret ? '\n    BasicAuthPassword: os.Getenv("TOKEN"),' : ''}
})`}</Commands>
      <Commands title="From an OpenTelemetry collector">{`exporters:
  otlphttp:
    profiles_endpoint: ${origin}/v1development/profiles${secret ? `
    headers: {Authorization: "Bearer \${env:TOKEN}"}` : ''}`}</Commands>
      <Commands title="Try it with a simulated fleet">
        {`assay simulate --server ${origin} --fast${secret ? ' --token-file FILE' : ''}`}</Commands>
    </>
  );
}

export function FirstProfile({ range }: { range: Range }) {
  const { utc } = useSettings();
  const { path, params } = currentRoute();
  // Is there nothing here, or nothing now?
  const ever = useLoad('ever', (signal) => get<ProfileType[]>('types', { from: '1980-01-01' }, signal));
  if (ever.loading) return null;
  const some = (ever.value ?? []).length > 0;
  return (
    <section class="first">
      {some ? <>
        <h2 class="first-title">No data in this range</h2>
        <p>No profiles in {formatRange(range, utc)}. The server has profiles of other times.</p>
        <p><a class="button primary" href={address(path, {
          ...Object.fromEntries(params), from: 'now-14d', to: undefined,
        })}>Show the last 14 days</a></p>
        <h2>Send profiles</h2>
      </> : <>
        <h2 class="first-title">No profiles yet</h2>
        <p>This server is ready. Each of these commands sends a profile, which appears here a few
          seconds later. You can also <a href="/files">open a file</a>.</p>
      </>}
      <HowToSend />
    </section>
  );
}
