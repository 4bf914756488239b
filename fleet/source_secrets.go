package fleet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

// clusterNameLabel is the label of Cluster API's Secrets with the name of the cluster.
const clusterNameLabel = "cluster.x-k8s.io/cluster-name"

// ClusterAPI returns a source of the clusters of Cluster API, from the Secrets CLUSTER-kubeconfig in the namespace or namespaces of the
// handle. NAMESPACE/CLUSTER is the name of a cluster. See [Secrets] for the rules.
func ClusterAPI(secrets *dynamic.Resource) Source {
	return followSecrets(secrets, &dynamic.FollowOptions{
		LabelSelector: clusterNameLabel, FieldSelector: "type=cluster.x-k8s.io/secret",
	}, "value", func(secret *unstructured.Object) string {
		cluster := secret.GetLabels()[clusterNameLabel]
		if secret.GetName() != cluster+"-kubeconfig" { // a certificate, for instance
			return ""
		}
		return secret.GetNamespace() + "/" + cluster
	})
}

// Secrets returns a source of the kubeconfigs in the Secrets with labels, in the namespace or namespaces of the handle. Each Secret is a
// cluster named NAMESPACE/NAME, with the current context of the kubeconfig in data[key]; "" means the key "value", as in Secrets of
// Cluster API. Changes of Secrets are watched.
//
// Whoever may write the Secrets must not gain rights on this program's machine. So a kubeconfig that names a program to run or a file to
// read is rejected, and its cluster fails with the reason.
func Secrets(secrets *dynamic.Resource, labelSelector, key string) Source {
	if key == "" {
		key = "value"
	}
	return followSecrets(secrets, &dynamic.FollowOptions{LabelSelector: labelSelector}, key, func(secret *unstructured.Object) string {
		return secret.GetNamespace() + "/" + secret.GetName()
	})
}

// followSecrets follows Secrets. nameOf returns "" for a Secret without a cluster.
func followSecrets(secrets *dynamic.Resource, opts *dynamic.FollowOptions, key string, nameOf func(*unstructured.Object) string) Source {
	return func(ctx context.Context, clusters *Clusters) error {
		names := map[string]string{} // of clusters by namespace/name: a deletion may lack the labels
		for change, err := range secrets.Follow(ctx, opts) {
			if err != nil {
				return fmt.Errorf("read kubeconfigs of Secrets: %w", err)
			}
			switch change.Type {
			case dynamic.Synced:
				clusters.Synced()
			case watch.Added, watch.Modified, watch.Deleted:
				secret := change.Object.GetNamespace() + "/" + change.Object.GetName()
				name := ""
				if change.Type != watch.Deleted {
					name = nameOf(change.Object)
				}
				if last := names[secret]; last != name {
					clusters.Remove(last)
				}
				if name == "" {
					delete(names, secret)
					continue
				}
				names[secret] = name
				cfg, err := secretConfig(ctx, change.Object, key)
				if err != nil {
					err = fmt.Errorf("kubeconfig of Secret %s: %w", secret, err)
				}
				clusters.putLoaded(name, cfg, err)
			default:
			}
		}
		return errors.New("read kubeconfigs of Secrets: the stream has ended")
	}
}

// secretConfig returns the configuration in a Secret.
func secretConfig(ctx context.Context, secret *unstructured.Object, key string) (*transport.Config, error) {
	encoded, found, err := unstructured.Get[string](secret, "data", key)
	if err != nil || !found {
		return nil, fmt.Errorf("no data[%q]", key)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("data[%q] is not base64", key)
	}
	file, err := kubeconfig.Parse(data, "")
	if err != nil {
		return nil, err
	}
	if err := rejectLocal(file); err != nil {
		return nil, err
	}
	return transport.Load(ctx, &transport.LoadOptions{Kubeconfig: file})
}

// rejectLocal returns an error if a kubeconfig names programs or files.
func rejectLocal(file *kubeconfig.File) error {
	for name, cluster := range file.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("cluster %q names a file (use certificate-authority-data)", name)
		}
	}
	for name, user := range file.Users {
		switch {
		case user.Exec != nil:
			return fmt.Errorf("user %q names a program: credential plugins of Secrets are not run", name)
		case user.AuthProvider != nil:
			return fmt.Errorf("user %q has an auth-provider, which may name files", name)
		case slices.ContainsFunc([]string{user.ClientCertificate, user.ClientKey, user.TokenFile}, func(path string) bool { return path != "" }):
			return fmt.Errorf("user %q names a file (use client-certificate-data, client-key-data and token)", name)
		}
	}
	return nil
}
