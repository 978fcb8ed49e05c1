// SPDX-License-Identifier: Apache-2.0

// Package grammar parses a program's text into a syntax tree, with tree-sitter's
// parsers compiled to WebAssembly.
//
// The parsers are C and read untrusted text. They run in a separate WebAssembly
// machine (wazero, without cgo) that imports nothing, has 64 MiB and a bounded number
// of steps, and is discarded after one text. Its output is treated as hostile too:
// the tree is checked once, and every later step stays inside it.
//
// source/build makes the modules from pinned sources; SHA256SUMS holds their digests.
//
// The package does not promise to agree with the interpreter that will run the text.
// If the grammar does not know a text, its tree has nodes that are Broken.
package grammar

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/fumehood/fumehood/internal/kit/cputime"
)

//go:embed python.wasm javascript.wasm typescript.wasm
var modules embed.FS

// Limits for one text.
const (
	MaxText  = 64 << 10
	maxNodes = 256 << 10
	maxTime  = 2 * time.Second // of CPU time: for a parser that is stuck but uses few steps
	maxPages = 1024            // of 64 KiB
)

// The reasons why a text has no tree.
var (
	ErrTooLarge = errors.New("the text or its tree is too large")
	ErrTooLong  = errors.New("reading the text takes too long")
	ErrBroken   = errors.New("the parser failed")
)

// A machine is one language's parser, compiled on first use.
type machine struct {
	once     sync.Once
	err      error
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	kinds    []string
	fields   []string
	next     chan api.Module // an instance that has read nothing, for the next text
}

var machines = map[string]*machine{"python": newMachine(), "javascript": newMachine(), "typescript": newMachine()}

func newMachine() *machine { return &machine{next: make(chan api.Module, 1)} }

// HasGrammar reports whether there is a grammar for language.
func HasGrammar(language string) bool { return machines[language] != nil }

// Parse reads text. Its error is, or wraps, one of those above.
func Parse(ctx context.Context, language, text string) (*Tree, error) {
	m := machines[language]
	if m == nil {
		return nil, fmt.Errorf("%w: no grammar for %q", ErrBroken, language)
	}
	if len(text) > MaxText {
		return nil, ErrTooLarge
	}
	m.once.Do(func() { m.err = m.compileModule(language) })
	if m.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, m.err)
	}
	var tree *Tree
	var err error
	cputime.RunWithin(ctx, maxTime, func(ctx context.Context) {
		if tree, err = m.parseText(ctx, text); ctx.Err() != nil {
			tree, err = nil, ErrTooLong
		}
	})
	return tree, err
}

func (m *machine) compileModule(language string) error {
	ctx := context.Background()
	ctx = experimental.WithCompilationWorkers(ctx, 2)
	code, err := modules.ReadFile(language + ".wasm")
	if err != nil {
		return err
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(maxPages))
	if m.compiled, err = m.runtime.CompileModule(ctx, code); err != nil {
		return err
	}
	instance, err := m.startInstance(ctx)
	if err != nil {
		return err
	}
	defer instance.Close(ctx)
	if m.kinds, err = readNames(ctx, instance, 0); err != nil {
		return err
	}
	m.fields, err = readNames(ctx, instance, 1)
	return err
}

func (m *machine) startInstance(ctx context.Context) (api.Module, error) {
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocateMemory))
	none := strings.NewReader("") // making the usual source of random bytes takes as long as a short text
	return m.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName("").WithRandSource(none))
}

// takeInstance returns an instance that has read nothing.
func (m *machine) takeInstance(ctx context.Context) (api.Module, error) {
	select {
	case instance := <-m.next:
		return instance, nil
	default:
		return m.startInstance(ctx)
	}
}

// replaceInstance ends an instance that has read a text, and starts the one for the next text if there is none. Both
// take longer than reading a short text, so its reader does not wait for them.
func (m *machine) replaceInstance(used api.Module) {
	ctx := context.Background()
	if used.Memory().Size() > usualMemory { // many of these at once would be too much
		used.Close(ctx)
		return
	}
	go func() {
		used.Close(ctx)
		if len(m.next) > 0 {
			return
		}
		instance, err := m.startInstance(ctx)
		if err != nil {
			return // the next text has the error
		}
		select {
		case m.next <- instance:
		default:
			instance.Close(ctx)
		}
	}()
}

// A memory is a machine's memory. Its bytes are used again after it is freed, all of them
// zero: a text needs some megabytes, which would be garbage after each.
type memory struct{ bytes []byte }

var memories = sync.Pool{New: func() any { return &memory{make([]byte, 0, usualMemory)} }}

// usualMemory is enough for most texts. No larger memory is kept.
const usualMemory = 4 << 20

func allocateMemory(_, _ uint64) experimental.LinearMemory { return memories.Get().(*memory) }

func (m *memory) Reallocate(size uint64) []byte {
	if more := int(size) - len(m.bytes); more > 0 {
		m.bytes = append(m.bytes, make([]byte, more)...)
	}
	return m.bytes
}

func (m *memory) Free() {
	if cap(m.bytes) > usualMemory {
		return
	}
	clear(m.bytes)
	m.bytes = m.bytes[:0]
	memories.Put(m)
}

// readNames reads the names that the grammar uses; they come from our own module.
func readNames(ctx context.Context, instance api.Module, what uint64) ([]string, error) {
	var list []string
	for id := uint64(0); id < 1000; id++ {
		at, err := callFunction(ctx, instance, "name", what, id)
		if err != nil {
			return nil, err
		}
		if at == 0 {
			break
		}
		var name []byte
		for b, ok := instance.Memory().ReadByte(at); ok && b != 0 && len(name) < 100; b,
			ok = instance.Memory().ReadByte(at) {
			name, at = append(name, b), at+1
		}
		list = append(list, string(name))
	}
	return list, nil
}

func callFunction(ctx context.Context, instance api.Module, name string, args ...uint64) (uint32, error) {
	results, err := instance.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return uint32(results[0]), nil
}

// parseText runs one text in an instance of its own.
func (m *machine) parseText(ctx context.Context, text string) (*Tree, error) {
	instance, err := m.takeInstance(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer m.replaceInstance(instance)
	at, err := callFunction(ctx, instance, "reserve", uint64(len(text)+1))
	if err != nil {
		return nil, err
	}
	if at == 0 || !instance.Memory().WriteString(at, text) {
		return nil, ErrBroken
	}
	limit := min(maxNodes, 8*len(text)+64)
	answer, err := callFunction(ctx, instance, "parse", uint64(at), uint64(len(text)), uint64(limit), stepLimit(text))
	if err != nil {
		return nil, err
	}
	return m.readTree(instance.Memory(), answer, text)
}

// stepLimit returns how many steps, of a hundred operations each, a text may take: twice
// what plain code of its length needs.
func stepLimit(text string) uint64 { return uint64(200 + len(text)/4) }

// The module's results, as defined in source/tree.c.
const (
	answerDone = iota
	answerTooLarge
	answerTooLong
)

// readTree copies the tree out of the module's memory.
func (m *machine) readTree(memory api.Memory, at uint32, text string) (*Tree, error) {
	answer, ok := memory.Read(at, 16)
	if !ok {
		return nil, ErrBroken
	}
	switch binary.LittleEndian.Uint32(answer) {
	case answerDone:
	case answerTooLarge:
		return nil, ErrTooLarge
	case answerTooLong:
		return nil, ErrTooLong
	default:
		return nil, ErrBroken
	}
	count := binary.LittleEndian.Uint32(answer[4:])
	if count > maxNodes {
		return nil, ErrBroken
	}
	nodes, ok := memory.Read(binary.LittleEndian.Uint32(answer[12:]), count*nodeSize)
	if !ok {
		return nil, ErrBroken
	}
	return decodeTree(nodes, text, m.kinds, m.fields, answer[8] != 0)
}
