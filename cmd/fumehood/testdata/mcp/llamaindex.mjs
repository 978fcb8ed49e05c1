// LlamaIndex's MCP tools, called as its agents call them.
import fs from 'node:fs';
import { mcp } from '@llamaindex/tools';

const server = JSON.parse(fs.readFileSync('.mcp.json')).mcpServers.fumehood;
const source = mcp({ command: server.command, args: server.args, verbose: false });
const tools = await source.tools();
for (const { tool, args } of JSON.parse(fs.readFileSync(process.argv[2]))) {
  const found = tools.find(t => t.metadata.name === tool || t.metadata.name.endsWith('_' + tool));
  console.log(JSON.stringify(await found.call(args)));
}
console.log('DONE');
await source.cleanup();
