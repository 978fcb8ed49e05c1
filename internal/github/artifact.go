// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// An Artifact is an artifact of a workflow run. Anyone who can start the run
// chooses its name and all of its content.
type Artifact struct {
	ID      int64
	Name    string
	Size    int64
	Expired bool
	Digest  string // of the zip, "sha256:…"; "" if GitHub returns none
	Created time.Time
}

// artifact adds the fields that go-github leaves out.
type artifact struct {
	gh.Artifact
	Digest string `json:"digest"`
}

// Artifacts lists the artifacts of one workflow run.
func (c *Client) Artifacts(ctx context.Context, run int64) ([]Artifact, error) {
	var list []Artifact
	path := c.repositoryPath(fmt.Sprintf("actions/runs/%d/artifacts", run))
	err := readPages(ctx, c, listArtifacts, path, nil, func(page struct {
		Artifacts []*artifact `json:"artifacts"`
	}) error {
		for _, a := range page.Artifacts {
			if a == nil || a.GetID() <= 0 {
				return malformedError("an artifact without an id")
			}
			list = append(list, Artifact{
				ID: a.GetID(), Name: a.GetName(), Size: a.GetSizeInBytes(), Expired: a.GetExpired(),
				Digest: a.Digest, Created: a.GetCreatedAt().Time,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dropRepeated(list, func(a Artifact) int64 { return a.ID }), nil
}

// DownloadArtifact returns an artifact's zip of at most max bytes. A larger one is an error
// of Kind TooLarge. The URL that GitHub redirects to is requested without the token,
// and only over https, or over http on loopback or if the API itself uses http.
func (c *Client) DownloadArtifact(ctx context.Context, artifact int64, max int64) ([]byte, error) {
	return requestWithRetry(ctx, c, download, func(ctx context.Context) ([]byte, error) {
		place, _, err := c.gh.Actions.DownloadArtifact(ctx, c.owner, c.name, artifact, maxRedirects)
		if err != nil {
			return nil, err
		}
		return c.fetchFrom(ctx, place, max)
	})
}

func (c *Client) fetchFrom(ctx context.Context, place *url.URL, max int64) ([]byte, error) {
	if err := checkPlace(place, c.wire.base); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), nil)
	if err != nil {
		return nil, malformedError("an artifact location that is not a URL")
	}
	resp, err := c.fetch.Do(req)
	if err != nil {
		return nil, incompleteResponse(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// This status says nothing about the artifact: the link is valid for one
		// minute only.
		return nil, &Error{Kind: Unavailable, Status: resp.StatusCode, Message: "from the artifact's location"}
	}
	data, err := readAtMost(resp.Body, max)
	if errors.Is(err, errTooLarge) {
		return nil, &Error{Kind: TooLarge, Message: fmt.Sprintf("the artifact has more than %d bytes", max)}
	}
	if err != nil {
		return nil, incompleteResponse(err)
	}
	return data, nil
}

// checkPlace returns an error unless bytes may be fetched from u when base is the API.
func checkPlace(u, base *url.URL) error {
	switch {
	case u.User != nil || u.Host == "":
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http" && base.Scheme == "http" && strings.EqualFold(u.Hostname(), base.Hostname()):
		return nil
	}
	return &Error{Kind: Moved, Message: makePrintable("to " + u.Scheme + "://" + u.Host)}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var errTooLarge = errors.New("too large")

// readAtMost reads r to its end. It returns errTooLarge if that is more than max bytes.
func readAtMost(r io.Reader, max int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, max+1))
	if int64(len(data)) > max {
		return nil, errTooLarge
	}
	return data, err
}
