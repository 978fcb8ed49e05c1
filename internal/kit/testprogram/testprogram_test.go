// SPDX-License-Identifier: Apache-2.0

package testprogram

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommands checks what tests rely on: output and exit codes.
func TestCommands(t *testing.T) {
	t.Parallel()
	program := Install(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	for _, test := range []struct{ args, out, err string }{
		{"print text", "text\n", ""},
		{"print text 2", "text\ntext\n", ""},
		{"exit 3", "", "exit status 3"},
		{"sleep 1ms", "", ""},
		{"alloc 8 1ms", "allocated\n", ""},
		{"fill " + file + " 2", "", ""},
		{"run " + program + " exit 4", "", "exit status 4"},
		{"run " + program + " print x", "x\n", ""},
		{"fork 2 1ms", "forked\n", ""},
		{"daemon " + program + " sleep 1ms", "up\n", ""},
		{"connect udp:127.0.0.1:9", "connected\n", ""},
		{"running no-such-name", "0\n", ""},
		{"connect 127.0.0.1:0", "", "exit status 1"},
		{"get http://127.0.0.1:0", "", "exit status 1"},
		{"unknown", "", "exit status 2"},
	} {
		out, err := exec.Command(program, strings.Fields(test.args)...).Output()
		if message := errorText(err); string(out) != test.out || message != test.err {
			t.Errorf("%s: %q, %q; want %q, %q", test.args, out, message, test.out, test.err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 2<<20 {
		t.Errorf("filled %v, %v", info, err)
	}
	if err := os.WriteFile(file, []byte("mapped"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "map", file).Output(); err != nil || string(out) != "mapped" {
		t.Errorf("%q, %v", out, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// start starts a command that keeps running, and returns its first line.
func start(t *testing.T, args ...string) (*exec.Cmd, string, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(Path(t), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line), reader
}

// TestServers checks the commands that run until they are ended.
func TestServers(t *testing.T) {
	t.Parallel()
	_, address, _ := start(t, "listen", "127.0.0.1:0", "hello")
	if out, err := exec.Command(Path(t), "connect", address).Output(); err != nil || string(out) != "connected\nhello" {
		t.Errorf("%q, %v", out, err)
	}
	_, address, _ = start(t, "serve", "127.0.0.1:0", "body")
	if out, err := exec.Command(Path(t), "get", "http://"+address+"/").Output(); err != nil || string(out) != "body\n" {
		t.Errorf("%q, %v", out, err)
	}
	cmd, line, out := start(t, "interrupt")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if last, err := out.ReadString('\n'); line != "up" || last != "interrupted\n" {
		t.Errorf("%q, %q, %v", line, last, err)
	}
	if _, line, _ := start(t, "zombie"); line != "up" {
		t.Errorf("%q", line)
	}
}

// TestBuildIsKept checks that a program which was built is found without a compiler.
func TestBuildIsKept(t *testing.T) {
	path := Path(t)
	t.Setenv("PATH", "")
	if again := Path(t); again != path {
		t.Errorf("%s, and then %s", path, again)
	}
}
