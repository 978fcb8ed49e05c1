// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A source is a source in cargo's configuration.
type source struct {
	ReplaceWith string `json:"replace-with"`
	Registry    string `json:"registry"`
}

// findCrates asks cargo which source, if any, replaces crates.io.
func findCrates(ctx context.Context, a *toolRunner, r *Registry) error {
	r.Source = "cargo config"
	sources, err := cargoSources(ctx, a)
	if err != nil {
		return err
	}
	name := "crates-io"
	for hops := 0; sources[name].ReplaceWith != ""; hops++ {
		if name = sources[name].ReplaceWith; hops > 8 {
			return errors.New("invalid configuration of cargo: its sources replace each other")
		}
	}
	if name == "crates-io" {
		r.Env["CARGO_REGISTRIES_CRATES_IO_PROTOCOL"] = "sparse"
		r.usePublic()
		return nil
	}
	return r.addSparse(sources[name].Registry)
}

// addSparse adds a sparse index: either at …/index with its crates next to it, or at a
// directory that contains both.
func (r *Registry) addSparse(index string) error {
	text, sparse := strings.CutPrefix(index, "sparse+")
	if !sparse {
		return errors.New("unsupported source of cargo: want one whose registry begins with \"sparse+https://\", because git and directories cannot be fetched with GET alone")
	}
	p, err := readURL(text)
	if err != nil {
		return err
	}
	r.addPlace(p, p.origin.trimLastSegment("index"))
	r.Files = append(r.Files, File{Path: "~/.cargo/config.toml", Content: fmt.Sprintf(
		"[source.crates-io]\nreplace-with = \"mirror\"\n\n[source.mirror]\nregistry = \"sparse+%s\"\n", p.clean)})
	return nil
}

// cargoSources runs a cargo command that is still unstable and needs RUSTC_BOOTSTRAP. It
// runs in the root directory, because cargo reads the configuration of every directory
// above its working directory.
func cargoSources(ctx context.Context, a *toolRunner) (map[string]source, error) {
	out, complaint, err := a.execTool(ctx, "/", []string{"RUSTC_BOOTSTRAP=1"}, "cargo",
		"-Z", "unstable-options", "config", "get", "--format", "json-value", "source")
	if errors.Is(err, errAbsent) || err != nil && strings.Contains(complaint, "`source` is not set") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sources map[string]source
	if err := json.Unmarshal([]byte(out), &sources); err != nil {
		return nil, fmt.Errorf("cannot read the output of cargo config: %v", err)
	}
	return sources, nil
}
