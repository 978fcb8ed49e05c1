// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/gate"
)

// maxSnapshots is how many snapshots a key has at a time. Each is as large as what its sandbox had in memory and has
// written.
const maxSnapshots = 8

// A snapshot is a sandbox at rest, with what its client had attached to it. New sandboxes of the same key can begin
// with copies of it until it is deleted or the server ends.
type snapshot struct {
	files        *gate.Snapshot
	name         string // of the client, or "": the newest with a name has it
	user, tenant string
	sandbox      string // id of the one that was saved
	about        newSandbox
	contexts     contexts
	metadata     map[string]map[string]string
}

// copyContexts returns c for another sandbox, in which no code runs.
func (c contexts) copyContexts() contexts {
	c.list, c.running = slices.Clone(c.list), 0
	for i := range c.list {
		c.list[i].imported = maps.Clone(c.list[i].imported)
	}
	return c
}

// saveSandbox saves b, which goes on.
func (b *sandbox) saveSandbox(ctx context.Context) (*snapshot, error) {
	b.pausing.Lock()
	defer b.pausing.Unlock()
	session, can := b.session.(gate.Snapshotter)
	if !can {
		return nil, refuseRequest(unimplemented,
			"snapshots need sandboxes on the server's own host: serve without --backend kubernetes")
	}
	if b.isPaused() {
		return nil, refuseRequest(alreadyExists, "the sandbox is paused: connect to it")
	}
	ctx, cancel := context.WithTimeout(ctx, pauseGrace)
	defer cancel()
	if err := b.waitForSetUp(ctx); err != nil {
		return nil, err
	}
	n := &snapshot{user: b.user, tenant: b.tenant, sandbox: b.id, about: b.about}
	b.mu.Lock()
	n.contexts = b.contexts.copyContexts()
	b.mu.Unlock()
	b.metadata.mu.Lock()
	n.metadata = maps.Clone(b.metadata.list)
	b.metadata.mu.Unlock()
	var err error
	n.files, err = session.Snapshot(ctx)
	return n, b.endOnError(err)
}

type snapshotRequest struct {
	Name string `json:"name"`
}

func (n *snapshot) clientInfo() map[string]any {
	names := []string{}
	if n.name != "" {
		names = append(names, n.name)
	}
	return map[string]any{"snapshotID": n.files.ID(), "names": names}
}

// apiSnapshot makes a snapshot that is kept.
func (s *Server) apiSnapshot(ctx context.Context, b *sandbox, in snapshotRequest) (any, error) {
	if in.Name != "" && (!snapshotName.MatchString(in.Name) || slices.Contains(templates, in.Name)) {
		return nil, refuseRequest(invalidArgument,
			"name: up to 64 letters, digits, '.', '_' and '-', and not the name of a template")
	}
	if err := s.checkRoomForSnapshot(b.user); err != nil { // before anything is written
		return nil, err
	}
	n, err := b.saveSandbox(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.roomForSnapshotLocked(b.user); err != nil {
		_ = n.files.Close()
		return nil, err
	}
	for _, other := range s.snapshots {
		if other.name == in.Name && other.isOwnedBy(localhttp.User{Name: n.user, Tenant: n.tenant}) {
			other.name = ""
		}
	}
	n.name = in.Name
	s.snapshots[n.files.ID()] = n
	return n.clientInfo(), nil
}

func (s *Server) checkRoomForSnapshot(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomForSnapshotLocked(user)
}

func (s *Server) roomForSnapshotLocked(user string) error {
	own := 0
	for _, n := range s.snapshots {
		if n.user == user {
			own++
		}
	}
	switch {
	case s.ended:
		return refuseRequest(busy, "the server is ending")
	case own >= maxSnapshots:
		return refuseRequest(resourceExhausted, "the key has its maximum of %d snapshots: delete one", maxSnapshots)
	}
	return nil
}

var snapshotName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (n *snapshot) isOwnedBy(user localhttp.User) bool {
	return n.user == user.Name && n.tenant == user.Tenant
}

// isCalled reports whether name is n's id or name.
func (n *snapshot) isCalled(name string) bool {
	return name != "" && (name == n.files.ID() || name == n.name)
}

// findSnapshot returns a snapshot of user by its id or name, or nil. Those of others are not there.
func (s *Server) findSnapshot(name string, user localhttp.User) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.snapshots {
		if n.isCalled(name) && n.isOwnedBy(user) {
			return n
		}
	}
	return nil
}

func (s *Server) apiListSnapshots(_ http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
	from, name := r.URL.Query().Get("sandboxID"), r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.snapshots)) {
		n := s.snapshots[id]
		if n.isOwnedBy(user) && (from == "" || from == n.sandbox) && (name == "" || n.isCalled(name)) {
			list = append(list, n.clientInfo())
		}
	}
	return list, nil
}

// apiDeleteTemplate deletes a snapshot, which is what a client can have of templates.
func (s *Server) apiDeleteTemplate(_ http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
	id := r.PathValue("id")
	n := s.findSnapshot(id, user)
	if n == nil {
		return nil, refuseRequest(notFound, "there is no snapshot %q", id)
	}
	s.mu.Lock()
	delete(s.snapshots, n.files.ID())
	s.mu.Unlock()
	return nil, n.files.Close()
}

// closeSnapshots deletes all snapshots, when no sandbox can be made any more.
func (s *Server) closeSnapshots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.snapshots {
		if err := n.files.Close(); err != nil {
			s.o.Notice("snapshot " + id + " is left: " + err.Error())
		}
		delete(s.snapshots, id)
	}
}

type forkRequest struct {
	Count   *int   `json:"count"`
	Timeout *int64 `json:"timeout"` // seconds
}

// maxForks is how many copies one request makes.
const maxForks = 16

// apiFork makes copies of a sandbox, each of which succeeds or fails by itself. Without room for one, nothing is saved.
func (s *Server) apiFork(ctx context.Context, b *sandbox, in forkRequest) (any, error) {
	count := 1
	if in.Count != nil {
		count = *in.Count
	}
	if count < 1 || count > maxForks {
		return nil, refuseRequest(invalidArgument, "count: must be from 1 to %d", maxForks)
	}
	timeout, err := s.readTimeout(in.Timeout)
	if err != nil {
		return nil, err
	}
	if err := s.checkRoomForSandbox(b.user); err != nil { // before anything is written
		return nil, err
	}
	n, err := b.saveSandbox(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = n.files.Close() }() // the next run removes what is left
	answers := make([]map[string]any, count)
	var forks sync.WaitGroup
	for i := range answers {
		forks.Go(func() {
			made, err := s.createSandbox(ctx, localhttp.User{Name: b.user, Tenant: b.tenant}, b.about, timeout, n)
			if err != nil {
				r := refusalOf(err)
				answers[i] = map[string]any{"error": map[string]any{"code": statuses[r.code], "message": r.message}}
				return
			}
			answers[i] = map[string]any{"sandbox": made.ownerInfo()}
		})
	}
	forks.Wait()
	return answers, nil
}

// readTimeout returns when a new sandbox ends for which its client says n.
func (s *Server) readTimeout(n *int64) (time.Duration, error) {
	timeout, err := parseSeconds(n, min(s.o.Timeout, s.o.MaxTimeout))
	if err == nil && timeout > s.o.MaxTimeout {
		err = refuseRequest(invalidArgument, "timeout: more than %v", s.o.MaxTimeout)
	}
	return timeout, err
}

// beginFrom gives b what n has, before its session begins.
func (b *sandbox) beginFrom(n *snapshot) {
	if n == nil {
		return
	}
	b.contexts, b.metadata.list = n.contexts.copyContexts(), maps.Clone(n.metadata)
	if b.about.EnvVars == nil {
		b.about.EnvVars = n.about.EnvVars
	}
}

// sessionFrom returns what b's session begins with.
func (n *snapshot) sessionFrom() *gate.Snapshot {
	if n == nil {
		return nil
	}
	return n.files
}
