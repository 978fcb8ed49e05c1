// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	kept = 64 << 10 // of each end of a stream
	// margin bytes are omitted where a text breaks off: half of a secret is not found.
	margin = 8 << 10
)

// Result returns r redacted, and copies the files that may leave. With an error, the
// result contains nothing that the command printed or left.
func (u *Redactor) Result(ctx context.Context, id string, r proposal.Result) (proposal.Result, error) {
	ctx = context.WithoutCancel(ctx) // the output of an interrupted command leaves, too
	given := r
	r, _ = redactValue(u, r)
	var err error
	for _, s := range []struct {
		kind     string
		from, to *proposal.Stream
	}{{points.OutgoingStdout, &given.Stdout, &r.Stdout}, {points.OutgoingStderr, &given.Stderr, &r.Stderr}} {
		if err == nil {
			*s.to, err = u.redactStream(ctx, id, s.kind, *s.from)
		}
		if err != nil {
			*s.to = withholdStream(*s.from, nil, "it could not be searched for secrets")
		}
	}
	if err == nil && given.TestResults.Bytes > 0 {
		r.TestResults, err = u.testResults(ctx, id, given.TestResults, r)
	}
	if err != nil && given.TestResults.Bytes > 0 {
		r.TestResults = withholdStream(given.TestResults, nil, "it could not be searched for secrets")
	}
	r.Outputs = slices.Clone(r.Outputs)
	for i, from := range given.Outputs {
		if err == nil {
			r.Outputs[i], err = u.copyDeclaredFile(ctx, id, from, r.Outputs[i])
		}
		if err != nil {
			r.Outputs[i].Refused, r.Outputs[i].File,
				r.Outputs[i].SHA256 = "withheld: it could not be searched for secrets", "", ""
		}
	}
	return r, err
}

// testResults redacts what the files of test runners say. For policy it is a part of stdout, and
// it is withheld with any of the output.
func (u *Redactor) testResults(
	ctx context.Context, id string, given proposal.Stream, r proposal.Result,
) (proposal.Stream, error) {
	if why := cmp.Or(r.Stdout.Withheld, r.Stderr.Withheld); why != "" {
		return withholdStream(given, nil, why), nil
	}
	return u.redactStream(ctx, id, points.OutgoingStdout, given)
}

// withholdStream returns the description of a stream that does not leave.
func withholdStream(s proposal.Stream, found []proposal.Redaction, why string) proposal.Stream {
	return proposal.Stream{Bytes: s.Bytes, Truncated: s.Bytes > 0, Redacted: found, Withheld: why}
}

func (u *Redactor) redactStream(ctx context.Context, id, kind string, s proposal.Stream) (proposal.Stream, error) {
	if s.Bytes == 0 {
		s.File = ""
		return s, nil
	}
	out := s
	target, err := u.prepareArtifactPath(filepath.Base(s.File))
	if s.File == "" || u.o.Artifacts == "" {
		target, err = "", nil
	}
	if err != nil {
		return s, err
	}
	whole := s.File != "" && s.FileBytes == s.Bytes
	pass := func(keep func(string) bool) (*copyResult, secrets.Tally, error) {
		switch {
		case whole:
			return u.copyFile(s.File, target, s.FileBytes, keep)
		case !s.Truncated:
			return u.copyTo(target, io.MultiReader(bytes.NewReader(s.Head), bytes.NewReader(s.Tail)), keep)
		}
		return u.copyParts(s, target, keep)
	}
	c, tally, err := pass(nil)
	if err == nil {
		var d points.OutputDecision
		d, err = u.askPolicy(ctx, points.Outgoing{Command: id, Kind: kind, Size: c.bytes}, tally)
		switch {
		case err != nil:
		case d.Effect != proposal.Allow:
			c.removeFile()
			return withholdStream(s, tally.Found, withholdingRule(d)), nil
		case allowsSomeFinds(tally, d):
			c.removeFile()
			c, tally, err = pass(keepFindFunc(d))
		}
	}
	if err != nil {
		c.removeFile()
		return s, unreadableError(kind, err)
	}
	_ = os.Remove(s.File)
	out.Head, out.Tail, out.Redacted, out.File, out.FileBytes = c.head, c.tail.bytes(), tally.Found, c.path, c.inFile
	switch {
	case c.path == "":
		out.FileBytes = 0
	}
	if len(tally.Found) > 0 {
		out.SHA256, out.Bytes = c.digest(), c.bytes
		if c.partly { // nothing is known of the whole stream
			out.SHA256, out.Bytes = "", s.Bytes
		}
	}
	out.Truncated = out.Bytes > int64(len(out.Head)+len(out.Tail))
	return out, nil
}

// withholdingRule names the rule that withholds something.
func withholdingRule(d points.OutputDecision) string {
	if d.Reason == nil {
		return "by policy"
	}
	return d.Reason.Rule + ": " + d.Reason.Message
}

func unreadableError(kind string, err error) error {
	if f := proposal.FailureOf(err); strings.Contains(f.Code, "policy.") {
		return err
	}
	return &proposal.StopError{Code: "output.unreadable",
		Message: fmt.Sprintf("cannot search the output of a command for secrets (%s)", kind),
		Hint:    "free space in the directories for artifacts and temporary files: output leaves only after the search",
		Err:     err}
}

// askPolicy asks policy about one thing. A marker that the command printed itself is not a secret.
func (u *Redactor) askPolicy(ctx context.Context, x points.Outgoing, t secrets.Tally) (points.OutputDecision, error) {
	x.Encodings, x.Secrets = t.Encodings, []proposal.Redaction{}
	_, x.Masked = redaction.CountFinds(t.Found)
	for _, f := range t.Found {
		if f.Rule != secrets.ForgedMarker && !strings.HasPrefix(f.Rule, redaction.MaskPrefix) {
			x.Secrets = append(x.Secrets, f)
		}
	}
	return u.o.Decide(ctx, x)
}

// allowsSomeFinds reports whether policy allows some of the finds to stay.
func allowsSomeFinds(t secrets.Tally, d points.OutputDecision) bool {
	return slices.ContainsFunc(t.Found, func(f proposal.Redaction) bool { return keepFindFunc(d)(f.Rule) })
}

// keepFindFunc returns a function that reports which finds stay: only those of detectors.
func keepFindFunc(d points.OutputDecision) func(string) bool {
	return func(rule string) bool {
		return !slices.Contains(d.Redact, rule) && rule != secrets.ForgedMarker && rule != secrets.Unscanned &&
			!strings.HasPrefix(rule, redaction.MaskPrefix)
	}
}

// A copyResult is the result of copying one text.
type copyResult struct {
	path   string
	file   *os.File
	sum    hash.Hash
	bytes  int64
	inFile int64
	head   []byte
	tail   tailBuffer
	partly bool
}

func (u *Redactor) newCopied(target string) (*copyResult, error) {
	c := &copyResult{sum: sha256.New(), head: []byte{}}
	if target == "" {
		return c, nil
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return c, err
	}
	c.file, c.path = f, target
	return c, nil
}

func (c *copyResult) Write(p []byte) (int, error) {
	n := len(p)
	c.bytes += int64(n)
	c.sum.Write(p)
	if c.file != nil {
		if _, err := c.file.Write(p); err != nil {
			return 0, err
		}
		c.inFile += int64(n)
	}
	room := min(kept-len(c.head), n)
	c.head = append(c.head, p[:room]...)
	c.tail.write(p[room:])
	return n, nil
}

func (c *copyResult) digest() string { return hex.EncodeToString(c.sum.Sum(nil)) }

func (c *copyResult) close() error {
	if c.file == nil {
		return nil
	}
	f := c.file
	c.file = nil
	return f.Close()
}

func (c *copyResult) removeFile() {
	if c == nil {
		return
	}
	_ = c.close()
	if c.path != "" {
		_ = os.Remove(c.path)
	}
}

// copyTo copies a text, redacted.
func (u *Redactor) copyTo(target string, from io.Reader, keep func(string) bool) (*copyResult, secrets.Tally, error) {
	c, err := u.newCopied(target)
	if err != nil {
		return c, secrets.Tally{}, err
	}
	t, err := u.redactor.Copy(c, from, keep)
	if err == nil {
		err = c.close()
	}
	return c, t, err
}

// copyFile copies the first limit bytes of a file.
func (u *Redactor) copyFile(
	source, target string, limit int64, keep func(string) bool,
) (*copyResult, secrets.Tally, error) {
	f, err := os.Open(source)
	if err != nil {
		return nil, secrets.Tally{}, err
	}
	defer f.Close()
	return u.copyTo(target, io.LimitReader(f, limit), keep)
}

// copyParts copies the available parts of a stream that is not available in full: its
// beginning, its end, and the contents of the file. The text where a part breaks off is
// searched with the rest and then omitted, so that no new end cuts a secret in two.
func (u *Redactor) copyParts(
	s proposal.Stream, target string, keep func(string) bool,
) (*copyResult, secrets.Tally, error) {
	head, t, err := u.redactPart(s.Head, keep)
	if err != nil {
		return nil, t, err
	}
	tail, more, err := u.redactPart(s.Tail, keep)
	if err != nil {
		return nil, t, err
	}
	head = head[:min(max(0, len(head)-margin), kept)]
	c := &copyResult{sum: sha256.New(), head: head, partly: true, bytes: s.Bytes}
	c.tail.write(tail[min(len(tail), margin):])
	t = addTallies(t, more)
	if target != "" && s.FileBytes > margin {
		file, inFile, err := u.copyBeginning(s.File, target, s.FileBytes, keep)
		if err != nil {
			return file, t, err
		}
		c.path, c.inFile, t = file.path, file.inFile, addTallies(t, inFile)
	}
	return c, t, nil
}

func (u *Redactor) redactPart(part []byte, keep func(string) bool) ([]byte, secrets.Tally, error) {
	var out bytes.Buffer
	t, err := u.redactor.Copy(&out, bytes.NewReader(part), keep)
	return out.Bytes(), t, err
}

// copyBeginning copies the first limit bytes of a file that breaks off there.
func (u *Redactor) copyBeginning(
	source, target string, limit int64, keep func(string) bool,
) (*copyResult, secrets.Tally, error) {
	f, err := os.Open(source)
	if err != nil {
		return nil, secrets.Tally{}, err
	}
	defer f.Close()
	c, err := u.newCopied(target)
	if err != nil {
		return c, secrets.Tally{}, err
	}
	t, err := u.redactor.Copy(&allButEnd{to: c}, io.LimitReader(f, limit), keep)
	if err == nil {
		err = c.close()
	}
	return c, t, err
}

// An allButEnd writes everything except for the last margin bytes.
type allButEnd struct {
	to   io.Writer
	held []byte
}

func (w *allButEnd) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	n := max(0, len(w.held)-margin)
	_, err := w.to.Write(w.held[:n])
	w.held = append(w.held[:0], w.held[n:]...)
	return len(p), err
}

// addTallies returns the sum of both tallies. A find in two parts counts in each.
func addTallies(a, b secrets.Tally) secrets.Tally {
	forms := slices.Concat(a.Encodings, b.Encodings)
	slices.Sort(forms)
	return secrets.Tally{Found: redaction.SumByRule(a.Found, b.Found), Encodings: slices.Compact(forms)}
}

// A tailBuffer keeps the last bytes written to it.
type tailBuffer struct{ buf []byte }

func (r *tailBuffer) write(p []byte) {
	if len(p) >= kept {
		r.buf = append(r.buf[:0], p[len(p)-kept:]...)
		return
	}
	if r.buf = append(r.buf, p...); len(r.buf) > 4*kept {
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-kept:]...)
	}
}

func (r *tailBuffer) bytes() []byte { return slices.Clone(r.buf[max(0, len(r.buf)-kept):]) }
