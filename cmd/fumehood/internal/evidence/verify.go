// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Check names what vouches for an audit log. Of the zero Check nothing does: a log can then be
// sealed, and is never whole.
type Check struct {
	// Trust has a key and a checkpoint that are known from elsewhere. With Cosigned, its Key is
	// the cosigner's.
	Trust audit.Trust
	// Cosigned is the path of the log's seal, cosigned with Trust.Key, or "".
	Cosigned string
	// AnyKey accepts the key in the log's own header, which vouches for nothing: it is for a log
	// that was never in other hands, or for whose file something else vouches.
	AnyKey bool
}

// A Verdict is what was found in a log.
type Verdict struct {
	audit.Finding
	// Whole means that the log is complete, unaltered, and the run's.
	Whole bool
}

// IsReplaceable reports whether the log is sealed, but by a key that nothing vouches for: it may have
// been replaced and signed anew.
func (v Verdict) IsReplaceable() bool { return v.Sealed() && !v.Whole }

// VerifyLog verifies the log at path. What is wrong with the log is in the Verdict; the error is a
// *proposal.StopError and means that it was not looked at: audit.not-readable, those of
// audit.Trust.Check and audit.ReadCosigned, or verify.trust for a Check that contradicts itself.
func (c Check) VerifyLog(path string) (Verdict, error) {
	trust, err := c.readTrust()
	if err != nil {
		return Verdict{}, err
	}
	log, err := audit.OpenFile(path)
	if err != nil {
		return Verdict{}, err
	}
	defer log.Close()
	found := audit.Inspect(log, trust)
	return Verdict{found, found.Complete() || c.AnyKey && found.Sealed()}, nil
}

// readTrust returns what the log must agree with, with the cosigned seal.
func (c Check) readTrust() (audit.Trust, error) {
	trust := c.Trust
	if c.Cosigned != "" && c.AnyKey {
		return trust, &proposal.StopError{Code: "verify.trust",
			Message: "more than one thing is said to vouch for the log",
			Hint:    "name only one of them"}
	}
	if err := trust.Check(); err != nil {
		return trust, err
	}
	if c.Cosigned == "" {
		return trust, nil
	}
	var err error
	trust.Cosigned, err = audit.ReadCosigned(c.Cosigned)
	return trust, err
}
