// SPDX-License-Identifier: Apache-2.0

// What every release of E2B's SDK can do, with the package of one of them.
import assert from 'node:assert/strict'
import { Sandbox } from 'e2b'

const at = { apiUrl: process.env.E2B_API_URL, sandboxUrl: process.env.E2B_SANDBOX_URL }
const sb = await Sandbox.create({ ...at, timeoutMs: 120_000, metadata: { of: 'release' }, envs: { FOO: 'bar' } })
assert.equal((await sb.commands.run('pwd; echo $FOO')).stdout, '/home/user\nbar\n')
assert.equal((await sb.files.write('d/x.txt', 'hello')).path, '/home/user/d/x.txt')
assert.equal(await sb.files.read('d/x.txt'), 'hello')
assert.equal((await sb.files.write([{ path: 'd/y', data: '1' }, { path: '/tmp/z', data: '2' }])).length, 2)
assert.deepEqual((await sb.files.list('d')).map((f) => f.name), ['x.txt', 'y'])
assert.equal(await sb.files.makeDir('d/e'), true)
assert.equal((await sb.files.rename('d/y', 'd/e/y')).path, '/home/user/d/e/y')
await sb.files.remove('d/x.txt')
assert.equal(await sb.files.exists('d/x.txt'), false)
const cmd = await sb.commands.run('echo one; sleep 60', { background: true })
assert((await sb.commands.list()).some((p) => p.pid === cmd.pid))
assert.equal(await cmd.kill(), true)
const failed = await sb.commands.run('exit 3').catch((e) => e)
assert.equal(failed.exitCode, 3)
await sb.setTimeout(180_000)
assert.equal((await Sandbox.getInfo(sb.sandboxId, at)).metadata.of, 'release')
const other = await Sandbox.connect(sb.sandboxId, at)
assert.equal(await other.files.read('/tmp/z'), '2')
assert.equal(await sb.isRunning(), true)
await sb.kill()
assert.equal(await sb.isRunning(), false)
console.log('done')
