// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// prepareArtifactPath returns the path of a file among the artifacts, and creates the directories that
// it needs. The sandbox's keeper has checked the name; os.Root confines it in any case.
func (u *Redactor) prepareArtifactPath(name string) (string, error) {
	if u.o.Artifacts == "" {
		return "", nil
	}
	root, err := os.OpenRoot(u.o.Artifacts)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", err
	}
	return filepath.Join(u.o.Artifacts, name), nil
}

// copyDeclaredFile copies one declared file; shown is its reported form, with names redacted.
func (u *Redactor) copyDeclaredFile(ctx context.Context, id string, o, shown proposal.Output) (proposal.Output, error) {
	if o.File == "" {
		return shown, nil
	}
	raw, err := u.CreateRawDir()
	if err != nil {
		return shown, err
	}
	source := filepath.Join(raw, o.File)
	defer os.Remove(source)
	withhold := func(found []proposal.Redaction, why string) proposal.Output {
		shown.Refused, shown.File, shown.SHA256, shown.Redacted = "withheld: "+why, "", "", found
		return shown
	}
	if shown.Path != o.Path || shown.File != o.File {
		_, found := redactValue(u, o)
		return withhold(found, "its name contains what looks like a secret"), nil
	}
	binary, err := isBinary(source)
	if err != nil {
		return shown, unreadableError(o.Path, err)
	}
	target, err := u.prepareArtifactPath(o.File)
	if err != nil {
		return shown, unreadableError(o.Path, err)
	}
	x := points.Outgoing{Command: id, Kind: points.OutgoingFile, Name: o.Path, Binary: binary}
	if binary {
		return u.copyBinary(ctx, x, source, target, shown, withhold)
	}
	c, tally, err := u.copyFile(source, target, o.Bytes, nil)
	if err == nil {
		x.Size = c.bytes
		var d points.OutputDecision
		d, err = u.askPolicy(ctx, x, tally)
		switch {
		case err != nil:
		case d.Effect != proposal.Allow:
			c.removeFile()
			return withhold(tally.Found, withholdingRule(d)), nil
		case allowsSomeFinds(tally, d):
			c.removeFile()
			c, tally, err = u.copyFile(source, target, o.Bytes, keepFindFunc(d))
		}
	}
	if err != nil {
		c.removeFile()
		return shown, unreadableError("output", err)
	}
	shown.Bytes, shown.SHA256, shown.Redacted = c.bytes, c.digest(), tally.Found
	return shown, nil
}

// copyBinary copies a file unchanged, or not at all: nothing in it can be replaced. On one file system the copy is the
// file itself.
func (u *Redactor) copyBinary(ctx context.Context, x points.Outgoing, source, target string, shown proposal.Output,
	withhold func([]proposal.Redaction, string) proposal.Output) (proposal.Output, error) {
	f, err := os.Open(source)
	if err != nil {
		return shown, unreadableError("output", err)
	}
	defer f.Close()
	tally, err := u.redactor.Copy(io.Discard, io.LimitReader(f, shown.Bytes), nil)
	if err != nil {
		return shown, unreadableError("output", err)
	}
	x.Size = shown.Bytes
	d, err := u.askPolicy(ctx, x, tally)
	if err != nil {
		return shown, err
	}
	found := redaction.SumByRule(nil, withoutForged(tally.Found))
	if _, masked := redaction.CountFinds(found); d.Effect != proposal.Allow || masked > 0 {
		return withhold(found, withholdingRule(d)), nil
	}
	if info, err := f.Stat(); err == nil && info.Size() == shown.Bytes && os.Link(source, target) == nil {
		return shown, nil // the caller removes the other name
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return shown, unreadableError("output", err)
	}
	c, err := u.newCopied(target)
	if err == nil {
		_, err = io.Copy(c, io.LimitReader(f, shown.Bytes))
	}
	if err == nil {
		err = c.close()
	}
	if err != nil {
		c.removeFile()
		return shown, unreadableError("output", err)
	}
	return shown, nil
}

func withoutForged(list []proposal.Redaction) []proposal.Redaction {
	var out []proposal.Redaction
	for _, f := range list {
		if f.Rule != secrets.ForgedMarker {
			out = append(out, f)
		}
	}
	return out
}

// sample is how many bytes of a file decide whether it is a text.
const sample = 8 << 10

// isBinary reports whether the file at path is not a text: it has a NUL, or bytes that are
// not UTF-8, near its beginning.
func isBinary(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	first := make([]byte, sample)
	n, err := io.ReadFull(f, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	first = first[:n]
	for n == sample && len(first) > sample-utf8.UTFMax && !utf8.Valid(first) {
		first = first[:len(first)-1] // a character cut by the end of the sample
	}
	return bytes.IndexByte(first, 0) >= 0 || !utf8.Valid(first), nil
}
