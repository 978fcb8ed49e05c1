// SPDX-License-Identifier: Apache-2.0
//
// The Node end of the protocol in interpreter.go: Node 18 or newer, no packages. This
// file is two processes. The first speaks the protocol and knows the nonces. It starts
// the second, the kernel, in which cells run, and reads its descriptors 1 and 2, which
// are those of the kernel's children. The kernel reads requests from descriptor 3 and
// writes messages to 4. V8's own evaluation of REPL input gives top-level await,
// declarations that last, and the value of a cell.
import { spawn } from 'node:child_process';
import { readSync, writeSync } from 'node:fs';
import inspector from 'node:inspector';
import module, { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import { pathToFileURL, fileURLToPath } from 'node:url';
import { StringDecoder } from 'node:string_decoder';
import util from 'node:util';
import vm from 'node:vm';

const PIECE = 32 << 10; // characters of output in one message
const LATE = 64 << 10; // characters of output that are kept between two cells
const PLAIN = 64 << 10; // characters of text/plain and of a stack
const BUNDLE = 6 << 20; // characters of all forms of one result
const LINE = 16 << 20; // characters of a message of the kernel
const REPEAT = 50; // milliseconds until a cell that is interrupted gets a signal, and the next

// whole writes all of text: the descriptor may be one that does not block.
function whole(fd, text) {
  let data = Buffer.from(text);
  while (data.length) {
    try {
      data = data.subarray(writeSync(fd, data));
    } catch (e) {
      if (e.code !== 'EAGAIN') process.exit(70);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

// lines calls take with each line of a stream.
function lines(stream, take) {
  const decoder = new StringDecoder('utf8');
  let parts = [], size = 0;
  stream.on('data', (data) => {
    const found = decoder.write(data).split('\n');
    while (found.length > 1) {
      take(parts.join('') + found.shift());
      parts = [];
      size = 0;
    }
    parts.push(found[0]);
    if ((size += found[0].length) > LINE) process.exit(70);
  });
}

function supervise() {
  let nonce = null, serial = 0, began = 0, repeat;
  const late = { stdout: ['', 0], stderr: ['', 0] };
  const send = (message) => whole(1, JSON.stringify({ nonce, ...message }) + '\n');
  const output = (kind, text) => {
    if (!text) return;
    if (nonce !== null) {
      for (let at = 0; at < text.length; at += PIECE) send({ kind, text: text.slice(at, at + PIECE) });
      return;
    }
    const all = late[kind][0] + text;
    late[kind] = [all.slice(-LATE), late[kind][1] + Math.max(0, all.length - LATE)];
  };
  const kernel = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), 'kernel'], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const [, stdout, stderr, requests, messages] = kernel.stdio;
  for (const [kind, stream] of [['stdout', stdout], ['stderr', stderr]]) {
    const decoder = new StringDecoder('utf8');
    stream.on('data', (data) => output(kind, decoder.write(data)));
  }
  lines(messages, (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (message.kind === 'hello') return began === 0 && send({ ...message, nonce: null });
    if (message.kind === 'stdout' || message.kind === 'stderr') return output(message.kind, String(message.text));
    if (nonce === null || message.serial !== serial) return;
    delete message.serial;
    if (message.kind !== 'done') return send({ ...message, nonce });
    // After one whole turn of the loop, everything that children wrote has been read.
    setImmediate(() => setImmediate(() => {
      send({ kind: 'done', ms: Math.round((performance.now() - began) * 1e3) / 1e3 });
      nonce = null;
      clearInterval(repeat);
    }));
  });
  lines(process.stdin, (line) => {
    const request = JSON.parse(line);
    nonce = request.nonce;
    began = performance.now();
    for (const kind of ['stdout', 'stderr']) {
      const [text, omitted] = late[kind];
      if (text) send({ kind, text, late: true, omitted });
      late[kind] = ['', 0];
    }
    delete request.nonce;
    requests.write(JSON.stringify({ ...request, serial: ++serial }) + '\n');
  });
  process.stdin.on('end', () => kernel.kill('SIGKILL'));
  // A cell that waits is told. One that computes does not read: it gets V8's signal, again and again,
  // because V8 loses one that comes while its handler goes.
  process.on('SIGINT', () => {
    if (nonce === null) return;
    clearInterval(repeat);
    repeat = setInterval(() => kernel.kill('SIGINT'), REPEAT);
    requests.write(JSON.stringify({ op: 'interrupt', serial }) + '\n');
  });
  requests.on('error', () => {});
  kernel.on('exit', (code, signal) => {
    const status = signal ? 128 + constants.signals[signal] : code;
    setImmediate(() => setImmediate(() => process.exit(status)));
  });
}

const METHODS = {
  _repr_html_: 'text/html',
  _repr_markdown_: 'text/markdown',
  _repr_latex_: 'text/latex',
  _repr_svg_: 'image/svg+xml',
  _repr_png_: 'image/png',
  _repr_jpeg_: 'image/jpeg',
  _repr_json_: 'application/json',
};

const cut = (text, most) => text.length <= most ? text
  : `${text.slice(0, most / 2)}\n… ${text.length - most} characters omitted …\n${text.slice(-most / 2)}`;

// forms returns the forms of a value. A form that fails is left out.
function forms(value) {
  const found = { 'text/plain': util.inspect(value) };
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return found;
  const attempt = (method) => {
    try {
      return typeof value[method] === 'function' ? value[method]() : null;
    } catch {
      return null;
    }
  };
  for (const method of ['_repr_mimebundle_', Symbol.for('Jupyter.display')]) Object.assign(found, attempt(method));
  for (const [method, mime] of Object.entries(METHODS)) {
    const form = attempt(method);
    if (form !== null && form !== undefined) found[mime] = form;
  }
  return found;
}

function encoded(mime, form) {
  if (form instanceof Uint8Array) return Buffer.from(form).toString('base64');
  if (typeof form === 'string' && !mime.endsWith('json')) return form;
  return JSON.stringify(form);
}

function shown(value) {
  const data = {}, forms_omitted = {};
  let left = BUNDLE;
  for (const [mime, form] of Object.entries(forms(value))) {
    let text;
    try {
      text = encoded(mime, form);
    } catch {
      continue;
    }
    if (typeof text !== 'string') continue;
    if (mime === 'text/plain') text = cut(text, PLAIN);
    if (text.length > left) {
      forms_omitted[mime] = text.length;
      continue;
    }
    data[mime] = text;
    left -= text.length;
  }
  return Object.keys(forms_omitted).length ? { data, forms_omitted } : { data };
}

// Exit is thrown by process.exit.
class Exit extends Error {
  constructor(code) {
    super(String(code ?? process.exitCode ?? 0));
    this.name = 'Exit';
  }
}

class PolicyDenied extends Error {
  constructor(message) {
    super(message);
    this.name = 'PolicyDenied';
    this.stack = String(this);
  }
}

// Code that is only checked has a context of its own: even a script that ends at its first statement declares its names.
const CHECKED = ' ';
const STOP = 'throw null; ';
const IMPORT = '__fumehood_import__';
const KEEP = '__fumehood_keep__';

// dynamic replaces import( outside of strings and comments: V8 evaluates REPL input
// without a loader. A template's inner code is not seen.
const dynamic = (code) => code.replace(
  /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`|\/\/.*|\/\*[^]*?\*\/)|(?<![.\w$])import(?=\s*\()/g,
  (all, skipped) => skipped ?? IMPORT);

// constant replaces import declarations, which are no statements of REPL input.
const constant = (code) => code.replace(
  /^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"\n]+)\5(\s*with\s*\{[^}]*\})?/gm,
  (_, space, name, all, some, __, from) => {
    const load = `await ${IMPORT}(${JSON.stringify(from)})`;
    if (all) return `${space}const ${all} = ${load}${name ? `, {default: ${name}} = ${all}` : ''}`;
    const names = [name && `default: ${name}`, some && some.replace(/\s+as\s+/g, ': ').replace(/\btype\s+[\w$]+\s*,?/g, '')];
    return names.some(Boolean) ? `${space}const {${names.filter(Boolean).join(', ')}} = ${load}` : space + load;
  });

// typed removes TypeScript's types, where this Node can.
function typed(code) {
  if (!module.stripTypeScriptTypes) return null;
  const emit = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return module.stripTypeScriptTypes(code);
  } catch {
    return null;
  } finally {
    process.emitWarning = emit;
  }
}

class Kernel {
  session = new inspector.Session();
  contexts = new Map();
  count = 0;
  serial = 0;
  queue = Promise.resolve();
  stop = null; // ends the wait for the running cell
  step = null; // what the signal can interrupt
  // Runs step with V8's own handler of SIGINT.
  private = vm.createContext({ step: () => this.step() });
  script = new vm.Script('step()');

  constructor() {
    this.session.connect();
    this.load = createRequire(process.cwd() + '/');
  }

  send(message) {
    whole(4, JSON.stringify({ serial: this.serial, ...message }) + '\n');
  }

  post(method, params) {
    return new Promise((resolve, reject) => {
      this.step = () => {
        this.send({ kind: 'began' });
        this.session.post(method, params, (e, got) => e ? reject(Object.assign(new Error(e.message), e)) : resolve(got));
      };
      this.script.runInContext(this.private, { breakOnSigint: true });
    });
  }

  // import loads a module as code in the working directory would.
  import(name) {
    return import(/^\.{0,2}\//.test(name) ? pathToFileURL(this.load.resolve(name)).href : this.resolve(name));
  }

  resolve(name) {
    if (module.isBuiltin(name) || /^[\w+.-]+:/.test(name)) return name;
    return pathToFileURL(this.load.resolve(name)).href;
  }

  equip(names) {
    const hidden = (name, value) => Object.defineProperty(names, name, { value, writable: true, configurable: true });
    hidden('require', this.load);
    hidden('display', (...values) => values.forEach((v) => this.send({ kind: 'display', ...shown(v) })));
    hidden(IMPORT, (name) => this.import(String(name)));
    return names;
  }

  // context returns the number of a context; the first name is that of the main one.
  async context(name) {
    if (!this.contexts.size) {
      this.given = Object.getOwnPropertyNames(globalThis); // before any cell adds its own
      this.equip(globalThis);
      this.contexts.set('', { names: globalThis });
    }
    if (this.contexts.has(name)) return this.contexts.get(name);
    const names = this.equip({});
    for (const key of this.given) {
      // Every context has a console of V8's, which shows nothing.
      if (key === 'console' || !vm.runInContext(`Object.hasOwn(globalThis, ${JSON.stringify(key)})`, this.private) && !(key in names)) {
        Object.defineProperty(names, key, Object.getOwnPropertyDescriptor(globalThis, key));
      }
    }
    names.globalThis = names.global = names;
    const made = { names: null, id: 0 };
    const take = ({ params }) => { made.id = params.context.id; };
    await new Promise((done) => this.session.post('Runtime.enable', done));
    this.session.on('Runtime.executionContextCreated', take);
    vm.createContext(names, { name });
    this.session.off('Runtime.executionContextCreated', take);
    await new Promise((done) => this.session.post('Runtime.disable', done));
    made.names = names;
    this.contexts.set(name, made);
    return made;
  }

  // value returns what an inspector's reference refers to.
  async value(context, { objectId, type, value, unserializableValue }) {
    if (!objectId) {
      if (type === 'bigint') return BigInt(unserializableValue.slice(0, -1));
      return unserializableValue === undefined ? value : Number(unserializableValue);
    }
    let kept;
    Object.defineProperty(context.names, KEEP, { value: (v) => { kept = v; }, configurable: true });
    try {
      await this.post('Runtime.callFunctionOn', { objectId, functionDeclaration: `function() { 'use strict'; ${KEEP}(this); }` });
    } finally {
      delete context.names[KEEP];
    }
    return kept;
  }

  evaluate(context, code) {
    const source = `${code}\n//# sourceURL=cell-${this.count}`;
    return this.post('Runtime.evaluate', {
      expression: source, contextId: context.id, replMode: true, awaitPromise: true, objectGroup: 'cell',
    });
  }

  // run runs code. If only is true, it says what is wrong with its syntax, and runs none of it: a script
  // with an error of syntax does not begin, and the first statement of any other ends it.
  async run(context, code, only) {
    this.count++;
    const attempts = [(c) => c, constant, typed, (c) => constant(typed(c) ?? '')];
    let first;
    for (const change of attempts) {
      const changed = change(code);
      if (changed === null || changed === '' || (first && changed === code)) continue;
      const { result, exceptionDetails: thrown } = await this.evaluate(context, (only ? STOP : '') + dynamic(changed));
      if (!thrown) return result.type === 'undefined' ? undefined : this.send({ kind: 'result', ...shown(await this.value(context, result)) });
      const error = thrown.exception ? await this.value(context, thrown.exception) : thrown.text;
      if (only && error === null) return this.fail(new PolicyDenied('policy does not read this syntax, so the code was not run'));
      if (only && thrown.lineNumber === 0) thrown.columnNumber = Math.max(0, thrown.columnNumber - STOP.length);
      first ??= [error, thrown];
      if (!parse(error, thrown)) return this.fail(error);
    }
    this.fail(first[0], place(code, this.count, first[1]));
  }

  fail(error, place = '') {
    const is = error !== null && typeof error === 'object' && typeof error.stack === 'string';
    const name = is ? String(error.name || 'Error').slice(0, 200) : 'Uncaught';
    const stack = is ? own(error) : util.inspect(error);
    this.send({ kind: 'error', name, value: cut(is ? String(error.message) : util.inspect(error), PLAIN), traceback: cut(place + stack, PLAIN) });
  }

  async cell({ op, code, env = {}, serial }) {
    this.serial = serial;
    const before = Object.keys(env).map((name) => [name, process.env[name]]);
    for (const [name, value] of Object.entries(env)) process.env[name] = value;
    const interrupted = new Promise((_, reject) => { this.stop = reject; });
    try {
      const only = op === 'check';
      await Promise.race([interrupted, this.context(only ? CHECKED : '').then((c) => this.run(c, code, only))]);
    } catch (e) {
      this.fail(e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? new Interrupted() : e);
    }
    this.stop = null;
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    this.session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    this.send({ kind: 'done' });
  }

  interrupt(serial) {
    if (serial === this.serial) this.stop?.(new Interrupted());
  }
}

class Interrupted extends Error {
  constructor() {
    super('the cell was interrupted');
    this.name = 'Interrupted';
    this.stack = String(this);
  }
}

// parse reports whether the cell itself was not parsed.
const parse = (error, thrown) => error?.name === 'SyntaxError' && !thrown.stackTrace?.callFrames?.some((f) => f.url.startsWith('cell-'))
  && !/^\s+at (async )?(\S+ \()?cell-/m.test(String(error.stack));

// place is the line of a syntax error, with a mark.
function place(code, count, { lineNumber, columnNumber }) {
  const line = code.split('\n')[lineNumber] ?? '';
  return `cell-${count}:${lineNumber + 1}:${columnNumber + 1}\n${cut(line, 200)}\n${' '.repeat(Math.min(columnNumber, 200))}^\n`;
}

// own cuts a stack to the frames of cells and what they called.
function own(error) {
  const stack = error.stack.split('\n');
  const end = stack.findIndex((l) => /^\s+at .*(node:inspector|repl\.mjs|node:vm|evalmachine)/.test(l));
  return (end < 0 ? stack : stack.slice(0, end)).filter((l) => !/^\s+at .*node:internal/.test(l)).join('\n');
}

function kernel() {
  const k = new Kernel();
  for (const kind of ['stdout', 'stderr']) {
    const decoder = new StringDecoder('utf8');
    process[kind].write = (data, encoding, done) => {
      const text = typeof data === 'string' ? data : decoder.write(Buffer.from(data));
      for (let at = 0; at < text.length; at += PIECE) whole(4, JSON.stringify({ kind, text: text.slice(at, at + PIECE) }) + '\n');
      done = typeof encoding === 'function' ? encoding : done;
      if (done) process.nextTick(done);
      return true;
    };
  }
  process.exit = (code) => { throw new Exit(code); };
  process.on('SIGINT', () => {}); // for what V8's own handler does not take
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (e) => process.stderr.write(`${event}: ${util.inspect(e)}\n`));
  }
  process.argv.splice(1);
  const requests = new Socket({ fd: 3 });
  lines(requests, (line) => {
    const request = JSON.parse(line);
    if (request.op === 'interrupt') k.interrupt(request.serial);
    else k.queue = k.queue.then(() => k.cell(request));
  });
  requests.on('end', () => process.kill(process.pid, 'SIGKILL'));
  k.send({ kind: 'hello', protocol: 1, language: 'node', version: process.versions.node, typescript: Boolean(module.stripTypeScriptTypes) });
}

if (process.argv[2] === 'kernel') kernel();
else supervise();
