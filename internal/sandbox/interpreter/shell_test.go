// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// shellAt starts the real bash in a directory, as the sandbox does.
func shellAt(t testing.TB, dir string) *Interpreter {
	t.Helper()
	var read, write [4]*os.File // script, done, stdout, stderr
	for i := range read {
		var err error
		if read[i], write[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	argv := ShellArgv("bash")
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr = dir, write[2], write[3]
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	c.ExtraFiles = make([]*os.File, DoneFD-2)
	c.ExtraFiles[ScriptFD-3], c.ExtraFiles[DoneFD-3] = read[0], write[1]
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{read[0], write[1], write[2], write[3]} {
		f.Close()
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	i, err := StartShell(t.Context(), Shell{Script: write[0], Done: read[1], Stdout: read[2], Stderr: read[3], Ended: ended},
		Options{Language: Bash, Grace: time.Millisecond, Interrupt: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		i.Close()
		<-ended
	})
	return i
}

// ranIn executes a cell, and returns its stdout, its stderr and its status.
func ranIn(t testing.TB, i *Interpreter, code string) (stdout, stderr string, status int, err error) {
	t.Helper()
	return ranWithin(t, i, code, time.Minute)
}

// ranWithin is ranIn for a cell that may not end.
func ranWithin(t testing.TB, i *Interpreter, code string, limit time.Duration) (stdout, stderr string, status int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o, err := i.Execute(ctx, Cell{Code: code}, func(e Event) {
		if e.Kind == Stdout {
			stdout += e.Text
		} else {
			stderr += e.Text
		}
	})
	return stdout, stderr, o.Status, err
}

// Cells of one shell are as one script.
func TestShell(t *testing.T) {
	lanetest.SkipShort(t)
	i := shellAt(t, t.TempDir())
	if i.Hello.Version == "" {
		t.Error("no version")
	}
	// A child has the descriptors that it has without the protocol. What started the test may have left some open: shellAt
	// closes those below its own, and so does this.
	const open = "ls -l /proc/self/fd | grep -c pipe"
	c := exec.Command("bash", "-c", open)
	c.Stderr, c.ExtraFiles = new(strings.Builder), make([]*os.File, DoneFD-2)
	plain, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, code := range []string{
		"x=1; f() { echo $x; }; cd /; set -- a b", "f; pwd; echo $#", "(exit 7)", "echo $?", "echo $?", "break; continue; return; echo on",
		"local y=1; echo ${y-unset}", "cat; read z; echo $?", "echo ${FUNCNAME-none} $- $0 ${BASH_SOURCE[0]##*/}", "printf 'a\\n\\n'; printf 'b' >&2",
		open, "sleep 0.1 & wait; echo waited", "trap 'echo usr' USR1; kill -USR1 $$; echo sent",
		"readonly r=1; r=2; echo not\necho $((1/0)); echo not\necho ${a[]}; echo not\nshopt -s failglob; ls nope*; echo not\necho next",
		"{ echo 1; exec 62<&0; } 60</dev/null", "exec 1>&2; echo moved", "echo still",
	} {
		stdout, stderr, status, err := ranIn(t, i, code)
		if err != nil {
			t.Fatalf("%q: %v", code, err)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %q %d", status, stdout, len(stderr))))
	}
	want := []string{`0 "" 0`, `0 "1\n/\n2\n" 0`, `7 "" 0`, `0 "1\n" 0`, `0 "0\n" 0`, got[5], got[6], `0 "1\n" 0`, got[8], `0 "a\n\n" 1`,
		fmt.Sprintf("0 %q 0", plain), `0 "waited\n" 0`, `0 "usr\nsent\n" 0`, got[13], `0 "1\n" 0`, `0 "" 6`, `0 "" 6`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for at, part := range map[int]string{5: `"on\n"`, 6: `"unset\n"`, 8: `"none hpB`, 13: `0 "next\n" `} {
		if !strings.Contains(got[at], part) {
			t.Errorf("got %s, want %s", got[at], part)
		}
	}
}

// Whatever a cell does to its shell, the next one runs as it was sent, or the shell is gone.
func TestShellHostile(t *testing.T) {
	lanetest.SkipShort(t)
	evil := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte(strings.Repeat("echo evil\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	const hang = 2 * time.Second // some end in a shell that reads nothing more
	try := func(t *testing.T, code string) {
		i := shellAt(t, t.TempDir())
		_, _, _, err := ranWithin(t, i, strings.ReplaceAll(code, "EVIL", evil), hang)
		for n := 0; n < 3 && err == nil; n++ {
			var stdout, stderr string
			if stdout, stderr, _, err = ranWithin(t, i, "echo second >&2; exec 2>&1", hang); err == nil && strings.Contains(stdout+stderr, "evil\n") {
				t.Errorf("%d: it showed %q, %q", n, stdout, stderr)
			}
			if err == nil && !strings.Contains(stdout+stderr, "second") && !strings.Contains(code, "2>&-") {
				t.Errorf("%d: it did not run: %q, %q", n, stdout, stderr)
			}
		}
		var died *DiedError
		if err != nil && !errors.As(err, &died) && !strings.Contains(err.Error(), "did not stop") {
			t.Error(err)
		}
	}
	for _, code := range []string{
		"exec 255<&-", "exec 255<EVIL", "exec 255<EVIL 10<EVIL 11<EVIL 12<EVIL 13<EVIL", "{ exec 10<EVIL 11<EVIL 12<EVIL; } 255<EVIL", "exec 60<EVIL", "exec 0<EVIL",
		"exec 61>&-", "exec 10>&-", "exec 10>/dev/null", "exec 61>EVIL.2; echo x >&61", "for n in {3..254}; do eval \"exec $n<EVIL\"; done",
		"read -t 0.1 -u 255 line", "trap 'read -t 0.1 -N 9 -u 255 line' DEBUG", "trap 'read -t 0.1 -N 9 -u 255 line' CHLD; (true); (true)",
		"( read -t 0.2 -N 9 -u 255 line; sleep 1 ) &", "trap 'x=1' DEBUG ERR EXIT RETURN; set -T", "set -e; true", "set -u", "set -f", "set -o noclobber", "set -x", "set -v",
		"set -o posix",
		"shopt -s expand_aliases; alias builtin='echo evil;' eval='echo evil;' printf='echo evil;'", "IFS=0123456789abcdef",
		"readonly BASH_ARGV0 IFS PATH", "PROMPT_COMMAND='echo evil'", "BASH_ENV=EVIL; ENV=EVIL", "exit 3", "exec true", "exec bash -c 'echo evil; exit 3'", "kill -9 $$",
		"trap '' PIPE; exec 1>&- 2>&-", "ulimit -n 20", "exec {a}<EVIL; exec 255<&$a",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			try(t, code)
		})
	}
	t.Run("shells that read nothing more", func(t *testing.T) {
		t.Parallel()
		var all sync.WaitGroup // which only wait
		for _, code := range []string{
			"shopt -s extdebug; trap false DEBUG", "builtin() { echo evil; }; eval() { echo evil; }; printf() { echo evil; }; exit() { echo evil; }",
			"enable -n eval printf exit builtin", "set -n", "kill -STOP $$",
		} {
			all.Go(func() { t.Run(code, func(t *testing.T) { try(t, code) }) })
		}
		all.Wait()
	})
}

// A cell that reads a part of a later cell's line, which it can only while it pretends to have
// ended, leaves nothing of the text that runs as something else: all of it runs, or nothing.
func TestShellTornLine(t *testing.T) {
	lanetest.SkipShort(t)
	text := "true; >one; echo \"x; >three; \" 'y; >four; '; : $(>five); >two"
	line, err := encodeShell(request{Op: "execute", Nonce: "5f", Code: text}, true)
	if err != nil {
		t.Fatal(err)
	}
	for from := range len(line) {
		dir := t.TempDir()
		c := exec.Command("bash", "--norc", "/dev/stdin")
		c.Dir, c.Env = dir, []string{"PATH=/nonexistent"}
		c.Stdin = strings.NewReader(string(line[from:]) + "'\n:\n" + string(line[from:]))
		c.ExtraFiles = nil
		_ = c.Run()
		var names []string
		made, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			names = append(names, f.Name())
		}
		if got := strings.Join(names, " "); got != "" && got != "five one two" {
			t.Fatalf("from byte %d: %s was made by %q", from, got, line[from:])
		}
	}
}

// Output of megabytes on both streams comes whole up to the limit, before the end of the cell.
func TestShellOutput(t *testing.T) {
	i := shellAt(t, t.TempDir())
	stdout, stderr, _, err := ranIn(t, i, "for n in {1..3000}; do echo out $n; echo err $n >&2; done; printf '\\xff\\x00\\n'")
	if err != nil || !strings.HasSuffix(stdout, "out 3000\n\xff\x00\n") || !strings.HasSuffix(stderr, "err 3000\n") || strings.Count(stderr, "\n") != 3000 {
		t.Errorf("%v, %d and %d bytes", err, len(stdout), len(stderr))
	}
	if stdout, _, _, err = ranIn(t, i, "head -c 5000000 /dev/zero; echo the end"); err != nil || !strings.HasSuffix(stdout, "the end\n") || len(stdout) > 1<<20 {
		t.Errorf("%v, %d bytes", err, len(stdout))
	}
}

// A shell that exits while its child lives has ended.
func TestShellExits(t *testing.T) {
	i := shellAt(t, t.TempDir())
	stdout, _, _, err := ranIn(t, i, "sleep 600 & echo $!; exit 3") // not the child's time
	var died *DiedError
	child, failed := strconv.Atoi(strings.TrimSpace(stdout))
	if !errors.As(err, &died) || failed != nil {
		t.Fatalf("%q, %v", stdout, err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Errorf("the child did not live: %v", err)
	}
	if _, _, _, again := ranIn(t, i, "true"); !errors.As(again, &died) {
		t.Errorf("again: %v", again)
	}
}

// Cells that a shell cannot have are refused, and do not run.
func TestShellRefuses(t *testing.T) {
	i := shellAt(t, t.TempDir())
	if _, err := i.Execute(t.Context(), Cell{Code: "true", Env: map[string]string{"A": "b"}}, func(Event) {}); err == nil || !strings.Contains(err.Error(), "without variables") {
		t.Errorf("variables: %v", err)
	}
	if stdout, _, _, err := ranIn(t, i, "echo on"); err != nil || stdout != "on\n" {
		t.Errorf("%q, %v", stdout, err)
	}
}

// bashReads returns what bash reads an escaped text as.
func bashReads(t testing.TB, text string) string {
	c := exec.Command("bash", "--norc", "/dev/stdin")
	c.Env = []string{"LC_ALL=C.UTF-8"}
	c.Stdin = strings.NewReader("printf %s $'" + escapeShellBytes(text) + "'")
	got, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// Bash reads each byte as it was, alone and among others.
func TestEscaped(t *testing.T) {
	lanetest.SkipShort(t)
	texts := []string{"", "\n\n", "a\n", "é€😀", "\xff\xfe", "\xc3", "'\\''", "\\x41", "$x `y`", strings.Repeat("a b;", 16<<10)}
	all := ""
	for b := 1; b < 256; b++ {
		texts, all = append(texts, string([]byte{byte(b)}), string([]byte{byte(b), 'a', '0'})), all+string([]byte{byte(b)})
	}
	for _, text := range append(texts, all, all+all+"\n") {
		if got := bashReads(t, text); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

func FuzzEscaped(f *testing.F) {
	for _, seed := range []string{"echo hi", "a'b\"c\\d", "\x01\x7f\xff", "x\n\n", "$'a'", "é\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "\x00", "")
		if got := bashReads(t, text); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}

func FuzzDecodeShell(f *testing.F) {
	for _, seed := range []string{"5f 0", "5f 255", "5f 256", "5f -1", "hello 5.2", "hello", "", " 0", "5f 0 0", "hello " + strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := decodeShell(line)
		switch {
		case err != nil:
		case m.Kind == kindHello && m.Language == Bash && len(m.Version) <= maxName && strings.HasPrefix(line, "hello"):
		case m.Kind == kindDone && m.status >= 0 && m.status < 256 && strings.HasPrefix(line, m.Nonce+" ") && m.Nonce != "" && !m.stream:
		default:
			t.Errorf("%q is %+v", line, m)
		}
	})
}
