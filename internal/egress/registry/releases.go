// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"os"
)

// findReleases uses the server that the runner works for. A company's own server is
// assumed to serve the releases' files itself.
func findReleases(_ context.Context, _ *toolRunner, r *Registry) error {
	server := os.Getenv("GITHUB_SERVER_URL")
	if server == "" {
		r.usePublic()
		return nil
	}
	p, err := readURL(server)
	if err != nil {
		return err
	}
	r.Source = "GITHUB_SERVER_URL"
	if r.isPublic(p.origin) {
		r.usePublic()
		return nil
	}
	for _, path := range []string{"/*/*/releases", "/api/v3/repos/*/*/releases"} {
		o := p.origin
		o.Path = path
		r.addPlace(place{}, o)
	}
	return nil
}
