// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"time"
)

// A Current is the comment's current state.
type Current struct {
	State State
	// Since is when it was last written, as GitHub reports it, to the second. A
	// reply to the comment must have been written later.
	Since time.Time
	URL   string // "" if there is no comment
}

// Current returns the comment's current state, or a zero Current if there is no
// comment.
func (k *Keeper) Current(ctx context.Context) (Current, error) {
	v := visit{Keeper: k}
	if err := v.list(ctx); err != nil {
		return Current{}, err
	}
	s := Current{State: v.present("").State}
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
