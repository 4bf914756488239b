// Package kubeconfig turns the bytes of kubeconfig files into plain structs and picks one context out of them.
// It opens no connection and runs no plugin: package transport does that with what this package found.
//
// The format is client.authentication's v1 Config, described at
// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/; several files are merged as
// https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ describes.
package kubeconfig
