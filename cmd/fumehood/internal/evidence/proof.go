// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/audit"
)

// A ProofVerdict is what was found in a proof of an entry.
type ProofVerdict struct {
	Proved audit.Proved
	Fault  error // why it proves nothing, or nil
}

// VerifyProof checks the proof in the file at path against trust.Key. An invalid proof is a Fault; the
// error is a *proposal.StopError and means that it was not looked at.
func VerifyProof(path string, trust audit.Trust) (ProofVerdict, error) {
	data, err := audit.ReadProof(path)
	if err != nil {
		return ProofVerdict{}, err
	}
	proved, fault := audit.CheckProof(data, trust)
	return ProofVerdict{proved, fault}, nil
}

// String is one sentence, and for a valid proof a second line with the entry, which is untrusted
// text.
func (v ProofVerdict) String() string {
	if v.Fault != nil {
		return v.Fault.Error()
	}
	return v.Proved.String()
}

// MarshalJSON writes what is proved, or an object with an error.
func (v ProofVerdict) MarshalJSON() ([]byte, error) {
	if v.Fault != nil {
		return json.Marshal(map[string]string{"error": v.Fault.Error()})
	}
	return json.Marshal(v.Proved)
}
