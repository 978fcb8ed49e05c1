// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/job"
	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// Settle is job.Options.Settle in tests: within this time a job reads the comment and writes it, on
// a host that does much else.
const Settle = 500 * time.Millisecond

const version = "(devel)"

// RunMain runs the tests of a package, whose test program is also the program fumehood as far as jobs
// need it: action, run, review and the gateway of a sandbox.
func RunMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == egress.DoorName { // with an empty environment
		os.Exit(egress.Main(os.Stderr))
	}
	testscript.Main(tests{m}, map[string]func(){"fumehood": runFumehood})
}

type tests struct{ *testing.M }

func (a tests) Run() int {
	roottest.Check()
	lanetest.WaitMuch()
	return a.M.Run()
}

// runFumehood is the program fumehood for jobs.
func runFumehood() {
	if err := process.CloseOnExec(); err != nil {
		panic(err)
	}
	process.SetHome()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	c := &cli.Invocation{Ctx: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version}
	root := &cobra.Command{Use: "fumehood"}
	root.AddGroup(&cobra.Group{ID: cli.GroupRun, Title: "Run"})
	root.AddCommand(runs.Command(c), runs.ReviewCommand(c),
		&cobra.Command{Use: "action", RunE: c.Run(func([]string) int {
			self, err := os.Executable()
			if err != nil {
				return c.Stop(err)
			}
			return runAction(ctx, os.Stdout, self, os.Getenv)
		})})
	os.Exit(c.Execute(root, os.Args[1:]))
}

// runAction runs a step and returns the exit code of fumehood action.
func runAction(ctx context.Context, out io.Writer, program string, getenv func(string) string) int {
	conclusion, err := job.Do(ctx,
		job.Options{Getenv: getenv, Stdout: out, Program: program, Version: version, Compile: policy.New,
			Settle: Settle})
	switch {
	case err != nil:
		fmt.Fprintln(out, err)
		return cli.Stopped
	case conclusion.Status == job.Passed:
		return cli.OK
	case conclusion.Status == job.Refused:
		return cli.Refused
	}
	return cli.Stopped
}

// FindProgram returns the path of the program fumehood, which the package's TestMain has made.
func FindProgram(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("fumehood")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// BuildCache returns fumehood's cache with its runsc, which is built first if it is not there.
func BuildCache(t testing.TB) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(filepath.Dir(installtest.Runsc(t).Path))) // CACHE/runsc/KEY/fumehood-runsc
}
