// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"time"
)

// A Standing is the comment's current state.
type Standing struct {
	State State
	// Since is when it was last written, as GitHub reports it, to the second. A
	// reply to the comment must have been written later.
	Since time.Time
	URL   string // "" if there is no comment
}

// Standing returns the comment's current state, or a zero Standing if there is no
// comment.
func (k *Keeper) Standing(ctx context.Context) (Standing, error) {
	v := visit{Keeper: k}
	if err := v.list(ctx); err != nil {
		return Standing{}, err
	}
	s := Standing{State: v.present("").State}
	for i, c := range v.ours {
		if i == 0 {
			s.URL = c.URL
		}
		if c.Updated.After(s.Since) {
			s.Since = c.Updated
		}
	}
	return s, nil
}
