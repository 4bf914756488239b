package sandbox

import "github.com/anykind/anykind/sandbox/internal/build"

// DefaultKubernetesVersion is the Kubernetes release started unless another is
// chosen.
const DefaultKubernetesVersion = build.KubernetesVersion

// KubernetesVersions returns the releases that `make matrix` tests with, one of each
// minor version that the sandbox supports, oldest first.
func KubernetesVersions() []string {
	return []string{"v1.34.4", "v1.35.4", DefaultKubernetesVersion, "v1.37.1"}
}
