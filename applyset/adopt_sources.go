package applyset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// FluxInventory returns the objects in the inventory of a Kustomization or HelmRelease of Flux, for AdoptOptions.Members. An object
// without an inventory is an error.
func FluxInventory(obj *unstructured.Object) ([]Reference, error) {
	entries, found, err := unstructured.Get[[]any](obj, "status", "inventory", "entries")
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the inventory of %s %q: %w", obj.GetKind(), obj.GetName(), err)
	case !found:
		return nil, fmt.Errorf("read the inventory of %s %q: it has no status.inventory.entries", obj.GetKind(), obj.GetName())
	}
	references := make([]Reference, 0, len(entries))
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		ref, err := parseInventoryID(id)
		if err != nil {
			return nil, fmt.Errorf("read the inventory of %s %q: entry %d: %w", obj.GetKind(), obj.GetName(), i, err)
		}
		references = append(references, ref)
	}
	return references, nil
}

// parseInventoryID parses NAMESPACE_NAME_GROUP_KIND. A colon in a name, as in ClusterRoles, is written as two underscores.
func parseInventoryID(id string) (Reference, error) {
	namespace, rest, _ := strings.Cut(id, "_")
	kindAt := strings.LastIndexByte(rest, '_')
	groupAt := strings.LastIndexByte(rest[:max(kindAt, 0)], '_')
	if groupAt <= 0 || kindAt == len(rest)-1 {
		return Reference{}, fmt.Errorf("%q is not NAMESPACE_NAME_GROUP_KIND", id)
	}
	return Reference{
		Kind:      schema.GroupKind{Group: rest[groupAt+1 : kindAt], Kind: rest[kindAt+1:]},
		Namespace: namespace, Name: strings.ReplaceAll(rest[:groupAt], "__", ":"),
	}, nil
}

// HelmRelease returns the objects of the newest deployed revision of a Helm release, for AdoptOptions.Members. It reads the Secrets in
// which Helm stores releases by default, and writes nothing. Hooks are not part of a release. A release without a deployed revision is
// an error.
func HelmRelease(ctx context.Context, client *dynamic.Client, namespace, name string) ([]Reference, error) {
	references, err := helmRelease(ctx, client, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read the Helm release %q: %w", namespace+"/"+name, err)
	}
	return references, nil
}

func helmRelease(ctx context.Context, client *dynamic.Client, namespace, name string) ([]Reference, error) {
	secrets, err := client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err != nil {
		return nil, err
	}
	var newest *unstructured.Object
	newestRevision := 0
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"owner": "helm", "name": name, "status": "deployed"}})
	for secret, err := range secrets.Namespace(namespace).List(ctx, &metav1.ListOptions{LabelSelector: selector, FieldSelector: "type=helm.sh/release.v1"}) {
		if err != nil {
			return nil, err
		}
		if revision, err := strconv.Atoi(secret.GetLabels()["version"]); err == nil && revision > newestRevision {
			newest = secret
			newestRevision = revision
		}
	}
	if newest == nil {
		return nil, errors.New("no deployed revision is stored in a Secret")
	}
	text, err := releaseManifest(newest)
	if err != nil {
		return nil, fmt.Errorf("decode Secret %q: %w", newest.GetName(), err)
	}
	objects, err := manifest.Decode("manifest", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	references := make([]Reference, len(objects))
	for i, obj := range objects {
		if references[i], err = helmReference(ctx, client, namespace, obj.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", obj.Position(), err)
		}
	}
	return references, nil
}

// helmReference names an object of a manifest. Objects that name no namespace are in the namespace of the release.
func helmReference(ctx context.Context, client *dynamic.Client, namespace string, obj *unstructured.Object) (Reference, error) {
	kind := obj.GroupVersionKind().GroupKind()
	ref := Reference{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	resource, err := client.ForKind(ctx, kind.WithVersion(""))
	var noMatch *restmapper.NoMatchError
	switch {
	case errors.As(err, &noMatch): // the object is gone with its kind
	case err != nil:
		return ref, err
	case !resource.APIResource().Namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = namespace
	}
	return ref, nil
}

// maxRelease limits the memory of a decompressed release.
const maxRelease = 64 << 20

// releaseManifest returns the manifest of a stored release: the base64 of gzipped JSON, in the data of a Secret, base64 again.
func releaseManifest(secret *unstructured.Object) (string, error) {
	outer, _, err := unstructured.Get[string](secret, "data", "release")
	if err != nil {
		return "", err
	}
	inner, err := base64.StdEncoding.DecodeString(outer)
	if err != nil {
		return "", fmt.Errorf("data.release: %w", err)
	}
	text, err := base64.StdEncoding.DecodeString(string(inner))
	if err != nil {
		return "", fmt.Errorf("malformed release: %w", err)
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) { // old releases are not compressed
		if text, err = decompress(text); err != nil {
			return "", fmt.Errorf("decompress the release: %w", err)
		}
	}
	var release struct {
		Manifest string `json:"manifest"`
	}
	if err := json.Unmarshal(text, &release); err != nil {
		return "", fmt.Errorf("malformed release: %w", err)
	}
	return release.Manifest, nil
}

func decompress(text []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(reader, maxRelease+1))
	if err == nil && len(all) > maxRelease {
		err = fmt.Errorf("it exceeds %d MiB", maxRelease>>20)
	}
	return all, err
}
