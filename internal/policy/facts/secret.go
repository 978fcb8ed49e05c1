// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// isHome reports whether clean is in a user's home directory.
func isHome(clean string) bool {
	for _, dir := range []string{"/home", "/root", "/Users"} {
		if _, ok := relativePath(clean, dir); ok {
			return true
		}
	}
	return false
}

// secretDirs are the directories in which a machine keeps keys, logs and its own state.
var secretDirs = []string{
	"/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d", "/etc/docker", "/etc/kubernetes", "/etc/letsencrypt", "/etc/wireguard", "/etc/openvpn",
	"/etc/NetworkManager", "/etc/security", "/etc/krb5.keytab", "/etc/pki", "/etc/cron.d", "/etc/netplan", "/etc/ppp",
	"/var/lib", "/var/log", "/var/run", "/var/spool", "/var/mail", "/var/backups", "/run", "/boot", "/sys", "/.fumehood",
	"/opt/actions-runner", "/actions-runner", "/opt/runner", "/opt/hostedtoolcache", "/opt/agent", "/mnt", "/media", "/srv", "/lost+found",
}

var secretFiles = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/passwd-", "/etc/group-", "/etc/master.passwd", "/etc/crypttab",
	"/etc/fstab", "/etc/crontab", "/etc/machine-id", "/etc/environment",
}

// secretNames are files and directories that contain credentials in any location.
var secretNames = []string{
	".ssh", ".aws", ".gnupg", ".netrc", "_netrc", ".docker", ".kube", ".git-credentials", ".bash_history", ".zsh_history", ".python_history",
	".node_repl_history", ".mysql_history", ".psql_history", ".pgpass", ".my.cnf", ".azure", ".gcloud", ".terraform.d", ".password-store",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "authorized_keys", ".vault-token", ".boto", ".s3cfg", ".dockercfg", ".credentials", "credentials.tfrc.json",
}

// isSecretPath are files that usually contain credentials. The sandbox has none of them; a
// command that reads them is denied for trying.
func isSecretPath(clean string) bool {
	if slices.Contains(secretFiles, clean) {
		return true
	}
	for _, dir := range secretDirs {
		if _, ok := relativePath(clean, dir); ok {
			return true
		}
	}
	for part := range strings.SplitSeq(clean, "/") {
		if slices.Contains(secretNames, part) {
			return true
		}
	}
	if _, ok := relativePath(clean, "/dev"); ok {
		return clean != "/dev" && clean != "/dev/shm" && !strings.HasPrefix(clean, "/dev/shm/")
	}
	return secretProc(clean)
}

// plainProc are the files under /proc that do not reveal another process's memory,
// environment, files or root.
var plainProc = pattern.New(`^/proc(/(cpuinfo|meminfo|version|loadavg|uptime|stat|vmstat|diskstats|filesystems|mounts|devices|swaps|partitions|interrupts|cgroups|sys/(kernel|vm|fs)/[\w./-]+|(self|thread-self|[0-9]+)/(status|cgroup|limits|stat|statm|comm|mounts|mountinfo|sched|schedstat|oom_score|oom_score_adj|io|uid_map|gid_map))?)?$`)

func secretProc(clean string) bool {
	_, ok := relativePath(clean, "/proc")
	return ok && !plainProc.MatchString(clean)
}

// isUncleanPath reports a path with .. in /proc or /dev, where a link may lead anywhere.
func isUncleanPath(text string) bool {
	return strings.Contains(text, "..") && (strings.HasPrefix(text, "/proc") || strings.HasPrefix(text, "/dev"))
}

// nearSecret reports whether a word of which only the beginning is known may name a home
// directory or a secret.
func nearSecret(prefix string) bool {
	dir := path.Clean(prefix)
	if isSecretPath(dir) && dir != "/dev" || isHome(dir) {
		return true
	}
	for _, list := range [][]string{secretFiles, secretDirs, {"/home/", "/root/", "/proc/", "/dev/"}} {
		if slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, prefix) }) {
			return true
		}
	}
	return strings.HasPrefix(prefix, "/proc/") || strings.HasPrefix(prefix, "/dev/")
}

// hiddenPrefix reports whether a word of which only the beginning is known may name .git
// or another hidden file: its last part begins with a dot.
func hiddenPrefix(prefix string) bool {
	last := prefix[strings.LastIndexByte(prefix, '/')+1:]
	return last == "." || len(last) > 1 && last[0] == '.' && last != ".." && strings.HasPrefix(".git", last)
}
