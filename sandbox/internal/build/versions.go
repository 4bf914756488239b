// Package build turns Go modules into the sandbox's binaries and keeps them in a
// cache folder. It needs nothing but the user's go command and module proxy.
package build

import (
	"fmt"
	"regexp"
	"strings"
)

// The versions built unless the caller chooses others.
const (
	KubernetesVersion = "v1.36.3"
	EtcdVersion       = "v3.6.16"
	KwokVersion       = "v0.8.0"
)

// Binary is one program to build from a Go module.
type Binary struct {
	Name    string // the file's name, such as kube-apiserver
	Module  string
	Version string
	Package string
	// Staging says that Module develops k8s.io/… modules in its own tree, which
	// must be replaced by the versions published beside it.
	Staging bool
	// patches are made to Module for this build; Revision counts their changes.
	patches  []patch
	Revision int
	// Usual is how long the first build takes on two cores.
	Usual string
}

var kubernetesVersion = regexp.MustCompile(`^v1\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$`)

// CheckKubernetesVersion reports whether version is a Kubernetes release's name.
func CheckKubernetesVersion(version string) error {
	if !kubernetesVersion.MatchString(version) {
		return fmt.Errorf("Kubernetes version %q: want a full release name such as %s", version, KubernetesVersion)
	}
	return nil
}

// Kubernetes is a program from k8s.io/kubernetes/cmd.
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

// Etcd is the etcd server.
func Etcd() Binary {
	const module = "go.etcd.io/etcd/server/v3"
	return Binary{Name: "etcd", Module: module, Version: EtcdVersion, Package: module, Usual: "about 45 seconds"}
}

// Kwok is the program that plays nodes and kubelets.
func Kwok() Binary {
	const module = "sigs.k8s.io/kwok"
	return Binary{
		Name: "kwok", Module: module, Version: KwokVersion, Package: module + "/cmd/kwok", Usual: "about 2 minutes",
		patches: kwokPatches, Revision: 2,
	}
}

// linkFlags strips the binary and, for Kubernetes, sets what /version answers,
// as the project's own release build does.
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

// stagingVersion is the version under which Kubernetes publishes its k8s.io/…
// modules: v0.36.3 for v1.36.3.
func (b Binary) stagingVersion() string {
	return "v0." + strings.TrimPrefix(b.Version, "v1.")
}
