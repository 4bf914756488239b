// Package kubeconfig turns the bytes of kubeconfig files into plain structs, picks one context out of them, and edits
// the files. It opens no connection and runs no plugin: package transport does that with what this package found.
//
// The format is Kubernetes' v1 Config, described at
// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/; several files are merged as
// https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ describes. What kubectl
// refuses is refused, what it tolerates is tolerated; [File.Resolve] names the one exception.
//
// Every type that may hold a secret prints, logs and encodes without it, in every fmt verb, through log/slog and as JSON.
// A [Secret] keeps to that wherever it stands; [Document.Put] writes it into a file.
package kubeconfig
