// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// A Run is a workflow run.
type Run struct {
	ID              int64
	Number, Attempt int
	Event           string
	HeadSHA         string
	HeadBranch      string
	HeadRepository  string // owner/name
	Status          string // default "completed"
	Conclusion      string // default "success" for a completed run
	Path, Name      string
	Actor           string
	PullRequests    []int // empty for a fork, as on GitHub
	Created         time.Time
	Started         time.Time // of the attempt; default Created
}

// An Artifact is an artifact that a workflow run uploaded.
type Artifact struct {
	ID      int64
	Run     int64
	Name    string
	Data    []byte // the zip file
	Digest  string // "sha256:…"; empty: none, as for old artifacts
	Expired bool
	Created time.Time
	Size    int64 // that the API returns; 0: the length of Data
}

// AddRun adds a workflow run; a zero ID gets the next free one. A run with the same ID is
// replaced, as by a further attempt. It returns the run as added.
func (s *Server) AddRun(r Run) Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ID == 0 {
		r.ID = s.nextID()
	}
	r.Number, r.Attempt = cmp.Or(r.Number, len(s.home.runs)+1), cmp.Or(r.Attempt, 1)
	r.Event = cmp.Or(r.Event, "pull_request")
	r.HeadRepository = cmp.Or(r.HeadRepository, s.home.Name)
	r.HeadBranch = cmp.Or(r.HeadBranch, "changes")
	r.HeadSHA = cmp.Or(r.HeadSHA, CommitID("head 1"))
	r.Status = cmp.Or(r.Status, "completed")
	if r.Status == "completed" {
		r.Conclusion = cmp.Or(r.Conclusion, "success")
	}
	r.Path, r.Name = cmp.Or(r.Path, ".github/workflows/fumehood.yml"), cmp.Or(r.Name, "fumehood")
	r.Actor = cmp.Or(r.Actor, "octocat")
	if r.Created.IsZero() {
		r.Created = s.now()
	}
	s.findOrAddRepository(r.HeadRepository)
	copied := r
	copied.PullRequests = slices.Clone(r.PullRequests)
	s.home.runs = slices.DeleteFunc(s.home.runs, func(other *Run) bool { return other.ID == r.ID })
	s.home.runs = append(s.home.runs, &copied)
	return r
}

// AddArtifact adds an artifact and returns its id.
func (s *Server) AddArtifact(a Artifact) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.ID == 0 {
		a.ID = s.nextID()
	}
	if a.Created.IsZero() {
		a.Created = s.now()
	}
	s.home.artifacts = append(s.home.artifacts, &a)
	return a.ID
}

// FindArtifacts makes the server call f for the artifacts of a run at each request,
// in addition to those that were added. An artifact without an ID gets one that
// stays the same for its run and name. See [ArtifactFolder].
func (s *Server) FindArtifacts(f func(run int64) []Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find = f
}

// ArtifactFolder finds the artifacts that the runner's own artifact server stored
// in a directory, as DIR/RUN/NAME/NAME.zip. A file that cannot be read is ignored.
func ArtifactFolder(dir string) func(run int64) []Artifact {
	return func(run int64) []Artifact {
		files, _ := filepath.Glob(filepath.Join(dir, strconv.FormatInt(run, 10), "*", "*.zip"))
		var list []Artifact
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			list = append(list, Artifact{Run: run, Name: filepath.Base(filepath.Dir(file)), Data: data})
		}
		return list
	}
}

// artifactsOf lists the artifacts of run, added and found.
func (s *Server) artifactsOf(run int64) []*Artifact {
	var list []*Artifact
	for _, a := range s.home.artifacts {
		if a.Run == run {
			list = append(list, a)
		}
	}
	if s.find == nil {
		return list
	}
	for _, a := range s.find(run) {
		key := fmt.Sprint(run, " ", a.Name)
		if a.ID == 0 && s.found[key] == 0 {
			s.found[key] = s.nextID()
		}
		a.ID, a.Run = cmp.Or(a.ID, s.found[key]), run
		if a.Created.IsZero() {
			a.Created = s.now()
		}
		list = append(list, &a)
	}
	return list
}

// sortedArtifacts lists all artifacts, newest first as on GitHub.
func (s *Server) sortedArtifacts() []*Artifact {
	var list []*Artifact
	seen := map[int64]bool{}
	for _, a := range s.home.artifacts {
		list, seen[a.ID] = append(list, a), true
	}
	for _, r := range s.home.runs {
		for _, a := range s.artifactsOf(r.ID) {
			if !seen[a.ID] {
				list, seen[a.ID] = append(list, a), true
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *Artifact) int { return cmp.Compare(b.ID, a.ID) })
	return list
}
