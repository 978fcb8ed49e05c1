// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"
)

const snapshotter = "overlayfs"

// network is that of pods: point-to-point links into the node's network namespace,
// where they end, and a route there to addresses of services. Addresses need not be unique on the machine.
const network = `{
  "cniVersion": "1.0.0",
  "name": "nodetest",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {"type": "host-local", "subnet": "10.123.0.0/16", "routes": [{"dst": "10.96.0.0/24"}], "dataDir": "DATADIR"}
  }]
}
`

// plugins is the directory of Debian's containernetworking-plugins.
const plugins = "/usr/lib/cni"

type table = map[string]any

// configure writes the configuration of containerd, of both handlers and of the network.
func (n *Node) configure(ctx context.Context, o Options) error {
	for _, dir := range []string{n.Root, n.path("net.d"), n.path("logs")} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(plugins, "ptp")); err != nil {
		return errors.Join(err, errors.New("install containernetworking-plugins"))
	}
	conflist := bytes.ReplaceAll([]byte(network), []byte("DATADIR"), []byte(n.path("addresses")))
	if err := os.WriteFile(n.path("net.d", "10-nodetest.conflist"), conflist, 0o644); err != nil {
		return err
	}
	fumehood := n.runsc()
	maps.Copy(fumehood, o.Config)
	shim := o.Shim
	if shim == "" {
		shim = n.path("bin", fumehoodShim)
	}
	config := n.toml(shim)
	err := errors.Join(write(n.path(GVisor+".toml"), n.runsc()), write(n.path(Fumehood+".toml"), fumehood))
	if o.Install != nil {
		config = n.importing(config)
		err = errors.Join(err, os.Mkdir(n.path("conf.d"), 0o711), o.Install(n))
	}
	if o.Runc {
		err = errors.Join(err, n.addRunc(ctx, config))
	}
	return errors.Join(err, write(n.path("containerd.toml"), config))
}

// handlers are the part of a configuration that has the runtimes.
func handlers(config table) table {
	return config["plugins"].(table)["io.containerd.cri.v1.runtime"].(table)["containerd"].(table)
}

// addRunc adds the handler Runc to config, as the default. A containerd that starts again looks for its
// shim in PATH alone.
func (n *Node) addRunc(ctx context.Context, config table) error {
	shim, err := runcShim(ctx)
	handlers(config)["default_runtime_name"] = Runc
	handlers(config)["runtimes"].(table)[Runc] = table{"runtime_type": "io.containerd.runc.v2",
		"options": table{"Root": n.path("runc")}}
	n.env = append(n.env, "PATH="+filepath.Dir(shim)+":"+os.Getenv("PATH"))
	return err
}

// importing returns config with the handler Fumehood left to other files.
func (n *Node) importing(config table) table {
	config["imports"] = []string{n.path("conf.d", "*.toml")}
	handlers(config)["default_runtime_name"] = GVisor
	delete(handlers(config)["runtimes"].(table), Fumehood)
	return config
}

// runsc returns the options of gVisor's shim. Grouping, one shim for a pod, is off: with
// it, StopPodSandbox hangs.
func (n *Node) runsc() table {
	return table{
		"binary_name": n.Runsc.Path,
		"root":        n.Root,
		"runsc_config": table{
			"platform":       "systrap",
			"network":        "sandbox",
			"ignore-cgroups": "true",
			"host-uds":       "none",
		},
	}
}

// toml returns containerd's configuration, with nothing outside Dir.
func (n *Node) toml(shim string) table {
	return table{
		"version": 3,
		"root":    n.path("root"),
		"state":   n.path("state"),
		"grpc":    table{"address": n.Socket},
		"ttrpc":   table{"address": n.path("t.sock")},
		"plugins": table{
			"io.containerd.cri.v1.images": table{
				"snapshotter":   snapshotter,
				"pinned_images": table{"sandbox": Pause},
			},
			"io.containerd.cri.v1.runtime": table{
				"restrict_oom_score_adj":       true,
				"disable_apparmor":             true,
				"netns_mounts_under_state_dir": true,
				"cni":                          table{"bin_dirs": []string{plugins}, "conf_dir": n.path("net.d")},
				"containerd": table{
					"default_runtime_name": Fumehood,
					"runtimes":             table{Fumehood: n.handler(Fumehood, shim), GVisor: n.handler(GVisor, n.path("bin", stockShim))},
				},
			},
			"io.containerd.internal.v1.opt": table{"path": n.path("opt")},
			"io.containerd.nri.v1.nri":      table{"disable": true}, // its socket is the machine's
		},
	}
}

func (n *Node) handler(name, shim string) table {
	kind := map[string]string{Fumehood: "io.containerd.fumehood.v1", GVisor: "io.containerd.runsc.v1"}[name]
	return table{
		"runtime_type":          kind,
		"runtime_path":          shim,
		"pod_annotations":       []string{"fumehood.dev/*"},
		"container_annotations": []string{"fumehood.dev/*"},
		"options":               table{"TypeUrl": "io.containerd.runsc.v1.options", "ConfigPath": n.path(name + ".toml")},
	}
}

func write(path string, t table) error {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(t); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
