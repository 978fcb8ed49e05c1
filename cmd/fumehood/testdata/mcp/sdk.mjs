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
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map(t => t.name), schemas: tools.filter(t => t.outputSchema).length, bytes: JSON.stringify(tools).length }));
async function call({ tool, args }) {
  const r = await client.callTool({ name: tool, arguments: args });
  const blocks = r.content.map(c => c.type === 'text' ? c.text : `${c.type} ${c.mimeType}`);
  return { tool, error: !!r.isError, blocks, structured: 'structuredContent' in r, bytes: JSON.stringify(r).length };
}
for (const step of JSON.parse(fs.readFileSync(steps))) {
  const begin = performance.now();
  for (const answer of await Promise.all([step].flat().map(call))) console.log(JSON.stringify({ ...answer, ms: performance.now() - begin }));
}
await client.close();
