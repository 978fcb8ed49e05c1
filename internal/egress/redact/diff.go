// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on the texts of a Diff. A file that exceeds them is named without its content.
const (
	maxCompared = 1 << 20 // bytes of a file, before or after
	maxPatch    = 8 << 20 // bytes of all texts together
)

// Diff redacts the files of d, as policy decides about each, and compares what is left of
// them, so that a secret that a hunk shows only in part does not leave either. Patch is a new
// file ID.diff among the artifacts; the copies of the compared files are removed. With an
// error, the Diff is empty. Texts that exceed bounds are left out, with a note.
func (u *Redactor) Diff(ctx context.Context, id string, d proposal.Diff, bounds DiffBounds) (proposal.Diff, error) {
	ctx = context.WithoutCancel(ctx)
	defer os.RemoveAll(filepath.Join(u.o.Artifacts, id+".outputs"))
	target, err := u.prepareArtifactPath(id + ".diff")
	if err != nil {
		return proposal.Diff{}, unreadableError("diff", err)
	}
	c, err := u.newCopied(target)
	out := proposal.Diff{Files: []proposal.FileDiff{}, Omitted: d.Omitted}
	for _, f := range d.Files {
		if err == nil {
			err = u.addDiff(ctx, id, f, bounds, &out, c)
		}
	}
	if err == nil {
		err = c.close()
	}
	if err != nil {
		c.removeFile()
		return proposal.Diff{}, unreadableError("diff", err)
	}
	out.Patch.Bytes, out.Patch.SHA256, out.Patch.File = c.bytes, c.digest(), id+".diff"
	return out, nil
}

// addDiff adds f to out and to the patch, unless both sides are the same.
func (u *Redactor) addDiff(
	ctx context.Context, id string, f proposal.FileDiff, bounds DiffBounds, out *proposal.Diff, c *copyResult,
) error {
	shown, found := redactValue(u, f)
	before, why, err := u.redactSide(ctx, id, f.Old, shown.Old)
	if err != nil {
		return err
	}
	after, whyNot, err := u.redactSide(ctx, id, f.New, shown.New)
	if err != nil {
		return err
	}
	f = proposal.FileDiff{Path: shown.Path, Kind: f.Kind}
	for _, s := range []*patchSide{before, after} {
		if s != nil {
			found = redaction.SumByRule(found, s.Redacted)
		}
	}
	if len(found) == 0 && isSameSide(before, after) {
		return nil
	}
	hidden := cmp.Or(why, whyNot)
	if why != "" && whyNot != "" && why != whyNot {
		hidden += ", " + whyNot
	}
	f.Old, f.New, f.Note = before.fileState(), after.fileState(), describeOmissions(before, after, hidden, found)
	if f.Text = patchOf(f.Path, before, after); hidden != "" && f.Text != "" {
		f.Text += "# " + f.Note + "\n"
	}
	if why := tooLong(f.Text, c.bytes, bounds); why != "" {
		f.Text, f.Note = "", "left out: "+why
	}
	out.Files, out.Patch.Redacted = append(out.Files, f), redaction.SumByRule(out.Patch.Redacted, found)
	_, err = c.Write([]byte(f.Text))
	return err
}

// tooLong says why a difference must be left out after so many bytes of others, or "".
func tooLong(difference string, before int64, bounds DiffBounds) string {
	all := cmp.Or(bounds.All, maxPatch)
	switch {
	case bounds.File > 0 && len(difference) > bounds.File:
		return "the difference is larger than " + proposal.Bytes(bounds.File).String()
	case before+int64(len(difference)) > int64(all):
		return "the differences are larger than " + proposal.Bytes(all).String() + " together"
	}
	return ""
}

// redactSide redacts one side of a path. hidden is why its content is not shown.
func (u *Redactor) redactSide(
	ctx context.Context, id string, given, shown *proposal.FileState,
) (s *patchSide, hidden string, err error) {
	if given == nil {
		return nil, "", nil
	}
	state := *shown
	if state.Output, err = u.copyDeclaredFile(ctx, id, given.Output, shown.Output); err != nil {
		return nil, "", err
	}
	content, hidden, err := u.readContent(state)
	state.File = ""
	return &patchSide{FileState: &state, Content: content, Hidden: hidden != ""}, hidden, err
}

// readContent returns what is compared, or why nothing is.
func (u *Redactor) readContent(s proposal.FileState) (data []byte, hidden string, err error) {
	switch {
	case s.Type == "symlink":
		return []byte(s.Target), "", nil
	case s.Refused != "":
		return nil, s.Refused, nil
	case s.Type != "file":
		return nil, "neither a file nor a symlink", nil
	case s.Bytes > maxCompared:
		return nil, "larger than " + proposal.Bytes(maxCompared).String(), nil
	}
	data, err = os.ReadFile(filepath.Join(u.o.Artifacts, s.File))
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return nil, "binary", err
	}
	return data, "", err
}

// isSameSide reports whether both sides are known to be the same.
func isSameSide(a, b *patchSide) bool {
	return a != nil && b != nil && a.Type == b.Type && a.Mode == b.Mode && a.Target == b.Target &&
		a.SHA256 == b.SHA256 && a.Refused+b.Refused == ""
}

// describeOmissions describes what the text of a difference lacks.
func describeOmissions(before, after *patchSide, hidden string, found []proposal.Redaction) string {
	var list []string
	if hidden != "" {
		list = append(list, terminal.EscapeLine(hidden))
		for _, s := range []struct {
			name string
			side *patchSide
		}{{"before", before}, {"after", after}} {
			if s.side != nil && s.side.SHA256 != "" {
				list = append(list, fmt.Sprintf("%s %d bytes, sha256 %s", s.name, s.side.Bytes, s.side.SHA256))
			}
		}
	}
	if before != nil && after != nil && before.Mode != after.Mode && before.Type == after.Type {
		list = append(list, fmt.Sprintf("mode %04o, before %04o", after.Mode, before.Mode))
	}
	if len(found) > 0 {
		list = append(list, "secrets are redacted")
	}
	return strings.Join(list, "; ")
}

// DiffBounds limit the Texts of a Diff, in bytes. Zero means no limit besides the Redactor's.
type DiffBounds struct {
	File int // of each Text
	All  int // of all together
}
