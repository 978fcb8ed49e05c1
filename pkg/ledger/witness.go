// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/fumehood/fumehood/pkg/audit"
)

// Witnessed checks that every one of these witnesses has cosigned h, and returns the time of
// the oldest cosignature.
func (l *Ledger) Witnessed(h Head, keys []string) (oldest time.Time, err error) {
	for _, text := range keys {
		w, err := audit.NewCosigner(text)
		if err != nil {
			return oldest, stop(CodeKey, "invalid key of a witness", "give NAME+HASH+KEY as the witness publishes it", err)
		}
		if _, err := note.Open([]byte(h.Signed), note.VerifierList(w)); err != nil {
			return oldest, stop(CodeWitness, fmt.Sprintf("the witness %s has not signed the ledger's checkpoint", w.Name()), "wait until it has, or ask why it does not", err)
		}
		if oldest.IsZero() || w.At().Before(oldest) {
			oldest = w.At()
		}
	}
	return oldest, nil
}
