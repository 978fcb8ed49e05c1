// SPDX-License-Identifier: Apache-2.0

package sandbox

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
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An initClient sends requests to guest init. It treats every answer as written
// by an attacker: line lengths, counts and sizes are bounded, strings are
// unquoted strictly, and an answer that does not match the request is an error.
type initClient struct {
	requests *os.File
	answers  *os.File
	read     *bufio.Reader
	resuming bool   // the answer to "resume" has not been read yet
	ahead    string // a request that was sent before it was asked
}

const answerLine = 48 << 10 // two quoted paths of PATH_MAX bytes fit

func newInitClient(requests, answers *os.File) *initClient {
	return &initClient{requests: requests, answers: answers, read: bufio.NewReaderSize(answers, answerLine)}
}

func (c *initClient) close() error {
	return errors.Join(c.requests.Close(), c.answers.Close())
}

// waitUntilReady waits for init's first line and returns the kernel's version.
func (c *initClient) waitUntilReady(ctx context.Context, grace time.Duration) (string, error) {
	_ = c.answers.SetReadDeadline(time.Now().Add(grace))
	stop := context.AfterFunc(ctx, func() { _ = c.answers.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := c.readLine()
	if err != nil {
		return "", fmt.Errorf("guest init did not start: %v", err)
	}
	rest, ok := strings.CutPrefix(line, "ready "+strconv.Itoa(guest.Version)+" ")
	if !ok {
		return "", fmt.Errorf("guest init uses another protocol: %q", line)
	}
	return strconv.Unquote(rest)
}

func (c *initClient) readLine() (string, error) {
	line, err := c.read.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(line[:len(line)-1]), nil
}

func (c *initClient) sendRequest(grace time.Duration, request string) error {
	deadline := time.Now().Add(grace)
	_ = c.requests.SetWriteDeadline(deadline)
	_ = c.answers.SetReadDeadline(deadline)
	if ahead := c.ahead; ahead != "" {
		if c.ahead = ""; request != ahead {
			return fmt.Errorf("internal error: %q was sent ahead of %q", ahead, request)
		}
		return nil
	}
	_, err := io.WriteString(c.requests, request+"\n")
	if err == nil && c.resuming {
		c.resuming = false
		_, err = parseNumberAnswer(c.readAnswer(nil))
	}
	return err
}

// readAnswer reads lines until "ok N" and passes each line before it to each.
func (c *initClient) readAnswer(each func(words []string) error) ([]string, error) {
	for {
		line, err := c.readLine()
		if err != nil {
			return nil, fmt.Errorf("guest init does not answer: %v", err)
		}
		words := strings.SplitN(line, " ", 5)
		switch {
		case words[0] == "ok":
			return words[1:], nil
		case words[0] == "error":
			return nil, refusalOf(line)
		case each == nil:
			return nil, fmt.Errorf("guest init answers %q", line)
		}
		if err := each(words); err != nil {
			return nil, err
		}
	}
}

func parseNumberAnswer(words []string, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	if len(words) == 0 {
		return 0, errors.New("guest init's answer lacks a number")
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("guest init's number is %q", words[0])
	}
	return n, nil
}

// killLeftProcesses kills what a command left behind and returns the number of processes.
func (c *initClient) killLeftProcesses(grace time.Duration) (int, error) {
	if err := c.sendRequest(grace, "sweep"); err != nil {
		return 0, err
	}
	n, err := parseNumberAnswer(c.readAnswer(nil))
	return int(n), err
}

// sweepAndList is killLeftProcesses for callers whose next request is changes.
func (c *initClient) sweepAndList(grace time.Duration) (int, error) {
	if err := c.sendRequest(grace, "sweep\n"+requestChanges); err != nil {
		return 0, err
	}
	c.ahead = requestChanges
	n, err := parseNumberAnswer(c.readAnswer(nil))
	return int(n), err
}

// keepServices makes services of the processes that a service's command left behind. Services are
// stopped while no command runs.
func (c *initClient) keepServices(grace time.Duration) error { return c.sendAndWait(grace, "keep") }

// resumeServices lets services go on, and of the shells one with the id shell, at some time before
// init answers the next request, which returns the error.
func (c *initClient) resumeServices(grace time.Duration, shell int32) error {
	request := "resume"
	if shell != 0 {
		request += " " + strconv.Itoa(int(shell))
	}
	err := c.sendRequest(grace, request)
	c.resuming = err == nil
	return err
}

// holdProcesses makes interpreters of processes, and of no others: they are kept and stopped like
// services. What shells start is not kept.
func (c *initClient) holdProcesses(grace time.Duration, ids, shells []int32) error {
	words := []string{"hold"}
	for _, id := range ids {
		words = append(words, strconv.Itoa(int(id)))
	}
	if len(shells) > 0 {
		words = append(words, "shells")
	}
	for _, id := range shells {
		words = append(words, strconv.Itoa(int(id)))
	}
	return c.sendAndWait(grace, strings.Join(words, " "))
}

// goOn lets processes, and what descends from them, go on after a sweep, and no others.
func (c *initClient) goOn(grace time.Duration, ids []int32) error {
	words := []string{"go"}
	for _, id := range ids {
		words = append(words, strconv.Itoa(int(id)))
	}
	return c.sendAndWait(grace, strings.Join(words, " "))
}

// interruptProcess sends SIGINT to a process.
func (c *initClient) interruptProcess(grace time.Duration, id int32) error {
	return c.sendAndWait(grace, "interrupt "+strconv.Itoa(int(id)))
}

func (c *initClient) sendAndWait(grace time.Duration, request string) error {
	if err := c.sendRequest(grace, request); err != nil {
		return err
	}
	_, err := parseNumberAnswer(c.readAnswer(nil))
	return err
}

// The lists of changes are bounded; the rest is counted.
const (
	maxChanges = 500    // that a Result has
	maxTotal   = 50_000 // of which a Diff has the first that it is asked for, and the files of test runners are read
)

var requestChanges = "changes " + strconv.Itoa(maxTotal)

var (
	changeKinds = map[string]bool{"added": true, "changed": true, "removed": true}
	fileTypes   = map[string]bool{"file": true, "dir": true, "symlink": true, "other": true}
)

// listChanges lists what changed in the workspace since the last call.
func (c *initClient) listChanges() (proposal.Changes, error) { return c.changesOf("changes", maxTotal) }

// listTotalChanges lists what changed since the set-up.
func (c *initClient) listTotalChanges() (proposal.Changes, error) {
	return c.changesOf("total", maxTotal)
}

func (c *initClient) changesOf(verb string, maximum int) (proposal.Changes, error) {
	list := proposal.Changes{Files: []proposal.Change{}}
	if err := c.sendRequest(askGrace, verb+" "+strconv.Itoa(maximum)); err != nil {
		return list, err
	}
	omitted, err := parseNumberAnswer(c.readAnswer(func(w []string) error {
		if len(w) != 5 || w[0] != "change" || !changeKinds[w[1]] || !fileTypes[w[2]] || len(list.Files) >= maximum {
			return fmt.Errorf("guest init answers %q", w)
		}
		size, path, err := sizeAndPath(w[3], w[4])
		list.Files = append(list.Files, proposal.Change{Kind: w[1], Type: w[2], Bytes: size, Path: path})
		return err
	}))
	list.Omitted = int(omitted)
	return list, err
}

func sizeAndPath(size, quoted string) (int64, string, error) {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return 0, "", fmt.Errorf("guest init's size is %q", size)
	}
	path, err := strconv.Unquote(quoted)
	return n, path, err
}

// A refusal is init's error about one file; the protocol is still in step.
type refusal struct{ message string }

func (r *refusal) Error() string { return "guest init: " + r.message }

func refusalOf(line string) error {
	said := strings.TrimPrefix(line, "error ")
	if message, err := strconv.Unquote(said); err == nil {
		said = message
	}
	return &refusal{said}
}

// What writeFile does.
type writeVerb string

const (
	writeWhole writeVerb = "write"
	writeEnd   writeVerb = "append"
)

// writeFile writes data to path, or to its end. refused is init's reason if it refuses; an error
// means that init is lost.
func (c *initClient) writeFile(verb writeVerb, path string, data []byte) (refused string, err error) {
	if err := c.sendRequest(askGrace, fmt.Sprintf("%s %d %q", verb, len(data), path)); err != nil {
		return "", err
	}
	if _, err := c.requests.Write(data); err != nil {
		return "", err
	}
	_, err = parseNumberAnswer(c.readAnswer(nil))
	var said *refusal
	if errors.As(err, &said) {
		return said.message, nil
	}
	return "", err
}

// listOutputs lists the files in the workspace that match a declared output.
func (c *initClient) listOutputs(pattern string, maximum int) ([]proposal.Change, error) {
	list, err := c.listFiles(pattern, maximum)
	return list.Files, err
}

// listFiles is listOutputs with the number of omitted files.
func (c *initClient) listFiles(pattern string, maximum int) (proposal.Changes, error) {
	found := []proposal.Change{}
	if err := c.sendRequest(askGrace, fmt.Sprintf("glob %d %q", maximum, pattern)); err != nil {
		return proposal.Changes{}, err
	}
	omitted, err := parseNumberAnswer(c.readAnswer(func(w []string) error {
		w = strings.SplitN(strings.Join(w, " "), " ", 4)
		if len(w) != 4 || w[0] != "match" || !fileTypes[w[1]] || len(found) >= maximum {
			return fmt.Errorf("guest init answers %q", w)
		}
		size, path, err := sizeAndPath(w[2], w[3])
		found = append(found, proposal.Change{Type: w[1], Bytes: size, Path: path})
		return err
	}))
	return proposal.Changes{Files: found, Omitted: int(omitted)}, err
}

// A diffSide is one of the two trees that init reads.
type diffSide string

const (
	oldSide diffSide = "old" // below the overlay
	newSide diffSide = "new" // as commands see it
)

// describePath describes a path; nil if there is none.
func (c *initClient) describePath(from diffSide, path string) (*proposal.FileState, error) {
	if err := c.sendRequest(askGrace, fmt.Sprintf("entry %s %q", from, path)); err != nil {
		return nil, err
	}
	line, err := c.readLine()
	if err != nil {
		return nil, err
	}
	w := strings.SplitN(line, " ", 5)
	if w[0] == "error" {
		return nil, refusalOf(line)
	}
	if len(w) != 5 || w[0] != "entry" || w[1] != "none" && !fileTypes[w[1]] {
		return nil, fmt.Errorf("guest init answers %q", line)
	}
	mode, err := strconv.ParseUint(w[2], 10, 12)
	if err != nil {
		return nil, fmt.Errorf("guest init's mode is %q", w[2])
	}
	size, target, err := sizeAndPath(w[3], w[4])
	if err != nil || w[1] == "none" {
		return nil, err
	}
	return &proposal.FileState{Type: w[1], Mode: uint32(mode), Target: target,
		Output: proposal.Output{Path: path, Bytes: size}}, nil
}

// copyFile copies one regular file of at most maximum bytes to w.
func (c *initClient) copyFile(from diffSide, path string, maximum int64, w io.Writer) (int64, error) {
	return c.copyData(fmt.Sprintf("read %d %s %q", maximum, from, path), maximum, w)
}

// copyPart copies at most maximum bytes of one regular file to w, from an offset.
func (c *initClient) copyPart(path string, offset, maximum int64, w io.Writer) (int64, error) {
	return c.copyData(fmt.Sprintf("part %d %d %s %q", offset, maximum, newSide, path), maximum, w)
}

func (c *initClient) copyData(request string, maximum int64, w io.Writer) (int64, error) {
	if err := c.sendRequest(askGrace, request); err != nil {
		return 0, err
	}
	line, err := c.readLine()
	if err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(line, "data ")
	if !ok {
		return 0, refusalOf(line)
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 || size > maximum {
		return 0, fmt.Errorf("guest init's size is %q", text)
	}
	n, err := io.CopyN(w, c.read, size)
	if err != nil {
		// Keep in step with init: the rest that it still sends is not the next
		// answer.
		_, lost := io.CopyN(io.Discard, c.read, size-n)
		err = errors.Join(err, lost)
	}
	_, ended := parseNumberAnswer(c.readAnswer(nil))
	return n, errors.Join(err, ended)
}

// A tailBuffer keeps the first 4 KiB that runsc writes to stderr.
type tailBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := 4096 - len(b.text); room > 0 {
		b.text = append(b.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
