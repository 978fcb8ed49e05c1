// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// findGo runs "go env". Of GOPROXY only the URLs are used; "direct" would need the
// hosts of every module and is ignored.
func findGo(ctx context.Context, a *toolRunner, r *Registry) error {
	r.Source = "go env"
	env := map[string]string{}
	out, err := a.runTool(ctx, "go", "env", "-json", "GOPROXY", "GOSUMDB", "GONOSUMDB")
	if errors.Is(err, errAbsent) && os.Getenv("GOPROXY") != "" {
		r.Source, err, out = "GOPROXY", nil, "{}"
		env["GOPROXY"], env["GOSUMDB"], env["GONOSUMDB"] = os.Getenv("GOPROXY"), os.Getenv("GOSUMDB"),
			os.Getenv("GONOSUMDB")
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		return fmt.Errorf("cannot read the output of go env: %v", err)
	}
	if err := r.addProxies(env["GOPROXY"]); err != nil {
		return err
	}
	r.Env["GOPRIVATE"], r.Env["GONOPROXY"] = "", "none" // everything through the proxy
	r.Env["GONOSUMDB"] = env["GONOSUMDB"]
	r.Env["GOSUMDB"] = env["GOSUMDB"]
	// a toolchain that go.mod requires is a module of the same proxy
	if own := os.Getenv("GOTOOLCHAIN"); own == "" || own == "auto" {
		r.Env["GOTOOLCHAIN"] = "auto"
	}
	return r.addSumDB(env["GOSUMDB"])
}

func (r *Registry) addProxies(list string) error {
	var inside strings.Builder
	for list != "" {
		end := strings.IndexAny(list, ",|")
		entry, separator := list, ""
		if end >= 0 {
			entry, separator = list[:end], list[end:end+1]
		}
		list = list[len(entry)+len(separator):]
		if entry = strings.TrimSpace(entry); entry == "off" {
			break
		} else if !strings.HasPrefix(entry, "https://") && !strings.HasPrefix(entry, "http://") {
			continue // direct, or a directory of the host
		}
		p, err := r.addURL(entry)
		if err != nil {
			return err
		}
		inside.WriteString(p.clean + separator)
	}
	r.Env["GOPROXY"] = strings.TrimRight(inside.String(), ",|")
	return nil
}

// addSumDB adds the checksum database: "name", "name+key" or either with a URL, as
// "go help module-auth" documents. Without a URL its host is its name.
func (r *Registry) addSumDB(db string) error {
	fields := strings.Fields(db)
	if len(fields) == 0 || fields[0] == "off" {
		return nil
	}
	if len(fields) > 1 {
		p, err := r.addURL(fields[1])
		r.Env["GOSUMDB"] = strings.Join([]string{fields[0], p.clean}, " ")
		return err
	}
	name, _, _ := strings.Cut(fields[0], "+")
	_, err := r.addURL("https://" + name)
	return err
}
