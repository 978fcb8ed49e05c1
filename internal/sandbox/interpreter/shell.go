// SPDX-License-Identifier: Apache-2.0

//go:build unix

package interpreter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The descriptors of a shell's protocol. Scripts rarely use these, and may: see the package.
const (
	ScriptFD = 60 // the shell reads its commands from it
	DoneFD   = 61 // it writes the cells' exit statuses to it
)

// ShellArgv returns the command that starts bash for StartShell: no profile, no rc file, no
// functions or options from the environment, and the commands from ScriptFD.
func ShellArgv(bash string) []string {
	return []string{bash, "--noprofile", "--norc", "-p", "/dev/fd/" + strconv.Itoa(ScriptFD)}
}

// A Shell is this end of the pipes of a bash that ShellArgv started. Its stdin must be empty.
type Shell struct {
	Script               io.WriteCloser  // to ScriptFD
	Done, Stdout, Stderr *os.File        // from DoneFD, 1 and 2
	Ended                <-chan struct{} // closed when the process has ended
}

// StartShell waits for a bash. It is Start for a shell, which takes no Env with a cell. Options.Interrupt is not used:
// a shell that is interrupted ends, or waits for a child.
func StartShell(ctx context.Context, s Shell, o Options) (*Interpreter, error) {
	i := newShell(s, o)
	go func() { _, _ = io.WriteString(s.Script, greeting) }() // if it fails, the process has ended or ctx ends
	return i.waitForHello(ctx)
}

// StartRestoredShell is StartRestored for a shell. failed is what LastCellFailed returned.
func StartRestoredShell(s Shell, hello Hello, failed bool, o Options) *Interpreter {
	i := newShell(s, o)
	i.Hello, i.failed = hello, failed
	i.turn <- struct{}{}
	return i
}

// LastCellFailed reports whether the last cell of a shell failed. No cell may run.
func (i *Interpreter) LastCellFailed() bool { return i.failed }

func newShell(s Shell, o Options) *Interpreter {
	i := newInterpreter(s.Script, &shellOutput{s}, o)
	i.encode = func(r request) ([]byte, error) { return encodeShell(r, i.failed) }
	p := &shellPump{Shell: s, i: i}
	p.startPumps()
	return i
}

// greeting closes the pipe's first descriptor, of which the shell has made its own copy, and
// names the shell as bash -c does.
var greeting = fmt.Sprintf("exec %d<&-; BASH_ARGV0=$BASH; builtin printf 'hello %%s\\n' \"$BASH_VERSION\" >&%d\n",
	ScriptFD, DoneFD)

// encodeShell writes a cell as one line, which bash reads to its end before it runs any of it.
// See the package for why every byte that could end a word is written as an escape.
//
// If the last command of the previous cell failed, $? is 1.
func encodeShell(r request, failed bool) ([]byte, error) {
	if r.Op != "execute" || len(r.Env) > 0 {
		return nil, errors.New("a shell has cells without variables")
	}
	before := ""
	if failed {
		before = "! builtin true; " // neither ERR nor errexit applies to it
	}
	return fmt.Appendf(nil, before+
		"builtin eval $'%s' %d>&-; { builtin printf '%s %%d\\n' \"$?\" >&%d || builtin exit; } 2>/dev/null\n",
		escapeShellBytes(r.Code), DoneFD, r.Nonce, DoneFD), nil
}

func escapeShellBytes(code string) string {
	var b strings.Builder
	for i := range len(code) {
		if c := code[i]; c < 0x80 && strings.IndexByte(plainBytes, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// plainBytes never end a word, begin an expansion or quote.
const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/.-"

// decodeShell reads a line of the shell: "hello VERSION" or "NONCE STATUS". It is untrusted.
func decodeShell(line string) (message, error) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "hello" {
		m := message{Kind: kindHello, Protocol: 1, Language: Bash, Version: rest}
		return m, m.checkFields()
	}
	status, err := strconv.ParseUint(rest, 10, 8)
	if err != nil || word == "" {
		return message{}, errors.New("not a nonce and a status")
	}
	return message{Kind: kindDone, Nonce: word, status: int(status)}, nil
}

// A shellPump passes on what a shell writes: a cell's output before its end.
type shellPump struct {
	Shell
	i    *Interpreter
	mu   sync.Mutex // held while output is read and passed on
	over bool       // nothing more is passed on
}

// maxDrain is how much of each stream is read at the end of a cell, which a child may fill on.
const maxDrain = 1 << 20

func (p *shellPump) startPumps() {
	go p.passOutput(p.Stdout, Stdout)
	go p.passOutput(p.Stderr, Stderr)
	lines := make(chan string)
	go p.readDoneLines(lines)
	go p.passCellEnds(lines)
}

// passCellEnds passes on the ends of cells until the process has ended.
func (p *shellPump) passCellEnds(lines <-chan string) {
	for {
		select {
		case line := <-lines:
			m, err := decodeShell(line)
			p.drainPipes()
			if err != nil {
				m = message{}
			}
			p.passMessage(m)
		case <-p.Ended:
			p.drainPipes()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.over = true
			close(p.i.messages)
			return
		case <-p.i.closed:
			return
		}
	}
}

// readDoneLines reads DoneFD. A line that is too long is passed on as an empty one.
func (p *shellPump) readDoneLines(to chan<- string) {
	r := bufio.NewReader(p.Done)
	for {
		line, err := readLine(r, 2*maxName)
		if err != nil {
			return
		}
		select {
		case to <- string(line):
		case <-p.Ended:
			return
		case <-p.i.closed:
			return
		}
	}
}

func (p *shellPump) passMessage(m message) {
	select {
	case p.i.messages <- m:
	case <-p.i.closed:
	}
}

// passOutput passes on a stream as it comes. It reads only while it holds mu, so that drain knows
// that all that was read has been passed on.
func (p *shellPump) passOutput(f *os.File, kind Kind) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	for open := true; open; {
		err := conn.Read(func(fd uintptr) bool {
			n := p.passPiece(fd, kind)
			open = n != 0
			return n >= 0
		})
		if err != nil {
			return
		}
	}
}

// passPiece reads and passes on a piece of a stream. It returns its size, 0 at the end of the
// stream, and less if there is nothing now.
func (p *shellPump) passPiece(fd uintptr, kind Kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return 0
	}
	buffer := make([]byte, 32<<10)
	n, err := syscall.Read(int(fd), buffer)
	if err != nil {
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
			return -1
		}
		return 0
	}
	if n > 0 {
		p.passMessage(message{Kind: kind, Text: string(buffer[:n]), stream: true})
	}
	return n
}

// drainPipes passes on what is in the pipes.
func (p *shellPump) drainPipes() {
	for f, kind := range map[*os.File]Kind{p.Stdout: Stdout, p.Stderr: Stderr} {
		conn, err := f.SyscallConn()
		if err != nil {
			continue
		}
		_ = conn.Control(func(fd uintptr) {
			for left := maxDrain; left > 0; {
				n := p.passPiece(fd, kind)
				if n <= 0 {
					return
				}
				left -= n
			}
		})
	}
}

// shellOutput closes what a shell writes to.
type shellOutput struct{ Shell }

func (o *shellOutput) Read([]byte) (int, error) { return 0, io.EOF }

func (o *shellOutput) Close() error {
	return errors.Join(o.Done.Close(), o.Stdout.Close(), o.Stderr.Close())
}
