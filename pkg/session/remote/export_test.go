// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import "time"

// EndSoon makes a server not wait for a client that has been here and is gone.
func (o *Options) EndSoon() { o.gone = time.Millisecond }

// RetrySoon makes c not pause between its tries to reach a server that it has lost.
func (c *Client) RetrySoon() { c.bounds.retry = time.Millisecond }
