// SPDX-License-Identifier: Apache-2.0
// Uses the npm package that the first argument names, and prints "ok NAME" or "not ok NAME" for what it did.
import assert from 'node:assert'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { createServer } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'packages-'))
const file = (name) => path.join(dir, name)

async function step(name, use) {
  const late = sleep(30_000, null, { ref: false }).then(() => { throw new Error('no answer in 30 seconds') })
  try {
    await Promise.race([use(), late])
    console.log('ok', name)
  } catch (error) {
    console.log('not ok', name)
    console.error(error)
  }
}

async function waitUntil(isTrue) {
  while (!isTrue()) await sleep(20)
}

function run(...words) {
  const ended = spawnSync(path.join('node_modules/.bin', words[0]), words.slice(1), { encoding: 'utf8' })
  assert.equal(ended.status, 0, ended.stdout + ended.stderr)
  return ended.stdout
}

const packages = {
  async chokidar() {
    const { watch } = await import('chokidar')
    for (const usePolling of [false, true]) {
      const kind = usePolling ? 'polling' : 'inotify'
      const root = file(kind)
      await fs.mkdir(path.join(root, 'a/b'), { recursive: true })
      const seen = new Set()
      const watcher = watch(root, { usePolling, interval: 50 })
      watcher.on('all', (event, name) => seen.add(event + ' ' + path.relative(root, name)))
      await step(`${kind}: ready`, () => once(watcher, 'ready'))
      const sees = (event, change) => step(`${kind}: ${event}`, async () => { await change(); await waitUntil(() => seen.has(event)) })
      const name = path.join(root, 'a/b/f')
      await sees('add a/b/f', () => fs.writeFile(name, '1'))
      await sees('change a/b/f', () => fs.appendFile(name, '2'))
      await sees('add a/renamed', () => fs.rename(name, path.join(root, 'a/renamed')))
      await sees('unlink a/b/f', () => {})
      await sees('addDir new', () => fs.mkdir(path.join(root, 'new')))
      await sees('add new/f', () => fs.writeFile(path.join(root, 'new/f'), '1'))
      await sees('unlinkDir new', () => fs.rm(path.join(root, 'new'), { recursive: true }))
      await sees('add of 200 files/199', async () => {
        await fs.mkdir(path.join(root, 'of 200 files'))
        for (let i = 0; i < 200; i++) await fs.writeFile(path.join(root, 'of 200 files', String(i)), '')
      })
      await step(`${kind}: close`, () => watcher.close())
    }
  },

  async ws() {
    const { WebSocket, WebSocketServer } = await import('ws')
    for (const host of ['127.0.0.1', '::1', 'socket']) {
      const server = createServer()
      const sockets = new WebSocketServer({ server, perMessageDeflate: true })
      sockets.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
      await step(`${host}: listen`, async () => { server.listen(...(host === 'socket' ? [file('socket')] : [0, host])); await once(server, 'listening') })
      const url = host === 'socket' ? `ws+unix://${file('socket')}:/` : `ws://${host.includes(':') ? `[${host}]` : host}:${server.address().port}`
      const client = new WebSocket(url)
      await step(`${host}: open`, () => once(client, 'open'))
      for (const size of [1, 1 << 16, 1 << 22]) {
        await step(`${host}: ${size} bytes`, async () => {
          client.send(Buffer.alloc(size, 'x'))
          assert.equal((await once(client, 'message'))[0].length, size)
        })
      }
      await step(`${host}: ping`, async () => { client.ping(); await once(client, 'pong') })
      await step(`${host}: close`, async () => { client.close(); await once(client, 'close') })
      server.close()
    }
  },

  async undici() {
    const { Agent, fetch, request, Pool } = await import('undici')
    const server = createServer((_, response) => setTimeout(() => response.end('x'.repeat(100_000)), 5))
    await step('listen', async () => { server.listen(0, '127.0.0.1'); await once(server, 'listening') })
    const url = `http://localhost:${server.address().port}`
    await step('fetch', async () => assert.equal((await (await fetch(url)).text()).length, 100_000))
    await step('request', async () => assert.equal((await (await request(url)).body.text()).length, 100_000))
    await step('a pool of eight', async () => {
      const pool = new Pool(url, { connections: 8 })
      const answers = await Promise.all(Array.from({ length: 100 }, () => pool.request({ path: '/', method: 'GET' }).then((r) => r.body.text())))
      assert.equal(answers.length, 100)
      await pool.close()
    })
    await step('a time limit', () => assert.rejects(fetch(url, { signal: AbortSignal.timeout(1) })))
    await step('a refused connection', () => assert.rejects(fetch('http://127.0.0.1:50999'), (e) => e.cause.code === 'ECONNREFUSED'))
    await step('an unknown name', () => assert.rejects(fetch('http://name.invalid'), (e) => /ENOTFOUND|EAI_AGAIN/.test(e.cause.code)))
    await step('a Unix socket', async () => {
      const other = createServer((_, response) => response.end('u'))
      other.listen(file('u'))
      await once(other, 'listening')
      assert.equal(await (await fetch('http://localhost/', { dispatcher: new Agent({ connect: { socketPath: file('u') } }) })).text(), 'u')
      other.close()
    })
    server.close()
  },

  async esbuild() {
    const esbuild = await import('esbuild')
    await fs.writeFile(file('b.ts'), 'export const b: number = 1')
    await fs.writeFile(file('a.ts'), "import { b } from './b'; console.log(b)")
    const options = { entryPoints: [file('a.ts')], bundle: true, outdir: dir, write: false }
    await step('transform', async () => assert.equal((await esbuild.transform('let a: number = 1', { loader: 'ts' })).code, 'let a = 1;\n'))
    await step('a bundle', async () => assert.match((await esbuild.build(options)).outputFiles[0].text, /var b = 1/))
    await step('the command', () => run('esbuild', file('a.ts'), '--bundle', '--outfile=' + file('out.js')))
    let builds = 0
    const context = await esbuild.context({ ...options, plugins: [{ name: 'count', setup: (b) => b.onEnd(() => { builds++ }) }] })
    await step('watch', async () => { await context.watch(); await waitUntil(() => builds === 1) })
    await step('a change', async () => { await fs.writeFile(file('b.ts'), 'export const b = 22'); await waitUntil(() => builds > 1) })
    await step('serve', async () => {
      const { port } = await context.serve({ host: '127.0.0.1', servedir: dir })
      assert.match(await (await fetch(`http://127.0.0.1:${port}/a.js`)).text(), /22/)
    })
    await step('dispose', () => context.dispose())
  },

  async tsx() {
    await fs.writeFile(file('a.ts'), 'const a: string = "typed"; console.log(a)')
    await step('a module', () => assert.equal(run('tsx', file('a.ts')), 'typed\n'))
    await step('code', () => assert.equal(run('tsx', '-e', 'console.log(1 as number)'), '1\n'))
    await fs.writeFile(file('a.test.ts'), 'import test from "node:test"; test("t", () => {})')
    await step('tests', () => assert.match(run('tsx', '--test', file('a.test.ts')), /pass 1/))
  },

  async sharp() {
    const { default: sharp } = await import('sharp')
    const image = sharp({ create: { width: 2000, height: 1000, channels: 3, background: 'red' } })
    for (const format of ['png', 'jpeg', 'webp', 'avif', 'tiff', 'gif']) {
      await step(format, async () => {
        const data = await image.clone().resize(300).toFormat(format).toBuffer()
        assert.equal((await sharp(data).metadata()).height, 150)
      })
    }
    await step('eight at a time', () => Promise.all(Array.from({ length: 8 }, () => image.clone().blur(3).png().toBuffer())))
    await step('a file', () => image.clone().toFile(file('a.png')))
  },

  async typescript() {
    const code = Array.from({ length: 300 }, (_, i) => `export interface I${i} { a: ${i}; b: string[] } export const f${i} = (x: I${i}) => x.b.map((y) => y + x.a)`).join('\n')
    await fs.writeFile(file('a.ts'), code)
    await step('a project', () => run('tsc', '--strict', '--noEmit', '--target', 'es2022', file('a.ts')))
    await step('its output', async () => { run('tsc', '--outDir', file('out'), '--declaration', '--target', 'es2022', file('a.ts')); await fs.access(file('out/a.d.ts')) })
    await fs.writeFile(file('wrong.ts'), 'const a: number = "b"')
    await step('a mistake', () => assert.throws(() => run('tsc', '--noEmit', file('wrong.ts')), /TS2322/))
  },

  async vitest() {
    for (let i = 0; i < 20; i++) {
      await fs.mkdir('vitest-tests', { recursive: true })
      await fs.writeFile(`vitest-tests/t${i}.test.ts`, `import { expect, test } from 'vitest'\ntest.each([1, 2, 3])('t%d', (n: number) => { expect(n).toBeLessThan(4) })\n`)
    }
    for (const pool of ['forks', 'threads', 'vmThreads']) {
      await step(pool, () => assert.match(run('vitest', 'run', '--pool', pool, '--dir', 'vitest-tests'), /60 passed/))
    }
  },

  async 'better-sqlite3'() {
    const { default: Database } = await import('better-sqlite3')
    const db = new Database(file('db'))
    await step('wal', () => assert.equal(db.pragma('journal_mode = wal', { simple: true }), 'wal'))
    await step('a table', () => db.exec('create table t (a)'))
    await step('a transaction', () => db.transaction(() => { for (let i = 0; i < 10000; i++) db.prepare('insert into t values (?)').run(i) })())
    await step('a query', () => assert.equal(db.prepare('select count(*) c from t').get().c, 10000))
    await step('a backup', () => db.backup(file('copy')))
  },

  async 'node-pty'() {
    const { default: pty } = await import('node-pty')
    const shell = pty.spawn('/bin/sh', [], { cols: 90, rows: 20, env: { PS1: 'shell- ' } })
    let text = ''
    let code
    shell.onData((data) => { text += data })
    shell.onExit((ended) => { code = ended.exitCode })
    const shows = (name, wanted, act) => step(name, async () => { text = ''; await act(); await waitUntil(() => text.includes(wanted)) })
    await shows('a prompt', 'shell-', () => shell.write('\r'))
    await shows('output', '42=', () => shell.write('echo $((40+2))=\r'))
    await shows('the size', '20 90', () => shell.write('stty size\r'))
    await shows('another size', '30 100', () => { shell.resize(100, 30); shell.write('stty size\r') })
    await shows('an interrupt', '=130', () => { shell.write('sleep 100\r'); setTimeout(() => shell.write('\x03echo =$?\r'), 500) })
    await step('its end', async () => { shell.write('exit 7\r'); await waitUntil(() => code === 7) })
  },
}

await packages[process.argv[2]]()
await fs.rm(dir, { recursive: true, force: true, maxRetries: 5 })
process.exit()
