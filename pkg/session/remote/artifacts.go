// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// maxAnnounced is the maximum number of files that a client can fetch.
const maxAnnounced = 100_000

// artifacts are the files that answers have named. Clients fetch them by names that mean nothing
// to a file system.
type artifacts struct {
	mu    sync.Mutex
	paths map[string]string
}

// announce returns the name for path; "" for none.
func (a *artifacts) announce(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if path == "" || len(a.paths) >= maxAnnounced {
		return ""
	}
	if a.paths == nil {
		a.paths = map[string]string{}
	}
	name := fmt.Sprintf("f%d", len(a.paths))
	a.paths[name] = path
	return name
}

// announced returns r with names in place of the paths of this machine. Only streams that r
// does not have have one.
func (a *artifacts) announced(r proposal.Record) proposal.Record {
	return located(r, func(o proposal.Stream) string { return a.announce(o.File) })
}

// located returns r with the files of its truncated streams as file says, and without others.
func located(r proposal.Record, file func(proposal.Stream) string) proposal.Record {
	if r.Result == nil {
		return r
	}
	result := *r.Result
	for _, o := range []*proposal.Stream{&result.Stdout, &result.Stderr} {
		if !o.Truncated || o.File == "" {
			o.File = ""
			continue
		}
		o.File = file(*o)
	}
	result.Outputs = unlocated(result.Outputs)
	if result.Retried != nil {
		first := *result.Retried
		first.Stdout.File, first.Stderr.File, first.Outputs = "", "", unlocated(first.Outputs)
		result.Retried = &first
	}
	r.Result = &result
	return r
}

// unlocated returns the files without their copies' paths.
func unlocated(list []proposal.Output) []proposal.Output {
	out := make([]proposal.Output, len(list))
	for i, o := range list {
		out[i] = o
		out[i].File = ""
	}
	return out
}

func (s *server) artifact(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	s.files.mu.Lock()
	path := s.files.paths[r.URL.Query().Get("name")]
	s.files.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return wire.Refusal("there is no such file", "")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_ = part{Size: info.Size()}.send(w, f)
	return nil
}

// take answers with the Output and the data of a file.
func (s *server) take(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	data, out, err := session.Take(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	out.File = ""
	_ = part{Output: &out, Size: int64(len(data))}.send(w, bytes.NewReader(data))
	return nil
}
