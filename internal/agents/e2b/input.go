// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/fumehood/fumehood/internal/agents/stdin"
)

// A terminal is a pseudo-terminal as the SDK describes it.
type terminal struct {
	Size struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	} `json:"size"`
}

// terminalBridge makes a pseudo-terminal inside and starts a shell in it. Policy decides this text, and each program
// that the shell starts, but not what is typed. Its input are messages: one byte of kind (i for input, r for a size),
// two bytes of length, the content.
const terminalBridge = `
import fcntl, os, pty, select, struct, sys, termios
cols, rows, cwd = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def resize(fd, cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    os.chdir(cwd)
    os.environ["TERM"] = "xterm-256color"
    os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "-i"])
resize(fd, cols, rows)
pending, open_input = b"", True
while True:
    ready, _, _ = select.select([fd] + ([0] if open_input else []), [], [])
    if fd in ready:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if not data:
            break
        while data:
            data = data[os.write(1, data):]
    if 0 in ready:
        data = os.read(0, 65536)
        open_input = bool(data)
        pending += data
        while len(pending) >= 3:
            size = struct.unpack(">H", pending[1:3])[0]
            if len(pending) < 3 + size:
                break
            kind, body, pending = pending[:1], pending[3:3 + size], pending[3 + size:]
            if kind == b"r":
                resize(fd, *struct.unpack(">HH", body))
            while kind == b"i" and body:
                body = body[os.write(fd, body):]
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) & 255)
`

// writeInput writes to what x reads.
func (x *process) writeInput(data []byte) error {
	if x.input == nil {
		return refuseRequest(invalidArgument, "process %d has no standard input: start it with stdin", x.pid)
	}
	switch err := x.input.Write(data); {
	case errors.Is(err, stdin.ErrNotRead):
		return refuseRequest(resourceExhausted, "process %d does not read its input", x.pid)
	case err != nil:
		return refuseRequest(notFound, "process %d has closed its input", x.pid)
	}
	return nil
}

const maxMessageSize = 60 << 10 // of one message to the bridge

// writeMessage writes to the bridge of a terminal.
func (x *process) writeMessage(kind byte, data []byte) error {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), maxMessageSize)
		message := binary.BigEndian.AppendUint16([]byte{kind}, uint16(n))
		if err := x.writeInput(append(message, data[:n]...)); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func sendInput(_ context.Context, b *sandbox, in processRequest) (any, error) {
	x, err := b.findProcess(in.Process)
	if err != nil {
		return nil, err
	}
	b.noteChange()
	if x.about.Pty != nil {
		return map[string]any{}, x.writeMessage('i', in.Input.Pty)
	}
	return map[string]any{}, x.writeInput(in.Input.Stdin)
}

func closeInput(_ context.Context, b *sandbox, in processRequest) (any, error) {
	x, err := b.findProcess(in.Process)
	if err == nil && (x.input == nil || x.about.Pty != nil) {
		err = refuseRequest(invalidArgument, "process %d has no standard input to close", x.pid)
	}
	if err != nil {
		return nil, err
	}
	x.input.CloseWrite()
	return map[string]any{}, nil
}

func resizeTerminal(_ context.Context, b *sandbox, in processRequest) (any, error) {
	x, err := b.findProcess(in.Process)
	if err == nil && (x.about.Pty == nil || in.Pty == nil) {
		err = refuseRequest(invalidArgument, "process %d has no terminal", x.pid)
	}
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.AppendUint16(nil, uint16(in.Pty.Size.Cols))
	return map[string]any{}, x.writeMessage('r', binary.BigEndian.AppendUint16(size, uint16(in.Pty.Size.Rows)))
}

// quoteWord quotes a word for bash.
func quoteWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
