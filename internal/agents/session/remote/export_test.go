// SPDX-License-Identifier: Apache-2.0

package remote

import "time"

// RetrySoon makes c not pause between its tries to reach a server that it has lost.
func (c *Client) RetrySoon() { c.bounds.retry = time.Millisecond }
