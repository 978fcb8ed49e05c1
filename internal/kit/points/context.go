// SPDX-License-Identifier: Apache-2.0

package points

import (
	"fmt"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReadContext reads a Context from JSON. It is Known unless it says that it is not. A field that a
// Context does not have is refused, with its place.
func ReadContext(data []byte) (proposal.Context, error) {
	c := proposal.Context{Known: true}
	if err := strictjson.Decode(data, &c); err != nil {
		return proposal.Context{}, err
	}
	return CleanContext(c)
}

// CleanContext returns a copy of c as rules see it: lists sorted, without repetitions and never nil,
// Started in UTC. It refuses what is larger than a Context may be: a rule must not miss a label
// because the list was cut.
func CleanContext(c proposal.Context) (proposal.Context, error) {
	for _, list := range []*[]string{&c.Labels, &c.Changed.Paths, &c.Image.Signers, &c.Credentials} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
		if *list == nil {
			*list = []string{}
		}
	}
	switch {
	case len(c.Labels) > proposal.MaxContextLabels:
		return c, fmt.Errorf("%d labels, at most %d are possible", len(c.Labels), proposal.MaxContextLabels)
	case len(c.Image.Signers) > proposal.MaxContextLabels:
		return c, fmt.Errorf("%d signers, at most %d are possible", len(c.Image.Signers), proposal.MaxContextLabels)
	case len(c.Credentials) > proposal.MaxContextLabels:
		return c, fmt.Errorf("%d credentials, at most %d are possible", len(c.Credentials), proposal.MaxContextLabels)
	case len(c.Changed.Paths) > proposal.MaxContextPaths:
		return c, fmt.Errorf("%d changed paths, at most %d are possible: give these, and complete false",
			len(c.Changed.Paths), proposal.MaxContextPaths)
	case c.PR < 0:
		return c, fmt.Errorf("invalid pull request number %d", c.PR)
	}
	for _, text := range slices.Concat(c.Labels, c.Changed.Paths, c.Image.Signers, c.Credentials, []string{
		c.Repository, c.Visibility, c.DefaultBranch, c.BaseRef, c.HeadRef, c.Event, c.Author, c.Association,
		c.Requester, c.Image.Name, c.Image.Digest}) {
		if len(text) > proposal.MaxContextText {
			return c, fmt.Errorf("a text of %d bytes, at most %d are possible", len(text), proposal.MaxContextText)
		}
	}
	if c.Started != "" {
		at, err := time.Parse(time.RFC3339, c.Started)
		if err != nil {
			return c, fmt.Errorf("invalid time %.40q of started: write it as 2027-03-01T09:30:00Z", c.Started)
		}
		c.Started = FormatStarted(at)
	}
	return c, nil
}

// FormatStarted is Context.Started of a run that started then.
func FormatStarted(at time.Time) string { return at.UTC().Format(time.RFC3339) }
