// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

// Larger objects are not legitimate: git itself warns about far smaller ones.
const (
	maxCommit = 4 << 20
	maxTree   = 32 << 20
)

// objects reads from the store through long-running git processes. It is not safe
// for concurrent use.
type objects struct {
	start    func(flags ...string) *gitCommand
	cancel   context.CancelFunc
	size     *objectPipe // for a few questions, one after another
	contents *objectPipe
	all      []*objectPipe
}

// An objectPipe is a git process that answers each line of request with one answer.
type objectPipe struct {
	command *gitCommand
	in      io.WriteCloser
	out     *bufio.Reader
	once    bool // it answers only after all requests are in
}

func (s *Store) openObjects(ctx context.Context) (*objects, error) {
	s.making.Lock()
	defer s.making.Unlock()
	if s.digits == 0 {
		return nil, newStopError(CodeCommit, "", nil, "no commit was fetched")
	}
	return openObjects(ctx, s.git, s.bare), nil
}

func openObjects(ctx context.Context, g git, bare string) *objects {
	ctx, cancel := context.WithCancel(ctx)
	return &objects{cancel: cancel, start: func(flags ...string) *gitCommand {
		return g.command(ctx, nil, append([]string{"--git-dir=" + bare, "cat-file"}, flags...)...)
	}}
}

// close ends all git processes and waits for them.
func (o *objects) close() {
	o.cancel()
	for _, p := range o.all {
		p.in.Close()
		p.command.Wait()
	}
}

// many is the number of requests from which a separate git process that buffers its
// answers is faster than one that answers each request at once.
const many = 64

// pipeFor returns the long-running git process or, for many requests, a new one for
// them only.
func (o *objects) pipeFor(running **objectPipe, flag string, requests int) (*objectPipe, error) {
	if requests >= many {
		return o.startPipe(true, flag, "--buffer")
	}
	if *running != nil {
		return *running, nil
	}
	p, err := o.startPipe(false, flag)
	*running = p
	return p, err
}

func (o *objects) startPipe(once bool, flags ...string) (*objectPipe, error) {
	c := o.start(flags...)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, newStopError(CodeGit, "", err, "cannot start git")
	}
	p := &objectPipe{command: c, in: in, out: bufio.NewReaderSize(out, 1<<16), once: once}
	o.all = append(o.all, p)
	return p, nil
}

// askPipe writes all requests while answer reads, called once for each. After an error
// the pipe must not be used again.
func (o *objects) askPipe(p *objectPipe, ids []string, answer func(i int) error) error {
	for _, id := range ids {
		if !idRE.MatchString(id) { // an id, and nothing else
			return fmt.Errorf("invalid id %q", cutOutput(id))
		}
	}
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(p.in, 1<<15)
		for _, id := range ids {
			if _, err := w.WriteString(id + "\n"); err != nil {
				break // the reader sees the error too
			}
		}
		err := w.Flush()
		if p.once {
			p.in.Close()
		}
		written <- err
	}()
	for i := range ids {
		if err := answer(i); err != nil {
			o.cancel() // so that the writer does not wait for a reader
			<-written
			return err
		}
	}
	return <-written
}

// readSizes calls tell with the kind and size of each object; kind is "" for a missing
// object.
func (o *objects) readSizes(ctx context.Context, ids []string, each func(i int, kind string, size int64) error) error {
	p, err := o.pipeFor(&o.size, "--batch-check", len(ids))
	if err != nil {
		return err
	}
	err = o.askPipe(p, ids, func(i int) error {
		kind, size, err := p.readObjectHeader(ids[i])
		if err != nil {
			return err
		}
		return each(i, kind, size)
	})
	return stopOrContextError(ctx, err)
}

// readEach passes the content of each object to use. The object must be of the kind,
// must exist, and must hash to its id. use must read it to the end, unless it fails.
func (o *objects) readEach(
	ctx context.Context, kind string, max int64, ids []string, use func(i int, size int64, r io.Reader) error,
) error {
	p, err := o.pipeFor(&o.contents, "--batch", len(ids))
	if err != nil {
		return err
	}
	err = o.askPipe(p, ids, func(i int) error {
		is, size, err := p.readObjectHeader(ids[i])
		if err != nil {
			return err
		}
		if is != kind || size > max {
			return wrongObject(ids[i], kind, is, size)
		}
		sum := newHash(len(ids[i]))
		fmt.Fprintf(sum, "%s %d\x00", kind, size)
		body := &io.LimitedReader{R: p.out, N: size}
		if err := use(i, size, io.TeeReader(body, sum)); err != nil {
			return err
		}
		end, err := p.out.ReadByte()
		if err != nil || body.N != 0 || end != '\n' {
			return errors.New("git's answer is cut off")
		}
		if hex.EncodeToString(sum.Sum(nil)) != ids[i] {
			return fmt.Errorf("the bytes of object %s do not match its id", ids[i])
		}
		return nil
	})
	return stopOrContextError(ctx, err)
}

func wrongObject(id, want, is string, size int64) error {
	switch is {
	case "":
		return fmt.Errorf("object %s is missing", id)
	case want:
		return fmt.Errorf("%s %s has %d bytes, more than is allowed", is, id, size)
	}
	return fmt.Errorf("object %s is a %s, not a %s", id, is, want)
}

// readObjectHeader reads "<id> <kind> <size>" or "<id> missing".
func (p *objectPipe) readObjectHeader(id string) (kind string, size int64, err error) {
	line, err := p.out.ReadSlice('\n')
	if err != nil {
		return "", 0, fmt.Errorf("git's answer is cut off: %w", err)
	}
	return parseHeader(string(line), id)
}

func parseHeader(line, id string) (kind string, size int64, err error) {
	rest, ok := strings.CutPrefix(line, id+" ")
	rest, end := strings.CutSuffix(rest, "\n")
	if ok && end && rest == "missing" {
		return "", 0, nil
	}
	kind, digits, two := strings.Cut(rest, " ")
	size, err = strconv.ParseInt(digits, 10, 64)
	known := kind == "blob" || kind == "tree" || kind == "commit" || kind == "tag"
	if !ok || !end || !two || !known || err != nil || size < 0 || strconv.FormatInt(size, 10) != digits {
		return "", 0, fmt.Errorf("cannot read git's answer %q", cutOutput(line))
	}
	return kind, size, nil
}

func newHash(digits int) hash.Hash {
	if digits == 64 {
		return sha256.New()
	}
	return sha1.New() // git's ids; git checked for known collisions when it received them
}

// stopOrContextError turns an error into a StopError or, after a deadline or a cancellation,
// into that.
func stopOrContextError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return newStopError(CodeLimit, "raise the checkout's limit Wall", nil, "cannot write the files in time")
	case ctx.Err() != nil:
		return newStopError(CodeTree, "", ctx.Err(), "the checkout was cancelled")
	}
	return asStop(err, CodeTree, "cannot read the commit")
}
