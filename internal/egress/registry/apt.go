// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"os"
	"strings"
)

const aptFormat = "$(CREATED_BY)|$(TARGET_OF)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"

// keyrings are where Debian and Ubuntu keep the keys of their own archives outside of
// /etc. apt does not report which keys a source is signed by.
var keyrings = []string{"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/ubuntu-archive-keyring.gpg"}

// findApt runs "apt-get indextargets" to find the archives that apt fetches from.
func findApt(ctx context.Context, a *toolRunner, r *Registry) error {
	r.Source = "apt-get indextargets"
	// With release information it would omit what was never updated.
	out, err := a.runTool(ctx, "apt-get", "indextargets", "--no-release-info", "--format", aptFormat)
	if err != nil {
		return err
	}
	var sources strings.Builder
	keys := signedBy()
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 5 || fields[0] != "Packages" || fields[1] != "deb" || !strings.HasPrefix(fields[2], "http") {
			continue // apt's other methods, such as file: and cdrom:, do not use a host
		}
		p, err := r.addURL(fields[2])
		if err != nil {
			return err
		}
		component := fields[4]
		if strings.HasPrefix(component, "$(") {
			component = "" // an archive without components, "./"
		}
		entry := strings.TrimRight(fmt.Sprintf("deb%s %s %s %s", keys, p.clean, fields[3], component), " ") + "\n"
		if !seen[entry] && !strings.ContainsFunc(fields[3]+component, needsQuoting) {
			seen[entry] = true
			sources.WriteString(entry)
		}
	}
	r.Files = append(r.Files,
		File{Path: "/etc/apt/sources.list.d/fumehood.list", Content: sources.String()},
		File{Path: "/etc/apt/apt.conf.d/90fumehood", Content: aptConf})
	return nil
}

// aptConf makes apt keep its lists where an unprivileged user may write, and not look
// up a mirror's SRV record before its address: the gateway answers addresses only. apt
// creates its directories only below a directory that ends in /apt/ and exists, and
// there is no database of installed packages.
const aptConf = `Dir::State "/tmp/apt/";
Dir::State::status "/dev/null";
Dir::Cache "/tmp/apt/";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::EnableSrvRecords "false";
`

// signedBy returns the option that names the keyrings that the sandbox has, or "".
func signedBy() string {
	var have []string
	for _, path := range keyrings {
		if _, err := os.Stat(path); err == nil {
			have = append(have, path)
		}
	}
	if len(have) == 0 {
		return ""
	}
	return " [signed-by=" + strings.Join(have, ",") + "]"
}
