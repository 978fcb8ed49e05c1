// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ProveEntry returns a proof that an entry is in log: the one with the number id, or the
// result of the proposal id, or else its decision. A log that does not verify proves
// nothing: the error is the *audit.VerifyError, or a StopError for an id that the log
// does not hold.
func ProveEntry(log io.ReadSeeker, trust audit.Trust, id string) ([]byte, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		if n, err = lastEntry(log, trust, id); err != nil {
			return nil, err
		}
	}
	proof, err := audit.Prove(log, trust, n)
	if errors.Is(err, audit.ErrNoEntry) {
		return nil, noEntry(id)
	}
	return proof, err
}

// lastEntry returns the number of the last entry about the proposal id.
func lastEntry(log io.ReadSeeker, trust audit.Trust, id string) (int64, error) {
	found, _, err := audit.Find(log, trust, func(e audit.Entry) bool {
		var body struct {
			ID string `json:"id"`
		}
		return (e.Kind == "result" || e.Kind == "decision") && json.Unmarshal(e.Body, &body) == nil && body.ID == id
	})
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, noEntry(id)
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return 0, unreadableLog(err)
	}
	return found[len(found)-1], nil
}

func noEntry(id string) error {
	return &proposal.StopError{Code: "audit.no-entry", Message: fmt.Sprintf("the log has no proposal or entry %q", id),
		Hint: "use an id or a number from the log or the report"}
}
