//go:build unix

package build

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Default versions.
const (
	KubernetesVersion = "v1.36.3"
	EtcdVersion       = "v3.6.16"
	KwokVersion       = "v0.8.0"
)

// Binary is a program to build from a Go module.
type Binary struct {
	Name    string // the file's name, such as kube-apiserver
	Module  string
	Version string
	Package string
	// Staging is set if Module contains k8s.io/… modules. They are replaced by their published versions.
	Staging bool
	// patches are applied to Module; Revision counts their changes.
	patches  []patch
	Revision int
	// Usual is the usual time of the first build on two cores.
	Usual string
}

var kubernetesVersion = regexp.MustCompile(`^v1\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$`)

// CheckKubernetesVersion returns an error unless version is the name of a Kubernetes release.
func CheckKubernetesVersion(version string) error {
	if !kubernetesVersion.MatchString(version) {
		return fmt.Errorf("Kubernetes version %q: want a full release name such as %s", version, KubernetesVersion)
	}
	return nil
}

// Kubernetes returns a program of k8s.io/kubernetes/cmd.
func Kubernetes(name, version string) Binary {
	usual := "about 1 minute after kube-apiserver, 4 minutes without"
	switch name {
	case "kube-apiserver":
		usual = "about 6 minutes"
	case "kubectl":
		usual = "about 1 minute after kube-apiserver, 2 minutes without"
	}
	return Binary{
		Name: name, Module: "k8s.io/kubernetes", Version: version,
		Package: "k8s.io/kubernetes/cmd/" + name, Staging: true, Usual: usual,
	}
}

// Etcd returns the etcd server.
func Etcd() Binary {
	const module = "go.etcd.io/etcd/server/v3"
	return Binary{Name: "etcd", Module: module, Version: EtcdVersion, Package: module, Usual: "about 45 seconds"}
}

// Kwok returns the program that simulates nodes and kubelets.
func Kwok() Binary {
	const module = "sigs.k8s.io/kwok"
	return Binary{
		Name: "kwok", Module: module, Version: KwokVersion, Package: module + "/cmd/kwok", Usual: "about 2 minutes",
		patches: kwokPatches, Revision: 2,
	}
}

// linkFlags returns flags that strip the binary and, for Kubernetes, set the result of /version like in its release builds.
func (b Binary) linkFlags() string {
	flags := "-s -w"
	m := kubernetesVersion.FindStringSubmatch(b.Version)
	if !b.Staging || m == nil {
		return flags
	}
	const variables = "k8s.io/component-base/version."
	for _, v := range []string{"gitVersion=" + b.Version, "gitMajor=1", "gitMinor=" + m[1], "gitTreeState=clean"} {
		flags += " -X " + variables + v
	}
	return flags
}

// stagingVersion returns the version of the published k8s.io/… modules: v0.36.3 for
// v1.36.3.
func (b Binary) stagingVersion() string {
	return "v0." + strings.TrimPrefix(b.Version, "v1.")
}

// sourceModule is the part of a module's go.mod required for the generated module, in the form of `go mod edit -json`.
type sourceModule struct {
	Go      string
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path, Version string }
	}
}

func parseSourceModule(goModJSON []byte) (*sourceModule, error) {
	var m sourceModule
	if err := json.Unmarshal(goModJSON, &m); err != nil {
		return nil, fmt.Errorf("decode output of `go mod edit -json`: %w", err)
	}
	return &m, nil
}

// generatedModule returns the go.mod of the generated module.
func generatedModule(b Binary, source *sourceModule) string {
	var text strings.Builder
	goVersion := source.Go
	if goVersion == "" {
		goVersion = "1.26.0"
	}
	fmt.Fprintf(&text, "module build.local/sandbox\n\ngo %s\n\nrequire %s %s\n", goVersion, b.Module, b.Version)
	if !b.Staging {
		return text.String()
	}
	for _, r := range source.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/src/") {
			fmt.Fprintf(&text, "\nreplace %s => %s %s", r.Old.Path, r.Old.Path, b.stagingVersion())
		}
	}
	text.WriteByte('\n')
	return text.String()
}
