// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"time"
)

// A Standing is our comment as it stands.
type Standing struct {
	State State
	// Since is when it was last written, as GitHub says, to the second. Whoever
	// answers what it says must have written later than that.
	Since time.Time
	URL   string // "" when there is none
}

// Standing returns our comment as it stands; a zero one when there is none.
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
