// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"testing"
	"time"
)

func TestCurrent(t *testing.T) {
	c := newConversation()
	k := c.keeper(t)
	if s, err := k.Current(background); err != nil || s.URL != "" || s.State.Result != nil {
		t.Errorf("with no comment: got %+v, %v", s, err)
	}
	c.post(person, Marker)
	k.Results(background, results(head1, 10, 1))
	ours := &c.comments[len(c.comments)-1]
	ours.Updated = time.Unix(1_800_000_000, 0)
	s, err := k.Current(background)
	if err != nil || s.URL != ours.URL || !s.Since.Equal(ours.Updated) || s.State.Result == nil || s.State.Result.RunID != 10 {
		t.Errorf("got %+v, %v", s, err)
	}
}
