// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A State is how a log ends. The zero State vouches for nothing.
type State int

// The states.
const (
	Broken   State = iota // it departs from the format: see the VerifyError
	Torn                  // unsigned bytes follow the last checkpoint: a torn write, or the log was cut there
	Unsealed              // it ends after a checkpoint: its writer was killed, still writes, or the log was cut there
	Sealed                // complete
)

var stateNames = [...]string{"broken", "torn", "unsealed", "sealed"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return stateNames[Broken]
	}
	return stateNames[s]
}

// MarshalText encodes the state as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Trust is what the verifier knows from elsewhere, not from the log.
type Trust struct {
	// Key is the verifier key. "" is for the key in the log's header. Without Checkpoint,
	// a completely new log is then not detected, and Summary.KeyTrusted is false.
	Key string
	// Checkpoint is a signed note of the log, for example from the report, or
	// "". A log that does not contain it was truncated or forked. The newline that
	// ends it, which a shell's $(…) removes, may be missing.
	Checkpoint string
	// Cosigned is the seal of the log, cosigned with Key (Signer.Cosign), or "". Key is then
	// not the key of the log, and Checkpoint is not used.
	Cosigned string
}

// Check reports, as a *proposal.StopError with the code audit.key or audit.checkpoint, that what
// is given is not a key or not a checkpoint. A shell gives a file's name or "null" by mistake.
func (t Trust) Check() error {
	if t.Key != "" {
		if _, err := parseKey(t.Key); err != nil {
			return &proposal.StopError{Code: "audit.key", Message: fmt.Sprintf("invalid verifier key %.60q", t.Key),
				Hint: `give the key itself, as the report has it (.audit.key) or as in --key "$(cat audit.pub)"`}
		}
	}
	if t.Checkpoint == "" {
		return nil
	}
	text, _, _ := strings.Cut(t.Checkpoint, "\n\n")
	if _, err := parseCheckpoint(text + "\n"); err != nil {
		return &proposal.StopError{Code: "audit.checkpoint",
			Message: fmt.Sprintf("invalid checkpoint %.60q", t.Checkpoint),
			Hint:    "give the checkpoint itself, as the report has it (.audit.checkpoint)"}
	}
	return nil
}

// signedNote returns the signed note, or "".
func (t Trust) signedNote() string {
	if t.Checkpoint == "" {
		return ""
	}
	return strings.TrimSuffix(t.Checkpoint, "\n") + "\n"
}

// A Summary describes a log. With an error its numbers show how far
// verification came, and its State is Broken.
type Summary struct {
	State       State  `json:"state"`
	Origin      string `json:"origin"`
	Key         string `json:"key"`         // the key in the header, with which the log verifies
	KeyTrusted  bool   `json:"key_trusted"` // it is the one in Trust, or has signed the checkpoint in Trust
	Entries     int64  `json:"entries"`     // covered by Checkpoint
	Checkpoint  string `json:"checkpoint"`  // the last one, a signed note; "" if the log has no checkpoint
	SignedBytes int64  `json:"signed_bytes"`
	Lines       int64  `json:"lines"` // whole lines
	// TornBytes follow the last checkpoint. Unsigned counts the whole entries
	// (none or one) among them. They were never acknowledged and prove nothing.
	TornBytes int64 `json:"torn_bytes"`
	Unsigned  int64 `json:"unsigned_entries"`
	// Cosigned is set if the seal is the one in Trust.Cosigned.
	Cosigned Cosignature `json:"cosigned,omitzero"`
}

// Complete reports whether the log is whole and the run's: it verifies with a key that is
// trusted, and is sealed. Who can replace a log can sign another one with a key of their own.
func (s Summary) Complete() bool { return s.State == Sealed && s.KeyTrusted }

// String returns one sentence for people. It quotes nothing from entries.
func (s Summary) String() string {
	switch {
	case s.Complete() && s.Cosigned.Key != "":
		return fmt.Sprintf("sealed and complete: %d entries, cosigned with %s at %s", s.Entries, s.Cosigned.Key,
			s.Cosigned.Time.Format(time.RFC3339))
	case s.Complete():
		return fmt.Sprintf("sealed and complete: %d entries", s.Entries)
	case s.State == Sealed:
		return fmt.Sprintf("consistent and sealed: %d entries, signed by a key that is not vouched for", s.Entries)
	case s.State == Unsealed:
		return fmt.Sprintf("unsealed: %d entries end with a valid checkpoint and no seal (its writer was killed or is still running, or the log was cut short)", s.Entries)
	case s.State == Torn:
		return fmt.Sprintf("unsealed: %d entries verify up to byte %d; %d unsigned bytes of a torn write follow, with %d whole entries that were never acknowledged",
			s.Entries, s.SignedBytes, s.TornBytes, s.Unsigned)
	}
	return "broken"
}

// The codes of a VerifyError.
const (
	codeRead       = "read"               // the log cannot be read
	codeHeader     = "header"             // the first line is not a header, or was changed
	codeKey        = "key"                // the key is malformed or not the trusted one
	codeLineLength = "line-too-long"      // a line exceeds the maximum length
	codeEntry      = "entry-malformed"    // not an entry where one must be, or not canonical
	codeNumber     = "entry-number"       // an entry is missing, repeated or moved
	codeChanged    = "entry-changed"      // an entry differs from the one that was signed
	codeCheckpoint = "checkpoint"         // not a checkpoint where one must be, or misplaced
	codeSignature  = "signature"          // a checkpoint is not signed by the key, or was changed
	codeMissing    = "checkpoint-missing" // an entry is not followed by its checkpoint
	codeAfterSeal  = "after-seal"         // bytes follow the seal
	codeTruncated  = "truncated"          // the log ends before the checkpoint in Trust
	codeForked     = "forked"             // the log has another history than the checkpoint in Trust
	codeCosigned   = "cosigned"           // the checkpoint in Trust.Cosigned is not cosigned with Trust.Key
)

// A VerifyError describes the first thing that is wrong in a log, and where it is. Code is stable
// and in docs/ERRORS.md.
type VerifyError struct {
	Code    string `json:"code"`  // for example "truncated"
	Line    int64  `json:"line"`  // from 1; 0 if nothing of the log was read
	Entry   int64  `json:"entry"` // number of the affected entry, -1 for none
	Offset  int64  `json:"byte"`  // of the line's first byte
	Message string `json:"message"`
}

func (e *VerifyError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	where := fmt.Sprintf("line %d (byte %d)", e.Line, e.Offset)
	if e.Entry >= 0 {
		where += fmt.Sprintf(", entry %d", e.Entry)
	}
	return fmt.Sprintf("%s: %s (%s)", where, e.Message, e.Code)
}
