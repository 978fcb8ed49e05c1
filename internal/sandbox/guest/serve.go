// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type server struct {
	tree     *tree
	root     string // the workspace as commands see it
	lower    string // the tree below it
	uid, gid int    // of the commands
	services services
	config   Config
}

func newServer(c Config) (*server, error) {
	s := &server{root: Workspace, uid: c.UID, gid: c.GID, services: services{first: c.Service}, config: c}
	if len(c.Overlays) == 0 {
		return s, nil
	}
	lower, err := mountMerged(c)
	s.tree = newTree(upperOf(0), lower)
	s.root, s.lower = c.Overlays[0].Target, lower
	return s, err
}

func ignoreChildren() { signal.Ignore(syscall.SIGCHLD) }

func serve(s *server, in io.Reader, w *bufio.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10) // the longest request
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.answer(strings.TrimSuffix(line, "\n"), r, w); err != nil {
			fmt.Fprintf(w, "error %q\n", err.Error())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (s *server) answer(request string, r io.Reader, w *bufio.Writer) error {
	verb, rest, _ := strings.Cut(request, " ")
	switch verb {
	case "sweep":
		left, err := s.services.sweep()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "ok %d\n", left)
		return nil
	case "keep":
		return done(s.services.keep(), w)
	case "hold":
		return done(s.services.hold(rest), w)
	case "interrupt":
		return done(s.services.interrupt(rest), w)
	case "go":
		return done(s.services.goOn(rest), w)
	case "resume":
		return done(s.services.resume(rest), w)
	case "changes":
		limit, _, err := cutNumber(rest)
		if err != nil {
			return err
		}
		return s.tree.changes(int(limit), w)
	case "mark":
		return done(s.tree.mark(), w)
	case "total":
		limit, _, err := cutNumber(rest)
		if err != nil {
			return err
		}
		return s.tree.total(int(limit), w)
	case "entry":
		return s.entry(rest, w)
	case "glob":
		return s.glob(rest, w)
	case "read":
		return s.read(rest, w)
	case "write":
		return s.write(rest, r, w)
	case "space":
		return space(w)
	case "layer":
		return s.layer(rest, w)
	}
	return fmt.Errorf("unknown request %q", verb)
}

func done(err error, w *bufio.Writer) error {
	if err == nil {
		fmt.Fprintln(w, "ok 0")
	}
	return err
}

func cutNumber(text string) (int64, string, error) {
	head, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(head, 10, 64)
	if err != nil || n < 0 {
		return 0, "", fmt.Errorf("invalid number %q", head)
	}
	return n, rest, nil
}

// sweep kills every process except for this one and returns how many it had to kill. It
// returns only when none is left.
//
// It makes few system calls before it kills: while a hundred processes spin, each
// call waits for its turn on the processor.
func sweep() (int, error) {
	left, err := afterGrace()
	if err != nil {
		return 0, err
	}
	for tries := 0; tries < 2000; tries++ {
		// -1 signals every process except for the caller, so a fork in progress is
		// caught by the next round at the latest.
		if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return left, err
		}
		now, err := others()
		if err != nil || !slices.ContainsFunc(now, living) {
			return left, err
		}
		time.Sleep(time.Millisecond)
	}
	return left, fmt.Errorf("processes are left after SIGKILL")
}

// sweepGrace is how long processes that are about to end have for it: the parts of a
// pipeline whose reader is gone, the workers of a test runner.
const sweepGrace = 30 * time.Millisecond

// afterGrace returns how many processes live on after the grace.
func afterGrace() (int, error) {
	end := time.Now().Add(sweepGrace)
	for {
		all, err := others()
		if err != nil || len(all) == 0 {
			return 0, err
		}
		if all = slices.DeleteFunc(all, zombie); len(all) == 0 || time.Now().After(end) {
			return len(all), nil
		}
		time.Sleep(time.Millisecond)
	}
}

func living(pid string) bool { return !zombie(pid) }

func zombie(pid string) bool {
	fields := fieldsOf(procFile(pid + "/stat"))
	return len(fields) == 0 || strings.Contains("ZX", fields[0]) // or gone
}

func space(w *bufio.Writer) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(Upper, &st); err != nil {
		return err
	}
	fmt.Fprintf(w, "ok %d %d\n", int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize)
	return nil
}
