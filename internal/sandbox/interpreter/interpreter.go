// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxCode is the size of a cell in bytes.
const MaxCode = document.MaxCode

// A Kind is the kind of an Event.
type Kind string

const (
	Stdout    Kind = "stdout"
	Stderr    Kind = "stderr"
	Display   Kind = "display" // a value that the cell showed
	Result    Kind = "result"  // the value of the cell's last expression
	Exception Kind = "error"   // the cell's error
)

// An Event is what a cell shows while it runs. All of it is untrusted.
type Event struct {
	Kind Kind

	Text    string // of Stdout and Stderr
	Late    bool   // it was written between the cells
	Omitted int64  // bytes that are missing before Text, or characters if Late

	Data         map[string]string // of Display and Result: MIME types and forms, see the package
	FormsOmitted map[string]int64  // types and sizes of forms that were too large

	Error *Error // of Exception
}

// An Error is how a cell failed, in the language's own words.
type Error struct {
	Name      string // "ZeroDivisionError", "TypeError"
	Value     string
	Traceback string // cut to the frames of cells and what they called
}

// An Outcome is how a cell ended.
type Outcome struct {
	Error          *Error        // nil if it succeeded
	Took           time.Duration // by this end's clock
	Own            time.Duration // by the interpreter's clock
	Results        int           // passed on
	ResultsOmitted int           // because of Limits
	Ignored        int           // lines that were not messages of this cell
	Status         int           // of a shell's cell: the exit status of its last command
}

// Limits bound what a cell may show. A zero field means its default.
type Limits struct {
	Head        int64 // bytes of each stream that are passed on as they come: 256 KiB
	Tail        int64 // bytes of each stream that are passed on at the end: 64 KiB
	Results     int   // 100
	ResultBytes int64 // of all results: 32 MiB
	Events      int   // 10,000; after that, output goes to the tail
}

func (l Limits) withDefaults() Limits {
	orElse := func(n *int64, value int64) {
		if *n <= 0 {
			*n = value
		}
	}
	results, events := int64(l.Results), int64(l.Events)
	orElse(&l.Head, 256<<10)
	orElse(&l.Tail, 64<<10)
	orElse(&l.ResultBytes, 32<<20)
	orElse(&results, 100)
	orElse(&events, 10_000)
	l.Results, l.Events = int(results), int(events)
	return l
}

// Options configure an Interpreter.
type Options struct {
	Language Language // that of the program
	// Interrupt sends SIGINT to the program's process. Required.
	Interrupt func() error
	// Status describes how the process ended, "exit status 3". It is called at most once,
	// when the process's output has ended, and may wait for the process. Optional.
	Status func() string
	Limits Limits
	Grace  time.Duration // for a cell to stop after ctx: 2 s if 0
}

// A Hello is what the program said when it was ready.
type Hello struct {
	Language Language
	Version  string
}

// A Cell is a piece of code.
type Cell struct {
	Code string            // at most MaxCode bytes of UTF-8 without NUL
	Env  map[string]string // environment variables while it runs; valid names, values without NUL
	// SyntaxOnly means that Code is not run: the Outcome's Error is what is wrong with its syntax, or that
	// nothing is. Of a shell's Code there is no such check.
	SyntaxOnly bool
}

// A DiedError means that the interpreter's process ended: the state is lost.
type DiedError struct {
	Status string // from Options.Status
}

func (e *DiedError) Error() string {
	if e.Status == "" {
		return "the interpreter ended"
	}
	return "the interpreter ended: " + e.Status
}

// An Interpreter executes cells, one at a time, in one process. Its methods may be called
// from any goroutine.
type Interpreter struct {
	Hello Hello

	in       io.WriteCloser
	out      io.ReadCloser
	options  Options
	encode   func(request) ([]byte, error)
	failed   bool // the last cell of a shell; used only by the one that has its turn
	restored bool // and no cell has run since; as failed
	messages chan message
	closed   chan struct{}
	close    sync.Once

	turn    chan struct{} // holds a value while no cell runs
	writing chan struct{} // holds a value while a request is written

	mu      sync.Mutex // for the fields below
	running bool
	begun   bool // an interrupt now ends the cell
	asked   bool // an interrupt waits until begun
	broken  error
}

// Start waits for a program that was started with stdin in and stdout out. Close must be
// called if it returns no error; otherwise both are closed. The error is ctx's, a
// *DiedError, or a *proposal.StopError with the code interpreter.start.
func Start(ctx context.Context, in io.WriteCloser, out io.ReadCloser, o Options) (*Interpreter, error) {
	if o.Interrupt == nil {
		return nil, &proposal.StopError{Code: "interpreter.start", Message: "Options.Interrupt is missing"}
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	i := newInterpreter(in, out, o)
	go i.readMessages()
	return i.waitForHello(ctx)
}

func newInterpreter(in io.WriteCloser, out io.ReadCloser, o Options) *Interpreter {
	o.Limits = o.Limits.withDefaults()
	return &Interpreter{in: in, out: out, options: o, encode: request.encodeLine, messages: make(chan message),
		closed: make(chan struct{}),
		turn:   make(chan struct{}, 1), writing: make(chan struct{}, 1)}
}

// StartRestored is Start for a copy of a program that has said hello, and waits for a cell. Before its first cell
// Python gets new seeds for random and numpy.random, unless their modules were replaced.
func StartRestored(in io.WriteCloser, out io.ReadCloser, hello Hello, o Options) *Interpreter {
	i := newInterpreter(in, out, o)
	i.Hello, i.restored = hello, true
	go i.readMessages()
	i.turn <- struct{}{}
	return i
}

// waitForHello waits for the hello.
func (i *Interpreter) waitForHello(ctx context.Context) (*Interpreter, error) {
	if err := i.readHello(ctx); err != nil {
		i.Close()
		return nil, err
	}
	i.turn <- struct{}{}
	return i, nil
}

func (i *Interpreter) readHello(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case m, open := <-i.messages:
		switch {
		case !open:
			return i.markDied()
		case m.Kind != kindHello || m.Protocol != 1 || m.Language != i.options.Language:
			return &proposal.StopError{Code: "interpreter.start",
				Message: "the program did not begin with a hello of " + string(i.options.Language),
				Hint:    "start the program of this version, with nothing else on its stdout"}
		}
		i.Hello = Hello{m.Language, strings.ToValidUTF8(m.Version, "")}
		return nil
	}
}

// readMessages passes on what the program sends. It waits when no cell runs. A line that is no
// message has no kind.
func (i *Interpreter) readMessages() {
	defer close(i.messages)
	r := bufio.NewReaderSize(i.out, 64<<10)
	for {
		line, err := readLine(r, MaxMessage)
		if err != nil {
			return
		}
		m, _ := decodeMessage(line)
		select {
		case i.messages <- m:
		case <-i.closed:
			return
		}
	}
}

// Execute runs a cell and calls emit with what it shows, in order. A slow emit slows the
// cell down. A second Execute waits for the first.
//
// When ctx ends, Execute interrupts the cell, and returns ctx's error with the Outcome so
// far. If the cell does not begin, or does not stop, within Options.Grace, the error is a *proposal.StopError
// with the code interpreter.stuck, which every later call returns, too: the caller must
// end the process. A *DiedError means that the process ended. The code interpreter.cell
// means that the cell was not run because it is invalid.
func (i *Interpreter) Execute(ctx context.Context, c Cell, emit func(Event)) (Outcome, error) {
	if err := checkCode(c.Code); err != nil {
		return Outcome{}, err
	}
	r := request{Op: "execute", Code: c.Code, Env: c.Env}
	if c.SyntaxOnly {
		r.Op = "check"
	}
	return i.doRequest(ctx, r, emit)
}

func checkCode(code string) error {
	if len(code) > MaxCode {
		return invalidCellError(fmt.Sprintf("the code has %d bytes, more than %d", len(code), MaxCode),
			"write the code to a file and run that")
	}
	for at, r := range code {
		if _, size := utf8.DecodeRuneInString(code[at:]); r == 0 || (r == utf8.RuneError && size == 1) {
			line := 1 + strings.Count(code[:at], "\n")
			return invalidCellError(fmt.Sprintf("line %d of the code has a NUL or a byte that is not UTF-8, at byte %d of the code", line, at), "write it as an escape")
		}
	}
	return nil
}

func invalidCellError(message, hint string) error {
	return &proposal.StopError{Code: "interpreter.cell", Message: message, Hint: hint}
}

// doRequest sends a request and waits for its end.
func (i *Interpreter) doRequest(ctx context.Context, r request, emit func(Event)) (Outcome, error) {
	select {
	case <-i.turn:
		defer func() { i.turn <- struct{}{} }()
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	if err := i.markRunning(ctx); err != nil {
		return Outcome{}, err
	}
	defer i.markIdle()
	var random [16]byte
	rand.Read(random[:])
	r.Nonce, r.Reseed = hex.EncodeToString(random[:]), i.restored
	i.restored = false
	began := time.Now()
	c := newCollector(i.options.Limits, emit)
	err := i.collectMessages(ctx, r, c)
	outcome := c.finishOutcome()
	outcome.Took = time.Since(began)
	return outcome, err
}

func (i *Interpreter) markRunning(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken != nil {
		return i.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	i.running, i.asked = true, false
	i.begun = i.options.Language == Bash // which does not say when it begins
	return nil
}

// settling is how long after it began a cell can be interrupted. Before that, while node puts
// V8's handler of SIGINT in place of its own, the signal ends the process, and Python can be
// between its last look for signals and a call that waits.
const settling = 50 * time.Millisecond

func (i *Interpreter) markIdle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running = false
}

// collectMessages collects the messages of a request until it is done.
func (i *Interpreter) collectMessages(ctx context.Context, r request, c *collector) error {
	if err := i.sendRequest(ctx, r); err != nil {
		return err
	}
	stop := ctx.Done()
	var grace, begun <-chan time.Time
	for {
		select {
		case m, open := <-i.messages:
			switch {
			case !open:
				return i.markDied()
			case m.Kind == "" || !m.stream && m.Nonce != r.Nonce:
				c.outcome.Ignored++
			case m.Kind == kindBegan:
				begun = time.After(settling)
			case m.Kind == kindDone:
				c.outcome.Own, c.outcome.Status = time.Duration(m.MS*float64(time.Millisecond)), m.status
				i.failed = m.status != 0
				return ctx.Err()
			default:
				c.handleMessage(m)
			}
		case <-begun:
			if i.markInterruptible() && grace != nil {
				grace = time.After(i.options.Grace)
			}
		case <-stop:
			stop, grace = nil, time.After(i.options.Grace)
			_, _ = i.Interrupt() // the grace period ends, if it failed
		case <-grace:
			return i.markBroken(&proposal.StopError{Code: "interpreter.stuck",
				Message: "the cell did not stop when it was interrupted",
				Hint:    "end the interpreter's process and start another", Err: ctx.Err()})
		}
	}
}

// sendRequest writes a request in the background: an interpreter that does not read must not
// block the caller. There is one such write at a time. One that is blocked ends with Close.
func (i *Interpreter) sendRequest(ctx context.Context, r request) error {
	line, err := i.encode(r)
	if err != nil {
		return invalidCellError("cannot encode the code: "+err.Error(), "")
	}
	select {
	case i.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	go func() {
		_, _ = i.in.Write(line) // if it fails, the process has ended or ctx ends
		<-i.writing
	}()
	return nil
}

func (i *Interpreter) markBroken(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken = err
	return err
}

func (i *Interpreter) markDied() error {
	e := &DiedError{}
	if i.options.Status != nil {
		e.Status = i.options.Status()
	}
	return i.markBroken(e)
}

// Interrupt interrupts the running cell, whose outcome is then an error, and reports
// whether a cell was running. A cell can refuse to stop.
//
// An interrupt that comes before the interpreter has read the cell waits: the interpreter
// ignores what comes between two cells.
func (i *Interpreter) Interrupt() (bool, error) {
	i.mu.Lock()
	running, begun := i.running, i.begun
	i.asked = running && !begun
	i.mu.Unlock()
	if !running || !begun {
		return running, nil
	}
	return true, i.options.Interrupt()
}

// markInterruptible notes that the cell can be interrupted from now on, and sends the interrupt that
// waited for it, if there is one.
func (i *Interpreter) markInterruptible() (interrupted bool) {
	i.mu.Lock()
	interrupted = i.asked && !i.begun
	i.begun, i.asked = true, false
	i.mu.Unlock()
	if interrupted {
		_ = i.options.Interrupt() // the grace period ends, if it failed
	}
	return interrupted
}

// Close closes the program's stdin and stdout, upon which it ends by itself if it can.
// The caller ends the process.
func (i *Interpreter) Close() error {
	var err error
	i.close.Do(func() {
		close(i.closed)
		err = errors.Join(i.in.Close(), i.out.Close())
	})
	return err
}
