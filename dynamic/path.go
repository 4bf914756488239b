package dynamic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/resourcepath"
)

// ForPath returns the handle and object name for an API path, as shown by kubectl -v=6 and in audit logs:
// /apis/apps/v1/namespaces/shop/deployments/web/scale. For the path of a collection name is "". A path without a namespace
// means all namespaces. [Handle.Path] is the inverse. handle.Named(name) lists, watches or follows the object or collection
// at the path. Unknown resources return errors of [restmapper.Mapper.Resource]. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func (c *Client) ForPath(ctx context.Context, path string) (r *Resource, name string, err error) {
	defer func() {
		if err != nil {
			r = nil
			name = ""
			err = fmt.Errorf("find the resource at %q: %w", path, err)
		}
	}()
	parsed, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	r, err = c.Resource(ctx, parsed.gvr.Resource+"."+parsed.gvr.Version+"."+parsed.gvr.Group)
	if err != nil {
		return nil, "", err
	}
	switch resource := r.apiResource; {
	case resource.GVR != parsed.gvr:
		return nil, "", fmt.Errorf("short name in a path (use %s)", resource.GVR.Resource)
	case parsed.namespace != "" && !resource.Namespaced:
		return nil, "", fmt.Errorf("%s is cluster-scoped (remove namespaces/%s)", resource.GVK.Kind, parsed.namespace)
	case parsed.namespace != "":
		r = r.Namespace(parsed.namespace)
	case resource.Namespaced && parsed.name != "":
		return nil, "", fmt.Errorf("%s is namespaced (put namespaces/NAME before %s)", resource.GVK.Kind, resource.GVR.Resource)
	case resource.Namespaced:
		r = r.AllNamespaces()
	}
	return r.Subresource(parsed.subresource), parsed.name, nil
}

type parsedPath struct {
	gvr                          schema.GroupVersionResource
	namespace, name, subresource string
}

// parsePath splits a path like the API server.
func parsePath(path string) (parsed parsedPath, err error) {
	if strings.ContainsAny(path, "?#") {
		return parsed, errors.New("a query is not part of a path (pass options to the verbs)")
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		if segments[i], err = url.PathUnescape(segment); err != nil {
			return parsed, err
		}
		if reason := invalidSegment(segments[i]); reason != "" {
			return parsed, fmt.Errorf("segment %q %s", segment, reason)
		}
	}
	p, ok := resourcepath.ParseSegments(segments)
	switch {
	case !ok || p.IsWatch:
		return parsed, errors.New("not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…")
	case len(p.Rest) > 0:
		return parsed, fmt.Errorf("segments after the subresource %s", p.Subresource)
	}
	gvr := schema.GroupVersionResource{Group: p.Group, Version: p.Version, Resource: p.Resource}
	return parsedPath{gvr, p.Namespace, p.Name, p.Subresource}, nil
}
