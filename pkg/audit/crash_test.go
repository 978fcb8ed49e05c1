// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// TestMain lets the test binary act as the process that is killed.
func TestMain(m *testing.M) {
	if step := os.Getenv("AUDIT_TEST_CHILD"); step != "" {
		if err := child(step, os.Getenv("AUDIT_TEST_LOG")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child appends and acknowledges each entry on stdout until it is killed.
func child(step, path string) error {
	o := Options{Origin: testOrigin, Now: clock()}
	var err error
	if o.Signer, err = NewSigner(os.Getenv("AUDIT_TEST_KEY")); err != nil {
		return err
	}
	// A write beyond the limit is cut short there, as on a full disk.
	if limit := map[string]uint64{"full": 5000, "full-at-once": 10}[step]; limit > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	l, err := Create(path, o)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if i == 5 {
			l.f = killer{l.f, step}
		}
		n, err := l.Append("decision", body{ID: fmt.Sprint("p", i), N: i})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// killer kills its own process at one step of a write.
type killer struct {
	file
	step string
}

func (k killer) Stat() (os.FileInfo, error) {
	k.at("before-write")
	return k.file.Stat()
}

func (k killer) Write(p []byte) (int, error) {
	part := map[string]int{
		"first-byte":    1,
		"inside-entry":  10,
		"after-entry":   bytes.IndexByte(p, '\n') + 1,
		"inside-proof":  bytes.IndexByte(p, '\n') + 40,
		"all-but-one":   len(p) - 1,
		"before-sync":   len(p),
		"entry-no-line": bytes.IndexByte(p, '\n'),
	}[k.step]
	if part > 0 {
		if _, err := k.file.Write(p[:part]); err != nil {
			return 0, err
		}
		k.at(k.step)
	}
	return k.file.Write(p)
}

func (k killer) Sync() error {
	err := k.file.Sync()
	k.at("after-sync")
	return err
}

func (k killer) at(step string) {
	if k.step == step {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// startChild runs child and returns its log's path and its acknowledgements.
func startChild(t *testing.T, step string) (*exec.Cmd, *bufio.Scanner, string, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_CHILD="+step, "AUDIT_TEST_LOG="+path, "AUDIT_TEST_KEY="+testKey("test.example"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out), path, &stderr
}

// acknowledged reads all numbers that the child printed and waits for it to exit.
func acknowledged(t *testing.T, cmd *exec.Cmd, out *bufio.Scanner) (int64, error) {
	t.Helper()
	count := int64(0)
	for out.Scan() {
		if n, err := strconv.ParseInt(out.Text(), 10, 64); err != nil || n != count {
			t.Fatalf("acknowledged %q, want %d", out.Text(), count)
		}
		count++
	}
	return count, cmd.Wait()
}

// wantAcknowledged checks that every acknowledged entry is in the signed part.
func wantAcknowledged(t *testing.T, path string, count int64) Summary {
	t.Helper()
	trust := Trust{Key: testSigner(t, "test.example").Key()}
	signed := int64(0)
	sum, err := Scan(bytes.NewReader(read(t, path)), trust, func(e Entry) error {
		if want := fmt.Sprintf(`"id":"p%d"`, e.N); !strings.Contains(string(e.Body), want) {
			t.Errorf("entry %d is %s", e.N, e.Body)
		}
		if !e.Unsigned {
			signed++
		}
		return nil
	})
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	if sum.State == Sealed || signed < count || signed > count+1 || sum.Entries != signed {
		t.Errorf("%d acknowledged, %d signed: %+v", count, signed, sum)
	}
	return sum
}

func TestKilledAtEachStep(t *testing.T) {
	lanetest.SkipShort(t)
	for _, test := range []struct {
		step             string
		state            State
		signed, unsigned int64
	}{
		{"before-write", Unsealed, 5, 0},
		{"first-byte", Torn, 5, 0},
		{"inside-entry", Torn, 5, 0},
		{"entry-no-line", Torn, 5, 0},
		{"after-entry", Torn, 5, 1},
		{"inside-proof", Torn, 5, 1},
		{"all-but-one", Torn, 5, 1},
		{"before-sync", Unsealed, 6, 0},
		{"after-sync", Unsealed, 6, 0},
	} {
		t.Run(test.step, func(t *testing.T) {
			cmd, out, path, stderr := startChild(t, test.step)
			count, err := acknowledged(t, cmd, out)
			if count != 5 || err == nil || err.Error() != "signal: killed" {
				t.Fatalf("%d acknowledged, %v: %s", count, err, stderr)
			}
			sum := wantAcknowledged(t, path, count)
			if sum.State != test.state || sum.Entries != test.signed || sum.Unsigned != test.unsigned {
				t.Errorf("summary = %+v", sum)
			}
		})
	}
}

func TestKilledAtRandom(t *testing.T) {
	lanetest.SkipShort(t)
	random := sample.Random(t)
	for range 10 {
		cmd, out, path, stderr := startChild(t, "none")
		// The first acknowledgement says that the log exists.
		if !out.Scan() || out.Text() != "0" {
			t.Fatalf("no first entry: %s", stderr)
		}
		time.AfterFunc(time.Duration(random.IntN(40_000))*time.Microsecond, func() { cmd.Process.Kill() })
		count := int64(1)
		for out.Scan() {
			if out.Text() == fmt.Sprint(count) { // the last line may be cut
				count++
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("child ended by itself")
		}
		wantAcknowledged(t, path, count)
	}
}

// TestNoRoom makes the kernel refuse the second half of a write.
func TestNoRoom(t *testing.T) {
	cmd, out, path, stderr := startChild(t, "full")
	count, err := acknowledged(t, cmd, out)
	if err == nil || !strings.Contains(stderr.String(), "audit.full") || count < 2 {
		t.Fatalf("%d acknowledged, %v: %s", count, err, stderr)
	}
	if sum := wantAcknowledged(t, path, count); sum.State != Torn || sum.SignedBytes+sum.TornBytes != 5000 {
		t.Errorf("summary = %+v", sum)
	}
}

// TestNoRoomAtOnce has no room for the header: no partial log is left behind.
func TestNoRoomAtOnce(t *testing.T) {
	cmd, out, path, stderr := startChild(t, "full-at-once")
	count, err := acknowledged(t, cmd, out)
	if err == nil || !strings.Contains(stderr.String(), "audit.full") || count != 0 {
		t.Fatalf("%d acknowledged, %v: %s", count, err, stderr)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("a file stays: %v", err)
	}
}
