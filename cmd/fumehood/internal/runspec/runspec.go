// SPDX-License-Identifier: Apache-2.0

// Package runspec is the document with which package job starts fumehood run or review as root.
//
// It is the first line of the child's standard input, a pipe that no other process reads: values to
// redact and passwords of proxies are in it, and sudo logs arguments. Nothing chooses where it is
// read from. The rest of standard input belongs to the child, which stops when it ends. Parent and
// child are the same program, so the document has no version: the child refuses a field that it does
// not know.
package runspec

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Spec says what run or review does.
type Spec struct {
	// These are flags, too, and have their meaning.
	Plan, Workspace, Config, Setup, Rootfs, Tools, Artifacts, AuditFile, Report, Cache, CompareBase string
	Layers, Results                                                                                 string // modes
	Observe                                                                                         bool
	Timeout                                                                                         time.Duration

	// LayersExchange and ResultsExchange are directories that others may write to, from which layers
	// and kept results are taken and where they are left; "" for this host's own.
	LayersExchange, ResultsExchange string
	// Owner, UID:GID, receives the run's files; this user's tools are shown like root's.
	Owner string
	// Subject is the pull request, which is untrusted text; Ceiling are the limits of its commands.
	Subject gate.Subject
	Ceiling proposal.Limits
	// MergeBase is the commit on which commands that fail are run, too; "" for none. TreeLeft are
	// those of Subject.Left that are parts of the tree of the commit.
	MergeBase string
	TreeLeft  []string
	// Organization, Hosts and Restricting are directories with policy by role, as in settings.Sources;
	// Origins says where each came from.
	Organization, Hosts, Restricting []string
	Origins                          map[string]proposal.PolicyOrigin
	// Masks are redacted from everything.
	Masks   []redact.Mask
	Proxies process.Proxies
	// Registries replaces asking the host's tools, whose configuration is not root's; nil asks them.
	Registries []registry.Registry
	// Review is for review only.
	Review Review
}

// A Review is what only review needs: commits, and either a file of findings or a model.
type Review struct {
	Base, Head, Findings string
	Model                *Model
}

// A Model is asked through the child's standard output and input, by the process that has its key.
type Model struct {
	Provider, Name string
	Rounds         int
	Limit          review.LimitText
}

// maxSpec bounds a document, in bytes.
const maxSpec = 16 << 20

// EncodeLine returns the document of s.
func (s Spec) EncodeLine() ([]byte, error) {
	data, err := json.Marshal(s)
	return append(data, '\n'), err
}

// ReadLine reads one document from in into s, whose other fields stay. Its error is a
// *proposal.StopError and quotes no value; after it, s must not be used.
func (s *Spec) ReadLine(in *bufio.Reader) error {
	line, err := readLine(in)
	if err == nil {
		err = strictjson.Decode(line, s)
	}
	if err != nil {
		return &proposal.StopError{Code: "about.invalid",
			Message: "cannot read what the job says about this run from standard input",
			Hint:    "omit --job on the command line: only fumehood action starts fumehood with it", Err: err}
	}
	return nil
}

func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxSpec:
			return nil, fmt.Errorf("it is larger than %d bytes", maxSpec)
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
