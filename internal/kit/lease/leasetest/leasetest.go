// SPDX-License-Identifier: Apache-2.0

// Package leasetest tests concurrent processes that share directories, as runs on one host do.
package leasetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
)

const (
	processes = 20
	rounds    = 50

	dirVariable     = "FUMEHOOD_TEST_SHARED_DIR"
	processVariable = "FUMEHOOD_TEST_PROCESS"
)

// A Turn is what one process does in one round.
type Turn struct {
	Dir     string // shared by all processes
	Process int
	Round   int
}

// ShouldAbandon reports whether the process should leave everything as if it was killed now.
// In each round a quarter of the processes do.
func (t Turn) ShouldAbandon() bool { return (t.Process+t.Round)%4 == 0 }

// RunTogether runs act in several processes that begin each round at the same moment: 20
// processes and 50 rounds in the nightly lane, 12 and 10 by default, 4 and 3 with -short. The processes are
// copies of the calling test, so the code before the call runs in each of them. RunTogether returns only in the
// test's own process.
func RunTogether(t *testing.T, dir string, act func(Turn) error) {
	t.Helper()
	if shared := os.Getenv(dirVariable); shared != "" {
		process, _ := strconv.Atoi(os.Getenv(processVariable))
		takeTurns(Turn{Dir: shared, Process: process}, act)
	}
	var all []*follower
	for i := range sample.Rounds(t, processes, 12, 4) {
		all = append(all, startFollower(t, dir, i))
	}
	failed := 0
	for round := range sample.Rounds(t, rounds, 10, 3) {
		for _, f := range all {
			f.beginTurn(t)
		}
		for i, f := range all {
			if answer := f.readAnswer(t); answer != "ok" {
				failed++
				t.Errorf("round %d, process %d: %s", round, i, answer)
			}
		}
		if failed > processes {
			t.Fatalf("%d turns failed; giving up", failed)
		}
	}
	for _, f := range all {
		f.endProcess(t)
	}
}

// takeTurns takes a turn for each line of standard input, and ends the process with it.
func takeTurns(turn Turn, act func(Turn) error) {
	lines := bufio.NewScanner(os.Stdin)
	for ; lines.Scan(); turn.Round++ {
		answer := "ok"
		if err := act(turn); err != nil {
			answer = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Println(answer)
	}
	os.Exit(0)
}

// A follower is one of the processes.
type follower struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startFollower(t *testing.T, dir string, process int) *follower {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, fmt.Sprintf("%s=%d", processVariable, process))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &follower{cmd, in, bufio.NewReader(out)}
}

func (f *follower) beginTurn(t *testing.T) {
	t.Helper()
	if _, err := f.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
}

func (f *follower) readAnswer(t *testing.T) string {
	t.Helper()
	line, err := f.out.ReadString('\n')
	if err != nil {
		t.Fatalf("a process ended: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (f *follower) endProcess(t *testing.T) {
	t.Helper()
	f.in.Close()
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("a process did not end well: %v", err)
	}
}
