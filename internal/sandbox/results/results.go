// SPDX-License-Identifier: Apache-2.0

// Package results keeps the results of commands from run to run.
//
// A result is kept under a Key, which is a digest of everything that it may depend on: see
// Inputs. It is kept only if nothing about it is in doubt (Keepable), and it is used only with
// a proof that it is in the audit log of the run that it is from (Entry.Result). The log has
// the key, too, so an entry that was changed, truncated, or moved to another key is noticed.
// Then the caller runs the command.
//
// # What it does not protect against
//
// A proof says that a log has the result. Whether that log can be trusted depends on its key:
// anyone who can write to the store and has no key to match can put a log of their own there.
// So only root can write to a Cache, and no run of a pull request does. An Exchange has no such
// protection, and no run of a pull request may use one.
package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/store"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema is the value of an entry's "schema" field.
const Schema = "fumehood.result/v1"

// The limits of a store, in bytes.
const (
	MaxStore = 100 << 20
	MaxEntry = 1 << 20
)

// An Entry is what is kept of a result: how to prove it, and what the log has only digests of.
type Entry struct {
	Schema string `json:"schema"`
	Key    string `json:"key"`
	Run    string `json:"run"`
	LogKey string `json:"log_key"` // verifier key of the run's log
	Proof  string `json:"proof"`   // C2SP tlog-proof of the result's entry
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
}

// NewEntry returns the entry of r, whose Result must be Keepable.
func NewEntry(r proposal.Record, run, logKey string, proof []byte) Entry {
	return Entry{Schema: Schema, Key: r.Result.CacheKey, Run: run, LogKey: logKey, Proof: string(proof),
		Stdout: keptBytes(r.Result.Stdout), Stderr: keptBytes(r.Result.Stderr)}
}

func keptBytes(s proposal.Stream) []byte { return append(bytes.Clone(s.Head), s.Tail...) }

// Decode reads an entry of at most MaxEntry bytes.
func Decode(data []byte) (e Entry, err error) {
	if len(data) > MaxEntry {
		return e, errors.New("the entry is too large")
	}
	if err := strictjson.Decode(data, &e); err != nil {
		return Entry{}, fmt.Errorf("invalid entry: %w", err)
	}
	if e.Schema != Schema {
		return Entry{}, errors.New("invalid entry: not a kept result")
	}
	return e, nil
}

// ProvedEntry is what a valid proof shows: entry N of the sealed log Origin.
type ProvedEntry struct {
	Origin, Kind string
	N            int64
	Body         []byte
}

// Result returns the result that e keeps for key, where p is what e's Proof was found to show.
// An error means that e must not be used.
func (e Entry) Result(key string, p ProvedEntry) (proposal.Result, error) {
	r, err := loggedResult(key, p)
	if err == nil && e.Key != key {
		err = errors.New("the entry has another key")
	}
	if err == nil && p.Origin != originOf(e.Run) {
		err = errors.New("the proof is of another run's log")
	}
	if err = errors.Join(err, fillStream(&r.Stdout, e.Stdout), fillStream(&r.Stderr, e.Stderr)); err != nil {
		return proposal.Result{}, err
	}
	r.Cached = &proposal.Cached{Run: e.Run, Log: p.Origin, Key: e.LogKey, Entry: p.N, Proof: e.Proof}
	return r, nil
}

// originOf returns the origin of a run's log.
func originOf(run string) string { return "fumehood/" + run }

// fillStream sets the bytes of a stream of which the log has the digest.
func fillStream(s *proposal.Stream, data []byte) error {
	sum := sha256.Sum256(data)
	if int64(len(data)) != s.Bytes || hex.EncodeToString(sum[:]) != s.SHA256 {
		return errors.New("the output is not what the log has the digest of")
	}
	s.Head = bytes.Clone(data)
	if len(data) == 0 {
		s.Head = nil
	}
	return nil
}

// Verify returns an error unless r, a result with Cached, is the one that p shows, apart from
// the bytes of its streams.
func Verify(r proposal.Result, p ProvedEntry) error {
	if r.Cached == nil {
		return errors.New("the result is not from a cache")
	}
	want, err := loggedResult(r.CacheKey, p)
	if err != nil {
		return err
	}
	want.Cached = &proposal.Cached{Run: strings.TrimPrefix(p.Origin, originOf("")), Log: p.Origin, Key: r.Cached.Key,
		Entry: p.N, Proof: r.Cached.Proof}
	if !equalJSON(journal.NewResult(proposal.Record{Result: &r}), journal.NewResult(proposal.Record{Result: &want})) {
		return errors.New("the result differs from the one in the log of its run")
	}
	return nil
}

func equalJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	var u, v any
	return err1 == nil && err2 == nil && json.Unmarshal(x, &u) == nil && json.Unmarshal(y, &v) == nil &&
		reflect.DeepEqual(u, v)
}

// loggedResult returns the result in the entry of a log, as a run that it is kept for shows it:
// without what was observed, and without files, which are that run's.
func loggedResult(key string, p ProvedEntry) (proposal.Result, error) {
	var body journal.Result
	if p.Kind != "result" {
		return proposal.Result{}, errors.New("the proof is not of a result")
	}
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return proposal.Result{}, fmt.Errorf("invalid result in the proof: %w", err)
	}
	r := body.Result
	if r.CacheKey != key || !KeyGrammar.MatchString(key) {
		return proposal.Result{}, errors.New("the result in the log has another key")
	}
	if !CanKeep(r) {
		return proposal.Result{}, errors.New("the result is not one that is kept")
	}
	r.Observations, r.Usage, r.NewSandbox = nil, nil, false
	r.Stdout.File, r.Stdout.FileBytes, r.Stderr.File, r.Stderr.FileBytes = "", 0, "", 0
	return r, nil
}

// maxOutput is the maximum size of a stream that is kept, in bytes.
const maxOutput = 64 << 10

// CanKeep reports whether nothing about r prevents keeping it: the command succeeded, ended by
// itself, changed no file and reached no network, its observations are complete, nothing was
// refused or found, and its output is whole.
func CanKeep(r proposal.Result) bool {
	ended := r.Succeeded() && r.Signal+r.Limit+r.Detail+r.Killed == "" && r.Leftover == 0 && r.Retried == nil &&
		r.Cached == nil
	alone := len(r.Outputs)+len(r.Changes.Files)+r.Changes.Omitted+len(r.Displays)+r.DisplaysOmitted == 0 &&
		r.Exception == nil
	return ended && alone && isWholeStream(r.Stdout) && isWholeStream(r.Stderr) && isUneventful(r.Observations)
}

func isWholeStream(s proposal.Stream) bool {
	return !s.Truncated && s.Withheld == "" && len(s.Redacted) == 0 && s.Bytes >= 0 && s.Bytes <= maxOutput
}

// isUneventful reports whether o is complete and has nothing that depends on more than the
// sandbox, or that a person should see again.
func isUneventful(o *proposal.Observations) bool {
	if o == nil || !o.Complete || len(o.Findings) > 0 {
		return false
	}
	c := o.Counts
	return c.Refused+c.Watched+c.Connects+c.Attempts+c.Dropped+c.Lookups+c.Connections+c.Requests+c.Datagrams+
		c.NetRefused+c.NetWatched == 0
}

// A Cache is an open store of results.
type Cache struct{ store *store.Store }

// Open opens the store in dir: see package store.
func Open(dir string) (*Cache, error) {
	s, err := store.Open(dir, MaxStore)
	if err != nil {
		return nil, err
	}
	return &Cache{s}, nil
}

// Close closes the store.
func (c *Cache) Close() error { return c.store.Close() }

// Get returns the entry of key. It is not verified.
func (c *Cache) Get(key string) (Entry, error) {
	f, err := c.store.Get(key)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	return readEntry(f)
}

func readEntry(r io.Reader) (Entry, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxEntry+1))
	if err != nil {
		return Entry{}, err
	}
	return Decode(data)
}

// encodeEntry returns the bytes that Decode reads, and an error if e has no valid key.
func (e Entry) encodeEntry() ([]byte, error) {
	data, err := json.Marshal(e)
	switch {
	case err == nil && len(data) > MaxEntry:
		err = errors.New("the entry is too large")
	case err == nil && !KeyGrammar.MatchString(e.Key):
		err = fmt.Errorf("invalid key %q", e.Key)
	}
	return data, err
}

// Put keeps e.
func (c *Cache) Put(e Entry) error {
	data, err := e.encodeEntry()
	if err != nil {
		return err
	}
	return c.store.Put(e.Key, func(w io.Writer) error { _, err := w.Write(data); return err })
}
