// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"strings"
)

// findRubygems runs "gem sources".
func findRubygems(ctx context.Context, a *toolRunner, r *Registry) error {
	r.Source = "gem sources"
	out, err := a.runTool(ctx, "gem", "sources", "--list")
	if errors.Is(err, errAbsent) {
		r.usePublic()
		return nil
	}
	if err != nil {
		return err
	}
	var list []string
	for _, line := range strings.Fields(out) {
		if !strings.HasPrefix(line, "http://") && !strings.HasPrefix(line, "https://") {
			continue
		}
		p, err := r.addURL(line)
		if err != nil {
			return err
		}
		r.addCompanions(p.origin)
		list = append(list, p.clean)
	}
	if len(list) > 0 && !r.isPublic(r.Origins[0]) {
		r.Files = append(r.Files, File{Path: "~/.gemrc",
			Content: "---\n:sources:\n- " + strings.Join(list, "\n- ") + "\n"})
		r.Env["BUNDLE_MIRROR__ALL"] = list[0]
	}
	return nil
}
