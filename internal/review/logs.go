// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Files say where Keep writes. An empty field is not written.
type Files struct {
	Logs     string // directory for the audit logs
	Document string
	Owner    *process.Owner // of both; nil for this user
}

// KeepFiles copies the logs of the runs as keepLogs does, and writes d as JSON with each text passed
// through redact.
func (d *Document) KeepFiles(f Files, redact func(string) string) error {
	if f.Logs != "" {
		if err := d.keepLogs(f.Logs); err != nil {
			return err
		}
	}
	if f.Document == "" {
		return f.Owner.TakePaths(f.Logs)
	}
	data, err := d.WithRedactedTexts(redact).EncodeJSON()
	if err == nil {
		err = os.WriteFile(f.Document, data, 0o600)
	}
	return errors.Join(err, f.Owner.TakePaths(f.Logs, f.Document))
}

// keepLogs copies the audit log of each run to dir, which it makes, and names the copies in d
// relative to dir: 1.jsonl and so on, in the order of Runs. Those of a model are model/audit.jsonl,
// which may be there, and session.jsonl.
func (d *Document) keepLogs(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	for i := range d.Runs {
		err = cmp.Or(err, d.Runs[i].keepLog(dir, fmt.Sprintf("%d.jsonl", i+1)))
	}
	if m := d.Model; m != nil {
		err = cmp.Or(err, os.MkdirAll(ModelDir(dir), 0o700), m.Log.keepLog(dir, filepath.Join(modelDir, logName)))
		if m.Session != nil {
			err = cmp.Or(err, m.Session.keepLog(dir, "session.jsonl"))
		}
	}
	if err != nil {
		return &proposal.StopError{Code: "review.logs", Message: "cannot keep the audit logs of the review",
			Hint: "name a new directory on a file system with free space", Err: err}
	}
	return nil
}

// modelDir is the directory with the log of a model's requests, among the logs.
const modelDir = "model"

// ModelDir returns Reviewer.Dir for a review whose logs Keep leaves in dir.
func ModelDir(dir string) string { return filepath.Join(dir, modelDir) }

// keepLog copies the log of r to name in dir, unless it is there, and names it so.
func (r *Run) keepLog(dir, name string) error {
	to, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil && r.Log != to {
		err = copyNew(to, r.Log)
	}
	r.Log = name
	return err
}

// copyNew copies a file to a new one.
func copyNew(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
