package sandbox

import "github.com/anykind/anykind/sandbox/internal/build"

// DefaultKubernetesVersion is the Kubernetes release started unless another is
// chosen.
const DefaultKubernetesVersion = build.KubernetesVersion
