// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/results"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Results keeps the results of commands from run to run: package gate's, or a test's.
type Results interface {
	// Find returns the key of everything that the result of r may depend on in a sandbox of o, and the kept
	// result of that key, which has passed VerifyCached; nil if there is none. With the key ""
	// the result must not be kept.
	Find(ctx context.Context, r proposal.Record, o sandbox.Options) (key string, kept *proposal.Result)
	// Keep is called after the result of r, with the key of Find, is in the log as the entry of
	// that number. It keeps the result when the log is sealed.
	Keep(r proposal.Record, entry int64)
}

// recallResult takes the result of the allowed proposal i from an earlier run, if there is one. If
// not, it returns the key to keep the result under, or "".
func (s *Session) recallResult(ctx context.Context, i int) (key string, found bool, err error) {
	r := &s.records[i]
	if s.stages.Results == nil || len(s.report.Records[i].Redacted) > 0 || results.CheckRequested(*r) != nil ||
		!s.isPristine(i) {
		return "", false, nil
	}
	key, kept := s.stages.Results.Find(ctx, *r, s.options)
	if kept == nil || key == "" {
		return key, false, nil
	}
	r.Result = kept
	if _, err := s.stages.Log.Append("cached", journal.NewCached(*r)); err != nil {
		r.Result = notRun("the audit log could not be written")
		return "", true, err
	}
	return "", true, nil
}

// isPristine reports whether the allowed proposal i begins in the workspace as it was, with
// nothing beside it that a command before it can have left.
func (s *Session) isPristine(i int) bool {
	if s.run.Session {
		return s.changing <= 1 && !s.isBusy()
	}
	fresh := s.records[i].Decision.Grant.Fresh
	for _, r := range s.records[:i] {
		switch {
		case r.Proposal.Origin == proposal.OriginService:
			return false
		case fresh || r.Result == nil || r.Result.Status == proposal.NotRun || r.Result.Cached != nil:
		case !isInert(r):
			return false
		}
	}
	return true
}

// isInert reports whether r is a command of which policy says that it only computes, and which
// left nothing. How it ended does not matter.
func isInert(r proposal.Record) bool {
	result := *r.Result
	result.ExitCode = 0
	return results.CheckRequested(r) == nil && results.CanKeep(result)
}

// offerResult offers the result of r, which is an entry of the log.
func (s *Session) offerResult(r proposal.Record, entry int64) {
	if s.stages.Results != nil && r.Result.CacheKey != "" && results.CanKeep(*r.Result) {
		s.stages.Results.Keep(r, entry)
	}
}

// ProofOf checks a proof of an entry of a sealed log that is signed with key, a verifier key.
func ProofOf(proof, key string) (results.ProvedEntry, error) {
	p, err := audit.CheckProof([]byte(proof), audit.Trust{Key: key})
	if err != nil {
		return results.ProvedEntry{}, err
	}
	if !p.Sealed {
		return results.ProvedEntry{}, fmt.Errorf("invalid proof: the log %q was not sealed", p.Origin)
	}
	return results.ProvedEntry{Origin: p.Origin, Kind: p.Entry.Kind, N: p.Entry.N, Body: p.Entry.Body}, nil
}

// VerifyCached returns an error unless the proof in r, a result with Cached, shows that the
// log of an earlier run has r. Whether that log's key is trusted is for the caller to know.
func VerifyCached(r proposal.Result) error {
	if r.Cached == nil {
		return fmt.Errorf("the result is not from a cache")
	}
	p, err := ProofOf(r.Cached.Proof, r.Cached.Key)
	if err != nil {
		return err
	}
	return results.Verify(r, p)
}
