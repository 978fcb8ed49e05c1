// LangChain's agent with its MCP adapters, and a stub model.
import fs from 'node:fs';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { ChatOpenAI } from '@langchain/openai';
import { createReactAgent } from '@langchain/langgraph/prebuilt';

const server = JSON.parse(fs.readFileSync('.mcp.json')).mcpServers.fumehood;
const client = new MultiServerMCPClient({ mcpServers: { fumehood: { transport: 'stdio', command: server.command, args: server.args } } });
const model = new ChatOpenAI({ model: 'stub', apiKey: 'x', configuration: { baseURL: process.argv[2] + '/v1' } });
const agent = createReactAgent({ llm: model, tools: await client.getTools() });
const r = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] }, { recursionLimit: 50 });
console.log(r.messages.at(-1).content);
await client.close();
