// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Source describes the repository that commits are fetched from.
type Source struct {
	// URL is the clone URL of the base repository: https, without user information.
	// Plain http is accepted only for a loopback address and for Server.
	URL string
	// Token is sent only to the repository at URL. It may be empty.
	Token string
	// Dir is a scratch directory that no other user can write to. It is created if
	// missing.
	Dir string
	// Server is the runner's GITHUB_SERVER_URL, if any. If it is plain http, URL
	// may be plain http at the same host and port.
	Server string
	// Proxy is the URL of an http(s) proxy for https. NoProxy has curl's format.
	Proxy, NoProxy string
	// CA is a PEM file with the only certificates trusted to sign for the server;
	// "" means the system's.
	CA string
}

// Limits bound one commit. A zero field means its default.
type Limits struct {
	Files int           // files, directories and links of a commit: 100,000
	Bytes int64         // all files of a commit together: 2 GiB
	File  int64         // one file: 256 MiB
	Path  int           // bytes of a path: 1,024
	Name  int           // bytes of one name in it: 255
	Pack  int64         // bytes fetched: 1 GiB
	Wall  time.Duration // one Fetch, with its retries, or one Write: 5 minutes
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Files, 100_000)
	setDefault(&l.Bytes, 2<<30)
	setDefault(&l.File, 256<<20)
	setDefault(&l.Path, 1024)
	setDefault(&l.Name, 255)
	setDefault(&l.Pack, 1<<30)
	setDefault(&l.Wall, 5*time.Minute)
	return l
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// A Store holds the objects of the fetched commits. It is safe for concurrent use.
type Store struct {
	limits Limits
	git    git
	remote remote

	dir  string // the store's directory in Source.Dir
	bare string // the repository in it

	hidden HiddenPaths // of the repository that is written; nil for none

	fetching sync.Mutex
	fetched  map[string]bool // commits that were fetched completely
	wait     time.Duration   // before an unreachable server is retried
	replaced []string        // pointers that Extras replaced by their files
	making   sync.Mutex
	digits   int // of an id; 0 until the first Fetch, which makes the repository
}

// Open checks the source and the installed git, and makes an empty store in
// Source.Dir. It sends nothing.
func Open(source Source, limits Limits) (*Store, error) {
	remote, err := newRemote(source)
	if err != nil {
		return nil, err
	}
	git, err := findGit(context.Background())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(source.Dir, 0o700); err != nil {
		return nil, newStopError(CodeSource, "", err, "cannot make the scratch directory")
	}
	dir, err := os.MkdirTemp(source.Dir, "checkout-")
	if err != nil {
		return nil, newStopError(CodeSource, "", err, "cannot make the store")
	}
	return &Store{limits: limits.withDefaults(), git: git, remote: remote, dir: dir,
		bare:    filepath.Join(dir, "objects.git"),
		fetched: map[string]bool{}, wait: attemptWait}, nil
}

// Close removes the store. Directories that were written remain.
func (s *Store) Close() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return newStopError(CodeWrite, "", err, "cannot remove the store")
	}
	return nil
}
