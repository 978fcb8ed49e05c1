// SPDX-License-Identifier: Apache-2.0

// Package retention removes the files of runs, sessions and pods that have ended, with their audit logs.
//
// The files of a run are a directory of this user's whose own files include audit logs (*.jsonl). It is removed only
// if no process has one of its logs open, and each is sealed, verifies, and has nothing that a person may still have
// to look at: no error that ended the run, no denied or asked command, no refused program, network access or file, no
// finding, and no command of which something is not known. A work tree of git that has a log stays.
//
// No symbolic link is followed, and other files and directories are not touched. Nothing is removed that came
// after the directory was looked at.
package retention

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Entry is the directory of one run, session or pod.
type Entry struct {
	Path  string    `json:"path"`
	Bytes int64     `json:"bytes"` // of its files
	Ended time.Time `json:"ended"` // when a log was written to for the last time, as far as is known
	// Kept is why it was not removed although it is old, or the directories are too large, or why it could not be
	// looked at, whatever its age; "" if it was removed.
	Kept string `json:"kept,omitempty"`
}

// A Limit says what is removed.
type Limit struct {
	Before time.Time // what ended before; zero for nothing
	Bytes  int64     // the oldest, until all that is left has at most this size; zero for no limit of size
	DryRun bool      // only say it
}

// Prune removes directories in dir, the oldest first, and returns those that l is for. When ctx ends it stops before
// the next one, and returns those until then with an error.
func Prune(ctx context.Context, dir string, l Limit) (list []Entry, err error) {
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return nil, readError(dir, err)
	}
	defer parent.Close()
	all, err := listEntries(ctx, parent)
	switch {
	case ctx.Err() != nil:
		return nil, interruptedError(ctx)
	case err != nil:
		return nil, readError(dir, err)
	}
	left := int64(0)
	for _, e := range all {
		left += e.Bytes
	}
	for _, e := range all {
		if ctx.Err() != nil {
			return list, interruptedError(ctx)
		}
		if e.Kept == "" {
			if !e.Ended.Before(l.Before) && (l.Bytes <= 0 || left <= l.Bytes) {
				continue
			}
			if e.Kept = e.remove(parent, l.DryRun); e.Kept == "" {
				left -= e.Bytes
			}
		}
		e.Path = filepath.Join(dir, e.Path)
		list = append(list, e)
	}
	return list, nil
}

func readError(dir string, err error) error {
	return &proposal.StopError{Code: "audit.directory", Message: "cannot read the directory of logs " + dir,
		Hint: "name a directory that has those of runs or pods, as their owner", Err: err}
}

func interruptedError(ctx context.Context) error {
	return &proposal.StopError{Code: "audit.interrupted", Message: "not all directories were looked at",
		Hint: "run it again", Err: ctx.Err()}
}

// listEntries returns the directories with logs, and those that may have some, the oldest first.
func listEntries(ctx context.Context, parent *os.Root) (all []Entry, err error) {
	names, err := fs.ReadDir(parent.FS(), ".")
	for _, d := range names {
		if ctx.Err() != nil {
			break
		}
		if !d.IsDir() {
			continue
		}
		if e, has := readEntry(parent, d.Name()); has {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if by := a.Ended.Compare(b.Ended); by != 0 {
			return by
		}
		return strings.Compare(a.Path, b.Path)
	})
	return all, err
}

// readEntry looks at a directory. It has no logs if it is another user's, or gone.
func readEntry(parent *os.Root, name string) (e Entry, hasLogs bool) {
	e.Path = name
	info, err := parent.Lstat(name)
	if err != nil {
		e.Kept = err.Error()
		return e, !errors.Is(err, fs.ErrNotExist)
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return e, false
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		e.Ended, e.Kept = info.ModTime(), err.Error()
		return e, !errors.Is(err, fs.ErrNotExist)
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil && d.Type().IsRegular() {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is gone
		case err != nil:
			e.Kept, hasLogs = err.Error(), hasLogs || path == "."
		case info != nil:
			e.Bytes += info.Size()
			if !strings.Contains(path, "/") && isLog(d) {
				hasLogs = true
				if info.ModTime().After(e.Ended) {
					e.Ended = info.ModTime()
				}
			}
		}
		return nil
	})
	e.Ended = cmp.Or(e.Ended, info.ModTime())
	return e, hasLogs
}

// isLog reports whether a file of a run's directory is an audit log.
func isLog(d fs.DirEntry) bool { return d.Type().IsRegular() && strings.HasSuffix(d.Name(), ".jsonl") }

// remove removes e, or returns why it stays.
func (e Entry) remove(parent *os.Root, dry bool) (kept string) {
	root, err := parent.OpenRoot(e.Path)
	if err != nil {
		return err.Error()
	}
	defer root.Close()
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err.Error()
	}
	for _, d := range names {
		if d.Name() == ".git" {
			return "it is a work tree of git"
		}
		if !isLog(d) {
			continue
		}
		f, err := root.OpenFile(d.Name(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err.Error()
		}
		defer f.Close() // with its lock
		if why := judgeLog(f); why != "" {
			return why
		}
	}
	if dry {
		return ""
	}
	for _, d := range names {
		err = errors.Join(err, root.RemoveAll(d.Name()))
	}
	if err = errors.Join(err, parent.Remove(e.Path)); err != nil {
		return err.Error()
	}
	return ""
}

// judgeLog locks a log and returns why it stays.
func judgeLog(f *os.File) string {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart} // a pod's gate has such a lock
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil ||
		unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type != unix.F_UNLCK {
		return "a process writes its log"
	}
	why := ""
	sum, err := audit.Scan(f, audit.Trust{}, func(entry audit.Entry) error {
		if why == "" {
			why = judgeEntry(journal.Entry{Kind: entry.Kind, Body: entry.Body})
		}
		return nil
	})
	switch {
	case err != nil:
		return "its log is not valid"
	case sum.State != audit.Sealed:
		return "its log is not sealed"
	}
	return why
}

// judgeEntry returns why a log with e stays.
func judgeEntry(e journal.Entry) string {
	switch e.Kind {
	case "review", "model.request", "model.answer": // of a review by a model
		return ""
	}
	said, err := e.Decode()
	switch {
	case err != nil:
		return "its log has an entry that this version does not know"
	case said.Error != nil:
		return "the run ended with an error"
	case said.Decision != nil && said.Decision.Effect != proposal.Allow:
		return "a command was not allowed"
	case said.Transfer != nil && isRefused(said.Transfer.Output):
		return "a file was refused"
	case said.Result != nil:
		return judgeResult(*said.Result)
	case said.Attempt != nil:
		return judgeResult(said.Attempt.Result())
	}
	return "" // the result of a command counts its events
}

func judgeResult(r proposal.Result) string {
	o := r.Observations
	switch {
	case r.Killed == proposal.KilledConnect, o != nil && o.Counts.Refused+o.Counts.NetRefused > 0:
		return "a program or a network access was refused"
	case o != nil && len(o.Findings) > 0:
		return "a finding was reported"
	case slices.ContainsFunc(r.Outputs, isRefused):
		return "a file was refused"
	case o != nil && !o.Complete:
		return "not everything that a command did was recorded"
	case r.Status == proposal.SandboxFailed:
		return "it is not known how a command ended"
	}
	return ""
}

// isRefused reports whether a file was not copied or was withheld. One that is not there was neither.
func isRefused(o proposal.Output) bool { return o.Refused != "" && o.Refused != "no such file" }
