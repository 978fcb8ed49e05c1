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
	tree     *upperTree
	root     string // the workspace as commands see it
	lower    string // the tree below it
	uid, gid int    // of the commands
	services serviceSet
	config   Config
}

func newServer(c Config) (*server, error) {
	s := &server{root: Workspace, uid: c.UID, gid: c.GID, services: serviceSet{first: c.Service}, config: c}
	if len(c.Overlays) == 0 {
		return s, nil
	}
	lower, err := mountMerged(c)
	if err != nil {
		return nil, err
	}
	s.tree = newTree(listWritten, lower)
	s.root, s.lower = c.Overlays[0].Target, lower
	if err := syscall.Mount(upperOf(0), Written, listingType, syscall.MS_RDONLY, ""); err != nil {
		return nil, fmt.Errorf("cannot mount %q: %v", Written, err)
	}
	return s, nil
}

func ignoreChildren() { signal.Ignore(syscall.SIGCHLD) }

func serveRequests(s *server, in io.Reader, w *bufio.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10) // the longest request
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.answerRequest(strings.TrimSuffix(line, "\n"), r, w); err != nil {
			fmt.Fprintf(w, "error %q\n", err.Error())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (s *server) answerRequest(request string, r io.Reader, w *bufio.Writer) error {
	verb, rest, _ := strings.Cut(request, " ")
	switch verb {
	case RequestReady:
		return writeReady(w)
	case "sweep":
		left, err := s.services.killAllButServices()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "ok %d\n", left)
		return nil
	case "keep":
		return writeDone(s.services.keepServices(), w)
	case "hold":
		return writeDone(s.services.setInterpreters(rest), w)
	case "interrupt":
		return writeDone(s.services.interruptInterpreter(rest), w)
	case "go":
		return writeDone(s.services.goOn(rest), w)
	case "resume":
		return writeDone(s.services.resumeServices(rest), w)
	case "changes":
		limit, _, err := cutNumber(rest)
		if err != nil {
			return err
		}
		return s.tree.writeChanges(int(limit), w)
	case "mark":
		return writeDone(s.tree.markSetup(), w)
	case "total":
		limit, _, err := cutNumber(rest)
		if err != nil {
			return err
		}
		return s.tree.writeTotalChanges(int(limit), w)
	case "entry":
		return s.describeEntry(rest, w)
	case "glob":
		return s.listMatches(rest, w)
	case "read":
		return s.readFile(rest, w)
	case "part":
		return s.readPart(rest, w)
	case "write":
		return s.receiveFile(rest, r, w, s.writeFile)
	case "append":
		return s.receiveFile(rest, r, w, s.appendFile)
	case "space":
		return writeFreeSpace(w)
	case "layer":
		return s.sendLayer(rest, w)
	}
	return fmt.Errorf("unknown request %q", verb)
}

func writeDone(err error, w *bufio.Writer) error {
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

// killAll kills every process except for this one and returns how many it had to kill. It
// returns only when none is left.
//
// It makes few system calls before it kills: while a hundred processes spin, each
// call waits for its turn on the processor.
func killAll() (int, error) {
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
		now, err := otherProcessIDs()
		if err != nil || !slices.ContainsFunc(now, isAlive) {
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
		all, err := otherProcessIDs()
		if err != nil || len(all) == 0 {
			return 0, err
		}
		if all = slices.DeleteFunc(all, isZombie); len(all) == 0 || time.Now().After(end) {
			return len(all), nil
		}
		time.Sleep(time.Millisecond)
	}
}

func isAlive(pid string) bool { return !isZombie(pid) }

func isZombie(pid string) bool {
	fields := fieldsOf(procFile(pid + "/stat"))
	return len(fields) == 0 || strings.Contains("ZX", fields[0]) // or gone
}

func writeFreeSpace(w *bufio.Writer) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(Upper, &st); err != nil {
		return err
	}
	fmt.Fprintf(w, "ok %d %d\n", int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize)
	return nil
}
