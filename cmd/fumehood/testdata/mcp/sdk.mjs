// The TypeScript SDK as a client: over stdio from the printed configuration, or over HTTP.
import fs from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const [how, steps, url, token] = process.argv.slice(2);
const capabilities = how === 'approve' || how === 'accept-all' ? { elicitation: {} } : {};
const client = new Client({ name: 'ts-sdk', version: '1' }, { capabilities });
if (capabilities.elicitation) {
  client.setRequestHandler(types.ElicitRequestSchema, async r => {
    if (how === 'accept-all') return { action: 'accept', content: { code: 'yes', approve: true } };
    await new Promise(done => setTimeout(done, 1200));
    return { action: 'accept', content: { code: /type the code (\w+)\./.exec(r.params.message)[1] } };
  });
}
if (how === 'http') {
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
} else {
  const server = JSON.parse(fs.readFileSync('.mcp.json')).mcpServers.fumehood;
  if (capabilities.elicitation) server.args.push('--approver', 'elicit', '--policy', '../policy');
  await client.connect(new StdioClientTransport({ command: server.command, args: server.args, stderr: 'inherit' }));
}
for (const { tool, args } of JSON.parse(fs.readFileSync(steps))) {
  const r = await client.callTool({ name: tool, arguments: args });
  console.log(JSON.stringify({ tool, error: !!r.isError, text: r.content[0].text, bytes: JSON.stringify(r).length }));
}
await client.close();
